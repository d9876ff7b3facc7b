// Package languages runs the test programs of the libraries of clients/ against a real cluster, whose router is
// killed, and against one with TLS and roles. It has tests only, which skip where a language is missing.
package languages
