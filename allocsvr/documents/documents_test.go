package documents_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/memstore"
)

// stores have one document. The swaps end as swaps says, in turn, and then well.
type stores struct {
	mu    sync.Mutex // guards all below
	doc   quorum.Document
	loads int
	swaps []fate
}

type fate int

const (
	unknownApplied fate = iota
	unknownNotApplied
	overtaken // another writer is faster
	silent    // unknown, since W stores do not answer
)

func (s *stores) LoadDocument(context.Context, seq.Session, seq.Register) (quorum.Document, error) {
	time.Sleep(time.Millisecond) // of the bubble
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	return s.doc, nil
}

func (s *stores) SwapDocument(_ context.Context, _ seq.Session, _ seq.Register, old uint64, body []byte) (quorum.Document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how := fate(-1)
	if len(s.swaps) > 0 {
		how, s.swaps = s.swaps[0], s.swaps[1:]
	}
	if how == overtaken {
		s.doc = quorum.Document{Version: old + 1, Body: append(s.doc.Body, 'o')}
	}
	if s.doc.Version != old {
		return s.doc, seq.ErrConflict
	}
	if how == silent {
		return quorum.Document{}, fmt.Errorf("%w: %w", quorum.ErrUnknownOutcome, seq.ErrNoQuorum)
	}
	if how != unknownNotApplied {
		s.doc = quorum.Document{Version: old + 1, Body: body}
	}
	if how >= 0 {
		return quorum.Document{}, quorum.ErrUnknownOutcome
	}
	return s.doc, nil
}

// cluster is stores in memory.
type cluster struct {
	t      *testing.T
	stores *memstore.Cluster
}

func newCluster(t *testing.T, spaces ...seq.Space) *cluster {
	t.Helper()
	m, err := seq.NewMapping(spaces...)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{t, memstore.New(3, m, clock.Boot(), time.Second)}
}

func inBubble(t *testing.T, test func(t *testing.T, s *stores, d *documents.Document[string], told *[]string)) {
	bubble.Test(t, func(t *testing.T) {
		s, told := &stores{}, &[]string{}
		test(t, s, documents.New(documents.Config[string]{
			Life: t.Context(), Stores: s, Session: 1, Register: seq.TagsRegister,
			Parse:  func(body []byte) (string, error) { return string(body), nil },
			Encode: func(text string) ([]byte, error) { return []byte(text), nil },
			OnNew:  func(text string) { *told = append(*told, text) },
		}, ""), told)
	})
}

// add appends a letter once.
func add(letter string) func(string, bool) (string, bool, error) {
	return func(now string, doubt bool) (string, bool, error) {
		if doubt && now != "" && now[len(now)-1:] == letter {
			return now, false, nil
		}
		return now + letter, true, nil
	}
}

func TestAChangeIsMadeOnceAndLeavesOutNothingThatAnotherWriterDid(t *testing.T) {
	for _, row := range []struct {
		swaps []fate
		want  string
		err   error
	}{
		{nil, "a", nil},
		{[]fate{overtaken, overtaken, overtaken, overtaken, overtaken, overtaken}, "ooooooa", nil},
		{[]fate{unknownApplied}, "a", nil},
		{[]fate{unknownNotApplied, unknownNotApplied, unknownApplied}, "a", nil},
		{[]fate{unknownNotApplied, overtaken}, "oa", nil},
		{[]fate{unknownNotApplied, unknownNotApplied, unknownNotApplied, unknownNotApplied, unknownNotApplied}, "a", nil},
		{[]fate{silent, silent, silent, silent}, "", seq.ErrChangeUnknown},
	} {
		inBubble(t, func(t *testing.T, s *stores, d *documents.Document[string], _ *[]string) {
			s.swaps = row.swaps
			got, err := d.Change(t.Context(), add("a"))
			if got != row.want || string(s.doc.Body) != row.want || d.Known() != row.want || !errors.Is(err, row.err) {
				t.Errorf("%v: got %q, %v, the stores have %q, known is %q", row, got, err, s.doc.Body, d.Known())
			}
		})
	}
}

// A conflict is tried again until the caller's time is over, and says then that its time is over. If the change
// may have been made, it says that.
func TestAChangeThatAlwaysLosesEndsWithItsTimeAndNotWithAConflict(t *testing.T) {
	for _, first := range []fate{overtaken, unknownNotApplied} {
		inBubble(t, func(t *testing.T, s *stores, d *documents.Document[string], _ *[]string) {
			s.swaps = append([]fate{first}, slices.Repeat([]fate{overtaken}, 100_000)...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := d.Change(ctx, add("a"))
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, seq.ErrConflict) || errors.Is(err, seq.ErrChangeUnknown) != (first == unknownNotApplied) {
				t.Errorf("%v first: got %v", first, err)
			}
			if n := 100_001 - len(s.swaps); n < 5 || n > 200 {
				t.Errorf("%d tries in a second", n)
			}
		})
	}
}

func TestEveryVersionIsToldOfOnceAndInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *stores, d *documents.Document[string], told *[]string) {
		for range 3 {
			if _, err := d.Change(t.Context(), add("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprint(*told); got != "[x xx xxx]" {
			t.Errorf("told of %s", got)
		}
	})
}

func TestReadersShareLoadsAndSeeWhatWasRecordedBeforeTheyAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, s *stores, d *documents.Document[string], _ *[]string) {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := d.Read(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait() // the first load is under way
		s.mu.Lock()
		s.doc = quorum.Document{Version: 1, Body: []byte("new")}
		s.mu.Unlock()
		if got, err := d.Read(t.Context()); got != "new" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		wg.Wait()
		if s.loads > 2 {
			t.Errorf("%d loads for 51 readers of two moments", s.loads)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Read(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a reader that gives up: %v", err)
		}
	})
}
