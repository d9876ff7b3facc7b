package acceptor

import (
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// DriftPercent bounds by how much the rate of a clock may differ from true time: the
// rho of the protocol, in percent.
const DriftPercent = 1

// MaxPayload is the largest payload of a document in bytes.
const MaxPayload = 16 << 20

// State is the durable part of a register.
type State struct {
	Promised seq.Epoch // never decreases
	Accepted seq.Epoch // <= Promised
	Max      uint64    // never decreases
	Payload  []byte    // only of documents; not changed once set
	// PayloadMax is the max that came with Payload. Max merges over all epochs, so only
	// this tells whether a step under the accepted epoch is a late, older one.
	PayloadMax uint64
}

// Of is the state as one of that register.
func (s State) Of(r seq.Register) quorum.RegisterState {
	return quorum.RegisterState{Register: r, Promised: s.Promised, Accepted: s.Accepted, Max: s.Max, Payload: s.Payload, PayloadMax: s.PayloadMax}
}

// Change is a register's state to be committed.
type Change struct {
	Register seq.Register
	State    State
}

// Limits are the bounds of a Step that depend on more than the register.
type Limits struct {
	// WorkerMax is the largest value a worker register may take, in the unit of its
	// values; 0 for no check.
	WorkerMax uint64
	// Latest is the latest time that records of exact sections may have, milliseconds since
	// 1970; 0 for no check.
	Latest int64
}

// Config is what an Acceptor starts from.
type Config struct {
	Registers  map[seq.Register]State // as on disk; the Acceptor takes it over
	MaxLease   time.Duration          // longest lease that may be asked for
	LeaseBound time.Duration          // longest lease ever granted, as on disk
	Start      time.Duration          // now: later than any answer of the process before
	Floors     quorum.Floors          // of the era, as on disk
	// Copies returns the copy of a section of an exact space, which only the Acceptor changes. It
	// returns nil for any other section. If Copies is nil, there are no exact spaces.
	Copies func(seq.SectionID) *exact.Copy
	// Space returns the space of a section. If Space is nil, every section is of an ordinary space.
	Space func(seq.SectionID) (*seq.Space, error)
	// OfBefore reports whether a session is of a build that answers by its lease in strict spaces. If nil,
	// none is.
	OfBefore func(seq.Session) bool
}

// Acceptor is the state of one store.
type Acceptor struct {
	registers *registers
	leases    leases
	floors    quorum.Floors
	copies
}

// GraceOf returns the grace: the time after its start in which a store lets only the
// recorded owner in. bound is the longest lease that the store ever granted.
//
// A lease granted just before the crash ends, at the latest, bound after it in the
// store's own time; the holder stops at bound(1-2rho) of its own ticks after it sent
// the request. The granter waits late: bound(1+2rho) ticks of a clock that is up to rho
// fast last bound(1+2rho)/(1+rho) > bound of true time, while bound(1-2rho) ticks of a
// clock that is up to rho slow last bound(1-2rho)/(1-rho) < bound. So the holder has
// stopped by then, and the clocks never have to agree on anything but their rate.
func GraceOf(bound time.Duration) time.Duration {
	return bound * (100 + 2*DriftPercent) / 100
}

// New checks the registers and starts the grace. ErrInvariant for a register that
// breaks I3.
func New(cfg Config) (*Acceptor, error) {
	table, err := newRegisters(cfg.Registers)
	if err != nil {
		return nil, err
	}
	a := &Acceptor{registers: table, leases: newLeases(cfg, table), floors: cfg.Floors, copies: copies{find: cfg.Copies}}
	return a, a.copies.count(table)
}

// Changes is the final state of every register changed since Committed, by name. It
// stays valid; payloads are shared and must not be written to.
func (a *Acceptor) Changes() []Change { return a.registers.changes() }

// Committed says that all of Changes and Entries is on disk.
func (a *Acceptor) Committed() {
	a.registers.committed()
	a.entries = nil
}

// Registers returns the number of registers.
func (a *Acceptor) Registers() int { return len(a.registers.names) }

// Grace returns the time left of the grace after the start, 0 when the grace is over.
func (a *Acceptor) Grace(now time.Duration) time.Duration { return a.leases.grace(now) }

// LeaseBound is the longest lease that Renew grants before SetLeaseBound.
func (a *Acceptor) LeaseBound() time.Duration { return a.leases.bound }

// SetLeaseBound raises the bound, which must be on disk by now: after a crash the
// grace is as long as the bound that the disk has. It never lowers it.
func (a *Acceptor) SetLeaseBound(bound time.Duration) {
	a.leases.bound = max(a.leases.bound, bound)
}

// Floors returns the floors of the era.
func (a *Acceptor) Floors() quorum.Floors { return a.floors }

// SetFloors puts floors in force. The floors must be on disk already.
func (a *Acceptor) SetFloors(f quorum.Floors) { a.floors = f }

// SetMaxLease changes the longest lease that Renew grants from now on; what was granted
// stays.
func (a *Acceptor) SetMaxLease(longest time.Duration) { a.leases.maxLease = longest }

// Extend adds the registers of the sections in [from, to), at zero, after the mapping gained these
// sections. Until the Changes are committed, requests find no such registers. If a register exists
// already, Extend returns ErrInvariant.
func (a *Acceptor) Extend(from, to seq.SectionID) error {
	for id := from; id < to; id++ {
		if r := seq.SectionRegister(id); a.registers.find(r) != nil {
			return fmt.Errorf("%w: %s is to be made, and is there", ErrInvariant, r)
		}
	}
	a.registers.addSections(from, to)
	return nil
}

// Leased says whether any session may still rely on a lease of this store.
func (a *Acceptor) Leased(now time.Duration) bool { return a.leases.any(now) }

// Sessions counts the sessions with a valid lease and what they have attached.
func (a *Acceptor) Sessions(now time.Duration) (live, attached int) { return a.leases.count(now) }

// set changes a register in memory, which reg is, or nil if there is none of that name
// yet; or returns ErrInvariant and changes nothing.
func (a *Acceptor) set(r seq.Register, reg *register, next State) error {
	old := reg.state()
	switch {
	case next.Promised.Less(old.Promised):
		return fmt.Errorf("%w: %s: promised %s after %s", ErrInvariant, r, next.Promised, old.Promised)
	case next.Max < old.Max:
		return fmt.Errorf("%w: %s: max %d after %d", ErrInvariant, r, next.Max, old.Max)
	case next.Promised.Less(next.Accepted):
		return fmt.Errorf("%w: %s: accepted %s above promised %s", ErrInvariant, r, next.Accepted, next.Promised)
	}
	if next.Accepted != old.Accepted {
		delete(a.leases.seals, r)
	}
	if reg == nil {
		reg = a.registers.add(r)
	} else if !reg.dirty {
		reg.disk, reg.dirty = old, true
		a.registers.dirty = append(a.registers.dirty, reg)
	}
	reg.now = next
	return nil
}

// committed is the register as it is on disk.
func (r *register) committed() (st State, known bool) {
	switch {
	case r == nil || r.fresh:
		return State{}, false
	case r.dirty:
		return r.disk, true
	}
	return r.now, true
}
