package segment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// attachPatience is how long W stores may take to attach a lease before the tag is
// acquired anew.
const attachPatience = 2 * time.Second

// acquirer acquires what is asked for: all that is waiting at one moment by one look,
// one PREPARE and one STEP message per store. It is the only one that sends PREPAREs
// for tags, and it does so one batch after the other: a tag is never prepared
// while it is served, or while an older attempt of it is at the stores.
type acquirer struct {
	s *Service

	mu   sync.Mutex // guards open
	open []ticket

	kick chan struct{}
}

func newAcquirer(s *Service) *acquirer { return &acquirer{s: s, kick: make(chan struct{}, 1)} }

// add asks for an acquisition. The caller may hold c.mu.
func (a *acquirer) add(t ticket) {
	a.mu.Lock()
	a.open = append(a.open, t)
	a.mu.Unlock()
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// run acquires until ctx ends.
func (a *acquirer) run(ctx context.Context) {
	var attaching sync.WaitGroup
	defer attaching.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.kick:
		}
		a.mu.Lock()
		open := a.open
		a.open = nil
		a.mu.Unlock()
		tries := a.accept(ctx, a.prepare(ctx, a.look(ctx, open)))
		for _, try := range a.attach(tries) {
			attaching.Go(func() { a.finish(ctx, try) })
		}
	}
}

// try is one tag on its way through an acquisition.
type try struct {
	ticket
	epoch   seq.Epoch
	limits  Tag
	era     uint64 // where the tags of the era begin
	base    uint64
	ceiling uint64
	hold    Hold
}

// look asks who holds the tags. A PREPARE that one store grants and another refuses
// would depose a live owner, hence the look before it.
func (a *acquirer) look(ctx context.Context, open []ticket) []*try {
	tries := make([]*try, 0, len(open))
	regs := make([]seq.Register, 0, len(open))
	for _, t := range open {
		limits, ok := t.look()
		if !ok {
			continue
		}
		if mine, _ := a.s.cfg.Owner(t.c.section); !mine || a.s.leaving.Load() {
			t.cancel() // what waits is told by its own look at the owner
			continue
		}
		tries = append(tries, &try{ticket: t, limits: limits})
		regs = append(regs, t.c.register)
	}
	if len(regs) == 0 {
		return nil
	}
	free := tries[:0]
	for i, out := range a.s.cfg.Registers.Probe(ctx, a.s.cfg.Session, regs) {
		if out.State != quorum.Won {
			a.later(ctx, tries[i].ticket, out)
			continue
		}
		tries[i].epoch = seq.Epoch{Round: out.Promised.Round + 1, Session: a.s.cfg.Session}
		free = append(free, tries[i])
	}
	return free
}

// prepare asks for the promises, which create the registers of new tags, and finds
// from where each tag goes on: above everything that was ever confirmed.
func (a *acquirer) prepare(ctx context.Context, tries []*try) []*try {
	if len(tries) == 0 {
		return nil
	}
	items := make([]quorum.PrepareItem, len(tries))
	for i, t := range tries {
		items[i] = quorum.PrepareItem{Register: t.c.register, Round: t.epoch.Round, Create: true}
	}
	promised := tries[:0]
	for i, out := range a.s.cfg.Registers.Prepare(ctx, a.s.cfg.Session, items) {
		t := tries[i]
		if out.State != quorum.Won {
			a.later(ctx, t.ticket, out)
			continue
		}
		t.era = out.Floor
		t.base = max(out.Max, t.limits.above(t.era))
		t.ceiling = max(t.base, min(t.base+t.limits.MinStep, uint64(seq.MaxSeq)))
		promised = append(promised, t)
	}
	return promised
}

// accept confirms the first segments. What is not confirmed is given up: nothing was
// handed out under its epoch, and the next try takes a new one.
func (a *acquirer) accept(ctx context.Context, tries []*try) []*try {
	if len(tries) == 0 {
		return nil
	}
	items := make([]quorum.StepItem, len(tries))
	for i, t := range tries {
		items[i] = quorum.StepItem{Register: t.c.register, Round: t.epoch.Round, Max: t.ceiling}
	}
	won := tries[:0]
	for i, out := range a.s.cfg.Registers.Step(ctx, a.s.cfg.Session, items) {
		if out.State != quorum.Won {
			a.later(ctx, tries[i].ticket, out)
			continue
		}
		won = append(won, tries[i])
	}
	return won
}

// attach asks for the leases.
func (a *acquirer) attach(tries []*try) []*try {
	going := tries[:0]
	for _, t := range tries {
		if t.expect(t.epoch) {
			t.hold = a.s.cfg.Attach(t.c.register, t.epoch.Round)
			going = append(going, t)
		}
	}
	return going
}

// finish serves a tag once W stores have its lease.
func (a *acquirer) finish(ctx context.Context, t *try) {
	patience := time.NewTimer(attachPatience)
	defer patience.Stop()
	select {
	case <-t.hold.Ready():
	case <-patience.C:
		// Not ready to be served, and never installed: the next try may prepare.
		t.hold.Drop()
		a.later(ctx, t.ticket, quorum.Outcome{Err: fmt.Errorf("attach %s: %w", t.c.register, seq.ErrNoLease)})
		return
	case <-ctx.Done():
		t.hold.Drop()
		return
	}
	b := newBuffers(t.base, t.ceiling, t.era, a.s.cfg.Clock.Now(), t.limits)
	ok, err := t.install(t.epoch, b, t.hold)
	if err != nil {
		a.s.fail(err)
	}
	if !ok {
		t.hold.Drop()
		return
	}
	a.s.cfg.Logger.Debug("tag acquired", "tag", t.c.name, "epoch", t.epoch.String(), "base", t.base, "confirmed", t.ceiling)
}

// later tries again after a pause, if somebody still waits by then.
func (a *acquirer) later(ctx context.Context, t ticket, out quorum.Outcome) {
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
		if ctx.Err() == nil {
			a.add(t)
		}
	})
}
