package allocsvr

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// pinged are two other nodes, b and c, as a sees them.
type pinged struct {
	*pings
	mu       sync.Mutex // guards all below
	dead     map[string]bool
	hears    bool // what c says of b
	asked    int
	strict   bool
	silent   map[string]seq.Session
	since    time.Time // of silent
	events   int
	messages int
}

func newPinged(t *testing.T) *pinged {
	clk := bubble.NewClock()
	p := &pinged{dead: make(map[string]bool), strict: true}
	p.pings = &pings{self: 0xa, clock: clk, silence: nodes.NewSilence(40 * time.Millisecond), log: slog.New(slog.DiscardHandler),
		wanted: func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.strict
		},
		sessions: func() []quorum.SessionView {
			until := clk.Now() + time.Second
			return []quorum.SessionView{{Session: 0xa, Name: "a", Addr: "a", FreeAt: until}, {Session: 0xb, Name: "b", Addr: "b", FreeAt: until}, {Session: 0xc, Name: "c", Addr: "c", FreeAt: until}}
		},
		ping: func(ctx context.Context, addr string) error {
			p.mu.Lock()
			dead := p.dead[addr]
			p.messages++
			p.mu.Unlock()
			if dead {
				<-ctx.Done()
				return status.FromContextError(ctx.Err()).Err()
			}
			return status.Error(codes.Unimplemented, "a build of before lives, too")
		},
		ask: func(context.Context, string, seq.Session) (bool, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.asked++
			return p.hears, nil
		},
		suspect: func(silent map[string]seq.Session) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.silent, p.since = silent, time.Now()
		},
		event: func(_ context.Context, e arbiter.Event) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events++
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = p.run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

func (p *pinged) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func TestANodeThatNoOtherHearsIsTakenForSilentAndBackWhenItAnswers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPinged(t)
		time.Sleep(time.Second)
		p.set(func() {
			if len(p.silent) > 0 {
				t.Errorf("silent: %v, and all answer", p.silent)
			}
			p.dead["b"] = true
		})
		died := time.Now()
		time.Sleep(100 * time.Millisecond)
		p.set(func() {
			if !maps.Equal(p.silent, map[string]seq.Session{"b": 0xb}) || p.since.Sub(died) > 80*time.Millisecond || p.asked != 1 {
				t.Errorf("silent: %v after %v, %d questions; want b within 80ms, and c asked once", p.silent, p.since.Sub(died), p.asked)
			}
			p.dead["b"] = false
		})
		time.Sleep(time.Second)
		p.set(func() {
			if len(p.silent) > 0 || p.events != 1 || p.suspicions.Load() != 1 || p.wrong.Load() != 1 {
				t.Errorf("silent: %v, %d events, %d suspicions, %d false; want none and one of each", p.silent, p.events, p.suspicions.Load(), p.wrong.Load())
			}
		})
	})
}

func TestANodeThatAnotherHearsIsNotTakenForSilent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPinged(t)
		time.Sleep(time.Second)
		p.set(func() { p.dead["b"], p.hears = true, true })
		time.Sleep(time.Second)
		p.set(func() {
			if len(p.silent) > 0 || p.asked < 5 {
				t.Errorf("silent: %v, %d questions; want none, and c asked again and again", p.silent, p.asked)
			}
			p.hears = false
		})
		time.Sleep(200 * time.Millisecond)
		p.set(func() {
			if len(p.silent) != 1 {
				t.Errorf("silent: %v, want b", p.silent)
			}
		})
	})
}

func TestWithoutStrictAndExactSpacesNoNodeIsPinged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPinged(t)
		p.set(func() { p.strict = false })
		time.Sleep(time.Second)
		p.set(func() { p.messages = 0 })
		time.Sleep(time.Second)
		p.set(func() {
			if p.messages > 0 {
				t.Errorf("%d pings", p.messages)
			}
		})
	})
}
