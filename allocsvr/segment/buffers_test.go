package segment

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
)

var limits = Tag{Name: "order", MinStep: 1000, MaxStep: 8000, Start: 1}

func TestTheStepFollowsHowFastASegmentWasUsedUp(t *testing.T) {
	for _, row := range []struct {
		step   uint64
		lasted time.Duration
		want   uint64
	}{
		{1000, 0, 2000},
		{1000, 15*time.Minute - 1, 2000},
		{1000, 15 * time.Minute, 1000},
		{2000, 30 * time.Minute, 2000},
		{2000, 30*time.Minute + 1, 1000},
		{1001, time.Hour, 1000},
		{1000, time.Hour, 1000},
		{6000, time.Minute, 8000},
		{8000, time.Minute, 8000},
	} {
		if got := tune(row.step, row.lasted, 1000, 8000); got != row.want {
			t.Errorf("step %d after a segment of %v: got %d, want %d", row.step, row.lasted, got, row.want)
		}
	}
}

func TestTheNextSegmentIsDueWhenATenthIsUsed(t *testing.T) {
	b := newBuffers(5000, 6000, 0, 0, limits)
	if _, _, ok := b.take(99, 0); !ok || b.due() {
		t.Fatalf("due at 99 of 1000: %+v", b)
	}
	if _, _, ok := b.take(1, 0); !ok || !b.due() {
		t.Fatalf("not due at 100 of 1000: %+v", b)
	}
	if !b.want(b.confirmed) || b.target != 7000 {
		t.Fatalf("target %d, want 7000", b.target)
	}
	if b.due() || b.want(b.confirmed) {
		t.Error("the same step was wanted twice")
	}
	b.confirm(7000)
	if b.due() {
		t.Error("due with a whole segment ahead")
	}
}

func TestARangeRunsOverTheEndOfASegmentWithoutAGap(t *testing.T) {
	b := newBuffers(0, 1000, 0, 0, limits)
	b.confirm(2000)
	b.take(900, 0)
	first, last, ok := b.take(200, 20*time.Minute)
	if !ok || first != 901 || last != 1100 {
		t.Fatalf("got %d to %d, %v", first, last, ok)
	}
	if b.from != 1000 || b.end != 2000 || b.step != 1000 {
		t.Errorf("segment in use is %d to %d with step %d, want 1001 to 2000 with 1000", b.from+1, b.end, b.step)
	}
}

func TestNothingAboveTheConfirmedIsHandedOut(t *testing.T) {
	b := newBuffers(0, 1000, 0, 0, limits)
	b.want(5000)
	if _, _, ok := b.take(1001, 0); ok {
		t.Error("took what is only wanted")
	}
	b.confirm(999) // a late answer
	if _, last, ok := b.take(1000, 0); !ok || last != 1000 {
		t.Errorf("got %d, %v", last, ok)
	}
}

func TestTheNumbersEndAt2To53Minus1(t *testing.T) {
	most := uint64(seq.MaxSeq)
	b := newBuffers(most-10, most, 0, 0, limits)
	if b.want(most - 5) {
		t.Error("wants numbers beyond the end")
	}
	if _, last, ok := b.take(10, 0); !ok || last != most {
		t.Errorf("got %d, %v", last, ok)
	}
	if b.fits(1) || b.due() {
		t.Errorf("goes on at the end: %+v", b)
	}
	restored := newBuffers(most+500, most+500, 0, 0, limits)
	if restored.fits(1) || restored.due() || restored.want(most) {
		t.Errorf("goes on beyond the end: %+v", restored)
	}
}

func TestBuffersKeepTheirFormulaUnderAnyOrderOfCalls(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	b := newBuffers(0, 1000, 0, 0, limits)
	var now time.Duration
	var end uint64 // highest handed out
	floor := uint64(0)
	for i := range 20_000 {
		now += time.Duration(rnd.Int64N(int64(time.Minute)))
		switch rnd.IntN(10) {
		case 0:
			b.want(b.low() + rnd.Uint64N(5000))
		case 1, 2:
			if b.target > 0 {
				b.confirm(b.target)
			}
		case 3:
			floor = max(floor, end+rnd.Uint64N(3000))
			b.limit(Tag{MinStep: 1 + rnd.Uint64N(1000), MaxStep: 1000 + rnd.Uint64N(9000), Start: floor + 1})
		default:
			n := 1 + rnd.Uint64N(1500)
			confirmed := b.confirmed
			first, last, ok := b.take(n, now)
			if ok && (first <= end || first <= floor || last != first+n-1 || last > confirmed) {
				t.Fatalf("seed %d, call %d: took %d to %d after %d, above %d, confirmed %d", seed, i, first, last, end, floor, confirmed)
			}
			end = max(end, last)
			if b.due() {
				b.want(b.confirmed)
			}
		}
		if b.from > b.cur || b.cur > b.end || b.end > b.confirmed || b.target != 0 && b.target <= b.confirmed || b.step < b.least || b.step > b.most {
			t.Fatalf("seed %d, call %d: %+v", seed, i, b)
		}
	}
}

func TestTheStepGrowsUnderLoadAndShrinksInQuiet(t *testing.T) {
	clock := clock.NewManual(0)
	f := newStores(clock)
	n := newNode(t, f, 1)
	n.put(t, limits)
	step := func() uint64 { return n.Statuses()[0].Step }
	turn := func() { // uses up what is confirmed, and one more
		t.Helper()
		eventually(t, "no segment under way", func() bool { return !n.Statuses()[0].Loading })
		st := n.Statuses()[0]
		n.must(t, "order", uint32(st.Max-st.Current+1))
		eventually(t, "no segment under way", func() bool { return !n.Statuses()[0].Loading })
	}
	n.must(t, "order", 1)
	for _, want := range []uint64{2000, 4000, 8000, 8000} {
		if turn(); step() != want {
			t.Fatalf("quick: step %d, want %d", step(), want)
		}
	}
	clock.Advance(20 * time.Minute)
	if turn(); step() != 8000 {
		t.Fatalf("after 20 minutes: step %d, want 8000", step())
	}
	for _, want := range []uint64{4000, 2000, 1000, 1000} {
		clock.Advance(31 * time.Minute)
		if turn(); step() != want {
			t.Fatalf("quiet: step %d, want %d", step(), want)
		}
	}
}
