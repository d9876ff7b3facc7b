package gate

import (
	"net/http"
	"testing"
)

// recovers reports whether a server goes on after a panic of a handler. In a test the panic ends
// the process, because a client that tries again would hide it.
var recovers = !testing.Testing()

// EndTests returns h; in a test, a handler that ends the process when h panics, which net/http
// alone would recover from.
func EndTests(h http.Handler) http.Handler {
	if recovers {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p == http.ErrAbortHandler {
				panic(p)
			} else if p != nil {
				endTest(p)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// endTest panics where nothing recovers.
var endTest = func(p any) {
	go panic(p)
	select {}
}
