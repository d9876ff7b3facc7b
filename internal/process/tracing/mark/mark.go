// Package mark writes what is known of a request on the span that is open for it, whatever
// opened it. It needs the API of OpenTelemetry alone, so that programs of callers which
// import it get nothing that sends spans.
//
// What belongs here: attributes. What does not: starting, passing on and sending spans.
package mark

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// RequestIDKey is the attribute with the ID of a request.
const RequestIDKey = "request.id"

// RequestID writes it on the span in ctx, if there is one.
func RequestID(ctx context.Context, id string) {
	trace.SpanFromContext(ctx).SetAttributes(attribute.String(RequestIDKey, id))
}
