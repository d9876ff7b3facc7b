package owner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Stopped is a section that no node of its Set serves any more, for a move to another.
type Stopped struct {
	ID      seq.SectionID
	Ceiling uint64          // at or above every number that it ever handed out
	Table   *counters.Table // not changed any more; nil: not known, it goes on from the ceiling
	Mark    uint64          // as handover.Sealed.Mark
}

// Moves are the steps of moves between Sets that a node takes: it stops sections that its Set
// has sealed, and opens those that come. The record of the Set decides on both. Safe for
// concurrent use.
type Moves struct {
	o *Owner

	mu    sync.Mutex // guards stops; held while cells are dropped
	stops map[seq.SectionID]stop
	sent  sync.Map // of the stops whose callers are sent on, where to: seq.SectionID to string; cells ask it with their locks held

	stopped, opened atomic.Uint64 // sections, since the start
}

// Counts are how many sections this node has stopped for other Sets, and opened for its own.
func (m *Moves) Counts() (stopped, opened uint64) { return m.stopped.Load(), m.opened.Load() }

// stop is a section that this node has stopped; epoch is zero if it did not own it.
type stop struct {
	Stopped
	move  uint64
	epoch seq.Epoch
}

// Stop ends the service of sections that the record says are sealed for the move: those that
// this node owns, and, if unowned, those that no node does. left are the others. A repeated call
// gives the same. seq.ErrMoveOver, and nothing was stopped, if the record says something else;
// seq.ErrBadArgument for a section of an exact space that is sealed: only by a settlement it is in
// another Set.
func (m *Moves) Stop(ctx context.Context, move uint64, ids []seq.SectionID, unowned bool) (stopped []Stopped, left []seq.SectionID, err error) {
	record, err := m.o.record.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if p := record.At(id); p.Move != move || p.State != sets.Sealed && p.State != sets.Moved {
			return nil, nil, fmt.Errorf("%w: section %d of Set %s is %v, expected sealed by move %d", seq.ErrMoveOver, id, record.SetName(), p, move)
		}
		if p := record.At(id); p.State == sets.Sealed && m.o.sections.Cell(id).Space().Mode == seq.Exact {
			return nil, nil, fmt.Errorf("%w: section %d is of an exact space, which stays in its Set", seq.ErrBadArgument, id)
		}
	}
	// The lease is looked at after the record was read: had another node gained a section
	// before, it would not hold, and one that gains it later finds it sealed.
	now := m.o.clock.Now()
	for _, id := range ids {
		if s, ok := m.stopOwn(id, move, now); ok {
			stopped = append(stopped, s)
		} else {
			left = append(left, id)
		}
	}
	if unowned && len(left) > 0 {
		var fenced []Stopped
		fenced, left = m.fence(ctx, move, left)
		stopped = append(stopped, fenced...)
	}
	return stopped, left, nil
}

// stopOwn seals a section that this node owns and has the lease of, or has stopped before.
func (m *Moves) stopOwn(id seq.SectionID, move uint64, now time.Duration) (Stopped, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.stops[id]; ok && s.move == move {
		return s.Stopped, true
	}
	epoch, table, ok := m.o.sections.Cell(id).SealLeased(now)
	if !ok {
		return Stopped{}, false
	}
	mark := m.o.mark(id)
	s := stop{Stopped: Stopped{ID: id, Ceiling: table.High(), Table: table, Mark: mark}, move: move, epoch: epoch}
	m.note(s)
	// Should the section stay in this Set, this node goes on from here.
	m.o.kept.Keep(handover.Sealed{ID: id, Epoch: epoch, Table: table, Mark: mark})
	return s.Stopped, true
}

// note remembers a stop. Needs m.mu.
func (m *Moves) note(s stop) {
	if m.stops == nil {
		m.stops = make(map[seq.SectionID]stop)
	}
	m.stops[s.ID] = s
	m.sent.Delete(s.ID) // by an earlier move
	m.stopped.Add(1)
}

// fence gains the registers of sections that no node owns, and serves nothing: under every lower
// epoch nothing more is confirmed, and any later owner reads the record.
func (m *Moves) fence(ctx context.Context, move uint64, ids []seq.SectionID) (stopped []Stopped, left []seq.SectionID) {
	bids := make([]*fence, 0, len(ids))
	for _, id := range ids {
		if c := m.o.sections.Cell(id); c.Begin() {
			bids = append(bids, &fence{c: c})
		} else {
			left = append(left, id)
		}
	}
	tenure.Acquire(ctx, m.o.holder, bids)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range bids {
		b.c.Abandon("")
		if !b.won {
			left = append(left, b.c.ID())
			continue
		}
		s := stop{Stopped: Stopped{ID: b.c.ID(), Ceiling: b.max, Mark: m.o.mark(b.c.ID())}, move: move}
		m.note(s)
		stopped = append(stopped, s.Stopped)
	}
	return stopped, left
}

// fence is a tenure.Bid that ends once W stores have promised.
type fence struct {
	c   *section.Cell
	won bool
	max uint64
}

// Register implements tenure.Bid.
func (f *fence) Register() seq.Register { return seq.SectionRegister(f.c.ID()) }

// Free implements tenure.Bid.
func (f *fence) Free(quorum.Outcome) bool { return true }

// Begin implements tenure.Bid.
func (f *fence) Begin(_ seq.Epoch, found quorum.Outcome) (uint64, bool) {
	f.won, f.max = true, found.Max
	return 0, false
}

// Confirmed implements tenure.Bid. It is not called: no ceiling is wanted.
func (f *fence) Confirmed(seq.Epoch) bool { return false }

// Failed implements tenure.Bid.
func (f *fence) Failed(tenure.Stage, quorum.Outcome) {}

// SendOn has callers of sections that were stopped here for the move go on at their owners in the
// other Set, by gRPC address, which serve them by now: nothing of the move can be taken back once
// they do, and so it does not wait until the record says so.
func (m *Moves) SendOn(move uint64, owners map[seq.SectionID]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, addr := range owners {
		if s, ok := m.stops[id]; ok && s.move == move {
			m.sent.Store(id, addr)
			m.o.sections.Cell(id).Drop(s.epoch, addr)
		}
	}
}

// SentOn is where callers of a section that the record does not say to have gone are sent; empty:
// nowhere.
func (m *Moves) SentOn(id seq.SectionID) (addr string) {
	if to, ok := m.sent.Load(id); ok {
		return to.(string)
	}
	return ""
}

// Settle forgets stops that the record has decided on: the sections have gone, or stay. Sections
// that this node owns and its Set has not are given up.
func (m *Moves) Settle(record sets.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stays := false
	for id, s := range m.stops {
		p := record.At(id)
		if p.Move < s.move || p.Move == s.move && p.State == sets.Sealed {
			continue // as it was seen before the stop, or not decided yet
		}
		m.o.sections.Cell(id).Drop(s.epoch, "") // no successor, unless callers were sent on before
		delete(m.stops, id)
		m.sent.Delete(id)
		stays = stays || p.State == sets.Active
	}
	if stays {
		m.o.Seek()
	}
	if len(m.stops) > 0 {
		m.o.record.Look()
	}
	if record.Has(0) && len(record.Runs) == 0 {
		return // the Set has everything, as nearly all do
	}
	for _, id := range m.o.sections.Owned() {
		if p := record.At(id); p.State != sets.Active && p.State != sets.Sealed {
			if v, ok := m.o.sections.Cell(id).View(); ok {
				m.o.sections.Cell(id).Drop(v.Epoch, "")
			}
		}
	}
}

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
		switch p, c := record.At(id), m.o.sections.Cell(id); {
		case p.State == sets.Active && p.Move == move:
			active = append(active, id)
		case c.Begin():
			tries = append(tries, &attempt{ctx: ctx, o: m.o, c: c, done: &done, stopped: &in[i],
				holder: func(seq.SectionID, seq.Session) string { return "" }})
		default:
			left = append(left, id)
		}
	}
	gained := tenure.Acquire(ctx, m.o.holder, tries)
	if len(gained) > 0 {
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
func (m *Moves) activate(ctx context.Context, step sets.Step, gained []tenure.Gained[*attempt], done *acquisition) error {
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
