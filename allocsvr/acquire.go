package allocsvr

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// attempt is one section on its way through ACQUIRE.
type attempt struct {
	c     *cell
	epoch seq.Epoch
	table *counters.Table
	from  sealedSection // table, and the epoch that it directly follows
	max   uint64
	hold  Hold
}

// acquisition tells how an acquire ended.
type acquisition struct {
	owned []seq.SectionID
	// after is the shortest time that a store asked to wait, 0 for none.
	after time.Duration
	// kept counts the sections that went on from sealed counters.
	kept int
}

// acquire takes all of the sections that can be taken: one look, one PREPARE and
// one STEP message per store for all of them. Sections that are not absent are
// passed over. A crash anywhere leaves at most promises behind, which a later
// acquire outbids.
func (a *Alloc) acquire(ctx context.Context, ids []seq.SectionID) acquisition {
	var done acquisition
	t0 := a.clock.Now()
	tries := a.absentOf(ids)
	if len(tries) == 0 {
		return done
	}
	ctx, span := a.traces.Rare(ctx, "alloc.acquire")
	span.Int("sections", len(tries))
	defer func() {
		span.Int("owned", len(done.owned))
		span.Int("with_counters", done.kept)
		span.End(nil)
	}()
	tries = a.look(ctx, tries, &done)
	t1 := a.clock.Now()
	tries = a.prepare(ctx, tries, &done)
	t2 := a.clock.Now()
	tries = a.accept(ctx, tries)
	t3 := a.clock.Now()
	a.attach(ctx, tries, &done)
	if len(done.owned) > 0 {
		a.log.Debug("acquired", "sections", len(done.owned), "look", t1-t0, "prepare", t2-t1, "step", t3-t2, "attach", a.clock.Now()-t3)
	}
	return done
}

// gainers bounds how many acquisitions of a node that stays are under way at a time: it
// never waits for another of them.
const gainers = 1 << 30

// gain is acquire for a node that stays; one that leaves takes nothing any more.
func (a *Alloc) gain(ctx context.Context, ids []seq.SectionID) (done acquisition, leaving bool) {
	if err := a.gaining.Acquire(ctx, 1); err != nil {
		return done, a.leaving.Load()
	}
	defer a.gaining.Release(1)
	if a.leaving.Load() {
		return done, true
	}
	return a.acquire(ctx, ids), false
}

// absentOf begins an attempt at each of the sections that is absent.
func (a *Alloc) absentOf(ids []seq.SectionID) []*attempt {
	tries := make([]*attempt, 0, len(ids))
	for _, id := range ids {
		if c := a.cells[id]; c.begin() {
			tries = append(tries, &attempt{c: c})
		}
	}
	return tries
}

// look asks who holds the sections. A PREPARE that one store grants and another
// refuses would depose a live owner, hence the look before it.
func (a *Alloc) look(ctx context.Context, tries []*attempt, done *acquisition) []*attempt {
	regs := make([]seq.Register, len(tries))
	for i, try := range tries {
		regs[i] = seq.SectionRegister(try.c.id)
	}
	free := tries[:0]
	outcomes := a.registers.Probe(ctx, a.session, regs)
	holder := a.holders()
	for i, out := range outcomes {
		try := tries[i]
		if out.State != quorum.Won {
			done.wait(out.Remaining)
			try.c.abandon(holder(try.c.id, out.Holder))
			continue
		}
		try.epoch = seq.Epoch{Round: out.Promised.Round + 1, Session: a.session}
		free = append(free, try)
	}
	return free
}

// holders is where callers find sections that the table gives to this node already,
// while the one that has them hands over the many others before them. For all other
// sections the table tells, and a holder that may be dead is no good address.
func (a *Alloc) holders() func(seq.SectionID, seq.Session) string {
	t := a.routes.table()
	addrs := make(map[seq.Session]string)
	for _, s := range a.leases.Sessions() {
		if s.Session != a.session && !s.Dead {
			addrs[s.Session] = s.Addr
		}
	}
	return func(id seq.SectionID, holder seq.Session) string {
		if owner, ok := t.Owner(id); !ok || owner.Name != a.name {
			return ""
		}
		return addrs[holder]
	}
}

func (d *acquisition) wait(remaining time.Duration) {
	if remaining > 0 && (d.after == 0 || remaining < d.after) {
		d.after = remaining
	}
}

// prepare asks for the promises and finds from where each section goes on.
func (a *Alloc) prepare(ctx context.Context, tries []*attempt, done *acquisition) []*attempt {
	if len(tries) == 0 {
		return nil
	}
	items := make([]quorum.PrepareItem, len(tries))
	for i, try := range tries {
		items[i] = quorum.PrepareItem{Register: seq.SectionRegister(try.c.id), Round: try.epoch.Round}
	}
	promised := tries[:0]
	for i, out := range a.registers.Prepare(ctx, a.session, items) {
		try := tries[i]
		if out.State != quorum.Won {
			done.wait(out.Remaining)
			try.c.abandon("")
			continue
		}
		if a.start(try, out) {
			done.kept++
		}
		promised = append(promised, try)
	}
	return promised
}

// start decides the first counters of an acquired section: the sealed ones if the
// highest accepted epoch is the one they were sealed under, since then nobody
// handed out anything in between, and if they are what their owner released; else base =
// max over W promises.
func (a *Alloc) start(try *attempt, out quorum.Outcome) (kept bool) {
	step, limit := try.c.space.Step, uint64(seq.MaxSeq)
	s, ok, there := a.heirs.take(try.c.id, func(s sealedSection) bool {
		return s.follows(out.Accepted) && s.genuine(out.Seal) && s.table.High() <= out.Max
	})
	if ok {
		s.offered = 0 // it is this node's own from here on
		try.table, try.from = s.table, s
		// The ceiling moves only as far as a step needs, so that hand-overs
		// of an idle section do not push its max ahead of its numbers.
		try.max = max(out.Max, min(s.table.High()+step, limit))
		return true
	}
	if there {
		a.log.Info("sealed counters not used", "section", try.c.id, "accepted", out.Accepted.String())
	}
	try.table = counters.New(out.Max)
	try.from = sealedSection{id: try.c.id, epoch: out.Accepted, table: try.table}
	try.max = min(out.Max+step, limit)
	return false
}

// accept confirms the new ceilings. What is not confirmed is given up: nothing was
// handed out under its epoch.
func (a *Alloc) accept(ctx context.Context, tries []*attempt) []*attempt {
	if len(tries) == 0 {
		return nil
	}
	items := make([]quorum.StepItem, len(tries))
	for i, try := range tries {
		items[i] = quorum.StepItem{Register: seq.SectionRegister(try.c.id), Round: try.epoch.Round, Max: try.max}
	}
	won := tries[:0]
	for i, out := range a.registers.Step(ctx, a.session, items) {
		try := tries[i]
		if out.State != quorum.Won {
			// Nothing was handed out under this epoch: should it turn out to be
			// accepted, the next try goes on from where this one would have.
			try.from = try.from.after(try.epoch)
			a.heirs.keep(try.from)
			try.c.abandon("")
			continue
		}
		won = append(won, try)
	}
	return won
}

// attach puts the sections under the lease and serves them once W stores have them.
func (a *Alloc) attach(ctx context.Context, tries []*attempt, done *acquisition) {
	_, span := a.traces.Child(ctx, "alloc.attach")
	defer span.End(nil)
	for _, try := range tries {
		try.c.expect(try.epoch)
		try.hold = a.leases.Attach(seq.SectionRegister(try.c.id), try.epoch.Round)
	}
	timeout := time.NewTimer(max(a.lease, time.Second))
	defer timeout.Stop()
	for _, try := range tries {
		select {
		case <-try.hold.Ready():
		case <-timeout.C:
			timeout.Reset(0)
		case <-ctx.Done():
		}
		// A section that is not ready is installed as well: it is ours by the
		// registers, and serves as soon as its lease is valid.
		ok, err := try.c.install(try.epoch, try.table, try.max, try.hold, &a.gone)
		if err != nil {
			a.fail(err)
			return
		}
		if ok {
			done.owned = append(done.owned, try.c.id)
		} else {
			try.hold.Drop()
		}
	}
}
