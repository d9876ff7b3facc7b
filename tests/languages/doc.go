// Package languages runs the programs of examples/ against a real cluster, once as it is and
// once while an allocator is killed. It has tests only, which skip where a language's
// libraries are not there; docs/clients.md says how to install them.
package languages
