// Package requestid gives each request an ID, passes on one that came, and puts it into
// logs and the trace: middleware for net/http and interceptors for gRPC, for servers and
// for clients.
//
// It guarantees that every request has an ID of 1 to MaxLength bytes of
// A-Z a-z 0-9 . _ : / + = and -, whatever came and whatever fails: what came and is none
// is replaced, so no caller writes lines into the log of another. An ID that came says what
// the caller said, and is no proof of anything; at an edge to strangers Config.Fresh
// gives each request its own.
//
// What belongs here: carrying the ID. What does not: making it (Config.New; package
// snowflake, a client's NextID or a UUID), access logs, starting spans.
package requestid

import (
	"context"
	"log/slog"
	"strings"

	"github.com/google/uuid"

	"github.com/seqsvr/seqsvr/internal/process/tracing/mark"
	"github.com/seqsvr/seqsvr/snowflake"
)

const (
	// Header is the header of HTTP and, in small letters, the metadata key of gRPC.
	Header = "X-Request-Id"
	// LogKey is the attribute in logs.
	LogKey = "request_id"
	// MaxLength bounds an ID, in bytes.
	MaxLength = 128
)

// metadataKey is Header as gRPC writes it.
const metadataKey = "x-request-id"

// Config is what a Stamp is made of. The zero one serves.
type Config struct {
	// New makes an ID. It must not wait, because it is called for each request, and must be safe for
	// concurrent use. If nil, IDs are UUIDs of version 7. An ID that is not valid is replaced by such a
	// UUID.
	New func() string
	// Fresh gives each request that comes to a server an ID of its own.
	Fresh bool
}

// Stamp is the middleware. Safe for concurrent use.
type Stamp struct{ cfg Config }

// New makes a Stamp.
func New(cfg Config) *Stamp { return &Stamp{cfg} }

// Of makes a Config.New of what makes snowflake IDs: a snowflake.Generator's Next. An
// error gives nothing, so that the request gets a UUID.
func Of(next func() (snowflake.ID, error)) func() string {
	return func() string {
		id, err := next()
		if err != nil {
			return ""
		}
		return id.String()
	}
}

type key struct{}

// From is the ID of the request that ctx is for, "" if there is none.
func From(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}

// With is ctx for a request with that ID, for what came in on another way, such as a queue;
// ctx itself if it is no sound ID.
func With(ctx context.Context, id string) context.Context {
	if !Valid(id) {
		return ctx
	}
	return context.WithValue(ctx, key{}, id)
}

// Valid tells whether a text may be an ID.
func Valid(id string) bool {
	if id == "" || len(id) > MaxLength {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:/+=-", c) >= 0) {
			return false
		}
	}
	return true
}

// fresh is a new ID.
func (s *Stamp) fresh() string {
	if s.cfg.New != nil {
		if id := s.cfg.New(); Valid(id) {
			return id
		}
	}
	return uuid.Must(uuid.NewV7()).String() // it fails only where there is no randomness, and crypto/rand ends the process then
}

// arrived is ctx for a request to a server, and its ID: the one that came, if it is alone
// and sound. It stands in the trace from here on.
func (s *Stamp) arrived(ctx context.Context, came []string) (context.Context, string) {
	id := ""
	if !s.cfg.Fresh && len(came) == 1 && Valid(came[0]) {
		id = came[0]
	} else {
		id = s.fresh()
	}
	mark.RequestID(ctx, id)
	return With(ctx, id), id
}

// leaving returns the ID for an outgoing request: the ID of the incoming request that caused it, else a new
// one.
func (s *Stamp) leaving(ctx context.Context) string {
	if id := From(ctx); id != "" {
		return id
	}
	return s.fresh()
}

// Logs returns a handler that adds the ID of ctx to each record, as LogKey. Use it with the methods of
// slog.Logger that take a context, such as InfoContext.
func Logs(next slog.Handler) slog.Handler { return logs{next} }

type logs struct{ slog.Handler }

// Handle implements slog.Handler.
func (l logs) Handle(ctx context.Context, r slog.Record) error {
	if id := From(ctx); id != "" {
		r = r.Clone() // others may hold the same record
		r.AddAttrs(slog.String(LogKey, id))
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler { return logs{l.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler. Inside of a group the ID stands in the group.
func (l logs) WithGroup(name string) slog.Handler { return logs{l.Handler.WithGroup(name)} }
