package requestid

import "net/http"

// HTTP gives each request its ID before next, and says it in the answer. It goes inside of
// what opens a span, so that the span has it.
func (s *Stamp) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, id := s.arrived(r.Context(), r.Header.Values(Header))
		w.Header().Set(Header, id)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// RoundTripper sends with each request the ID of its context, or a new one; a header that the
// request has goes before. Nil is http.DefaultTransport.
func (s *Stamp) RoundTripper(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return roundTripper{s, next}
}

type roundTripper struct {
	s    *Stamp
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get(Header) == "" {
		id := t.s.leaving(r.Context())
		r = r.Clone(r.Context()) // a RoundTripper changes no request
		r.Header.Set(Header, id)
	}
	return t.next.RoundTrip(r)
}
