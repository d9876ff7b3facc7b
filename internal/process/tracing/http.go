package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

// The attributes of a request, by OpenTelemetry's conventions.
const (
	httpMethod = attribute.Key("http.request.method")
	httpRoute  = attribute.Key("http.route")
	httpStatus = attribute.Key("http.response.status_code")
)

// HTTP puts a span around each request, by the pattern that an http.ServeMux in next
// finds for it; requests for the paths of quiet get none. It is next itself for nil.
func (t *Tracer) HTTP(next http.Handler, quiet ...string) http.Handler {
	if t == nil {
		return next
	}
	hushed := make(map[string]bool, len(quiet))
	for _, path := range quiet {
		hushed[path] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hushed[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		ctx := w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.spans.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer))
		r = r.WithContext(ctx)
		if !span.IsRecording() {
			next.ServeHTTP(w, r)
			return
		}
		defer span.End()
		out := gate.Watch(w)
		next.ServeHTTP(out, r)
		method := known(r.Method)
		span.SetName(method + " " + r.Pattern)
		span.SetAttributes(httpMethod.String(method), httpRoute.String(r.Pattern), httpStatus.Int(out.Code))
		if out.Code >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(out.Code))
		}
	})
}

// known bounds the methods: anybody may send any word.
func known(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return method
	}
	return "_OTHER"
}
