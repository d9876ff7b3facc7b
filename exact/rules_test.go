package exact

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	testWindow = 100
	testBound  = 50
)

// owned is an owner of a state under the round, whose first batch is at W stores.
func owned(t *testing.T, round uint64, s *State, now int64) *Owner {
	t.Helper()
	o, err := NewOwner(Config{Window: testWindow, Bound: testBound}, seq.Epoch{Round: round, Session: 1}, s, now)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, o)
	return o
}

func commit(t *testing.T, o *Owner) {
	t.Helper()
	if _, ok := o.Begin(); !ok {
		t.Fatal("nothing to send")
	}
	o.Committed()
}

// An id is kept for a window after it was first sent and after it was taken, whichever clock
// is behind, and where it is not kept any more the request gets no second number.
func TestAnIDIsKeptAndRefusedByTheTimeOfItsSection(t *testing.T) {
	for _, row := range []struct {
		name        string
		sent, taken int64 // the caller's clock, and the owner's
		passed      int64 // the section's time by then
		now         int64 // the clock of the owner that is asked again
		want        error
		first       uint64
	}{
		{name: "within the window", sent: 1000, taken: 1000, passed: 1050, now: 1060, first: 1},
		{name: "by an owner whose clock is behind", sent: 1000, taken: 1000, passed: 1050, now: 900, first: 1},
		{name: "of a caller whose clock is ahead", sent: 1040, taken: 1000, passed: 1120, now: 1120, first: 1},
		{name: "taken long after it was sent", sent: 905, taken: 1000, passed: 1050, now: 1050, first: 1},
		{name: "after its window", sent: 1000, taken: 1000, passed: 1100, now: 1100, want: ErrExpired},
		{name: "after its window, by an owner whose clock is behind", sent: 1050, taken: 1000, passed: 1200, now: 1000, want: ErrExpired},
		{name: "after its window, of a caller whose clock is behind", sent: 905, taken: 1000, passed: 1100, now: 1100, want: ErrExpired},
	} {
		o := owned(t, 1, &State{}, 1000)
		if _, err := o.Take(7, 1, "a", row.sent, row.taken); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		commit(t, o)
		o.add(Record{Kind: Passed}, row.passed)
		commit(t, o)
		got, err := owned(t, 2, o.State(), row.now).Take(7, 1, "a", row.sent, row.now)
		if !errors.Is(err, row.want) || got.First != row.first || got.Replayed != (row.want == nil) {
			t.Errorf("%s: got %+v, %v, want %d, %v", row.name, got, err, row.first, row.want)
		}
	}
}

// A batch that overtakes the one before on its way to a store brings what that brought.
func TestABatchThatOvertakesAnotherIsTaken(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	begun := o.State()
	c := Restore(begun.Clone(), testWindow)
	var batches []Batch
	for _, id := range []string{"a", "b", "", "c"} { // an empty id stands for a question
		if id == "" {
			o.Ask()
		} else if _, err := o.Take(7, 1, id, 1000, 1000); err != nil {
			t.Fatal(err)
		}
		b, _ := o.Begin()
		o.Committed()
		batches = append(batches, b)
	}
	for _, i := range []int{1, 0, 3, 2, 0} {
		if _, err := c.Append(&batches[i], 1000); err != nil {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	if got, want := c.State().Describe(), o.State().Describe(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c = Restore(begun.Clone(), testWindow)
	for _, i := range []int{0, 3} { // 3 has what 1 brought, since 2 was a question
		if _, err := c.Append(&batches[i], 1000); err != nil {
			t.Errorf("batch %d behind batch 0: %v", i, err)
		}
	}
	c = Restore(begun, testWindow)
	if _, err := c.Append(&batches[3], 1000); !errors.Is(err, ErrElsewhere) || c.At().Index != 1 {
		t.Errorf("two batches missing: got %v, at %v", err, c.At())
	}
}

// A record is checked against those before it in its batch as against those that a copy has,
// however many they are.
func TestABatchIsCheckedAgainstItself(t *testing.T) {
	for _, n := range []int{2, 24, 200} {
		for name, spoil := range map[string]func(rs []Record){
			"as it is":            func([]Record) {},
			"a number left out":   func(rs []Record) { rs[n-1].First++ },
			"a number again":      func(rs []Record) { rs[n-1].First-- },
			"an id again":         func(rs []Record) { rs[n-1].ID = rs[0].ID },
			"a raise to the last": func(rs []Record) { rs[n-1] = Record{Kind: Raise, UID: 7, First: uint64(n - 1)} },
		} {
			rs := make([]Record, n)
			for i := range rs {
				rs[i] = Record{Kind: Take, UID: 7, First: uint64(i + 1), Count: 1, ID: fmt.Sprint("id-", i), Sent: 1000}
			}
			spoil(rs)
			for i := range rs {
				if rs[i].Epoch.Round, rs[i].Index, rs[i].Time = 1, uint64(i+1), 1000; i > 0 {
					rs[i].Prev = rs[i-1].Epoch
				}
			}
			err := NewCopy(testWindow).Take(rs)
			if want := name != "as it is"; errors.Is(err, ErrBadRecord) != want {
				t.Errorf("%d records, %s: got %v", n, name, err)
			}
		}
	}
}

func TestARepetitionWaitsForTheBatchThatHasItsRequest(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	if _, err := o.Take(7, 1, "a", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	if _, ok := o.Begin(); !ok {
		t.Fatal("nothing to send")
	}
	if _, err := o.Take(7, 1, "b", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	under, next := o.Lookup(7, "a").Round, o.Lookup(7, "b").Round
	if under != o.Round() || next != o.Round()+1 {
		t.Errorf("got rounds %d and %d, want %d and the next", under, next, o.Round())
	}
	if o.Committed(); o.Lookup(7, "a").Round != 0 {
		t.Errorf("got round %d, want none", o.Lookup(7, "a").Round)
	}
}

func TestTimesBeyondTheBoundAreRefused(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	if _, err := o.Take(7, 1, "a", 1000+testBound+1, 1000); !errors.Is(err, ErrTime) {
		t.Errorf("a caller ahead of the bound: got %v, want %v", err, ErrTime)
	}
	if got, err := o.Take(7, 1, "a", 1000+testBound, 1000); err != nil || got.First != 1 {
		t.Errorf("a caller at the bound: got %+v, %v", got, err)
	}
	c := NewCopy(testWindow)
	whole := o.State()
	if filled, err := c.Fill(whole, 999); !errors.Is(err, ErrTime) || filled || c.At() != (Position{}) {
		t.Errorf("a whole copy from beyond: got %v, %v, at %v", filled, err, c.At())
	}
	if _, err := c.Fill(whole, 1000); err != nil {
		t.Fatal(err)
	}
	commit(t, o)
	if _, err := o.Take(7, 1, "b", 2000, 2000); err != nil {
		t.Fatal(err)
	}
	b, _ := o.Begin()
	if taken, err := c.Append(&b, 1999); !errors.Is(err, ErrTime) || len(taken) > 0 {
		t.Errorf("records from beyond: got %d, %v", len(taken), err)
	}
	if taken, err := c.Append(&b, 2000); err != nil || len(taken) != 1 {
		t.Errorf("records at the bound: got %d, %v", len(taken), err)
	}
	// One that stands elsewhere says the same: it would not take a whole copy.
	if taken, err := NewCopy(testWindow).Append(&b, 1999); !errors.Is(err, ErrTime) || len(taken) > 0 {
		t.Errorf("records from beyond that do not follow: got %d, %v", len(taken), err)
	}
	o.Committed()
	if _, err := o.Take(7, 1, "", 0, 1500); err != nil {
		t.Fatal(err)
	}
	b, _ = o.Begin()
	if taken, err := c.Append(&b, 1000); err != nil || len(taken) != 1 {
		t.Errorf("records of a time that the section has, at a store whose clock went back: got %d, %v", len(taken), err)
	}
}

// A copy that stands further on under an older or a newer epoch has not the batch.
func TestAPositionOfAnotherEpochIsNoAck(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	for range 5 {
		if _, err := o.Take(7, 1, "", 0, 1000); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, o)
	c := NewCopy(testWindow)
	if _, err := c.Fill(o.State(), 1000); err != nil {
		t.Fatal(err)
	}
	fresh, err := NewOwner(Config{Window: testWindow, Bound: testBound}, seq.Epoch{Round: 2, Session: 1}, &State{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := fresh.Begin()
	if _, err := c.Append(&b, 1000); !errors.Is(err, ErrElsewhere) {
		t.Errorf("got %v, want %v", err, ErrElsewhere)
	}
	if filled, err := c.Fill(fresh.State(), 1000); err != nil || !filled {
		t.Errorf("a shorter copy of a newer epoch: got %v, %v", filled, err)
	}
}

// No section grows beyond what one message brings: it could not be moved any more.
func TestASectionThatACopyCannotHoldTakesNoMoreUIDsAndIDs(t *testing.T) {
	const most = 2000
	o, err := NewOwner(Config{Window: testWindow, Bound: testBound, Most: most}, seq.Epoch{Round: math.MaxUint64, Session: math.MaxUint64},
		&State{at: Position{Index: math.MaxUint64 / 2}, floor: uint64(seq.MaxSeq) / 2}, math.MaxInt64/2)
	if err != nil {
		t.Fatal(err)
	}
	longest := func(i int) string { return fmt.Sprintf("%0*d", MaxID, i) }
	now, taken := int64(math.MaxInt64/2), 0
	for ; err == nil && taken <= most; taken++ {
		_, err = o.Take(seq.UID(math.MaxUint64-uint64(taken)), seq.MaxCount, longest(taken), 0, now)
	}
	taken--
	if got := len(o.State().AppendTo(nil)); !errors.Is(err, ErrFull) || got > most || got < most/2 || taken == 0 {
		t.Errorf("%d ids of %d bytes: %v, want at most %d and %v", taken, got, err, most, ErrFull)
	}
	known := seq.UID(math.MaxUint64)
	if a, err := o.Take(known, seq.MaxCount, longest(0), 0, now); err != nil || !a.Replayed {
		t.Errorf("an id that is kept: %+v, %v", a, err)
	}
	if _, err := o.Take(known, 1, "", 0, now); err != nil {
		t.Errorf("a number for a UID that is kept: %v", err)
	}
	if _, err := o.Raise(known, uint64(seq.MaxSeq), now); err != nil {
		t.Errorf("a raise of a UID that is kept: %v", err)
	}
	if _, err := o.Raise(1, uint64(seq.MaxSeq), now); !errors.Is(err, ErrFull) {
		t.Errorf("a raise of another: %v, want %v", err, ErrFull)
	}
	if _, err := o.Take(known-1, 1, "later", 0, now+2*testWindow); !errors.Is(err, ErrFull) || !o.Pass(now+2*testWindow) {
		t.Errorf("got %v, want %v until the section tells the time", err, ErrFull)
	}
	if _, err := o.Take(known-1, 1, "later", 0, now+2*testWindow); err != nil {
		t.Errorf("once ids have expired: %v", err)
	}
}

// An owner tells nothing from memory that may have been another's by now.
func TestWhatWasNotTakenAndWhatIsCurrentWaitForABatch(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	for name, got := range map[string]Answer{"not taken": o.Lookup(7, "a"), "current": o.Current(7)} {
		if got.Round != 2 {
			t.Errorf("%s: holds with batch %d, want 2", name, got.Round)
		}
	}
	commit(t, o)
	if got, err := o.Raise(7, 0, 1000); err != nil || got.Round != 3 {
		t.Errorf("a raise to where it stands: %+v, %v", got, err)
	}
}

// The state that a new owner found holds once its own first record, which follows it, does.
func TestWhatWasFoundHoldsWithTheFirstBatch(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	if _, err := o.Take(7, 1, "a", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	next, err := NewOwner(Config{Window: testWindow, Bound: testBound}, seq.Epoch{Round: 2, Session: 2}, o.State(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, begun := range []bool{false, true} {
		if begun {
			if b, ok := next.Begin(); !ok || len(b.Records) != 1 || b.Records[0].Kind != Began || b.Epoch != b.Records[0].Epoch {
				t.Errorf("the first batch is %+v", b)
			}
		}
		if got, err := next.Take(7, 1, "a", 1000, 1000); err != nil || got.Round != 1 {
			t.Errorf("begun %v: got %+v, %v, want it to hold with batch 1", begun, got, err)
		}
	}
	next.Committed()
	if got, err := next.Take(7, 1, "a", 1000, 1000); err != nil || got.Round != 0 {
		t.Errorf("at W stores: got %+v, %v", got, err)
	}
	if _, err := NewOwner(Config{}, seq.Epoch{Round: 1, Session: 1}, o.State(), 1000); !errors.Is(err, ErrBadRecord) {
		t.Errorf("under the epoch of the copy: got %v, want %v", err, ErrBadRecord)
	}
}

// A longer copy of an older epoch has records that no quorum took.
func TestPositionsAreInTheOrderOfEpochsFirst(t *testing.T) {
	at := func(round, index uint64) Position { return Position{seq.Epoch{Round: round, Session: 1}, index} }
	order := []Position{{}, at(1, 1), at(1, 9), at(2, 3), at(2, 4), at(3, 1)}
	for i, p := range order {
		for k, o := range order {
			if got := p.Less(o); got != (i < k) {
				t.Errorf("%v below %v: got %v", p, o, got)
			}
		}
	}
}

// A copy may have records beyond a whole copy of the same epoch. They may be all that a quorum has of them.
func TestAWholeCopyThatComesAgainPutsNothingBack(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	whole := o.State()
	c := NewCopy(testWindow)
	if _, err := c.Fill(whole.Clone(), 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Take(7, 3, "", 0, 1000); err != nil {
		t.Fatal(err)
	}
	b, _ := o.Begin()
	if _, err := c.Append(&b, 1000); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if filled, err := c.Fill(whole.Clone(), 1000); err != nil || filled || c.Borrow().Last(7) != 3 {
			t.Errorf("got %v, %v, and the uid stands at %d, want 3", filled, err, c.Borrow().Last(7))
		}
		if taken, err := c.Append(&b, 1000); err != nil || len(taken) != 0 {
			t.Errorf("the batch again: %d records, %v", len(taken), err)
		}
	}
}
