package owner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Stopped is a section that no node of its Set serves any more, because it moves to another Set.
type Stopped struct {
	ID      seq.SectionID
	Ceiling uint64          // at or above every number that was handed out
	Table   *counters.Table // if the section comes; nil if unknown, and then it goes on from the ceiling
	Body    []byte          // if the section goes, its encoded counters; empty if unknown
	Mark    uint64          // see handover.Sealed.Mark
}

// Room limits the bytes of counters in one answer.
type Room struct {
	Message int // limit for all sections; one section alone may exceed it
	Section int // limit for one section; a larger one goes without its counters
}

// Moves does a node's steps of moves between Sets. It stops sections that its Set has sealed, and opens
// sections that arrive. The record of the Set decides on both. Safe for concurrent use.
type Moves struct {
	o *Owner

	mu    sync.Mutex // guards stops; held while cells are dropped
	stops map[seq.SectionID]stop
	sent  sync.Map // address in the other Set, by seq.SectionID, for stopped sections; read with sections locked

	stopped, opened atomic.Uint64 // sections, since the start
}

// Counts returns the numbers of sections that this node has stopped for other Sets, and opened for its own.
func (m *Moves) Counts() (stopped, opened uint64) { return m.stopped.Load(), m.opened.Load() }

// stop is a section that this node has stopped.
type stop struct {
	Stopped
	move  uint64
	epoch seq.Epoch       // under which the node owned it; zero if the node acquired the register for the stop
	table *counters.Table // not changed before the stop is forgotten
	// sure means that W stores had promised no other epoch after the record and then this node sealed the
	// section. Before that, if this node's clock stood still, another node may own the section and have
	// handed out more.
	sure bool
}

// Stop ends the service of sections that the record has sealed for the move. It stops sections that this
// node owns, as many as there is room for. If unowned, it also stops sections that no node owns. It returns
// the other sections in left. A repeated call returns the same. Stop returns seq.ErrMoveOver, and stops
// nothing, if the record says something else. It returns seq.ErrBadArgument for a sealed section of an
// exact space, because only a settlement puts one into another Set.
func (m *Moves) Stop(ctx context.Context, move uint64, ids []seq.SectionID, unowned bool, room Room) (stopped []Stopped, left []seq.SectionID, err error) {
	record, err := m.o.record.Load(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if p := record.At(id); p.Move != move || p.State != sets.Sealed && p.State != sets.Moved {
			return nil, nil, fmt.Errorf("%w: section %d of Set %s is %v, expected sealed by move %d", seq.ErrMoveOver, id, record.SetName(), p, move)
		}
		if p := record.At(id); p.State == sets.Sealed && m.o.sections.Section(id).Space().Mode == seq.Exact {
			return nil, nil, fmt.Errorf("%w: section %d is of an exact space, which stays in its Set", seq.ErrBadArgument, id)
		}
	}
	own, left := m.stopOwn(move, ids, room)
	stopped, left = m.confirmed(ctx, own, left)
	if unowned && len(left) > 0 {
		var fenced []Stopped
		fenced, left = m.fence(ctx, move, left)
		stopped = append(stopped, fenced...)
	}
	return stopped, left, nil
}

// stopOwn seals sections that this node owns while there is room. It also returns those that it has stopped
// before.
func (m *Moves) stopOwn(move uint64, ids []seq.SectionID, room Room) (own []stop, left []seq.SectionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used, full := 0, false
	for _, id := range ids {
		s, ok := m.stops[id]
		if ok = ok && s.move == move; !ok && !full {
			s, ok = m.seal(id, move)
		}
		if !ok || full {
			left = append(left, id)
			continue
		}
		if s.table != nil {
			s.Body = s.table.AppendBinary(nil)
		}
		if len(s.Body) > room.Section {
			m.o.log.Warn("section moves without its counters: they are too large for a message", "section", id, "bytes", len(s.Body), "most", room.Section)
			s.Body = nil
		}
		if full = used > 0 && used+len(s.Body) > room.Message; full {
			left = append(left, id)
			continue
		}
		used += len(s.Body)
		own = append(own, s)
	}
	return own, left
}

// seal stops a section that this node owns. Needs m.mu.
func (m *Moves) seal(id seq.SectionID, move uint64) (stop, bool) {
	epoch, table, ok := m.o.sections.Section(id).Seal()
	if !ok {
		return stop{}, false
	}
	mark := m.o.mark(id)
	s := stop{Stopped: Stopped{ID: id, Ceiling: table.High(), Mark: mark}, move: move, epoch: epoch, table: table}
	m.note(s)
	// If the section stays in this Set, this node goes on from these counters.
	m.o.kept.Keep(handover.Sealed{ID: id, Epoch: epoch, Table: table, Mark: mark, Tickets: m.o.sections.Tickets(id)})
	return s, true
}

// confirmed returns the sections that W stores confirm as this node's after the seal, which needs no clock.
// A node that acquires one of them later finds it sealed in the record. confirmed gives up sections that
// another session was promised. If the answer is unknown, the section stays sealed until it is asked for
// again, or until the record has decided on it.
func (m *Moves) confirmed(ctx context.Context, in []stop, left []seq.SectionID) (stopped []Stopped, _ []seq.SectionID) {
	var regs []seq.Register
	var epochs []seq.Epoch
	for _, s := range in {
		if !s.sure {
			regs, epochs = append(regs, seq.SectionRegister(s.ID)), append(epochs, s.epoch)
		}
	}
	var errs []error
	if len(regs) > 0 {
		errs = m.o.holder.Standing(ctx, regs, epochs)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range in {
		var err error
		if !s.sure {
			err, errs = errs[0], errs[1:]
		}
		now, mine := m.stops[s.ID]
		mine = mine && now.move == s.move && now.epoch == s.epoch
		if err == nil || mine && now.sure {
			if now.sure = true; mine {
				m.stops[s.ID] = now
			}
			stopped = append(stopped, s.Stopped)
			continue
		}
		if mine && errors.Is(err, seq.ErrNoLease) {
			m.o.sections.Section(s.ID).Drop(s.epoch, "")
			delete(m.stops, s.ID)
		}
		left = append(left, s.ID)
	}
	return stopped, left
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

// fence acquires the registers of sections that no node owns, and serves nothing. No lower epoch can
// confirm anything after that, and any later owner reads the record.
func (m *Moves) fence(ctx context.Context, move uint64, ids []seq.SectionID) (stopped []Stopped, left []seq.SectionID) {
	bids := make([]*fence, 0, len(ids))
	for _, id := range ids {
		if c := m.o.sections.Section(id); c.Begin() {
			bids = append(bids, &fence{c: c})
		} else {
			left = append(left, id)
		}
	}
	ownership.Acquire(ctx, m.o.holder, bids)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range bids {
		b.c.Abandon("")
		if !b.won {
			left = append(left, b.c.ID())
			continue
		}
		s := stop{Stopped: Stopped{ID: b.c.ID(), Ceiling: b.max, Mark: m.o.mark(b.c.ID())}, move: move, sure: true}
		m.note(s)
		stopped = append(stopped, s.Stopped)
	}
	return stopped, left
}

// fence is an ownership.AcquireHandler that ends once W stores have promised.
type fence struct {
	c   *section.Section
	won bool
	max uint64
}

// Register implements ownership.AcquireHandler.
func (f *fence) Register() seq.Register { return seq.SectionRegister(f.c.ID()) }

// Free implements ownership.AcquireHandler.
func (f *fence) Free(quorum.Outcome) bool { return true }

// Begin implements ownership.AcquireHandler.
func (f *fence) Begin(_ seq.Epoch, found quorum.Outcome) (uint64, bool) {
	f.won, f.max = true, found.Max
	return 0, false
}

// Confirmed implements ownership.AcquireHandler. It is not called, because Begin wants no ceiling.
func (f *fence) Confirmed(seq.Epoch) bool { return false }

// Failed implements ownership.AcquireHandler.
func (f *fence) Failed(ownership.Stage, quorum.Outcome) {}

// SendOn redirects callers of sections that were stopped here for the move. The owners in the other Set,
// given by gRPC address, serve the sections by now. So the move cannot be taken back, and SendOn need not
// wait until the record says so.
func (m *Moves) SendOn(move uint64, owners map[seq.SectionID]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, addr := range owners {
		if s, ok := m.stops[id]; ok && s.move == move {
			m.sent.Store(id, addr)
			m.o.sections.Section(id).Drop(s.epoch, addr)
		}
	}
}

// SentOn returns the address to which callers of a stopped section are redirected before the record says
// that it has gone. It returns "" if there is none.
func (m *Moves) SentOn(id seq.SectionID) (addr string) {
	if to, ok := m.sent.Load(id); ok {
		return to.(string)
	}
	return ""
}

// Settle forgets stops that the record has decided on, as far as this node has seen it. The sections have
// gone, or they stay. Settle gives up sections that this node owns and its Set does not have, and forgets
// the counters of sections that have gone.
func (m *Moves) Settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	owned := m.o.sections.Owned() // first: the record is newer than how they came to be owned
	record, stays := m.o.record.Known(), false
	for id, s := range m.stops {
		p := record.At(id)
		if p.Move == s.move && p.State == sets.Sealed {
			continue
		}
		m.o.sections.Section(id).Drop(s.epoch, "") // no successor, unless callers were sent on before
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
	for _, id := range owned {
		if v, ok := m.o.sections.Section(id).View(); ok && gone(record, id) {
			m.o.sections.Section(id).Drop(v.Epoch, "")
		}
	}
	m.o.kept.Forget(func(id seq.SectionID) bool { return gone(m.o.record.Known(), id) })
}

// gone reports whether the section has left the Set, or was never in it. A sealed section may still come
// back.
func gone(record sets.Record, id seq.SectionID) bool {
	p := record.At(id)
	return p.State != sets.Active && p.State != sets.Sealed
}
