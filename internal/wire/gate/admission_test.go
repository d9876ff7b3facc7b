package gate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// entered is n calls that were let in at once.
func entered(t *testing.T, a *Admission, who string, keys, n int) (places []*Place) {
	t.Helper()
	for range n {
		p, err := a.Try(WithCaller(t.Context(), who), keys)
		if err != nil {
			t.Fatalf("%s: %v with %d of %d in work", who, err, a.InWork(), a.Limit())
		}
		places = append(places, p)
	}
	return places
}

func refused(t *testing.T, a *Admission, who string, keys int) {
	t.Helper()
	if p, err := a.Try(WithCaller(t.Context(), who), keys); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("%s: got %v, %v with %d of %d in work, want %v", who, p, err, a.InWork(), a.Limit(), seq.ErrOverloaded)
	}
}

func left(t *testing.T, a *Admission, places ...*Place) {
	t.Helper()
	for _, p := range places {
		p.Leave()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inWork == 0 && (a.begun != 0 || len(a.callers) != 0 || len(a.line) != 0 || a.waiting != 0 || len(a.paid) != 0) {
		t.Errorf("after all have left: %d begun, %d callers, %d in line of %d callers, %d paid", a.begun, len(a.callers), len(a.line), a.waiting, len(a.paid))
	}
}

func TestAdmissionLetsInWhatFitsAndRefusesTheRest(t *testing.T) {
	a := NewAdmission(2*CallCost + 10)
	first := entered(t, a, "one", 10, 1)
	refused(t, a, "two", 1)
	second := entered(t, a, "two", 0, 1) // a refusal must take none
	left(t, a, first...)
	third := entered(t, a, "one", 10, 1)
	left(t, a, append(second, third...)...)
	if n := a.InWork(); n != 0 {
		t.Errorf("%d in work after all have left", n)
	}
}

func TestALowerLimitHoldsOnceEnoughHaveLeft(t *testing.T) {
	a := NewAdmission(5 * CallCost)
	places := entered(t, a, "one", 0, 4)
	a.SetLimit(2 * CallCost)
	for range 3 {
		refused(t, a, "one", 0)
		left(t, a, places[0])
		places = places[1:]
	}
	entered(t, a, "two", 0, 1)
	a.SetLimit(3 * CallCost)
	entered(t, a, "three", 0, 1)
	if got, want := a.Refused(), uint64(3); got != want {
		t.Errorf("%d refused, want %d", got, want)
	}
	if a.InWork() != 3*CallCost || a.Limit() != 3*CallCost {
		t.Errorf("%d in work of %d, want both to be %d", a.InWork(), a.Limit(), 3*CallCost)
	}
}

func TestAboveHalfNobodyGetsMoreThanHisShare(t *testing.T) {
	a := NewAdmission(16 * CallCost)
	greedy := entered(t, a, "greedy", 0, 14) // a caller that is alone gets all except an eighth
	refused(t, a, "greedy", 0)
	polite := entered(t, a, "polite", 0, 1)
	other := entered(t, a, "other", 0, 1)
	refused(t, a, "late", 0) // all is full
	left(t, a, greedy[:4]...)
	refused(t, a, "greedy", 0)           // has more than 16/3
	more := entered(t, a, "other", 0, 2) // has 3 of these
	left(t, a, greedy[4:11]...)          // less than half is in work
	again := entered(t, a, "greedy", 0, 1)
	left(t, a, slices.Concat(greedy[11:], polite, other, more, again)...)
}

func TestALimitBelowTheLargestBatchIsRefused(t *testing.T) {
	for keys, sound := range map[int]bool{0: true, MinInWork: true, 1 << 20: true, MinInWork - 1: false, 1: false, -1: false} {
		if err := CheckMaxInWork(keys); (err == nil) != sound || err != nil && !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%d keys: got %v, want it taken: %v", keys, err, sound)
		}
	}
}

// begins is a list of the callers whose calls have begun.
type begins struct {
	t      *testing.T
	a      *Admission
	mu     sync.Mutex
	order  []string
	places []*Place
	all    sync.WaitGroup
}

func (b *begins) call(who string, keys int) {
	b.all.Go(func() {
		p, err := b.a.Enter(WithCaller(b.t.Context(), who), keys)
		if err != nil {
			b.t.Error(err)
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.order, b.places = append(b.order, who), append(b.places, p)
	})
	synctest.Wait()
}

// leave ends the oldest call.
func (b *begins) leave() {
	b.mu.Lock()
	p := b.places[0]
	b.places = b.places[1:]
	b.mu.Unlock()
	p.Leave()
	synctest.Wait()
}

func (b *begins) want(who ...string) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.order) // those that begin at one moment may be noted in any order
	if fmt.Sprint(b.order) != fmt.Sprint(who) {
		b.t.Errorf("begun: %v, want %v", b.order, who)
	}
}

func TestCallersTakeTurnsOnceMuchHasBegun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &begins{t: t, a: NewAdmission(1 << 20)}
		b.a.room = 4 * (CallCost + 1000)
		for range 6 {
			b.call("greedy", 1000)
		}
		b.want("greedy", "greedy", "greedy", "greedy")
		b.call("polite", 0) // the last eighth has room for a caller that has none
		b.want("greedy", "greedy", "greedy", "greedy", "polite")
		b.call("other", 1000)
		b.want("greedy", "greedy", "greedy", "greedy", "polite")
		if got := b.a.Waiting(); got != 2 {
			t.Errorf("%d callers wait, want 2", got)
		}
		b.leave()
		b.want("greedy", "greedy", "greedy", "greedy", "polite")
		b.leave() // the fifth call of the greedy caller was due before the other caller came, and the sixth is not
		b.want("greedy", "greedy", "greedy", "greedy", "greedy", "other", "polite")
		for len(b.order) < 8 {
			b.leave()
		}
		left(t, b.a, b.places...)
	})
}

// The large calls are ten at a time, and each caller comes again as soon as its call has ended.
func TestACallerBelowItsShareWaitsForNoQueueOfOthers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const keys, small = 10_000, 500 // a share is a tenth of keys, and more than small
		b := &begins{t: t, a: NewAdmission(1 << 20)}
		b.a.room = turnKeys / 2 // one large call
		for i := range 10 {
			b.call(fmt.Sprint("large ", i), keys)
		}
		for range 50 {
			b.call("polite", small)
			b.leave()
			last := b.order[len(b.order)-1]
			if last != "polite" {
				t.Fatalf("%s began before the polite caller", last)
			}
			b.leave() // the polite call, after which a large one begins
			b.call(b.order[len(b.order)-3], keys)
		}
		b.places[0].Leave()
		for b.a.InWork() > 0 {
			synctest.Wait()
			b.mu.Lock()
			p := b.places[len(b.places)-1]
			b.mu.Unlock()
			p.Leave()
		}
		b.all.Wait()
	})
}

func TestALargeCallBeginsThoughNewCallersKeepComing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &begins{t: t, a: NewAdmission(1 << 20)}
		b.a.room = CallCost
		b.call("first", 0)
		b.call("large", 1000)
		for i := range 3 {
			b.call(fmt.Sprint("new ", i), 0)
		}
		for i := range 200 {
			b.call(fmt.Sprint("later ", i), 0)
			b.leave()
			if b.order[len(b.order)-1] == "large" {
				break
			}
		}
		if !slices.Contains(b.order, "large") {
			t.Errorf("%d small calls have begun, and the large one has not", len(b.order))
		}
		for b.a.InWork() > 0 {
			b.leave()
		}
		b.all.Wait()
		left(t, b.a)
	})
}

func TestCallsThatAreInForLongHoldNobodyUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &begins{t: t, a: NewAdmission(1 << 20)}
		b.a.room = 2 * (CallCost + 1000)
		for range 5 {
			b.call("one", 1000)
		}
		b.want("one", "one")
		time.Sleep(turnTime)
		b.want("one", "one", "one", "one")
		b.places[0].Waits() // has no effect any more
		b.places[3].Waits()
		b.want("one", "one", "one", "one", "one")
		b.all.Wait()
		left(t, b.a, b.places...)
	})
}

func TestATurnTakesNoMemoryOfCalls(t *testing.T) {
	a := NewAdmission(4 * CallCost)
	all := entered(t, a, "one", 0, 2)
	p, err := a.take(t.Context(), "two", 1000)
	if err != nil || a.InWork() != 2*CallCost {
		t.Errorf("got %v, and %d in work", err, a.InWork())
	}
	left(t, a, append(all, p)...)
}

func TestTimesThatArePastAreForgotten(t *testing.T) {
	a := NewAdmission(1 << 20)
	stays := entered(t, a, "stays", 0, 1) // else all is forgotten at once
	for i := range 20 * minSweep {
		p, err := a.take(t.Context(), i, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Leave()
	}
	if n := len(a.paid); n > 4*minSweep {
		t.Errorf("%d callers that have left are remembered", n)
	}
	left(t, a, stays...)
}

func TestWhoLeavesTheLineHoldsNobodyUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := NewAdmission(1 << 20)
		a.room = CallCost + 1000
		first, err := a.Enter(WithCaller(t.Context(), "one"), 1000)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(WithCaller(t.Context(), "two"))
		gone := make(chan error)
		go func() {
			_, err := a.Enter(ctx, 1000)
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if a.Waiting() != 0 || a.InWork() != CallCost+1000 {
			t.Errorf("%d wait, %d in work after one has left the line", a.Waiting(), a.InWork())
		}
		left(t, a, first)
	})
}

func TestAdmissionCountsWellWhateverCallersDo(t *testing.T) {
	a := NewAdmission(MinInWork)
	a.room = MinInWork / 4
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(who), 1))
			for range 500 {
				ctx, cancel := context.WithCancel(WithCaller(t.Context(), who%5))
				if random.IntN(3) == 0 {
					go cancel()
				}
				enter := a.Enter
				switch random.IntN(4) {
				case 0:
					enter = a.Try
				case 1:
					enter = func(ctx context.Context, keys int, _ ...int) (*Place, error) { return a.take(ctx, callerOf(ctx), keys) }
				}
				if p, err := enter(ctx, random.IntN(2000)); err == nil {
					if random.IntN(2) == 0 {
						p.Waits()
					}
					p.Leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if got := a.InWork(); got != 0 {
		t.Errorf("%d in work after all have left", got)
	}
	left(t, a)
}
