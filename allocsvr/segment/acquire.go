package segment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Pauses of an acquisition that could not be made. Requests wait for it, and a
// release in order by the node before is not announced, so a look, which costs the
// stores no write, is made more often than the end of its lease would ask for.
const (
	retrySoonest = 2 * time.Millisecond
	retryLatest  = 50 * time.Millisecond
)

// attachPatience is the time that W stores have to attach a lease. After it, the tag is acquired again.
const attachPatience = 2 * time.Second

// acquirer acquires the requested tags, all that wait at one moment in one ownership.Acquire. Only it bids
// for tags, one batch after the other. So a tag is never prepared while it is served, or while an older
// attempt of it is at the stores.
type acquirer struct {
	s *Service

	mu   sync.Mutex // guards open
	open []attempt

	kick *wake.Signal
}

func newAcquirer(s *Service) *acquirer { return &acquirer{s: s, kick: wake.New()} }

// add asks for an acquisition. The caller may hold c.mu.
func (a *acquirer) add(t attempt) {
	a.mu.Lock()
	a.open = append(a.open, t)
	a.mu.Unlock()
	a.kick.Kick()
}

// run acquires until ctx ends.
func (a *acquirer) run(ctx context.Context) {
	var attaching sync.WaitGroup
	defer attaching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.kick.C():
		}
		a.mu.Lock()
		open := a.open
		a.open = nil
		a.mu.Unlock()
		gained := ownership.Acquire(ctx, a.s.cfg.Holder, a.bids(open))
		reread := a.s.catalog.Read // one for all, after a pause
		if len(gained) == 1 {
			reread = a.s.catalog.Load
		}
		for _, g := range gained {
			attaching.Go(func() { a.finish(ctx, g, reread) })
		}
	}
}

// bid is one tag on its way through an acquisition: its ownership.AcquireHandler.
type bid struct {
	attempt
	a       *acquirer
	limits  Tag
	era     uint64 // where the tags of the era begin
	base    uint64
	ceiling uint64
}

// bids returns the bids of the attempts that are still wanted.
func (a *acquirer) bids(open []attempt) []*bid {
	bids := make([]*bid, 0, len(open))
	for _, t := range open {
		limits, ok := t.look()
		if !ok {
			continue
		}
		if mine, _ := a.s.cfg.Owner(t.c.section); !mine || a.s.leaving.Load() || limits.Retired != 0 {
			t.cancel() // what waits is told by its own look at the owner
			continue
		}
		bids = append(bids, &bid{attempt: t, a: a, limits: limits})
	}
	return bids
}

// Register implements ownership.AcquireHandler.
func (b *bid) Register() seq.Register { return b.c.register }

// Free implements ownership.AcquireHandler.
func (b *bid) Free(quorum.Outcome) bool { return true }

// Begin implements ownership.AcquireHandler: the tag goes on above everything that was ever confirmed.
func (b *bid) Begin(_ seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool) {
	b.era = found.Floor
	b.base = max(found.Max, b.limits.above(b.era))
	b.ceiling = max(b.base, min(b.base+b.limits.MinStep, uint64(seq.MaxSeq)))
	return b.ceiling, true
}

// Confirmed implements ownership.AcquireHandler.
func (b *bid) Confirmed(epoch seq.Epoch) bool { return b.expect(epoch) }

// Failed implements ownership.AcquireHandler. Nothing was handed out under the epoch, and the next try
// takes a new one.
func (b *bid) Failed(_ ownership.Stage, out quorum.Outcome) { b.a.later(b.attempt, out) }

// finish serves a tag once W stores have its lease.
func (a *acquirer) finish(ctx context.Context, g ownership.Gained[*bid], reread func(context.Context) (tags, error)) {
	t := g.Bid
	patience := time.NewTimer(attachPatience)
	defer patience.Stop()
	select {
	case <-g.Hold.Ready():
	case <-patience.C:
		// Not ready to be served, and never installed: the next try may prepare.
		g.Hold.Drop()
		a.later(t.attempt, quorum.Outcome{Err: fmt.Errorf("attach %s: %w", t.c.register, seq.ErrNoLease)})
		return
	case <-ctx.Done():
		g.Hold.Drop()
		return
	}
	// Only now: a change of the tag that is answered without asking this node was recorded before the lease was
	// ready, or its asker finds this node at the stores.
	fresh := g.Hold.Until()
	if _, err := reread(ctx); err != nil {
		g.Hold.Drop()
		a.later(t.attempt, quorum.Outcome{Err: err})
		return
	}
	b := newBuffers(t.base, t.ceiling, t.era, a.s.cfg.Clock.Now(), t.limits)
	ok, err := t.install(g.Epoch, b, g.Hold, fresh)
	if err != nil {
		select {
		case a.s.fatal <- err: // Run ends: a broken invariant is not to be lived with
		default:
		}
	}
	if !ok {
		g.Hold.Drop()
		return
	}
	a.s.cfg.Logger.Debug("tag acquired", "tag", t.c.name, "epoch", g.Epoch.String(), "base", t.base, "confirmed", t.ceiling)
}

// later tries again after a pause, if a request still waits by then.
func (a *acquirer) later(t attempt, out quorum.Outcome) {
	err := out.Err
	if errors.Is(err, quorum.ErrNack) {
		err = nil // somebody else was faster; the next look tells more
	}
	if !t.failed(err) {
		return
	}
	pause := retryLatest
	if out.Remaining > 0 {
		pause = max(retrySoonest, min(out.Remaining, retryLatest))
	}
	time.AfterFunc(pause, func() {
		if a.s.life.Err() == nil {
			a.add(t)
		}
	})
}
