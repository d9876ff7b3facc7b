package stream

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func TestFewCallersShareOneStreamAndManyUseBothEvenly(t *testing.T) {
	var b balance
	at := time.Now()
	b.born = at
	for range wide {
		b.load[b.pick()].Add(1)
	}
	if got := b.load[1].Load(); got > 1 {
		t.Errorf("%d of the first %d went by the second stream, want none but the last", got, wide)
	}
	// A batch of the first stream has its answers, and its callers come back.
	back := b.load[0].Swap(0)
	for range back + 1000 {
		b.load[b.pick()].Add(1)
	}
	if first, second := b.load[0].Load(), b.load[1].Load(); first-second > 1 || second-first > 1 {
		t.Errorf("%d and %d, want as many", first, second)
	}

	// Two windows with few, and the second stream is not used any more.
	b.load[0].Store(0)
	b.load[1].Store(0)
	for k := range 4 {
		at = at.Add(floorWindow)
		b.age(at)
		b.load[0].Store(2)
		if got := b.pick(); (got == 1) != (k == 0) {
			t.Errorf("window %d with two callers: stream %d", k+1, got)
		}
	}
}

func TestTheLoadOfAStreamIsWhatWaitsAndWhatIsInFlight(t *testing.T) {
	p := pair(t.Context(), &peer{}, time.Hour)
	load := &p.balance.load[0]
	l := newStream(p, load)
	l.started = true
	space := &seq.Space{Name: "user", Sections: 1}
	send := func(n int) (id uint64) {
		t.Helper()
		for i := range n {
			if _, _, err := l.enqueue(space, seq.Key{UID: seq.UID(i)}, 1, nil, 100); err != nil {
				t.Fatal(err)
			}
		}
		_, id, _ = l.first(nil)
		return id
	}
	want := func(n int64, when string) {
		t.Helper()
		if got := load.Load(); got != n {
			t.Errorf("%s: got %d, want %d", when, got, n)
		}
	}
	id := send(5)
	want(5, "in flight")
	l.complete(id, true)
	want(0, "answered in part")
	l.complete(id, false)
	want(0, "answered whole")
	send(3)
	for range 4 {
		if _, _, err := l.enqueue(space, seq.Key{UID: 1}, 1, nil, 100); err != nil {
			t.Fatal(err)
		}
	}
	want(7, "three in flight, four waiting")
	l.mu.Lock()
	failAll(l.giveUp(func(*batch) bool { return true }, true), errors.New("lost"))
	l.mu.Unlock()
	want(0, "given up")
}
