package snowflake

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

const year = 365 * 24 * time.Hour

func allPolicies() []Policy {
	var all []Policy
	for _, o := range []Overflow{OverflowWait, OverflowRefuse, OverflowBorrow} {
		all = append(all,
			Policy{Overflow: o, Rollback: RollbackRefuse},
			Policy{Overflow: o, Rollback: RollbackWait, RollbackWait: 5 * time.Millisecond},
			Policy{Overflow: o, Rollback: RollbackBorrow})
	}
	return all
}

// history holds what one worker handed out over all its generators.
type history struct {
	t      testing.TB
	layout Layout
	seen   map[ID]bool
	last   ID
}

func (h *history) add(g *Generator, floor Tick, ids ...ID) {
	h.t.Helper()
	for _, id := range ids {
		p, err := h.layout.Decode(id)
		if err != nil {
			h.t.Fatal(err)
		}
		if p.Tick <= floor || p.Tick > g.Confirmed() {
			h.t.Fatalf("id %d of tick %d outside the window (%d, %d]", id, p.Tick, floor, g.Confirmed())
		}
		if h.seen[id] {
			h.t.Fatalf("id %d handed out twice", id)
		}
		if id <= h.last {
			h.t.Fatalf("id %d after %d", id, h.last)
		}
		h.seen[id], h.last = true, id
	}
}

// use takes singles and batches and returns how many IDs and the last error.
func (h *history) use(g *Generator, floor Tick) (int, error) {
	h.t.Helper()
	var last error
	ids := make([]ID, 150)
	total := 0
	for range 3 {
		if id, err := g.Next(context.Background()); err == nil {
			h.add(g, floor, id)
			total++
		} else {
			last = err
		}
		n, err := g.NextN(context.Background(), ids)
		h.add(g, floor, ids[:n]...)
		total += n
		if err != nil {
			last = err
		}
	}
	return total, last
}

func TestNoJumpOfTheClockRepeatsAnIDUnderAnyPolicy(t *testing.T) {
	jumps := []time.Duration{-time.Millisecond, -5 * time.Millisecond, -time.Second, -time.Hour, -year, -30 * year, year}
	// Few sequences, so that a few hundred IDs fill several ticks.
	for _, text := range []string{
		"time:41,datacenter:5,worker:5,sequence:6;unit=1ms;epoch=1288834974657",
		"time:39,sequence:6,worker:16;unit=10ms;epoch=2014-09-01T00:00:00Z",
		"time:29,worker:21,sequence:6;unit=1s;epoch=2016-09-20T00:00:00+08:00",
	} {
		l, err := ParseLayout(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range allPolicies() {
			for _, jump := range jumps {
				t.Run(fmt.Sprintf("%s %s %s jump %s", l.Unit(), p.Overflow, p.rollbackText(), jump), func(t *testing.T) {
					jumpAndReturn(t, l, p, jump)
				})
			}
		}
	}
}

// jumpAndReturn uses a worker before, during and after a jump, then again from
// two new generators: after a crash, floor = confirmed, and after a clean release.
func jumpAndReturn(t *testing.T, l Layout, p Policy, jump time.Duration) {
	const window = 100
	start := l.MaxTick() / 2
	c := at(l, start, 0)
	h := &history{t: t, layout: l, seen: map[ID]bool{}, last: -1}
	floor := start - 1
	g := newGenerator(t, l, c, floor, start+window, WithPolicy(p))
	if n, _ := h.use(g, floor); n == 0 {
		t.Fatal("nothing handed out before the jump")
	}
	c.ms += jump.Milliseconds()
	n, err := h.use(g, floor)
	switch far := jump < -5*time.Millisecond && jump <= -time.Duration(l.unit)*10*time.Millisecond; {
	case jump > 0:
		if n != 0 || !errors.Is(err, ErrNoWindow) && !errors.Is(err, ErrTimeExhausted) {
			t.Fatalf("clock a year ahead of the window: %d ids, %v, want none, %v", n, err, ErrNoWindow)
		}
	case far && p.Overflow != OverflowBorrow && p.Rollback != RollbackBorrow:
		if n != 0 || !errors.Is(err, ErrClockRollback) {
			t.Fatalf("clock far back: %d ids, %v, want none, %v", n, err, ErrClockRollback)
		}
	case p.Rollback == RollbackBorrow:
		if n == 0 {
			t.Fatalf("clock back under borrow: no ids, %v", err)
		}
	}
	g.Extend(start + 2*window)
	h.use(g, floor)
	floor = g.Confirmed()
	g = newGenerator(t, l, c, floor, floor+window, WithPolicy(p)) // after a crash
	h.use(g, floor)
	c.ms = max(c.ms, at(l, floor+1, 0).ms)
	h.use(g, floor)
	confirmed := g.Confirmed()
	floor = g.Seal()
	g = newGenerator(t, l, c, floor, confirmed, WithPolicy(p)) // after a release
	h.use(g, floor)
}

func TestASmallRollbackIsMetByPolicy(t *testing.T) {
	l := preset(t, "twitter")
	borrow := Policy{Rollback: RollbackBorrow}
	wait := Policy{Rollback: RollbackWait, RollbackWait: 5 * time.Millisecond}
	c := at(l, 100, 0)

	g := newGenerator(t, l, c, 0, 110, WithPolicy(wait))
	wantNext(t, g, parts(100, 0))
	c.ms -= 5
	wantNext(t, g, parts(100, 1))
	if c.ms != l.epoch+100 {
		t.Errorf("clock after the wait: got %d, want %d", c.ms, l.epoch+100)
	}
	c.ms -= 6
	wantRefused(t, g, ErrClockRollback)

	c.ms = l.epoch + 100
	g = newGenerator(t, l, c, 0, 101, WithPolicy(borrow))
	wantNext(t, g, parts(100, 0))
	c.ms -= int64(year / time.Millisecond)
	ids := make([]ID, 10000)
	n, err := g.NextN(context.Background(), ids)
	if n != 4095+4096 || !errors.Is(err, ErrNoWindow) {
		t.Errorf("borrow a tick and the rest: got %d, %v, want %d, %v", n, err, 4095+4096, ErrNoWindow)
	}
	c.ms = l.epoch - 1
	g.Extend(102)
	wantNext(t, g, parts(102, 0)) // even before the epoch
}

func TestAFloorAheadOfTheClockCountsAsRollback(t *testing.T) {
	l := preset(t, "twitter")
	g := newGenerator(t, l, at(l, 97, 0), 100, 200)
	wantRefused(t, g, ErrClockRollback)
	c := at(l, 97, 0)
	g = newGenerator(t, l, c, 100, 200, WithPolicy(Policy{Rollback: RollbackWait, RollbackWait: 3 * time.Millisecond}))
	wantNext(t, g, parts(101, 0))
	g = newGenerator(t, l, at(l, 97, 0), 100, 200, WithPolicy(Policy{Rollback: RollbackBorrow}))
	wantNext(t, g, parts(101, 0))
}

func TestBorrowedTicksAreNoRollback(t *testing.T) {
	l := preset(t, "twitter")
	c := at(l, 100, 0)
	g := newGenerator(t, l, c, 0, 200, WithPolicy(Policy{Overflow: OverflowBorrow}))
	ids := make([]ID, 3*4096)
	if n, err := g.NextN(context.Background(), ids); n != len(ids) || err != nil {
		t.Fatalf("borrow: got %d, %v", n, err)
	}
	c.ms++
	wantNext(t, g, parts(103, 0))
	c.ms -= 2
	wantRefused(t, g, ErrClockRollback)
}
