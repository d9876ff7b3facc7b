package segment

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/numbers"
	"github.com/seqsvr/seqsvr/seq"
)

func TestOnceAHigherStartIsAnsweredNoLowerNumberComesWhoeverServesTheTag(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other, third := newNode(t, f, 2), newNode(t, f, 3)
		n.put(t, limits)
		n.must(t, "order", 5)
		for i, at := range []*node{other, n, third} {
			start := uint64(5000 * (i + 1))
			if _, _, err := at.Put(t.Context(), Tag{Name: "order", Start: start}); err != nil {
				t.Fatal(err)
			}
			if got := n.must(t, "order", 1); got.First < start {
				t.Errorf("got %d after start %d", got.First, start)
			}
		}
		// The next owner knew the tag by the first of its entries.
		if _, err := third.catalog.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		third.deaf.Store(true)
		if _, _, err := other.Put(t.Context(), Tag{Name: "order", Start: 50_000}); err != nil {
			t.Fatal(err)
		}
		if err := n.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := third.must(t, "order", 1); got.First < 50_000 {
			t.Errorf("the next owner: got %d", got.First)
		}
	})
}

func TestAHigherStartIsNotAnsweredWhileAnOwnerThatDoesNotAnswerHasItsLease(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		f.expire(1, 3*time.Second)
		n.put(t, limits)
		n.must(t, "order", 5)
		n.deaf.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := other.Put(ctx, Tag{Name: "order", Start: 5000}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want %v", err, context.DeadlineExceeded)
		}
		begun := f.clock.Now()
		if _, _, err := other.Put(t.Context(), Tag{Name: "order", Start: 5000}); err != nil {
			t.Fatal(err)
		}
		if took := f.clock.Now() - begun; took < 1900*time.Millisecond || took > 3*time.Second {
			t.Errorf("answered after %v, the lease ends after two seconds", took)
		}
		// Its lease comes back, as after a cut from the stores. No other session has taken the tag.
		f.expire(1, time.Hour)
		if r, err := n.Take(t.Context(), "order", 1); err == nil && r.First < 5000 {
			t.Errorf("the owner whose lease was broken: got %d", r.First)
		}
	})
}

func TestARetiredTagHandsOutNothingOnceThatIsAnsweredAndGoesOnOnceItIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		n.put(t, limits)
		last := n.must(t, "order", 5).Last
		for round := range 4 {
			if _, err := other.Retire(t.Context(), "order", false); err != nil {
				t.Fatal(err)
			}
			if round%2 == 1 {
				time.Sleep(time.Second) // the node gives the tag up, and nobody finds it at the stores
			}
			if r, err := n.Take(t.Context(), "order", 1); !errors.Is(err, seq.ErrRetired) {
				t.Fatalf("got %+v, %v, want %v", r, err, seq.ErrRetired)
			}
			if _, err := other.Retire(t.Context(), "order", true); err != nil {
				t.Fatal(err)
			}
			got := n.must(t, "order", 1)
			if got.First <= last {
				t.Errorf("got %d after %d", got.First, last)
			}
			last = got.Last
		}
	})
}

func TestAChangeSaysHowLongANodeOfABuildOfBeforeMayTake(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		n.put(t, limits)
		n.must(t, "order", 5)
		n.slow.Store(int64(5 * time.Second))
		if got, _, err := other.Put(t.Context(), Tag{Name: "order", Start: 5000}); err != nil || got.Later != 5*time.Second {
			t.Errorf("got %v, %v", got.Later, err)
		}
		if got, _, err := n.Put(t.Context(), Tag{Name: "order", Start: 6000}); err != nil || got.Later != 0 {
			t.Errorf("at the owner: got %v, %v", got.Later, err)
		}
	})
}

func TestANumberIsOfTheTemplateOnceItsChangeIsAnswered(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		n.put(t, Tag{Name: "inv", Format: numbers.Format{Template: "A-{seq:3}"}})
		if got, err := n.NextNumbers(t.Context(), "inv", 1); err != nil || got.Texts[0] != "A-001" {
			t.Fatalf("got %+v, %v", got, err)
		}
		for _, at := range []*node{n, other} {
			template := map[*node]string{n: "A-{seq:4}", other: "A-{seq:5}"}[at]
			if _, _, err := at.Put(t.Context(), Tag{Name: "inv", Format: numbers.Format{Template: template}}); err != nil {
				t.Fatal(err)
			}
			shown, err := n.ShowNumber(t.Context(), "inv")
			if err != nil || shown.Tag.Format.Template != template {
				t.Errorf("shown as %+v, %v, want %s", shown, err, template)
			}
			if got, err := n.NextNumbers(t.Context(), "inv", 1); err != nil || got.Texts[0] != shown.Text {
				t.Errorf("got %+v, %v, want %s", got, err, shown.Text)
			}
		}
		third := newNode(t, f, 3) // it knows the tag as it is now, and is told nothing: it does not serve it
		if _, err := third.catalog.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := n.Put(t.Context(), Tag{Name: "inv", Format: numbers.Format{Template: "A-{seq:7}"}}); err != nil {
			t.Fatal(err)
		}
		if err := n.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := third.NextNumbers(t.Context(), "inv", 1); err != nil || len(got.Texts[0]) != len("A-0000000") {
			t.Errorf("the next owner: got %+v, %v", got, err)
		}
	})
}

func TestNoNumberIsBelowAStartThatWasAnsweredWhileOwnersChange(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		nodes := []*node{n, newNode(t, f, 2), newNode(t, f, 3)}
		n.put(t, limits)
		var mu sync.Mutex // guards floor
		floor := uint64(1)
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for _, at := range nodes {
			wg.Go(func() {
				for ctx.Err() == nil {
					mu.Lock()
					least := floor
					mu.Unlock()
					if r, err := at.Take(ctx, "order", 3); err == nil && r.First < least {
						t.Errorf("got %d after start %d was answered", r.First, least)
					}
					<-time.After(7 * time.Millisecond)
				}
			})
		}
		wg.Go(func() { // the section goes from node to node
			for k := 0; ctx.Err() == nil; k++ {
				for i, at := range nodes {
					at.mine.Store(i == k%3)
					at.Recheck()
				}
				<-time.After(333 * time.Millisecond)
			}
		})
		wg.Go(func() {
			for start := uint64(1000); ctx.Err() == nil; start += 1000 {
				if _, _, err := nodes[start/1000%3].Put(ctx, Tag{Name: "order", Start: start}); err == nil {
					mu.Lock()
					floor = start
					mu.Unlock()
				}
				<-time.After(100 * time.Millisecond)
			}
		})
		wg.Wait()
		if floor < 20_000 {
			t.Errorf("only %d was answered", floor)
		}
	})
}
