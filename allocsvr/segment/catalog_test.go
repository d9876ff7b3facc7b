package segment

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

func TestPutKeepsWhatItIsNotToldAndFillsInDefaults(t *testing.T) {
	old := Tag{Name: "a", MinStep: 10, MaxStep: 20, Start: 5}
	for _, row := range []struct {
		name   string
		put    Tag
		exists bool
		want   Tag
		bad    bool
	}{
		{"new", Tag{Name: "a"}, false, Tag{Name: "a", MinStep: 1000, MaxStep: 1_000_000, Start: 1}, false},
		{"new, large step", Tag{Name: "a", MinStep: 5_000_000}, false, Tag{Name: "a", MinStep: 5_000_000, MaxStep: 5_000_000, Start: 1}, false},
		{"new, small step", Tag{Name: "a", MaxStep: 7}, false, Tag{Name: "a", MinStep: 7, MaxStep: 7, Start: 1}, false},
		{"nothing told", Tag{Name: "a"}, true, old, false},
		{"one limit", Tag{Name: "a", MaxStep: 30}, true, Tag{Name: "a", MinStep: 10, MaxStep: 30, Start: 5}, false},
		{"start rises", Tag{Name: "a", Start: 6}, true, Tag{Name: "a", MinStep: 10, MaxStep: 20, Start: 6}, false},
		{"start falls", Tag{Name: "a", Start: 4}, true, Tag{}, true},
		{"start beyond the end", Tag{Name: "a", Start: uint64(seq.MaxSeq) + 1}, true, Tag{}, true},
		{"min above max", Tag{Name: "a", MinStep: 21}, true, Tag{}, true},
		{"step too large", Tag{Name: "a", MaxStep: seq.MaxStep + 1}, false, Tag{}, true},
	} {
		got, err := row.put.over(old, row.exists)
		if row.bad {
			if !errors.Is(err, seq.ErrBadArgument) {
				t.Errorf("%s: got %v", row.name, err)
			}
		} else if diff := cmp.Diff(row.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%s", row.name, err, diff)
		}
	}
}

func TestManyTagsArePutInOneChangeOrNoneOfThem(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		n.put(t, limits)
		n.must(t, limits.Name, 1)
		wants := []Tag{{Name: "a", Start: 7}, {Name: "no space s"}, {Name: "b", MinStep: 9, MaxStep: 8}, {Name: "a"}, {Name: limits.Name, Start: 500}}
		got, err := other.PutAll(t.Context(), wants, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, bad := range []bool{false, true, true, true, false} {
			if (got[i].err != nil) != bad || bad && !errors.Is(got[i].err, seq.ErrBadArgument) {
				t.Errorf("%+v: got %v", wants[i], got[i].err)
			}
		}
		before, err := n.List(t.Context())
		if err != nil || slices.ContainsFunc(before, func(x Tag) bool { return x.Name == "a" }) {
			t.Fatalf("a wrong tag among them: got %+v, %v, want none put", before, err)
		}
		wants = []Tag{{Name: "a", Start: 7}, {Name: "b"}, {Name: limits.Name, Start: 500}}
		for round, check := range []bool{true, false, false} {
			got, err := other.PutAll(t.Context(), wants, check)
			if err != nil {
				t.Fatal(err)
			}
			again := round == 2
			if got[0].created == again || got[1].created == again || got[2].created || got[2].changed == again {
				t.Errorf("round %d: got %+v", round, got)
			}
			now, err := other.List(t.Context()) // n would read the catalogue
			if want := len(before) + 2; err != nil || len(now) != want && !check || check && len(now) != len(before) {
				t.Errorf("round %d: %d tags, %v", round, len(now), err)
			}
			if r := n.must(t, limits.Name, 1); !check && r.First < 500 {
				t.Errorf("round %d: got %d after start 500 was answered", round, r.First)
			}
		}
		if _, err := other.PutAll(t.Context(), make([]Tag, MaxPut+1), false); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("too many: got %v", err)
		}
	})
}

func TestTagsAreListedByNameAsTheStoresHaveThem(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		other := newNode(t, f, 2)
		other.put(t, Tag{Name: "Zoo"})
		other.put(t, Tag{Name: "a.b_c:d-9", MinStep: 5, MaxStep: 6, Start: 7})
		got, err := n.List(t.Context())
		want := []Tag{{Name: "Zoo", MinStep: 1000, MaxStep: 1_000_000, Start: 1}, {Name: "a.b_c:d-9", MinStep: 5, MaxStep: 6, Start: 7}, limits}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, -want +got:\n%s", err, diff)
		}
	})
}

func TestAPutOfUnknownOutcomeIsSettledByTryingAgain(t *testing.T) {
	for name, how := range map[string]fault{"not applied": lost, "applied": applied} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
				f.mu.Lock()
				f.swaps = []fault{how}
				f.mu.Unlock()
				got, created, err := n.Put(t.Context(), Tag{Name: "x", Start: 100})
				if want := (Tag{Name: "x", MinStep: 1000, MaxStep: 1_000_000, Start: 100}); err != nil || !created || got != want {
					t.Errorf("got %+v, %v, %v", got, created, err)
				}
				if _, created, err = n.Put(t.Context(), Tag{Name: "x"}); err != nil || created {
					t.Errorf("again: created %v, %v", created, err)
				}
			})
		})
	}
}

func TestPutsByManyAtOnceAreAllKept(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		nodes := []*node{n, newNode(t, f, 2), newNode(t, f, 3)}
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				if _, _, err := nodes[i%3].Put(t.Context(), Tag{Name: fmt.Sprint("tag-", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got, err := n.List(t.Context()); len(got) != 31 || err != nil {
			t.Errorf("%d tags, want 31: %v", len(got), err)
		}
	})
}

func TestAHigherStartSkipsNumbersWhereTheTagIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.must(t, "order", 10)
		other := newNode(t, f, 2)
		other.put(t, Tag{Name: "order", Start: 501})
		time.Sleep(5 * time.Second) // of the bubble: what the wire contract says
		if r := n.must(t, "order", 1); r.First != 501 {
			t.Errorf("got %+v, want 501", r)
		}
		other.put(t, Tag{Name: "order", Start: 1_000_000, MinStep: 2000})
		time.Sleep(5 * time.Second)
		if r := n.must(t, "order", 7); r.First != 1_000_000 {
			t.Errorf("got %+v, want 1000000", r)
		}
		if st := n.Statuses()[0]; st.Tag.MinStep != 2000 || st.Step < 2000 || st.Current != 1_000_006 {
			t.Errorf("got %+v", st)
		}
	})
}

func TestUnknownNamesMakeOneLoadAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		f.mu.Lock()
		before := f.loads
		f.mu.Unlock()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := n.Take(patient(t), "nobody", 1); !errors.Is(err, seq.ErrUnknownTag) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		f.mu.Lock()
		defer f.mu.Unlock()
		if got := f.loads - before; got < 1 || got > 100 {
			t.Errorf("%d loads", got)
		}
	})
}

func TestADamagedCatalogueIsAnErrorAndNotEmpty(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON":   "{",
		"bad limit": `{"tags":[{"tag":"a","min_step":0,"max_step":5,"start":1}]}`,
		"bad name":  `{"tags":[{"tag":"a b","min_step":1,"max_step":5,"start":1}]}`,
	} {
		if got, err := parseTags([]byte(body)); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
