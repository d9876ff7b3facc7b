package tickets

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

const life = 10 * time.Second

// fresh is the book of an owner that knows that nothing was open before it.
func fresh(stats *Stats) *Book {
	b := New(stats, -Span(life), life)
	b.Begin(0, nil)
	return b
}

func wantMark(t *testing.T, b *Book, uid, last uint64, now time.Duration, mark, fence uint64) {
	t.Helper()
	if m, f, unknown := b.Mark(uid, last, now); m != mark || f != fence || unknown != 0 {
		t.Errorf("got mark %d, fence %d, unknown for %v, want %d, %d", m, f, unknown, mark, fence)
	}
}

func TestOnlyTheTicketItselfEndsIt(t *testing.T) {
	b := fresh(&Stats{})
	b.Open(7, 5, 6, 50, 0, life)
	b.Open(7, 7, 9, 70, 0, life)
	for name, row := range map[string]struct{ uid, first, id uint64 }{
		"another uid": {8, 5, 50}, "another id": {7, 5, 70}, "no id": {7, 5, 0}, "inside": {7, 6, 50}, "beyond": {7, 10, 70},
	} {
		if err := b.End(row.uid, row.first, row.id, 1); !errors.Is(err, seq.ErrTicketEnded) {
			t.Errorf("%s: got %v, want ErrTicketEnded", name, err)
		}
	}
	wantMark(t, b, 7, 9, 1, 4, 0)
	for i, mark := range []uint64{4, 9} {
		first, id := []uint64{7, 5}[i], []uint64{70, 50}[i]
		if err := b.End(7, first, id, 1); err != nil {
			t.Error(err)
		}
		if err := b.End(7, first, id, 1); !errors.Is(err, seq.ErrTicketEnded) {
			t.Errorf("ended twice: got %v, want ErrTicketEnded", err)
		}
		if open, left := b.Kept(7, 1); open != 1-i || left != time.Duration(1-i)*(Span(life)-1) {
			t.Errorf("%d tickets for %v are left, want %d", open, left, 1-i)
		}
		wantMark(t, b, 7, 9, 1, mark, 0)
	}
	if b.Len() != 0 || b.stats.Open.Load() != 0 {
		t.Errorf("%d keys and %d tickets are left", b.Len(), b.stats.Open.Load())
	}
}

func TestATicketThatItsTimeEndsRaisesTheFenceForGood(t *testing.T) {
	b := fresh(&Stats{})
	b.Open(7, 5, 6, 50, 0, life)
	wantMark(t, b, 7, 6, Span(life)-1, 4, 0)
	if err := b.End(7, 5, 50, Span(life)); !errors.Is(err, seq.ErrTicketEnded) {
		t.Errorf("got %v, want ErrTicketEnded", err)
	}
	for range 2 {
		wantMark(t, b, 7, 8, Span(life), 8, 6)
	}
	b.Open(7, 9, 9, 90, Span(life), life)
	wantMark(t, b, 7, 9, Span(life), 8, 6)
	wantMark(t, b, 8, 3, Span(life), 3, 0)
}

func TestFencesBeyondThoseThatAreKeptBecomeOneForAll(t *testing.T) {
	b := fresh(&Stats{})
	for uid := range uint64(mostFences + 1) {
		b.Open(uid, 100+uid, 100+uid, 1, 0, life)
	}
	b.Expire(Span(life))
	if len(b.fences) > mostFences {
		t.Errorf("%d fences are kept", len(b.fences))
	}
	for uid := range uint64(mostFences + 1) {
		if _, fence, _ := b.Mark(uid, 1000, Span(life)); fence < 100+uid {
			t.Fatalf("uid %d has fence %d, below its ticket", uid, fence)
		}
	}
}

func TestOpenTicketsAreBounded(t *testing.T) {
	stats := &Stats{}
	b := fresh(stats)
	for n := range uint64(MostOfKey) {
		if err := b.Admit(7, 0); err != nil {
			t.Fatal(err)
		}
		b.Open(7, n+1, n+1, 1, 0, life)
	}
	if err := b.Admit(7, 0); !errors.Is(err, seq.ErrTickets) || !errors.Is(err, seq.ErrOverloaded) || !strings.Contains(err.Error(), "of this key") {
		t.Errorf("got %v, want ErrTickets", err)
	}
	if err := b.Admit(8, 0); err != nil {
		t.Error(err)
	}
	if err := b.End(7, 3, 1, 0); err != nil {
		t.Error(err)
	}
	if err := b.Admit(7, 0); err != nil {
		t.Error(err)
	}
	stats.Open.Store(MostOpen)
	if err := b.Admit(8, 0); !errors.Is(err, seq.ErrTickets) || !strings.Contains(err.Error(), "this node") {
		t.Errorf("got %v, want ErrTickets", err)
	}
	if n := stats.Refused.Load(); n != 2 {
		t.Errorf("%d refusals were counted, want 2", n)
	}
}

// travelled is a book with all that travels.
func travelled() *Book {
	b := New(&Stats{}, 0, life)
	b.Begin(40, nil)
	b.Open(3, 41, 41, 410, 0, life/10)
	b.Open(7, 41, 45, 411, 0, life)
	b.Open(7, 46, 46, 460, 0, life/2)
	b.Open(9, 50, 50, 500, 0, life)
	_ = b.End(7, 46, 460, 0)
	return b
}

func TestAHandOverCarriesTicketsFencesAndTheHold(t *testing.T) {
	now := life / 2
	body := travelled().AppendBinary(nil, now)
	b, err := Decode(&Stats{}, body, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b.Begin(100, nil) // the tickets are known: no fence for all
	left := Span(life) - now
	if _, _, unknown := b.Mark(3, 44, time.Hour); unknown != left {
		t.Errorf("the mark is unknown for %v, want %v", unknown, left)
	}
	b.hold = 0
	wantMark(t, b, 3, 44, time.Hour, 44, 41)
	wantMark(t, b, 7, 50, time.Hour+left-1, 40, 40)
	wantMark(t, b, 7, 50, time.Hour+left, 50, 45)
	if err := b.End(9, 50, 500, time.Hour); !errors.Is(err, nil) {
		t.Errorf("got %v", err)
	}
	if again := travelled().AppendBinary(nil, now); !bytes.Equal(again, body) {
		t.Error("equal books travel as other bytes")
	}
}

func FuzzDecodeTakesOnlyWhatAppendBinaryWrites(f *testing.F) {
	body := travelled().AppendBinary(nil, life/2)
	f.Add(body[:len(body)-4])
	f.Add(fresh(&Stats{}).AppendBinary(nil, 0))
	f.Add([]byte{version, 0, 0, 0, 1, 7, 1, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, text []byte) {
		stats := &Stats{}
		for _, body := range [][]byte{text, sealed(text)} {
			b, err := Decode(stats, body, time.Hour)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) || stats.Open.Load() != 0 {
					t.Fatalf("%v, %d open", err, stats.Open.Load())
				}
				continue
			}
			again, err := Decode(stats, b.AppendBinary(nil, time.Hour), time.Hour)
			if err != nil || again.Len() != b.Len() {
				t.Fatalf("%x: %d keys, then %v", body, b.Len(), err)
			}
			b.Close()
			again.Close()
		}
	})
}

func TestARepeatedRequestHasItsTicketAgainOrNone(t *testing.T) {
	stats := &Stats{}
	b := fresh(stats)
	b.Open(7, 5, 5, 50, 0, life)
	b.Open(7, 6, 7, 60, 0, life)
	b.Open(7, 8, 8, 80, 0, life)
	if id := b.Again(7, 6, 7, 99, life, life); id != 60 {
		t.Errorf("got ticket %d, want the one that is open", id)
	}
	now := Span(life) + 1 // only the repeated one lasts
	if id := b.Again(7, 5, 5, 99, now, life); id != 0 {
		t.Errorf("got ticket %d below the lowest open number", id)
	}
	if id := b.Again(9, 1, 1, 99, now, life); id != 0 {
		t.Errorf("got ticket %d of a UID of which none is open", id)
	}
	if id := b.Again(7, 8, 8, 88, now, life); id != 88 {
		t.Errorf("got ticket %d, want another one above an open number", id)
	}
	wantMark(t, b, 7, 12, now, 5, 5)
	if id := b.Again(7, 9, 12, 99, now, life); id != 99 { // the numbers of a plain take
		t.Errorf("got ticket %d of numbers without one", id)
	}
	for _, one := range [][2]uint64{{6, 60}, {9, 99}, {8, 88}} {
		if err := b.End(7, one[0], one[1], now); err != nil {
			t.Error(err)
		}
	}
	wantMark(t, b, 7, 12, now, 12, 8)
	if open, opened := stats.Open.Load(), stats.Opened.Load(); open != 0 || opened != 5 {
		t.Errorf("%d tickets are open in the end of %d, want 0 of 5", open, opened)
	}
}

func TestTicketsOfNumbersThatWereNeverAssignedAreForgotten(t *testing.T) {
	stats := &Stats{}
	b := fresh(stats)
	b.Open(7, 5, 5, 50, 0, life)
	b.Open(7, 6, 7, 60, 0, life)
	b.Open(8, 1, 1, 10, 0, life)
	next, err := Decode(stats, b.AppendBinary(nil, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	next.Begin(9, func(uid uint64) uint64 { return map[uint64]uint64{7: 6}[uid] })
	wantMark(t, next, 7, 6, 1, 4, 0)
	next.Open(7, 7, 7, 70, 1, life) // another request
	for _, one := range [][2]uint64{{7, 70}, {5, 50}} {
		if err := next.End(7, one[0], one[1], 2); err != nil {
			t.Error(err)
		}
	}
	wantMark(t, next, 7, 7, 2, 7, 0)
	if next.Len() != 0 {
		t.Errorf("%d UIDs have open tickets, want none", next.Len())
	}
}
