package rpc

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// Anonymous stands for a principal that is not known.
const Anonymous = "anonymous"

// Change is a change that was made, or refused. It has no token in it.
type Change struct {
	Principal string // such as operator/ops, or Anonymous
	Role      auth.Role
	Method    string // full name
	Target    string // as auth.Change says
	Peer      string // address
	For       string // the caller that a router names, and its address; or empty
	Outcome   string // OK, or the code of the error

	told bool // there is an event about it
}

// By names the principal that makes the change, for people.
func (c *Change) By() string {
	text := c.Principal + " at " + c.Peer
	if c.For != "" {
		text += " for " + c.For
	}
	return text
}

// Changes writes changes down with their callers: a line of the log for each, refused ones
// too, whatever the level of the log is, and done for those that were done and that have no
// event yet. It never waits, and keeps nothing but a few counters: of one
// method and outcome it writes at most so many lines a second, and says how many it left out.
type Changes struct {
	log  *slog.Logger
	by   *auth.Guard
	done func(Change) // must not block; may be nil

	mu    sync.Mutex // guards lines
	lines map[lineKey]*lines
}

const linesPerSecond = 20

type lineKey struct {
	method string // of auth.Methods: there is an end of those
	ok     bool
}

type lines struct {
	second       int64
	written, out int
}

// NewChanges makes Changes for a server that the guard, which may be nil, stands before.
func NewChanges(log *slog.Logger, by *auth.Guard, done func(Change)) *Changes {
	return &Changes{log: log, by: by, done: done, lines: map[lineKey]*lines{}}
}

// errPanicked is what came of a handler that did not return.
var errPanicked = errors.New("handler panicked")

type changeKey struct{}

// ChangeBy names the principal of the change that ctx belongs to, for code that writes an event about it
// itself; "operator" where it is not known.
func ChangeBy(ctx context.Context) string {
	c, ok := ctx.Value(changeKey{}).(*Change)
	if !ok {
		return "operator"
	}
	c.told = true
	return c.By()
}

// Caller is the caller of the call of ctx, and its address, for people.
func Caller(ctx context.Context, by *auth.Guard) string {
	one := Change{Principal: Anonymous, Peer: peerOf(ctx)}
	if id, _ := by.Holder(WhoOf(ctx)); id != "" {
		one.Principal = id
	}
	return one.By()
}

// Forwarding is ctx for passing the change on that it belongs to, if it does, with the name
// of its caller.
func Forwarding(ctx context.Context) context.Context {
	if c, ok := ctx.Value(changeKey{}).(*Change); ok {
		return metadata.AppendToOutgoingContext(ctx, ForHeader, c.Principal+" at "+c.Peer)
	}
	return ctx
}

// Watch has a change written down when end is called with what came of it; ctx is for the
// handler. For calls that change nothing ctx is as it was, and end does nothing.
func (c *Changes) Watch(ctx context.Context, who auth.Credentials, from, method string, message any) (_ context.Context, end func(*error)) {
	of := auth.Methods[method].Change
	if of == nil {
		return ctx, func(*error) {}
	}
	target, changes := "", true
	if message != nil {
		target, changes = of(message)
	}
	if !changes {
		return ctx, func(*error) {}
	}
	one := &Change{Principal: Anonymous, Method: method, Target: target, Peer: from}
	if id, role := c.by.Holder(who); id != "" {
		one.Principal, one.Role = id, role
	}
	if c.by == nil || one.Role == auth.Router {
		one.For = plainText(strings.Join(metadata.ValueFromIncomingContext(ctx, ForHeader), ", "))
	}
	return context.WithValue(ctx, changeKey{}, one), func(err *error) {
		one.Outcome = "OK"
		if *err != nil {
			one.Outcome = strings.TrimPrefix(ToKeyError(0, *err).GetCode().String(), "ERROR_CODE_")
		}
		c.write(one)
	}
}

// plainText is what a header may bring into a log.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}

func (c *Changes) write(one *Change) {
	if out, ok := c.turn(one, time.Now()); ok {
		r := slog.NewRecord(time.Now(), slog.LevelInfo, "change", 0)
		r.AddAttrs(slog.String("principal", one.Principal), slog.String("role", string(one.Role)), slog.String("method", one.Method),
			slog.String("target", one.Target), slog.String("outcome", one.Outcome), slog.String("peer", one.Peer))
		if one.For != "" {
			r.AddAttrs(slog.String("for", one.For))
		}
		if out > 0 {
			r.AddAttrs(slog.Int("others_not_logged", out))
		}
		_ = c.log.Handler().Handle(context.Background(), r) // not Log: a level does not silence it
	}
	if c.done != nil && one.Outcome == "OK" && !one.told {
		c.done(*one)
	}
}

// turn tells whether there is a line for the change, and how many before it had none.
func (c *Changes) turn(one *Change, now time.Time) (out int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := lineKey{one.Method, one.Outcome == "OK"}
	l := c.lines[key]
	if l == nil {
		l = &lines{}
		c.lines[key] = l
	}
	if s := now.Unix(); s != l.second {
		l.second, l.written = s, 0
	}
	if l.written++; l.written > linesPerSecond {
		l.out++
		return 0, false
	}
	out, l.out = l.out, 0
	return out, true
}

func peerOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

// Unary has unary calls of a server watched.
func (c *Changes) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if auth.Methods[info.FullMethod].Change == nil {
		return next(ctx, req)
	}
	ctx, end := c.Watch(ctx, WhoOf(ctx), peerOf(ctx), info.FullMethod, req)
	came := errPanicked
	defer func() { end(&came) }()
	reply, err := next(ctx, req)
	came = err
	return reply, err
}

// Stream has streams of a server watched.
func (c *Changes) Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if auth.Methods[info.FullMethod].Change == nil {
		return next(srv, stream)
	}
	ctx := stream.Context()
	_, end := c.Watch(ctx, WhoOf(ctx), peerOf(ctx), info.FullMethod, nil)
	came := errPanicked
	defer func() { end(&came) }()
	came = next(srv, stream)
	return came
}
