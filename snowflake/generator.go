package snowflake

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Clock returns milliseconds since 1970. It may jump anywhere; that costs
// availability and the truth of times in IDs, never uniqueness. It is called
// concurrently, once or more for every claim.
type Clock func() int64

// Sleeper waits for d or until ctx ends, and then returns the context's error.
// Returning early without error is harmless.
type Sleeper func(ctx context.Context, d time.Duration) error

// Option changes a Generator at New.
type Option func(*Generator)

// WithClock sets the clock. The default is SystemClock.
func WithClock(c Clock) Option { return func(g *Generator) { g.clock = c } }

// DefaultClockAge bounds the age of a reading of SystemClock under OverflowBorrow.
const DefaultClockAge = time.Millisecond

// WithClockAge sets for how long one reading of the clock serves for single IDs, 0 for
// one ID. It makes Next several times as fast, and the times of IDs up to that much
// late: no more than the 64th ID of a reading, and none later than the runtime takes to
// run a timer. A clock that moved back is noticed that much later, too. Uniqueness and
// order do not depend on it.
//
// The default is DefaultClockAge under OverflowBorrow with the system clock, since such
// IDs may carry times that the clock has not reached anyway, and 0 in all other cases.
func WithClockAge(age time.Duration) Option { return func(g *Generator) { g.age = &age } }

// WithSleeper sets how waits are done. The default is a timer.
func WithSleeper(s Sleeper) Option { return func(g *Generator) { g.sleep = s } }

// WithPolicy sets the policy. The default is the layout's.
func WithPolicy(p Policy) Option { return func(g *Generator) { g.policy = p } }

// SystemClock is the wall clock of the machine.
func SystemClock() int64 { return time.Now().UnixMilli() }

const sealedBit = 1 << 63

// Generator hands out the IDs of one worker. It is safe for concurrent use and
// takes no lock. A position is tick<<seqBits | sequence; IDs are handed out in
// the order of positions, and a position is handed out at most once.
//
//	floor < tick of each ID handed out <= confirmed <= MaxTick
//	floor <= seen <= tick of word
type Generator struct {
	// word is the last position handed out, at first the end of the floor tick;
	// sealedBit is on top once sealed. Positions need at most 62 bits, since the
	// worker has one at least. Every claim is one compare-and-swap of it.
	word atomic.Uint64
	// confirmed only grows, so that a claim may use an older value.
	confirmed atomic.Uint64
	// seen is the highest tick of the clock in which an ID was handed out. It
	// tells a clock that moved back (now < seen) from ticks borrowed from the
	// future (seen <= now < tick of word). It only advises policies: a claim
	// that reads an old value is no less unique.
	seen atomic.Int64

	layout   Layout
	policy   Policy
	clock    Clock          // nil until New has seen the options: SystemClock
	age      *time.Duration // if nil, the policy decides
	readings readings       // of clock
	sleep    Sleeper
	shape    shape
	max      uint64 // MaxTick of the layout
}

// New returns a generator for one worker of the layout. It hands out only ticks
// above floor: floor is the highest tick that any earlier generator of this
// datacenter and worker could have used, which is the mark its window was
// confirmed to, or what its Seal returned; 0 for a worker never used. There is no
// window at first: until Extend every call returns ErrNoWindow.
//
// It returns ErrFieldRange, ErrTimeExhausted (floor behind the last tick),
// ErrLayout (zero layout) or ErrPolicy.
func New(layout Layout, datacenter Datacenter, worker Worker, floor Tick, options ...Option) (*Generator, error) {
	base, err := layout.Compose(Parts{Tick: floor, Datacenter: datacenter, Worker: worker})
	if err != nil {
		return nil, fmt.Errorf("new generator of datacenter %d worker %d above tick %d: %w", datacenter, worker, floor, err)
	}
	g := &Generator{layout: layout, policy: layout.policy, sleep: sleepTimer, max: uint64(layout.MaxTick())}
	for _, o := range options {
		o(g)
	}
	if err := g.policy.Validate(); err != nil {
		return nil, fmt.Errorf("new generator of datacenter %d worker %d: %w", datacenter, worker, err)
	}
	g.readings.start(g.clockAndAge())
	g.shape = shape{
		base:      base &^ ID(floor<<layout.shift[kindTime]),
		seqBits:   layout.width[kindSequence],
		seqMask:   layout.MaxSequence(),
		seqShift:  layout.shift[kindSequence],
		timeShift: layout.shift[kindTime],
	}
	g.word.Store(uint64(floor)<<g.shape.seqBits | layout.MaxSequence())
	g.confirmed.Store(uint64(floor))
	g.seen.Store(int64(floor))
	return g, nil
}

// clockAndAge are what the options say or leave to the policy.
func (g *Generator) clockAndAge() (Clock, time.Duration) {
	clock, age := g.clock, time.Duration(0)
	if clock == nil {
		clock = SystemClock
		if g.policy.Overflow == OverflowBorrow {
			age = DefaultClockAge
		}
	}
	if g.age != nil {
		age = *g.age
	}
	return clock, age
}

// Layout returns the layout of the generator.
func (g *Generator) Layout() Layout { return g.layout }

// Extend raises the confirmed ceiling to tick. Call it only after a durable save
// of that mark was confirmed; a save whose outcome is unknown is no
// confirmation. A lower tick changes nothing, so late confirmations do no harm; a
// tick behind the layout's last counts as the last.
func (g *Generator) Extend(tick Tick) {
	to := min(uint64(tick), g.max)
	for {
		was := g.confirmed.Load()
		if to <= was || g.confirmed.CompareAndSwap(was, to) {
			return
		}
	}
}

// Confirmed returns the ceiling, at first the floor.
func (g *Generator) Confirmed() Tick { return Tick(g.confirmed.Load()) }

// Last returns the tick of the last ID handed out, at first the floor. It may be
// ahead of the clock under the borrow policies; a new window should reach above
// both.
func (g *Generator) Last() Tick { return Tick(g.word.Load() &^ sealedBit >> g.shape.seqBits) }

// Seal ends the generator for ever and returns the last tick that it used, or the floor if it used none. No
// ID above that tick was or will be handed out, whatever was confirmed. So the tick may be saved as the
// floor of the worker's next holder. Calling Seal again returns the same tick.
func (g *Generator) Seal() Tick { return Tick(g.word.Or(sealedBit) &^ sealedBit >> g.shape.seqBits) }

// Next hands out one ID. It waits only under OverflowWait and RollbackWait, and
// not longer than ctx lives.
//
// It returns ErrNoWindow, ErrOverflow, ErrClockRollback, ErrBeforeEpoch,
// ErrTimeExhausted, ErrSealed or ErrWaitEnded; then no ID was handed out.
func (g *Generator) Next(ctx context.Context) (ID, error) {
	if g.readings.age > 0 {
		if id, ok := g.nextInTick(); ok {
			return id, nil
		}
	}
	from, _, err := g.claim(ctx, 1)
	if err != nil {
		return 0, fmt.Errorf("next snowflake: %w", err)
	}
	return g.shape.id(from), nil
}

// NextN fills dst with IDs in ascending order of positions and returns how many
// it filled. With an error of Next the first n of dst are handed out and good;
// without one n is len(dst). Between claims other callers may take IDs.
func (g *Generator) NextN(ctx context.Context, dst []ID) (n int, err error) {
	for n < len(dst) {
		from, count, err := g.claim(ctx, uint64(len(dst)-n))
		if err != nil {
			return n, fmt.Errorf("next %d snowflakes, %d taken: %w", len(dst), n, err)
		}
		g.shape.fill(dst[n:n+int(count)], from)
		n += int(count)
	}
	return n, nil
}

// Take claims up to n >= 1 IDs in one step and returns them unexpanded. It returns at least one, and fewer
// than n at the end of the tick (of the window under OverflowBorrow). It returns the errors of Next, and
// ErrFieldRange for n < 1.
func (g *Generator) Take(ctx context.Context, n int) (Batch, error) {
	if n < 1 {
		return Batch{}, fmt.Errorf("take %d snowflakes: %w", n, ErrFieldRange)
	}
	from, count, err := g.claim(ctx, uint64(n))
	if err != nil {
		return Batch{}, fmt.Errorf("take %d snowflakes: %w", n, err)
	}
	return Batch{shape: g.shape, from: from, count: count}, nil
}

// nextInTick is claim for the case that all but every 64th ID of a busy generator is:
// another ID of the tick of the last, under a remembered reading of the clock. room
// would say the same: now <= tick of word, now >= seen, and the tick is in the window,
// since it was for the last. At the floor, which is no ID's tick, nothing is left of it.
func (g *Generator) nextInTick() (ID, bool) {
	seen := g.seen.Load()
	word := g.word.Load()
	ms, ok := g.readings.remembered(word + 1)
	if !ok || word&sealedBit != 0 {
		return 0, false
	}
	now := g.tick(ms)
	if next := word + 1; now >= seen && now <= int64(word>>g.shape.seqBits) && next&g.shape.seqMask != 0 && g.word.CompareAndSwap(word, next) {
		return g.shape.id(next), true
	}
	return 0, false
}

// claim takes 1 to n positions with one compare-and-swap, waiting where the
// policy says so.
func (g *Generator) claim(ctx context.Context, n uint64) (from, count uint64, err error) {
	for {
		// seen before the clock: with a clock that only moves forward, no other
		// caller's later reading can make this one look like a step back.
		seen := g.seen.Load()
		ms := g.readings.fresh()
		word := g.word.Load()
		if word&sealedBit != 0 {
			return 0, 0, ErrSealed
		}
		now := g.tick(ms)
		limit := g.confirmed.Load()
		from, end, until, err := g.room(now, ms, seen, word, limit)
		if err != nil {
			return 0, 0, err
		}
		if until > 0 {
			if err := g.wait(ctx, until, ms); err != nil {
				return 0, 0, err
			}
			continue
		}
		count = min(n, end-from)
		if !g.word.CompareAndSwap(word, from+count-1) {
			continue
		}
		if now > seen {
			g.raiseSeen(now)
		}
		return from, count, nil
	}
}

// room is the rule of generation, without clock or state of its own. It returns the positions [from, end)
// that may be claimed next, or the tick until which to wait, or the reason to hand out nothing. If until is
// zero, there is no wait.
func (g *Generator) room(now, ms, seen int64, word, limit uint64) (from, end uint64, until int64, err error) {
	s := g.shape.seqBits
	last := word >> s
	from = word + 1
	if from>>s > limit {
		// The window is used up or missing, so no reading of the clock helps.
		return 0, 0, 0, g.outside(max(now, int64(last)+1), limit)
	}
	borrow := g.policy.Overflow == OverflowBorrow
	switch {
	case now > int64(limit):
		return 0, 0, 0, g.outside(now, limit)
	case now > int64(last):
		from, last = uint64(now)<<s, uint64(now)
	case now < seen:
		until, err = g.behind(ms, seen)
		if until > 0 || err != nil {
			return 0, 0, until, err
		}
		borrow = true
	}
	if borrow {
		end = limit
	} else {
		end = last
	}
	end = (end + 1) << s
	switch {
	case from < end:
		return from, end, 0, nil
	case g.policy.Overflow == OverflowRefuse:
		return 0, 0, 0, fmt.Errorf("tick %d: %w", last, ErrOverflow)
	}
	return 0, 0, int64(last) + 1, nil
}

// behind applies the rollback policy: the tick until which to wait, an error, or
// neither where borrowing is allowed.
func (g *Generator) behind(ms, seen int64) (until int64, err error) {
	gap := g.layout.epoch + seen*g.layout.unit - ms
	switch {
	case seen == 0:
		// The clock did not move back: no reading of it after tick 0 was used yet.
		return 0, fmt.Errorf("clock at %d ms, epoch %d ms: %w", ms, g.layout.epoch, ErrBeforeEpoch)
	case g.policy.Rollback == RollbackBorrow:
		return 0, nil
	case g.policy.Rollback == RollbackWait && gap > 0 && milliseconds(gap) <= g.policy.RollbackWait:
		return seen, nil
	}
	return 0, fmt.Errorf("clock %d ms before tick %d: %w", gap, seen, ErrClockRollback)
}

// outside names the reason why tick is not in the window.
func (g *Generator) outside(tick int64, limit uint64) error {
	if tick > int64(g.max) {
		return fmt.Errorf("tick %d, the layout's last is %d: %w", tick, g.max, ErrTimeExhausted)
	}
	return fmt.Errorf("tick %d, confirmed up to %d: %w", tick, limit, ErrNoWindow)
}

// tick returns the tick of a clock reading, -1 for one before the epoch.
func (g *Generator) tick(ms int64) int64 {
	if ms < g.layout.epoch {
		return -1
	}
	since := ms - g.layout.epoch
	if g.layout.unit == 1 {
		return since
	}
	return since / g.layout.unit
}

func (g *Generator) raiseSeen(now int64) {
	for {
		was := g.seen.Load()
		if now <= was || g.seen.CompareAndSwap(was, now) {
			return
		}
	}
}

// wait sleeps from ms on until the tick begins.
func (g *Generator) wait(ctx context.Context, until, ms int64) error {
	gap := g.layout.epoch + until*g.layout.unit - ms
	if err := g.sleep(ctx, milliseconds(gap)); err != nil {
		return fmt.Errorf("tick %d: %w: %w", until, ErrWaitEnded, err)
	}
	return nil
}

func sleepTimer(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
