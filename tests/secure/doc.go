// Package secure checks a whole cluster under mutual TLS: its daemons reach each other,
// callers get in by certificate only, and certificates are replaced while it serves. It
// has tests only.
package secure
