package owner

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// attempt is one section on its way through ACQUIRE: its ownership.AcquireHandler.
type attempt struct {
	ctx    context.Context // of the acquisition
	o      *Owner
	c      *section.Section
	done   *acquisition
	holder func(seq.SectionID, seq.Session) string

	epoch seq.Epoch
	table *counters.Table
	from  handover.Sealed // table, and the epoch that it directly follows
	max   uint64

	stopped *Stopped    // the state in the Set from which the section comes, or nil
	over    *preemption // of a preempting attempt, else nil
}

// acquisition tells how an acquire ended.
type acquisition struct {
	owned []seq.SectionID
	// after is the shortest time that a store asked to wait, 0 for none.
	after time.Duration
	// kept counts the sections that went on from sealed counters.
	kept int
	// read is the Set's record, being read since W stores promised the first of the sections.
	read func() (sets.Record, error)
}

// acquire takes all of the sections that can be taken: one look, one PREPARE and
// one STEP message per store for all of them. Sections that are not absent are
// passed over. A crash anywhere leaves at most promises behind, which a later
// acquire outbids.
func (o *Owner) acquire(ctx context.Context, ids []seq.SectionID, over *preemption) acquisition {
	var done acquisition
	t0 := o.clock.Now()
	tries := o.absentOf(ctx, ids, &done, over)
	if len(tries) == 0 {
		return done
	}
	ctx, span := o.traces.Rare(ctx, "alloc.acquire")
	span.Int("sections", len(tries))
	defer func() {
		span.Int("owned", len(done.owned))
		span.Int("with_counters", done.kept)
		span.End(nil)
	}()
	holder := o.holder
	if over != nil {
		holder = o.preemptor
	}
	gained := ownership.Acquire(ctx, holder, tries)
	t1 := o.clock.Now()
	o.install(ctx, o.had(gained, &done), &done)
	if len(done.owned) > 0 {
		o.log.Debug("acquired", "sections", len(done.owned), "acquire", t1-t0, "attach", o.clock.Now()-t1)
	}
	return done
}

// gainers bounds how many acquisitions of a node that stays are under way at a time: it
// never waits for another of them.
const gainers = 1 << 30

// gain is acquire for a node that stays; one that leaves takes nothing any more.
func (o *Owner) gain(ctx context.Context, ids []seq.SectionID, over *preemption) (done acquisition, leaving bool) {
	if err := o.gaining.Acquire(ctx, 1); err != nil {
		return done, o.leaving.Load()
	}
	defer o.gaining.Release(1)
	if o.leaving.Load() {
		return done, true
	}
	return o.acquire(ctx, ids, over), false
}

// absentOf begins an attempt at each of the sections that is absent.
func (o *Owner) absentOf(ctx context.Context, ids []seq.SectionID, done *acquisition, over *preemption) []*attempt {
	holders := sync.OnceValue(o.holders) // as they are after the look
	holder := func(id seq.SectionID, s seq.Session) string { return holders()(id, s) }
	tries := make([]*attempt, 0, len(ids))
	for _, id := range ids {
		if c := o.sections.Section(id); c.Begin() {
			tries = append(tries, &attempt{ctx: ctx, o: o, c: c, done: done, holder: holder, over: over})
		}
	}
	return tries
}

// holders returns a function for sections that other nodes hold. If the table gives a section to this node
// already, the function returns its holder's address, because the holder may hand many other sections over
// first. For all other sections it returns "". There the table suffices, and a holder that may be dead is
// no good address.
func (o *Owner) holders() func(seq.SectionID, seq.Session) string {
	t := o.routes.Table()
	addrs := make(map[seq.Session]string)
	for _, s := range o.sessions.Sessions() {
		if s.Session != o.session && !s.Dead {
			addrs[s.Session] = s.Addr
		}
	}
	return func(id seq.SectionID, holder seq.Session) string {
		if owner, ok := t.Owner(id); !ok || owner.Name != o.name {
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

// Register implements ownership.AcquireHandler.
func (t *attempt) Register() seq.Register { return seq.SectionRegister(t.c.ID()) }

// Free implements ownership.AcquireHandler.
func (t *attempt) Free(found quorum.Outcome) bool {
	if t.over != nil && !t.over.may(t.c.ID(), found.Promised.Session) {
		t.c.Abandon("")
		return false
	}
	return true
}

// Begin implements ownership.AcquireHandler.
func (t *attempt) Begin(epoch seq.Epoch, found quorum.Outcome) (ceiling uint64, ok bool) {
	t.epoch = epoch
	if t.over != nil {
		t.over.began(t.c.ID())
	}
	if t.stopped != nil {
		t.continueFrom(found)
		t.o.sections.Promised(t.c.ID(), nil)
		return t.max, true
	}
	if t.done.read == nil {
		t.done.read = t.o.reading(t.ctx)
	}
	if t.start(found) {
		t.done.kept++
	}
	t.o.sections.Promised(t.c.ID(), t.from.Tickets)
	return t.max, true
}

// Confirmed implements ownership.AcquireHandler.
func (t *attempt) Confirmed(epoch seq.Epoch) bool {
	t.c.Expect(epoch)
	return true
}

// Failed implements ownership.AcquireHandler. The section is given up: nothing was handed out under the
// epoch.
func (t *attempt) Failed(at ownership.Stage, out quorum.Outcome) {
	holder := ""
	switch at {
	case ownership.Looking:
		t.done.wait(out.Remaining)
		holder = t.holder(t.c.ID(), out.Holder)
	case ownership.Promising:
		t.done.wait(out.Remaining)
	case ownership.Confirming:
		// Should the step turn out to be accepted, the next try goes on from where this
		// one would have.
		if t.stopped == nil {
			t.o.kept.Keep(t.from.After(t.epoch))
		}
	}
	t.c.Abandon(holder)
}

// start sets the first counters of an acquired section. It takes the sealed counters if their owner
// released them, and if the highest accepted epoch is the epoch of their seal. Then nothing was handed out
// in between. Otherwise the base is the maximum over W promises.
func (t *attempt) start(out quorum.Outcome) (kept bool) {
	step, limit := t.c.Space().Step, uint64(seq.MaxSeq)
	s, ok, there := t.o.kept.Use(t.c.ID(), func(s handover.Sealed) bool {
		return s.Follows(out.Accepted) && s.Genuine(out.Seal) && s.Table.High() <= out.Max
	})
	if t.c.Space().Mode == seq.Exact { // its log has everything but the tickets, and is read under the epoch
		t.table, t.max = counters.New(0), 0
		t.from = handover.Sealed{ID: t.c.ID(), Epoch: out.Accepted, Table: t.table, Mark: t.o.mark(t.c.ID()), Tickets: s.Tickets}
		return false
	}
	if ok {
		t.table, t.from = s.Table, s
		// The ceiling moves only as far as a step needs, so that hand-overs
		// of an idle section do not push its max ahead of its numbers.
		t.max = max(out.Max, min(s.Table.High()+step, limit))
		return true
	}
	if there {
		t.o.log.Info("sealed counters not used", "section", t.c.ID(), "accepted", out.Accepted.String())
	}
	t.table = counters.New(out.Max)
	t.from = handover.Sealed{ID: t.c.ID(), Epoch: out.Accepted, Table: t.table, Mark: t.o.mark(t.c.ID())}
	t.max = min(out.Max+step, limit)
	return false
}

// reading begins to read the Set's record. Call it after W stores have promised a section. A move writes
// the record before the section is stopped, so the record shows the move if this epoch is above the stopped
// epoch.
func (o *Owner) reading(ctx context.Context) func() (sets.Record, error) {
	type result struct {
		record sets.Record
		err    error
	}
	done := make(chan result, 1)
	go func() {
		r, err := o.record.Load(ctx)
		done <- result{r, err}
	}()
	return sync.OnceValues(func() (sets.Record, error) {
		r := <-done
		return r.record, r.err
	})
}

// had leaves those that the Set has. The others are given up: nothing was handed out.
func (o *Owner) had(gained []ownership.Gained[*attempt], done *acquisition) []ownership.Gained[*attempt] {
	if len(gained) == 0 {
		return nil
	}
	record, err := done.read()
	if err != nil {
		o.log.Warn("sections not served: it cannot be read which the Set has", "sections", len(gained), "error", err)
	}
	out := gained[:0]
	for _, g := range gained {
		if err == nil && record.Has(g.Bid.c.ID()) {
			out = append(out, g)
			continue
		}
		g.Hold.Drop()
		o.kept.Keep(g.Bid.from.After(g.Epoch))
		g.Bid.c.Drop(g.Epoch, "")
	}
	return out
}

// install serves the sections once W stores have them under the lease.
func (o *Owner) install(ctx context.Context, gained []ownership.Gained[*attempt], done *acquisition) {
	_, span := o.traces.Child(ctx, "alloc.attach")
	defer span.End(nil)
	timeout := time.NewTimer(max(o.lease, time.Second))
	defer timeout.Stop()
	for _, g := range gained {
		select {
		case <-g.Hold.Ready():
		case <-timeout.C:
			timeout.Reset(0)
		case <-ctx.Done():
		}
		// A section that is not ready is installed as well: it is ours by the
		// registers, and serves as soon as its lease is valid.
		t := g.Bid
		ok, err := o.sections.Install(t.c.ID(), g.Epoch, t.table, t.max, g.Hold)
		if err != nil {
			o.fail(err)
			return
		}
		if ok {
			done.owned = append(done.owned, t.c.ID())
		} else {
			g.Hold.Drop()
		}
	}
}
