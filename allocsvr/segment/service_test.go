package segment

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// inBubble runs a test with one set of stores and one node that serves the tag
// "order" with steps of 1000 to 8000.
func inBubble(t *testing.T, test func(t *testing.T, f *fakeStores, n *node)) {
	bubble.Test(t, func(t *testing.T) {
		f := newStores(bubble.NewClock())
		n := newNode(t, f, 1)
		n.put(t, limits)
		test(t, f, n)
	})
}

func TestANewTagStartsAtOneAndRangesAreContiguous(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		next := uint64(1)
		for _, count := range []uint32{1, 10, 989, 1, 5000, 1, 20_000, 3} {
			r := n.must(t, "order", count)
			if r.First != next || r.Last != next+uint64(count)-1 || r.Max < r.Last {
				t.Fatalf("took %d: got %+v, want from %d", count, r, next)
			}
			next = r.Last + 1
		}
	})
}

func TestBadRequestsAreRefusedByName(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		for _, row := range []struct {
			tag   string
			count uint32
			want  error
		}{
			{"nobody", 1, seq.ErrUnknownTag},
			{"", 1, seq.ErrBadArgument},
			{"a b", 1, seq.ErrBadArgument},
			{strings.Repeat("a", seq.MaxTagName+1), 1, seq.ErrBadArgument},
			{"order", 0, seq.ErrBadCount},
			{"order", seq.MaxCount + 1, seq.ErrBadCount},
		} {
			if _, err := n.Take(patient(t), row.tag, row.count); !errors.Is(err, row.want) {
				t.Errorf("%d of %q: got %v, want %v", row.count, row.tag, err, row.want)
			}
		}
		n.mine.Store(false)
		if _, err := n.Take(patient(t), "order", 1); !errors.Is(err, errElsewhere) {
			t.Errorf("elsewhere: got %v", err)
		}
	})
}

func TestATagPutOnAnotherNodeIsKnownAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		if _, err := n.Take(patient(t), "late", 1); !errors.Is(err, seq.ErrUnknownTag) {
			t.Fatal(err)
		}
		other.put(t, Tag{Name: "late"})
		if r := n.must(t, "late", 1); r.First != 1 {
			t.Errorf("got %+v", r)
		}
	})
}

func TestTheNextSegmentIsThereBeforeTheCurrentOneEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.must(t, "order", 100) // a tenth: the next one is fetched
		synctest.Wait()
		f.mu.Lock()
		f.stopped = make(chan struct{}) // from here on the disks hang
		f.mu.Unlock()
		if st := n.Statuses(); len(st) != 1 || len(st[0].Buffers) != 2 || st[0].Max != 2000 {
			t.Fatalf("got %+v", st)
		}
		begin := time.Now()
		for range 1900 {
			n.must(t, "order", 1)
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("requests waited %v", waited)
		}
		close(f.stopped)
	})
}

func TestAWaitEndsWithTheDeadlineAndSaysWhatItWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.must(t, "order", 1000)
		synctest.Wait()
		f.mu.Lock()
		f.draw = func() fault { return lost }
		f.mu.Unlock()
		n.must(t, "order", 1000) // what was fetched ahead
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := n.Take(ctx, "order", 500)
		if !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got := time.Since(begin); got != time.Second {
			t.Errorf("waited %v, want 1s", got)
		}
		f.mu.Lock()
		f.draw = func() fault { return none }
		f.mu.Unlock()
		if r := n.must(t, "order", 1); r.First != 2001 {
			t.Errorf("afterwards: got %+v, want from 2001", r)
		}
	})
}

func TestAStepOfUnknownOutcomeIsRepeatedUnderTheSameEpoch(t *testing.T) {
	for name, how := range map[string]fault{"not applied": lost, "applied": applied, "applied late": late} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
				n.must(t, "order", 1)
				epoch := f.state("order").promised
				f.mu.Lock()
				f.steps = []fault{how, how, none}
				f.mu.Unlock()
				n.must(t, "order", 999) // the step for the next segment fails
				synctest.Wait()
				if st := n.Statuses()[0]; st.Max != 1000 || !st.Loading {
					t.Fatalf("before an answer: got %+v", st)
				}
				if r := n.must(t, "order", 1); r.First != 1001 {
					t.Errorf("got %+v, want from 1001", r)
				}
				f.flush()
				st := f.state("order")
				if st.promised != epoch || st.max < 2000 {
					t.Errorf("register: %+v, want epoch %v and at least 2000", st, epoch)
				}
			})
		})
	}
}

func TestAnAcquisitionOfUnknownOutcomeIsMadeAnew(t *testing.T) {
	for name, how := range map[string]fault{"not applied": lost, "applied": applied, "applied late": late} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
				f.mu.Lock()
				f.prepares, f.steps = []fault{how, none, how, none}, []fault{how, none, how, none}
				f.mu.Unlock()
				h := history{stores: f}
				for range 3 {
					if err := h.take(patient(t), n, "order", 700); err != nil {
						t.Fatal(err)
					}
					f.flush()
				}
				h.check(t)
			})
		})
	}
}

func TestALeaseThatIsNotAttachedIsAskedForUnderANewEpoch(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		f.mu.Lock()
		f.unready = 2
		f.mu.Unlock()
		if r := n.must(t, "order", 1); r.First != 2001 {
			t.Errorf("got %+v, want from 2001: above two segments that were given up", r)
		}
		if round := f.state("order").promised.Round; round != 3 {
			t.Errorf("round %d, want 3", round)
		}
	})
}

func TestAHigherEpochEndsTheTagAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.must(t, "order", 10)
		synctest.Wait()
		f.depose("order")
		n.must(t, "order", 200) // confirmed before; its step meets the higher epoch
		synctest.Wait()
		if st := n.Statuses()[0]; st.State != "absent" {
			t.Errorf("state %s, want absent", st.State)
		}
		if r := n.must(t, "order", 1); r.First != 1001 {
			t.Errorf("got %+v, want from 1001: above all that was confirmed", r)
		}
	})
}

func TestALostLeaseEndsTheTag(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.must(t, "order", 10)
		round := f.state("order").promised.Round
		n.Lost(seq.SectionRegister(1), round)
		n.Lost(seq.TagRegister("nobody"), round)
		n.Lost(seq.TagRegister("order"), round-1)
		if st := n.Statuses()[0]; st.State != "owned" {
			t.Fatalf("state %s, want owned", st.State)
		}
		n.Lost(seq.TagRegister("order"), round)
		if st := n.Statuses()[0]; st.State != "absent" {
			t.Fatalf("state %s, want absent", st.State)
		}
	})
}

func TestNothingIsHandedOutWithoutALease(t *testing.T) {
	clock := clock.NewManual(0)
	f := newStores(clock)
	n := newNode(t, f, 1)
	n.put(t, limits)
	n.must(t, "order", 1)
	f.expire(1, time.Second)
	clock.Advance(time.Second - 1)
	n.must(t, "order", 1)
	clock.Advance(1)
	if _, err := n.Take(patient(t), "order", 1); !errors.Is(err, seq.ErrNoLease) {
		t.Fatalf("got %v", err)
	}
	f.expire(1, time.Hour) // renewed, nobody came between
	if r := n.must(t, "order", 1); r.First != 3 {
		t.Errorf("got %+v, want from 3", r)
	}
}

func TestATakeoverWaitsForTheLeaseAndGoesOnAboveEverything(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		r := n.must(t, "order", 10)
		synctest.Wait()
		confirmed := f.state("order").max
		f.expire(1, time.Second)
		if err := n.stop(); err != nil { // a crash: nobody is told
			t.Fatal(err)
		}
		again := newNode(t, f, 2)
		begin := time.Now()
		got := again.must(t, "order", 1)
		if got.First != confirmed+1 || got.First <= r.Last {
			t.Errorf("got %+v, want from %d", got, confirmed+1)
		}
		if waited := time.Since(begin); waited > renewal+retryLatest {
			t.Errorf("waited %v", waited)
		}
		// And once more, with the lease as the only thing to wait for.
		f.expire(2, time.Second)
		third := newNode(t, f, 3)
		begin = time.Now()
		third.must(t, "order", 1)
		if waited := time.Since(begin); waited < time.Second || waited > time.Second+retryLatest {
			t.Errorf("waited %v for a lease of 1s", waited)
		}
	})
}

func TestAReleaseSparesTheNextOwnerTheWait(t *testing.T) {
	for name, leave := range map[string]func(n *node) error{
		"at leave": func(n *node) error { return n.Release(context.Background()) },
		"at leave, twice": func(n *node) error {
			return errors.Join(n.Release(context.Background()), n.Release(context.Background()))
		},
		"by loss of the section": func(n *node) error { n.mine.Store(false); n.Recheck(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
				n.must(t, "order", 10)
				synctest.Wait()
				if err := leave(n); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				begin := time.Now()
				other := newNode(t, f, 2)
				if r := other.must(t, "order", 1); r.First != 1001 {
					t.Errorf("got %+v, want from 1001", r)
				}
				if waited := time.Since(begin); waited != 0 {
					t.Errorf("the next owner waited %v", waited)
				}
				if _, err := n.Take(patient(t), "order", 1); !errors.Is(err, seq.ErrShuttingDown) && !errors.Is(err, seq.ErrNotOwner) {
					t.Errorf("the old owner says %v", err)
				}
			})
		})
	}
}

func TestOfTwoNodesThatRaceOneServesAndTheOtherWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		var served, waited atomic.Int32
		var wg sync.WaitGroup
		for _, node := range []*node{n, other} {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				switch _, err := node.Take(ctx, "order", 1); {
				case err == nil:
					served.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					waited.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if served.Load() != 1 || waited.Load() != 1 {
			t.Errorf("%d served and %d waited, want one each", served.Load(), waited.Load())
		}
		synctest.Wait()
		f.mu.Lock()
		before := f.held
		f.mu.Unlock()
		time.Sleep(time.Second) // of the bubble: nobody asks, so nobody looks
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.held > before+1 {
			t.Errorf("%d looks at the stores with nobody waiting", f.held-before)
		}
	})
}

func TestTheNumbersEndWithANamedError(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		most := uint64(seq.MaxSeq)
		n.put(t, Tag{Name: "last", Start: most - 9})
		if r := n.must(t, "last", 9); r.First != most-9 {
			t.Fatalf("got %+v", r)
		}
		if _, err := n.Take(patient(t), "last", 2); !errors.Is(err, seq.ErrOverflow) {
			t.Errorf("got %v", err)
		}
		if r := n.must(t, "last", 1); r.Last != most {
			t.Errorf("got %+v", r)
		}
		if _, err := n.Take(patient(t), "last", 1); !errors.Is(err, seq.ErrOverflow) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAnAcquisitionBelowWhatWasHandedOutStopsTheService(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newStores(bubble.NewClock())
		n := newNode(t, f, 1)
		n.ends = errInvariant
		n.put(t, limits)
		n.must(t, "order", 10)
		synctest.Wait()
		reg := seq.TagRegister("order")
		f.mu.Lock()
		f.regs[reg].max = 5 // the stores lost what they had confirmed
		f.mu.Unlock()
		n.Lost(reg, f.state("order").promised.Round)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if r, err := n.Take(ctx, "order", 1); err == nil {
			t.Errorf("got %+v", r)
		}
		if err := n.stop(); !errors.Is(err, errInvariant) {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// A tag, and a start that was put again, are first used in a restored era. No store knows what the earlier
// eras handed out from there.
func TestATagStartsAboveTheFloorOfAnEraThatWasRestored(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		f.mu.Lock()
		f.floor = 1 << 32
		f.mu.Unlock()
		if r := n.must(t, "order", 3); r.First != 1<<32+1 || r.Last != 1<<32+3 {
			t.Errorf("a tag that the backup did not know: %+v", r)
		}
		high := limits
		high.Name, high.Start = "invoice", 1_000_000_000_000
		n.put(t, high)
		if r := n.must(t, "invoice", 1); r.First != 1<<32+1_000_000_000_000 {
			t.Errorf("one with a start: %+v", r)
		}
		raised := limits
		raised.Start = 5_000_000
		n.put(t, raised)
		if r := n.must(t, "order", 1); r.First != 1<<32+5_000_000 {
			t.Errorf("a start that was raised while it was served: %+v", r)
		}
	})
}

// No node would serve a tag that was written into another Set than the root.
func TestANodeOfASetThatIsNotTheRootChangesAndListsNoTags(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		n.inSet.Store(true)
		other := limits
		other.Name = "invoice"
		_, _, put := n.Put(t.Context(), other)
		_, retire := n.Retire(t.Context(), limits.Name, false)
		_, list := n.List(t.Context())
		for what, err := range map[string]error{"put": put, "retire": retire, "list": list} {
			if owner := new(rpc.NotOwnerError); !errors.As(err, &owner) || owner.Set != "main" || owner.Addr == "" {
				t.Errorf("%s: got %v, want where the tags are", what, err)
			}
		}
		n.inSet.Store(false)
		if all, err := n.List(t.Context()); err != nil || len(all) != 1 || all[0].Retired != 0 {
			t.Errorf("%v, %v: want what was there before", all, err)
		}
	})
}
