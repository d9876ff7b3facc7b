package segment

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func TestARetiredTagHandsOutNothingAndGoesOnAboveOnceThatIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		n.put(t, limits)
		last := n.must(t, "order", 5).Last
		gone, err := other.Retire(t.Context(), "order", false)
		if err != nil || gone.Retired == 0 {
			t.Fatalf("got %+v, %v", gone, err)
		}
		time.Sleep(time.Second)
		if again, err := n.Retire(t.Context(), "order", false); err != nil || again != gone {
			t.Errorf("again: got %+v, %v, want %+v", again, err, gone)
		}
		time.Sleep(5 * time.Second) // the wire contract of Retire
		for name, at := range map[string]*node{"the node that served it": n, "another": other} {
			if r, err := at.Take(t.Context(), "order", 1); !errors.Is(err, seq.ErrRetired) {
				t.Errorf("%s: got %+v, %v, want ErrRetired", name, r, err)
			}
			if _, _, err := at.Put(t.Context(), Tag{Name: "order", MinStep: 20}); !errors.Is(err, seq.ErrRetired) {
				t.Errorf("%s: put: got %v, want ErrRetired", name, err)
			}
		}
		if all, err := n.List(t.Context()); err != nil || len(all) != 1 || all[0] != gone {
			t.Errorf("listed as %+v, %v, want %+v", all, err, gone)
		}
		if back, err := n.Retire(t.Context(), "order", true); err != nil || back != limits {
			t.Fatalf("undo: got %+v, %v, want %+v", back, err, limits)
		}
		time.Sleep(5 * time.Second)
		// The node that served it gave its lease up, so the other one need not wait for it.
		begun := f.clock.Now()
		if r := other.must(t, "order", 1); r.First <= last || f.clock.Now()-begun > time.Second {
			t.Errorf("got %d after %d, after %v", r.First, last, f.clock.Now()-begun)
		}
	})
}

func TestATagThatIsRetiredWhileARequestWaitsRefusesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.put(t, limits)
		n.must(t, "order", 1)
		f.mu.Lock()
		f.draw = func() fault { return lost }
		f.mu.Unlock()
		done := make(chan error, 1)
		go func() {
			_, err := n.Take(t.Context(), "order", 100_000)
			done <- err
		}()
		time.Sleep(time.Second)
		c := n.all()[0]
		c.limit(Tag{Name: "order", MinStep: 1, MaxStep: 1, Start: 1, Retired: 5})
		if err := <-done; !errors.Is(err, seq.ErrRetired) {
			t.Errorf("got %v, want ErrRetired", err)
		}
	})
}

func TestATagThatIsNotThereCannotBeRetired(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		for name, want := range map[string]error{"moon": seq.ErrUnknownTag, "": seq.ErrBadArgument} {
			for _, undo := range []bool{false, true} {
				if _, err := n.Retire(t.Context(), name, undo); !errors.Is(err, want) {
					t.Errorf("%q: got %v, want %v", name, err, want)
				}
			}
		}
	})
}
