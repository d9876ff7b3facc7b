package snowflake

import (
	"fmt"
	"time"
)

// Overflow says what a generator does when the sequences of a tick are used up.
type Overflow uint8

const (
	// OverflowWait waits for the next tick of the clock.
	OverflowWait Overflow = iota
	// OverflowRefuse returns ErrOverflow until the next tick of the clock.
	OverflowRefuse
	// OverflowBorrow goes on with future ticks of the confirmed window.
	OverflowBorrow
)

// Rollback says what a generator does while its clock stands before a time it
// has used already, or before its floor.
type Rollback uint8

const (
	// RollbackRefuse returns ErrClockRollback until the clock has caught up.
	RollbackRefuse Rollback = iota
	// RollbackWait waits when the clock is behind by at most
	// Policy.RollbackWait, else it refuses like RollbackRefuse.
	RollbackWait
	// RollbackBorrow stays in the last tick, and when its sequences are used up
	// goes on with future ticks of the confirmed window, whatever the overflow
	// policy says.
	RollbackBorrow
)

// Policy says how a generator meets a full tick and a clock that moved back. No
// policy can lead to an ID handed out twice. The zero Policy is Twitter's: wait
// on overflow, refuse on rollback.
//
//	RollbackWait >= 1 ms if Rollback is RollbackWait, else 0
type Policy struct {
	Overflow     Overflow
	Rollback     Rollback
	RollbackWait time.Duration
}

var (
	overflowNames = [...]string{"wait", "refuse", "borrow"}
	rollbackNames = [...]string{"refuse", "wait", "borrow"}
)

// String returns the word used in layouts.
func (o Overflow) String() string {
	if int(o) < len(overflowNames) {
		return overflowNames[o]
	}
	return fmt.Sprintf("overflow(%d)", uint8(o))
}

// String returns the word used in layouts, without the duration of a wait.
func (r Rollback) String() string {
	if int(r) < len(rollbackNames) {
		return rollbackNames[r]
	}
	return fmt.Sprintf("rollback(%d)", uint8(r))
}

// ParseOverflow reads wait, refuse or borrow. It returns ErrPolicy.
func ParseOverflow(text string) (Overflow, error) {
	for i, name := range overflowNames {
		if text == name {
			return Overflow(i), nil
		}
	}
	return 0, fmt.Errorf("%w: overflow %q wants wait, refuse or borrow", ErrPolicy, text)
}

// ParseRollback reads refuse, borrow or wait:<duration>, such as wait:5ms. It
// returns ErrPolicy.
func ParseRollback(text string) (Rollback, time.Duration, error) {
	switch text {
	case "refuse":
		return RollbackRefuse, 0, nil
	case "borrow":
		return RollbackBorrow, 0, nil
	}
	if len(text) > len("wait:") && text[:len("wait:")] == "wait:" {
		d, err := time.ParseDuration(text[len("wait:"):])
		if err == nil && d >= time.Millisecond {
			return RollbackWait, d, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: rollback %q wants refuse, borrow or wait:<duration of at least 1ms>", ErrPolicy, text)
}

func (p Policy) rollbackText() string {
	if p.Rollback == RollbackWait {
		return "wait:" + p.RollbackWait.String()
	}
	return p.Rollback.String()
}

// Validate returns ErrPolicy for a policy outside its invariants.
func (p Policy) Validate() error {
	if int(p.Overflow) >= len(overflowNames) {
		return fmt.Errorf("%w: %s", ErrPolicy, p.Overflow)
	}
	if int(p.Rollback) >= len(rollbackNames) {
		return fmt.Errorf("%w: %s", ErrPolicy, p.Rollback)
	}
	if waits := p.Rollback == RollbackWait; waits != (p.RollbackWait != 0) || waits && p.RollbackWait < time.Millisecond {
		return fmt.Errorf("%w: rollback %s with a wait of %s", ErrPolicy, p.Rollback, p.RollbackWait)
	}
	return nil
}
