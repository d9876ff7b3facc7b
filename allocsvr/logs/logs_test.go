package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

const (
	me, other seq.Session = 0xa, 0xb
	window                = time.Minute
	uid       seq.UID     = 7
)

// stores are three copies of one section.
type stores struct {
	mu       sync.Mutex // guards all below
	copies   [3]*exact.Copy
	promised [3]seq.Epoch
	down     [3]bool
	silent   int // messages whose answers are lost
	sent     [][]byte
	steps    int
	most     int           // copies that a message holds; zero means no limit
	late     chan struct{} // if not nil, answers wait until it is closed
	beside   *stores       // of another section, beside
}

// beside is the section that stores.beside has.
const beside = seq.SectionID(4)

// of returns the stores of a register. Needs s.mu.
func (s *stores) of(reg seq.Register) *stores {
	if reg == seq.SectionRegister(beside) {
		return s.beside
	}
	return s
}

func newStores() *stores {
	s := &stores{}
	for i := range s.copies {
		s.copies[i] = exact.NewCopy(window.Milliseconds())
		s.promised[i] = seq.Epoch{Round: 1, Session: me}
	}
	return s
}

func (s *stores) Step(_ context.Context, session seq.Session, items []quorum.StepItem) []quorum.Outcome {
	s.mu.Lock()
	out := make([]quorum.Outcome, len(items))
	for i, item := range items {
		out[i] = s.of(item.Register).step(seq.Epoch{Round: item.Round, Session: session}, item.Log)
	}
	late := s.late
	s.mu.Unlock()
	if late != nil {
		<-late
	}
	return out
}

// step counts what the stores say. Needs s.mu.
func (s *stores) step(e seq.Epoch, body []byte) (out quorum.Outcome) {
	s.steps++
	s.sent = append(s.sent, body)
	oks, nos := 0, 0
	for k, c := range s.copies {
		if s.down[k] {
			continue
		}
		if e.Less(s.promised[k]) {
			return quorum.Outcome{State: quorum.Refused, Promised: s.promised[k], Err: quorum.ErrNack}
		}
		if s.promised[k] = e; len(body) == 0 {
			oks++
			continue
		}
		change, err := exact.ReadChange(body, window.Milliseconds())
		if err == nil && change.Whole != nil {
			_, err = c.Fill(change.Whole, math.MaxInt64)
		} else if err == nil {
			_, err = c.Append(&change.Batch, math.MaxInt64)
		}
		if err == nil {
			oks++
			continue
		}
		nos++
		out.Elsewhere = out.Elsewhere || errors.Is(err, exact.ErrElsewhere)
		out.Err = err
	}
	switch {
	case s.silent > 0:
		s.silent--
		return quorum.Outcome{State: quorum.Unknown, Err: seq.ErrNoQuorum}
	case oks >= 2:
		out.State, out.Err = quorum.Won, nil
	case nos >= 2:
		out.State = quorum.Refused
	}
	return out
}

func (s *stores) Copies(_ context.Context, session seq.Session, regs []seq.Register, rounds []uint64) []quorum.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]quorum.Outcome, len(regs))
	for i := range regs {
		s := s.of(regs[i])
		if s.most > 0 && len(regs) > s.most {
			continue
		}
		seen := 0
		var best *exact.State
		for k, c := range s.copies {
			if out[i].Promised.Less(s.promised[k]) {
				out[i].Promised = s.promised[k]
			}
			if s.down[k] || s.promised[k] != (seq.Epoch{Round: rounds[i], Session: session}) {
				continue
			}
			if seen++; best == nil || best.At().Less(c.At()) {
				best = c.State()
			}
		}
		if seen >= 2 {
			out[i].State, out[i].Payload, out[i].Time = quorum.Won, best.AppendTo(nil), time.Now().UnixMilli()
		}
	}
	return out
}

func (s *stores) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// bench is Logs over stores, in virtual time.
type bench struct {
	*Logs
	*testing.T
	stores *stores
	bytes  atomic.Int64
	full   atomic.Bool
	time   atomic.Pointer[time.Time] // that W stores have reached; nil if it is not known

	mu   sync.Mutex // guards all below
	lost []seq.Epoch
}

func (b *bench) noRoom(seq.SectionID) error {
	if b.full.Load() {
		return errors.New("no memory")
	}
	return nil
}

func (b *bench) storeTime() (time.Time, bool) {
	if at := b.time.Load(); at != nil {
		return *at, true
	}
	return time.Time{}, false
}

// losses returns the epochs that were lost. Callers of a log hear of its end before Config.Lost is called.
func (b *bench) losses() []seq.Epoch {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.lost)
}

// describe is a copy in full.
func (s *stores) describe(i int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies[i].Borrow().Describe()
}

// last returns the last number of the UID at a store.
func (s *stores) last(i int) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copies[i].Borrow().Last(uid)
}

// try runs a test in a bubble with a log that is open.
func try(t *testing.T, s *stores, do func(b *bench, g *Log)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		b := &bench{T: t, stores: s}
		b.Logs = New(Config{Stores: s, Session: me, Clock: bubble.NewClock(), Logger: slog.New(slog.DiscardHandler),
			Lost: func(_ seq.SectionID, epoch, _ seq.Epoch) {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.lost = append(b.lost, epoch)
			},
			Grow: func(bytes int64) { b.bytes.Add(bytes) }, Full: b.noRoom, StoreTime: b.storeTime})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { b.Logs.Run(ctx) })
		g := b.Open(3, seq.Epoch{Round: 1, Session: me}, window)
		do(b, g)
		cancel()
		running.Wait()
	})
}

// take takes numbers within a second.
func (b *bench) take(g *Log, id string, count uint32) (exact.Answer, error) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Second)
	defer cancel()
	ticket, err := g.Take(ctx, &Instant{}, uid, count, id, time.Time{})
	if err == nil {
		err = ticket.Wait(ctx)
	}
	return ticket.Answer, err
}

// want takes and wants these numbers.
func (b *bench) want(g *Log, id string, count uint32, want exact.Answer) {
	b.Helper()
	got, err := b.take(g, id, count)
	if got.Round = 0; err != nil || got != want {
		b.Errorf("%q: got %+v, %v, want %+v", id, got, err, want)
	}
}

func TestNumbersAndIdsAreAtAQuorumBeforeTheyAreTold(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		b.want(g, "b", 5, exact.Answer{First: 2, Count: 5})
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1, Replayed: true})
		b.want(g, "", 1, exact.Answer{First: 7, Count: 1})
		s.do(func() { s.down[0], s.down[1] = true, true })
		for range 2 { // the second is a repetition of what has been gathered
			if got, err := b.take(g, "c", 1); !errors.Is(err, ErrUnknown) || !errors.Is(err, seq.ErrNoQuorum) || got.First != 8 {
				t.Errorf("without W stores: got %+v, %v", got, err)
			}
		}
		var conflict *exact.Conflict
		if _, err := b.take(g, "b", 4); !errors.As(err, &conflict) || conflict.First != 2 || conflict.Count != 5 {
			t.Errorf("another count: got %v", err)
		}
		s.do(func() { s.down[0] = false })
		b.want(g, "c", 1, exact.Answer{First: 8, Count: 1, Replayed: true})
		s.do(func() { s.down[0] = true })
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if ticket, err := g.Current(ctx, uid); err != nil || ticket.Wait(ctx) == nil {
			t.Errorf("a current number from memory alone: %v, %v", ticket.First, err)
		}
	})
	want := s.describe(0)
	if got := s.describe(2); got != want {
		t.Errorf("copies differ:\n%s\n%s", got, want)
	}
}

// Requests that wait at the same time share one message, and one batch is under way at a time.
func TestWhatWaitsAtOneMomentIsOneBatch(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "first", 1, exact.Answer{First: 1, Count: 1})
		var before int
		s.do(func() { before, s.late = s.steps, make(chan struct{}) })
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				if _, err := b.take(g, fmt.Sprint(i), 1); err != nil {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		s.do(func() { close(s.late); s.late = nil })
		callers.Wait()
		after := 0
		s.do(func() { after = s.steps })
		if got := after - before; got != 2 {
			t.Errorf("%d messages for one take and 99 that came while it was under way, want 2", got)
		}
	})
}

// While a message waits for the stores, another section's leaves, and no batch is in two messages.
func TestSectionsDoNotWaitForEachOther(t *testing.T) {
	s := newStores()
	s.beside = newStores()
	try(t, s, func(b *bench, g *Log) {
		h := b.Open(beside, seq.Epoch{Round: 1, Session: me}, window)
		b.want(g, "first", 1, exact.Answer{First: 1, Count: 1})
		b.want(h, "first", 1, exact.Answer{First: 1, Count: 1})
		var before, after [2]int
		s.do(func() { before, s.late = [2]int{s.steps, s.beside.steps}, make(chan struct{}) })
		var callers sync.WaitGroup
		for i, at := range []*Log{g, h, g, h, g} {
			callers.Go(func() {
				if _, err := b.take(at, fmt.Sprint(i), 1); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		s.do(func() { after = [2]int{s.steps, s.beside.steps} })
		if after[0] != before[0]+1 || after[1] != before[1]+1 {
			t.Errorf("messages went from %v to %v while none had an answer, want one more each", before, after)
		}
		s.do(func() { close(s.late); s.late = nil })
		callers.Wait()
	})
}

func TestABatchIsRepeatedAsItIsUntilItIsKnown(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "first", 1, exact.Answer{First: 1, Count: 1})
		var before int
		s.do(func() { before, s.silent = len(s.sent), 3 })
		b.want(g, "a", 1, exact.Answer{First: 2, Count: 1})
		var sent [][]byte
		s.do(func() { sent = slices.Clone(s.sent[before:]) })
		if len(sent) != 4 || slices.ContainsFunc(sent, func(body []byte) bool { return !slices.Equal(body, sent[0]) }) {
			t.Errorf("%d messages, want one and the same four times: %x", len(sent), sent)
		}
	})
}

// A store that was away gets a whole copy: at once where W need it, else soon.
func TestStoresThatStandElsewhereGetWholeCopies(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		s.do(func() { s.down[2] = true })
		for i := range uint64(10) {
			b.want(g, fmt.Sprint(i), 1, exact.Answer{First: i + 1, Count: 1})
		}
		s.do(func() { s.down[2], s.down[1] = false, true })
		for i := range uint64(3) { // more than a batch brings again
			b.want(g, fmt.Sprint("with the one that was away ", i), 1, exact.Answer{First: 11 + i, Count: 1})
		}
		s.do(func() { s.down[1] = false })
		b.want(g, "with all", 1, exact.Answer{First: 14, Count: 1})
		time.Sleep(2 * look)
		want := s.describe(0)
		for i := range s.copies {
			if got := s.describe(i); got != want {
				t.Errorf("copies differ:\n%s\n%s", got, want)
			}
		}
	})
}

func TestALogEndsWhereAHigherEpochWasPromised(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		s.do(func() { s.promised[1] = seq.Epoch{Round: 2, Session: other} })
		if _, err := b.take(g, "b", 1); !errors.Is(err, ErrUnknown) {
			t.Errorf("got %v, want %v", err, ErrUnknown)
		}
		if _, err := b.take(g, "c", 1); !errors.Is(err, ErrClosed) {
			t.Errorf("later: got %v, want %v", err, ErrClosed)
		}
		if len(b.losses()) != 1 || b.bytes.Load() != 0 {
			t.Errorf("lost %v, %d bytes kept", b.losses(), b.bytes.Load())
		}
	})
	try(t, s, func(b *bench, g *Log) { // of a copy that cannot be read any more
		if _, err := b.take(g, "b", 1); !errors.Is(err, ErrClosed) || len(b.losses()) != 1 {
			t.Errorf("got %v, lost %v", err, b.losses())
		}
	})
}

func TestLogsThatEndTogetherAreOneLine(t *testing.T) {
	var text textlog.Log
	lost := map[seq.SectionID]seq.Epoch{}
	l := New(Config{Logger: slog.New(slog.NewTextHandler(&text, nil)), Lost: func(id seq.SectionID, _, by seq.Epoch) { lost[id] = by }})
	l.lose(nil, nil)
	by := []quorum.Outcome{{Promised: seq.Epoch{Round: 8}, Err: quorum.ErrNack}, {Promised: seq.Epoch{Round: 9}}}
	l.lose([]*Log{{id: 5, epoch: seq.Epoch{Round: 2}}, {id: 6}}, by)
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "sections=2 first=5") || !strings.Contains(got, quorum.ErrNack.Error()) {
		t.Errorf("got %q", got)
	}
	if lost[5] != by[0].Promised || lost[6] != by[1].Promised || len(lost) != 2 {
		t.Errorf("lost %v", lost)
	}
}

func TestAClosedLogBeginsNothing(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		s.do(func() { s.late = make(chan struct{}) })
		errs := make(chan error, 2)
		go func() { _, err := b.take(g, "under way", 1); errs <- err }()
		synctest.Wait()
		go func() { _, err := b.take(g, "gathered", 1); errs <- err }()
		synctest.Wait()
		g.Close()
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("gathered: got %v, want %v", err, ErrClosed)
		}
		s.do(func() { close(s.late); s.late = nil })
		if err := <-errs; err != nil {
			t.Errorf("under way, and won: got %v", err)
		}
		if got := s.last(0); got != 2 {
			t.Errorf("the copy stands at %d, want 2", got)
		}
	})
}

// A whole copy that stands in for a batch carries what has been gathered since. Where the log ends
// then, a caller that had gathered is not told that nothing of its request was sent.
func TestWhatAWholeCopyCarriedAlongMayHaveBeenTaken(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		// A batch brings the one before it again: the store has to lack two.
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		b.want(g, "b", 1, exact.Answer{First: 2, Count: 1})
		s.do(func() { // the next batch meets a store that lacks these
			s.down[2] = true
			s.copies[1] = exact.NewCopy(window.Milliseconds())
			s.late = make(chan struct{})
		})
		errs := make(chan error, 2)
		go func() { _, err := b.take(g, "under way", 1); errs <- err }()
		synctest.Wait()
		go func() { _, err := b.take(g, "gathered", 1); errs <- err }()
		synctest.Wait()
		s.do(func() { // the whole copy is taken in, and its answer is lost
			close(s.late)
			s.late, s.silent = nil, 1<<30
		})
		synctest.Wait()
		g.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, ErrUnknown) {
				t.Errorf("got %v, want %v", err, ErrUnknown)
			}
		}
		if got := s.last(0); got != 4 {
			t.Fatalf("the copy stands at %d, want 4: the whole copy did not carry what was gathered", got)
		}
	})
}

// A record at one store of W may belong to a take that was never answered. The log returns it only once its
// own first record, which follows, is at W stores.
func TestWhatWasFoundIsToldOnceAQuorumHasIt(t *testing.T) {
	s := newStores()
	orphan := exact.Batch{Epoch: seq.Epoch{Round: 0, Session: other}, Records: []exact.Record{{Epoch: seq.Epoch{Round: 0, Session: other}, Index: 1,
		Kind: exact.Take, UID: uid, First: 1, Count: 1, ID: "orphan", Sent: 1, Time: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}}}
	if _, err := s.copies[0].Append(&orphan, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	s.down[2] = true
	s.silent = 1 << 30
	try(t, s, func(b *bench, g *Log) {
		if got, err := b.take(g, "orphan", 1); err == nil {
			t.Errorf("got %+v before W stores have it", got)
		}
		s.do(func() { s.silent = 0 })
		b.want(g, "orphan", 1, exact.Answer{First: 1, Count: 1, Replayed: true})
		if got := s.last(1); got != 1 {
			t.Errorf("the other copy stands at %d", got)
		}
	})
}

// A section follows the time that W stores have reached, once it is known. Its time never falls.
func TestASectionGoesByTheTimeOfTheStores(t *testing.T) {
	try(t, newStores(), func(b *bench, g *Log) {
		b.want(g, "", 1, exact.Answer{First: 1, Count: 1})
		begun := time.Now()
		ask := func(what string, sent time.Time, want error) {
			t.Helper()
			if _, err := g.Take(b.Context(), &Instant{}, uid, 1, what, sent); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", what, err, want)
			}
		}
		late := begun.Add(time.Hour)
		ask("not known yet", late, exact.ErrTime)
		b.time.Store(&late)
		ask("an hour later by the stores", late, nil)
		ask("of an hour ago", begun, exact.ErrExpired)
		b.time.Store(&begun)
		ask("they were set back", late, nil)
		ask("of an hour ago, after they were set back", begun, exact.ErrExpired)
	})
}

// Ids leave an idle section when their window is over, and their memory is free again.
func TestAnIdleSectionDropsItsIds(t *testing.T) {
	s := newStores()
	try(t, s, func(b *bench, g *Log) {
		b.want(g, "a", 1, exact.Answer{First: 1, Count: 1})
		before := b.bytes.Load()
		time.Sleep(window + 2*look)
		var left int
		s.do(func() { left = s.copies[0].Borrow().IDs() })
		if left != 0 || b.bytes.Load() >= before {
			t.Errorf("%d ids after their window, %d bytes, %d before", left, b.bytes.Load(), before)
		}
		ctx := b.Context()
		if _, err := g.Take(ctx, &Instant{}, uid, 1, "a", time.Now().Add(-window-time.Second)); !errors.Is(err, exact.ErrExpired) {
			t.Errorf("the same again: got %v, want %v", err, exact.ErrExpired)
		}
		b.full.Store(true)
		if _, err := g.Take(ctx, &Instant{}, uid, 1, "b", time.Time{}); !errors.Is(err, exact.ErrFull) {
			t.Errorf("full: got %v, want %v", err, exact.ErrFull)
		}
		b.want(g, "", 1, exact.Answer{First: 2, Count: 1})
	})
}

// Copies that are too large for one message are read one by one.
func TestCopiesThatDoNotFitAMessageAreReadAlone(t *testing.T) {
	s := newStores()
	s.most = 1
	try(t, s, func(b *bench, g *Log) {
		more := make([]*Log, 2*pieces)
		for i := range more {
			more[i] = b.Open(seq.SectionID(10+i), seq.Epoch{Round: 1, Session: me}, window)
		}
		for _, one := range append(more, g) {
			select {
			case <-one.opened:
			case <-time.After(time.Minute):
				t.Fatalf("the copy of section %d was not read", one.id)
			}
		}
	})
}
