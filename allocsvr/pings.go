package allocsvr

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// pingTick is the pause between two looks at which nodes are silent.
	pingTick = 10 * time.Millisecond
	// pingWithin bounds a ping, so that a lost one is followed by another.
	pingWithin = 200 * time.Millisecond
	// witnessWithin bounds the question to another node.
	witnessWithin = 30 * time.Millisecond
)

// pings find out which other nodes are silent, so that what they have of strict and exact spaces is taken over
// before their leases end.
type pings struct {
	self  seq.Session
	clock clock.Clock
	// sessions returns the sessions that the stores reported. wanted reports whether any space is strict or exact.
	sessions func() []quorum.SessionView
	wanted   func() bool
	ping     func(ctx context.Context, addr string) error
	ask      func(ctx context.Context, addr string, of seq.Session) (hears bool, err error)
	suspect  func(silent map[string]seq.Session)
	event    func(context.Context, arbiter.Event)
	log      *slog.Logger

	mu      sync.Mutex // guards silence
	silence *nodes.Silence

	suspicions, wrong atomic.Uint64
}

func newPings(n *Node, clk clock.Clock) *pings {
	return &pings{self: n.alloc.session, clock: clk, sessions: n.leases.Sessions, ping: n.peers.Ping, ask: n.peers.Hears,
		suspect: n.alloc.owner.Suspect, event: n.event, log: n.cfg.Logger, silence: nodes.NewSilence(n.cfg.SuspectAfter),
		wanted: func() bool {
			return slices.ContainsFunc(n.alloc.sections.Mapping().Spaces, func(s seq.Space) bool { return s.Mode.Leaseless() })
		}}
}

// event writes an event to the log of decisions.
func (n *Node) event(ctx context.Context, e arbiter.Event) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := n.alloc.routes.Record(ctx, []arbiter.Event{e}); err != nil {
		n.cfg.Logger.Warn("event not written", "kind", e.Kind, "subject", e.Subject, "error", err)
	}
}

// run pings until ctx ends.
func (p *pings) run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	stops := make(map[seq.Session]context.CancelFunc)
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	var told map[string]seq.Session
	others := p.others()
	for last, listed := p.now(), p.now(); wake.Sleep(ctx, pingTick); {
		now := p.now()
		late := now - last - pingTick
		last = now
		if now-listed >= 10*pingTick {
			others, listed = p.others(), now
		}
		for id, other := range others {
			if stops[id] == nil {
				life, stop := context.WithCancel(ctx)
				stops[id] = stop
				all.Go(func() { p.keepPinging(life, other) })
			}
		}
		for id, stop := range stops {
			if _, there := others[id]; !there {
				stop()
				delete(stops, id)
			}
		}
		silent := p.look(ctx, others, now, late)
		if !maps.Equal(silent, told) {
			told = silent
			p.suspect(silent)
		}
	}
	return nil
}

func (p *pings) now() time.Duration { return p.clock.Now() }

// others lists the other live sessions. If no space is strict or exact, it lists none.
func (p *pings) others() map[seq.Session]quorum.SessionView {
	out := make(map[seq.Session]quorum.SessionView)
	if !p.wanted() {
		return out
	}
	now := p.now()
	for _, s := range p.sessions() {
		if s.Session != p.self && !s.Dead && s.FreeAt > now && s.Addr != "" {
			out[s.Session] = s
		}
	}
	return out
}

// keepPinging pings one node until ctx ends.
func (p *pings) keepPinging(ctx context.Context, to quorum.SessionView) {
	for ctx.Err() == nil {
		p.mu.Lock()
		p.silence.Sent(to.Session, p.now())
		p.mu.Unlock()
		try, cancel := context.WithTimeout(ctx, pingWithin)
		err := p.ping(try, to.Addr)
		cancel()
		pause := pingTick / 2
		if answered(err) {
			pause = nodes.PingEvery
			p.mu.Lock()
			wrongly := p.silence.Heard(to.Session, p.now())
			p.mu.Unlock()
			if wrongly {
				p.wrong.Add(1)
				p.log.Warn("a node was late and not silent", "node", to.Name)
				p.event(ctx, arbiter.Event{Kind: "suspect", Subject: to.Name, Reason: "it was late and not silent"})
			}
		}
		if !wake.Sleep(ctx, pause) {
			return
		}
	}
}

// answered reports whether a ping met a process: one of the build before does not know pings.
func answered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	}
	return true
}

// look returns the nodes that are silent, with their sessions. This node runs
// so much later than it wanted to.
func (p *pings) look(ctx context.Context, others map[seq.Session]quorum.SessionView, now, late time.Duration) map[string]seq.Session {
	p.mu.Lock()
	p.silence.Forget(func(id seq.Session) bool { _, ok := others[id]; return ok })
	p.silence.Ran(late, now)
	all, fresh := p.silence.Quiet(now)
	p.mu.Unlock()
	for _, id := range fresh {
		if p.heardElsewhere(ctx, others, id) {
			p.mu.Lock()
			p.silence.Spare(id, p.now())
			p.mu.Unlock()
			all = slices.DeleteFunc(all, func(s seq.Session) bool { return s == id })
			continue
		}
		p.suspicions.Add(1)
		p.log.Warn("a node is silent", "node", others[id].Name, "session", id)
	}
	silent := make(map[string]seq.Session)
	for _, id := range all {
		silent[others[id].Name] = id
	}
	return silent
}

// heardElsewhere asks one other node whether it hears the session.
func (p *pings) heardElsewhere(ctx context.Context, others map[seq.Session]quorum.SessionView, of seq.Session) bool {
	for id, witness := range others {
		p.mu.Lock()
		well := id != of && p.silence.Hears(id, p.now())
		p.mu.Unlock()
		if !well {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, witnessWithin)
		defer cancel()
		hears, err := p.ask(ctx, witness.Addr, of)
		return err == nil && hears
	}
	return false
}

// hears reports whether a session answers the pings of this node.
func (p *pings) hears(session seq.Session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.silence.Hears(session, p.now())
}
