package logs

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// takeAll takes one number for each id by a Finder.
func takeAll(ctx context.Context, find Finder, ids ...string) (firsts []uint64, err error) {
	find.AskAll(ctx, make([]seq.SectionID, len(ids)), func(k int, g *Log) (Ticket, error) {
		return g.Take(ctx, &Instant{}, uid, 1, ids[k], time.Time{})
	}, func(_ int, a exact.Answer, fault error) {
		firsts, err = append(firsts, a.First), errors.Join(err, fault)
	})
	return firsts, err
}

func TestKeysOfOneCallShareACommit(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		s.do(func() { s.late = make(chan struct{}) })
		go func() { _, _ = b.take(g, "under way", 1) }()
		synctest.Wait()
		before := 0
		s.do(func() { before = s.steps })
		var got []uint64
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err = takeAll(b.Context(), func(context.Context, seq.SectionID) (*Log, error) { return g, nil }, "b", "c", "d")
		}()
		synctest.Wait()
		s.do(func() { close(s.late); s.late = nil })
		<-done
		if err != nil || !slices.Equal(got, []uint64{3, 4, 5}) {
			t.Errorf("got %v, %v", got, err)
		}
		s.do(func() {
			if n := s.steps - before; n != 1 {
				t.Errorf("%d batches, want 1", n)
			}
		})
	})
}

// Requests that a closed log had gathered are asked of the section's next log; one that was under
// way there is not asked again.
func TestWhatAClosedLogNeverSentIsAskedOfTheNext(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		var now atomic.Pointer[Log]
		now.Store(g)
		find := Finder(func(context.Context, seq.SectionID) (*Log, error) { return now.Load(), nil })
		s.do(func() { s.late = make(chan struct{}) })
		go func() { _, _ = b.take(g, "under way", 1) }()
		synctest.Wait()
		var got []uint64
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err = takeAll(b.Context(), find, "b", "c")
		}()
		synctest.Wait()
		g.Close()
		s.do(func() {
			close(s.late)
			s.late = nil
			for i := range s.promised {
				s.promised[i] = seq.Epoch{Round: 2, Session: me}
			}
		})
		now.Store(b.Open(3, seq.Epoch{Round: 2, Session: me}, window))
		<-done
		if err != nil || !slices.Equal(got, []uint64{3, 4}) {
			t.Errorf("got %v, %v, want 3 and 4", got, err)
		}
	})
}

func TestANodeWithoutTheLogSaysSoForItsKeys(t *testing.T) {
	got, err := takeAll(t.Context(), func(context.Context, seq.SectionID) (*Log, error) { return nil, seq.ErrNotOwner }, "a", "b")
	if !errors.Is(err, seq.ErrNotOwner) || !slices.Equal(got, []uint64{0, 0}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestKeysOfOneCallThatMeetTwoLogsAreAnsweredInOrder(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		s.do(func() { s.late = make(chan struct{}) })
		go func() { _, _ = b.take(g, "under way", 1) }()
		synctest.Wait()
		at, next := g, 0
		got, err := takeAll(b.Context(), func(context.Context, seq.SectionID) (*Log, error) {
			if next++; next == 2 { // the first key waits in a log that is closed now
				g.Close()
				s.do(func() {
					close(s.late)
					s.late = nil
					for i := range s.promised {
						s.promised[i] = seq.Epoch{Round: 2, Session: me}
					}
				})
				at = b.Open(3, seq.Epoch{Round: 2, Session: me}, window)
			}
			return at, nil
		}, "b", "c", "d")
		if err != nil || !slices.Equal(got, []uint64{3, 4, 5}) {
			t.Errorf("got %v, %v, want 3, 4 and 5", got, err)
		}
	})
}

func TestALogThatIsFoundTooLateServesNoLaterKeyOfItsSection(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		asked := 0
		got, err := takeAll(b.Context(), func(context.Context, seq.SectionID) (*Log, error) {
			if asked++; asked == 1 {
				return nil, seq.ErrNotOwner
			}
			return g, nil
		}, "a", "b")
		if !errors.Is(err, seq.ErrNotOwner) || !slices.Equal(got, []uint64{0, 0}) {
			t.Errorf("got %v, %v, want %v for both", got, err, seq.ErrNotOwner)
		}
	})
}
