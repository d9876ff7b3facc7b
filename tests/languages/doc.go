// Package languages runs the test programs of the libraries of clients/ against a real cluster, whose router is
// killed, and the example for Python. It has tests only, which skip where a language is missing.
package languages
