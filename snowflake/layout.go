package snowflake

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// ID is one snowflake ID, 0 to 2^63-1. A negative ID is never made and always refused with ErrSign, except
// by ReadOnly layouts: they have 64 bits, and an ID holds the bits of the unsigned number.
type ID int64

// String returns the decimal form.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// Tick counts units of time since the epoch of a layout.
type Tick uint64

// Datacenter is the number of a datacenter; 0 in layouts without that field.
type Datacenter uint64

// Worker is the number of a worker (a machine, a node, a process).
type Worker uint64

// Parts are the fields of one ID.
type Parts struct {
	Tick       Tick
	Datacenter Datacenter
	Worker     Worker
	Sequence   uint64
}

const (
	maxBits         = 63 // of IDs that are made: the sign bit stays clear
	maxBitsReadable = 64
	maxBitsJS53     = 53 // the largest whole number exact in a float64
)

// ExhaustionWarning is the time before Layout.Exhausted at which an operator should be warned. It is long
// enough to move data to a wider layout.
const ExhaustionWarning = 365 * 24 * time.Hour

type fieldKind uint8

const (
	kindNone fieldKind = iota
	kindTime
	kindDatacenter
	kindWorker
	kindSequence
	numKinds
)

var kindNames = [numKinds]string{"", "time", "datacenter", "worker", "sequence"}

// Layout says how an ID is put together. It is a value: comparable with ==, and
// safe for concurrent use. Make one with ParseLayout or Preset; the zero Layout
// composes and decodes nothing.
//
//	sum of width <= 63 (53 with js53, 64 if it is ReadOnly), width of time, worker, sequence >= 1
//	shift of a field = sum of the widths of the fields below it
//	epoch + 2^width[time] * unit <= MaxInt64
type Layout struct {
	order [numKinds - 1]fieldKind // from the highest field down, then kindNone
	width [numKinds]uint8         // bits, by kind
	shift [numKinds]uint8         // lowest bit, by kind
	epoch int64                   // milliseconds since 1970, >= 0
	unit  int64                   // milliseconds, >= 1
	js53  bool
	// policy is the default of generators of this layout; no ID depends on it.
	policy Policy
}

// finish computes the shifts and checks the invariants of Layout; most are its bits.
func (l *Layout) finish(most int) error {
	total := 0
	for i := len(l.order) - 1; i >= 0; i-- {
		k := l.order[i]
		l.shift[k] = uint8(min(total, maxBits)) // a sum that is too large is refused below
		total += int(l.width[k])
	}
	l.shift[kindNone] = 0
	for _, k := range []fieldKind{kindTime, kindWorker, kindSequence} {
		if l.width[k] == 0 {
			return fmt.Errorf("%w: field %s missing", ErrLayout, kindNames[k])
		}
	}
	if total > most {
		return fmt.Errorf("%w: %d bits, want at most %d", ErrLayout, total, most)
	}
	if l.js53 && total > maxBitsJS53 {
		return fmt.Errorf("%w: %d bits, js53 wants at most %d", ErrLayout, total, maxBitsJS53)
	}
	if l.unit < 1 {
		return fmt.Errorf("%w: unit below 1ms", ErrLayout)
	}
	if l.epoch < 0 {
		return fmt.Errorf("%w: epoch before 1970", ErrLayout)
	}
	if ticks := int64(1) << l.width[kindTime]; l.unit > (math.MaxInt64-l.epoch)/ticks {
		return fmt.Errorf("%w: its time reaches further than 2^63 ms after 1970", ErrLayout)
	}
	return nil
}

func (l Layout) valid() bool { return l.width[kindTime] != 0 }

// Bits returns how many bits the IDs of the layout have.
func (l Layout) Bits() uint {
	n := uint(0)
	for _, w := range l.width {
		n += uint(w)
	}
	return n
}

func (l Layout) max(k fieldKind) uint64 { return 1<<l.width[k] - 1 }

// ReadOnly tells whether the layout has 64 bits. Such IDs are unsigned and are read
// here, never made: every ID of our own fits a signed integer.
func (l Layout) ReadOnly() bool { return l.Bits() == maxBitsReadable }

// MaxTick returns the last tick of the layout.
func (l Layout) MaxTick() Tick { return Tick(l.max(kindTime)) }

// MaxDatacenter returns the largest datacenter number, 0 without that field.
func (l Layout) MaxDatacenter() Datacenter { return Datacenter(l.max(kindDatacenter)) }

// MaxWorker returns the largest worker number.
func (l Layout) MaxWorker() Worker { return Worker(l.max(kindWorker)) }

// MaxSequence returns the largest sequence within one tick.
func (l Layout) MaxSequence() uint64 { return l.max(kindSequence) }

// HasDatacenter tells whether the layout has a datacenter field.
func (l Layout) HasDatacenter() bool { return l.width[kindDatacenter] != 0 }

// Unit returns the length of one tick, a whole number of milliseconds. It
// saturates at the largest time.Duration.
func (l Layout) Unit() time.Duration { return milliseconds(l.unit) }

// Epoch returns the moment of tick 0, in UTC.
func (l Layout) Epoch() time.Time { return time.UnixMilli(l.epoch).UTC() }

// Policy returns the default policy of generators of this layout.
func (l Layout) Policy() Policy { return l.policy }

// WithPolicy returns the layout with another default policy. No ID depends on
// the policy, so the result Follows the original.
func (l Layout) WithPolicy(p Policy) Layout {
	l.policy = p
	return l
}

// TimeOf returns the moment at which tick t begins, in UTC. It returns
// ErrTimeExhausted for a tick behind MaxTick.
func (l Layout) TimeOf(t Tick) (time.Time, error) {
	if !l.valid() {
		return time.Time{}, fmt.Errorf("time of tick %d: %w: zero layout", t, ErrLayout)
	}
	if t > l.MaxTick() {
		return time.Time{}, fmt.Errorf("time of tick %d: want at most %d: %w", t, l.MaxTick(), ErrTimeExhausted)
	}
	return time.UnixMilli(l.epoch + int64(t)*l.unit).UTC(), nil
}

// TickAt returns the tick that contains the moment. It returns ErrBeforeEpoch
// or ErrTimeExhausted outside the layout's time.
func (l Layout) TickAt(at time.Time) (Tick, error) {
	if !l.valid() {
		return 0, fmt.Errorf("tick at %s: %w: zero layout", at.UTC(), ErrLayout)
	}
	if at.Before(l.Epoch()) {
		return 0, fmt.Errorf("tick at %s: epoch is %s: %w", at.UTC(), l.Epoch(), ErrBeforeEpoch)
	}
	if !at.Before(l.Exhausted()) {
		return 0, fmt.Errorf("tick at %s: ran out at %s: %w", at.UTC(), l.Exhausted(), ErrTimeExhausted)
	}
	return Tick((at.UnixMilli() - l.epoch) / l.unit), nil
}

// Exhausted returns the first moment at which the layout has no tick any more,
// in UTC: the end of MaxTick.
func (l Layout) Exhausted() time.Time {
	return time.UnixMilli(l.epoch + int64(1)<<l.width[kindTime]*l.unit).UTC()
}

// Remaining returns how long after now the layout runs out; zero or negative
// once it did. It saturates at the largest time.Duration (292 years).
func (l Layout) Remaining(now time.Time) time.Duration { return l.Exhausted().Sub(now) }

// Compose puts an ID together. It returns ErrTimeExhausted for a tick behind
// MaxTick, ErrFieldRange for any other part that does not fit its field, and ErrLayout
// for a layout that is ReadOnly.
func (l Layout) Compose(p Parts) (ID, error) {
	if !l.valid() {
		return 0, fmt.Errorf("compose: %w: zero layout", ErrLayout)
	}
	if l.ReadOnly() {
		return 0, fmt.Errorf("compose: %w: %d bits are for reading, want at most %d", ErrLayout, maxBitsReadable, maxBits)
	}
	if p.Tick > l.MaxTick() {
		return 0, fmt.Errorf("compose tick %d: want at most %d: %w", p.Tick, l.MaxTick(), ErrTimeExhausted)
	}
	values := [numKinds]uint64{0, uint64(p.Tick), uint64(p.Datacenter), uint64(p.Worker), p.Sequence}
	id := uint64(0)
	for k := kindTime; k < numKinds; k++ {
		if values[k] > l.max(k) {
			return 0, fmt.Errorf("compose %s %d: want at most %d: %w", kindNames[k], values[k], l.max(k), ErrFieldRange)
		}
		id |= values[k] << l.shift[k]
	}
	return ID(id), nil
}

// Decode takes an ID apart. It returns ErrSign for a negative ID and
// ErrFieldRange for one with bits above the layout's.
func (l Layout) Decode(id ID) (Parts, error) {
	if !l.valid() {
		return Parts{}, fmt.Errorf("decode id %d: %w: zero layout", id, ErrLayout)
	}
	if id < 0 && !l.ReadOnly() {
		return Parts{}, fmt.Errorf("decode id %d: %w", id, ErrSign)
	}
	if uint64(id)>>l.Bits() != 0 {
		return Parts{}, fmt.Errorf("decode id %d: layout has %d bits: %w", id, l.Bits(), ErrFieldRange)
	}
	part := func(k fieldKind) uint64 { return uint64(id) >> l.shift[k] & l.max(k) }
	return Parts{
		Tick:       Tick(part(kindTime)),
		Datacenter: Datacenter(part(kindDatacenter)),
		Worker:     Worker(part(kindWorker)),
		Sequence:   part(kindSequence),
	}, nil
}

// milliseconds turns ms >= 0 into a Duration, saturating.
func milliseconds(ms int64) time.Duration {
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
