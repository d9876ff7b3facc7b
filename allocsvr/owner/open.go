package owner

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// activateWithin bounds how long a node tries to activate sections of which it has the registers.
const activateWithin = 5 * time.Second

// Open has this node own sections that were stopped in another Set, has its own Set activate
// them, and serves them: from their counters if it was this call that activated them, and else
// from above their ceilings. active are those that another node of this Set may have; left are
// not activated yet, since another session holds their registers. seq.ErrMoveOver: the move was
// refused here, or is over. With keep they are in limbo here, and are settled as this Set's, from
// above their ceilings.
func (m *Moves) Open(ctx context.Context, move uint64, in []Stopped, keep bool) (opened, active, left []seq.SectionID, err error) {
	if err := m.o.gaining.Acquire(ctx, 1); err != nil {
		return nil, nil, nil, err
	}
	defer m.o.gaining.Release(1) // a node that leaves waits, and hands over what was opened
	if m.o.leaving.Load() {
		return nil, nil, nil, seq.ErrShuttingDown
	}
	record, err := m.o.record.Load(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	var done acquisition
	var tries []*attempt
	for i := range in {
		id := in[i].ID
		switch p, c := record.At(id), m.o.sections.Section(id); {
		case p.State == sets.Active && p.Move == move:
			active = append(active, id)
		case c.Begin():
			tries = append(tries, &attempt{ctx: ctx, o: m.o, c: c, done: &done, stopped: &in[i],
				holder: func(seq.SectionID, seq.Session) string { return "" }})
		default:
			left = append(left, id)
		}
	}
	gained := ownership.Acquire(ctx, m.o.holder, tries)
	if len(gained) > 0 {
		// Go on even if the caller is gone. The step may be decided, and then no other call goes on from
		// the counters.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), activateWithin)
		defer cancel()
		step := sets.Step{Op: sets.Activate, Move: move, By: rand.Uint64() | 1}
		if keep {
			step = sets.Step{Op: sets.Keep, Move: move}
		}
		if err := m.activate(ctx, step, gained, &done); err != nil {
			for _, g := range gained {
				g.Hold.Drop()
				g.Bid.c.Drop(g.Epoch, "")
			}
			return nil, nil, nil, err
		}
		m.o.install(ctx, gained, &done)
		m.opened.Add(uint64(len(done.owned)))
	}
	activated := make(map[*attempt]bool)
	for _, g := range gained {
		activated[g.Bid] = true
	}
	for _, t := range tries {
		switch id := t.c.ID(); {
		case slices.Contains(done.owned, id):
		case activated[t]:
			active = append(active, id)
		default:
			left = append(left, id)
		}
	}
	return done.owned, active, left, nil
}

// activate has the Set activate sections of which this node has the registers, with a max at or
// above their ceilings.
func (m *Moves) activate(ctx context.Context, step sets.Step, gained []ownership.Gained[*attempt], done *acquisition) error {
	ids := make([]seq.SectionID, len(gained))
	for i, g := range gained {
		ids[i] = g.Bid.c.ID()
	}
	now, err := m.o.record.Step(ctx, step, sets.RangesOf(ids))
	if err != nil {
		return err
	}
	for _, g := range gained {
		// Had another node activated it, it may have handed out numbers since the stop.
		if t := g.Bid; step.By != 0 && now.At(t.c.ID()).By == step.By && t.stopped.Table != nil && t.stopped.Mark == m.o.mark(t.c.ID()) {
			t.table = t.stopped.Table
			done.kept++
		}
	}
	return nil
}

// continueFrom begins a section that comes from another Set above its ceiling, and above all that
// the stores of this Set have seen of it. One of an exact space, which is settled here, goes on
// from its log.
func (t *attempt) continueFrom(found quorum.Outcome) {
	if t.c.Space().Mode == seq.Exact {
		t.start(found)
		return
	}
	base := max(found.Max, t.stopped.Ceiling)
	t.table = counters.New(base)
	t.max = min(base+t.c.Space().Step, uint64(seq.MaxSeq))
}
