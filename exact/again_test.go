package exact

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// again takes numbers for uid 7 and id "a", and then again after the window. Another take in
// between counts the section's time on, so that the owner drops the id.
func again(t *testing.T, o *Owner, between func()) {
	t.Helper()
	if a, err := o.Take(7, 1, "a", 0, 1000); err != nil || a.First != 1 {
		t.Fatalf("got %+v, %v", a, err)
	}
	between()
	if _, err := o.Take(8, 1, "", 0, 1000+testWindow); err != nil {
		t.Fatal(err)
	}
	if a, err := o.Take(7, 1, "a", 0, 1000+testWindow); err != nil || a.First != 2 || a.Replayed {
		t.Fatalf("after the window: got %+v, %v, want 2", a, err)
	}
}

// A batch may be under way for longer than the window, and the next one then has an id twice.
func TestACopyTakesABatchThatUsesAnIDAgain(t *testing.T) {
	for _, more := range []int{0, 50} {
		o := owned(t, 1, &State{}, 1000)
		c := Restore(o.State(), testWindow)
		again(t, o, func() {
			for i := range more {
				if _, err := o.Take(9, 1, fmt.Sprint("other ", i), 0, 1000); err != nil {
					t.Fatal(err)
				}
			}
		})
		b, _ := o.Begin()
		early := b
		early.Records = append([]Record(nil), b.Records...)
		for i := range early.Records { // the id is used again just before its window is over
			early.Records[i].Time = min(early.Records[i].Time, 1000+testWindow-1)
		}
		if _, err := Restore(c.State(), testWindow).Append(&early, math.MaxInt64); !errors.Is(err, ErrBadRecord) {
			t.Errorf("%d more, within the window: got %v, want %v", more, err, ErrBadRecord)
		}
		if _, err := c.Append(&b, math.MaxInt64); err != nil {
			t.Errorf("%d more: a copy refuses the batch: %v", more, err)
		}
		if got, want := c.State().Describe(), o.State().Describe(); got != want {
			t.Errorf("%d more: the copy is\n%s\nthe owner is\n%s", more, got, want)
		}
	}
}

// A batch brings the one before once more, so that a slow copy gets both uses of the id at once.
func TestACopyThatMissedABatchTakesTheNextThatUsesAnIDAgain(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	slow := Restore(o.State(), testWindow)
	again(t, o, func() { commit(t, o) })
	b, _ := o.Begin()
	if _, err := slow.Append(&b, math.MaxInt64); err != nil {
		t.Errorf("the copy refuses the batch: %v", err)
	}
	if got, want := slow.State().Describe(), o.State().Describe(); got != want {
		t.Errorf("the copy is\n%s\nthe owner is\n%s", got, want)
	}
}

// An owner never gathers a record that copies would refuse: they would refuse all that wait.
func TestAnOwnerGathersNothingThatACopyRefuses(t *testing.T) {
	o := owned(t, 1, &State{}, 1000)
	for name, take := range map[string]func() error{
		"no number":          func() error { _, err := o.Take(7, 0, "", 0, 1000); return err },
		"too many numbers":   func() error { _, err := o.Take(7, seq.MaxCount+1, "", 0, 1000); return err },
		"an id that is long": func() error { _, err := o.Take(7, 1, fmt.Sprintf("%0*d", MaxID+1, 1), 0, 1000); return err },
	} {
		if err := take(); !errors.Is(err, ErrBadRecord) {
			t.Errorf("%s: got %v, want %v", name, err, ErrBadRecord)
		}
	}
	if b, ok := o.Begin(); ok {
		t.Errorf("gathered %+v", b.Records)
	}
}

// Copies that stand at or just behind an owner's batch take it in, whatever is drawn, and stand
// as the owner does.
func TestCopiesTakeInAllThatADrawnOwnerSends(t *testing.T) {
	filled, missed, twice := 0, 0, 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		d := &drawn{rnd: rnd, now: 1_000_000, window: []int64{1000, 5000, 600_000}[rnd.IntN(3)]}
		var err error
		if d.owner, err = NewOwner(Config{Window: d.window, Bound: 10_000}, seq.Epoch{Round: 1, Session: 1}, &State{}, d.now); err != nil {
			t.Fatal(err)
		}
		copies := [3]*Copy{NewCopy(d.window), NewCopy(d.window), NewCopy(d.window)}
		var behind [3]int // batches that the copy lacks
		for step := range 120 {
			d.step()
			b, ok := d.owner.Begin()
			if !ok {
				continue
			}
			if d.usesTwice(b.Records) {
				twice++
			}
			lacks := d.rnd.IntN(5) // 3 and 4: all get the batch
			for i, c := range copies {
				if i == lacks {
					behind[i]++
					missed++
					continue
				}
				_, err := c.Append(&b, d.now)
				if errors.Is(err, ErrElsewhere) && behind[i] > 1 {
					err = d.fill(c)
					filled++
				}
				behind[i] = 0
				if err != nil {
					t.Fatalf("seed %d step %d: copy %d: %v", seed, step, i, err)
				}
				if got, want := c.Borrow().Describe(), d.owner.state.Describe(); got != want {
					t.Fatalf("seed %d step %d: copy %d is\n%s\nthe owner is\n%s", seed, step, i, got, want)
				}
			}
			d.owner.Committed()
		}
	}
	t.Logf("%d batches missed, %d whole copies, %d batches with an id twice", missed, filled, twice)
	if missed == 0 || filled == 0 || twice == 0 {
		t.Error("the run shows nothing")
	}
}

// drawn is an owner that is asked at random.
type drawn struct {
	rnd    *rand.Rand
	owner  *Owner
	now    int64
	window int64
}

// step lets time pass and asks for some things.
func (d *drawn) step() {
	switch d.rnd.IntN(12) {
	case 0, 1, 2:
		d.now += d.rnd.Int64N(d.window / 3)
	case 3:
		d.now += d.window + d.rnd.Int64N(d.window)
	}
	for range d.rnd.IntN(6) {
		if d.rnd.IntN(10) == 0 { // while the batch before is under way
			d.now += d.window + d.rnd.Int64N(d.window)
		}
		d.ask(seq.UID(d.rnd.IntN(4)), fmt.Sprint("r", d.rnd.IntN(6)))
	}
}

func (d *drawn) ask(uid seq.UID, id string) {
	switch d.rnd.IntN(8) {
	case 0:
		_, _ = d.owner.Raise(uid, uint64(d.rnd.IntN(3000)), d.now)
	case 1:
		d.owner.Lookup(uid, id)
	case 2:
		d.owner.Current(uid)
	case 3:
		d.owner.Pass(d.now)
	default:
		if d.rnd.IntN(3) == 0 {
			id = ""
		}
		first := []int64{0, 0, d.now - d.rnd.Int64N(2*d.window), d.now + d.rnd.Int64N(12_000)}[d.rnd.IntN(4)]
		_, _ = d.owner.Take(uid, uint32(1+d.rnd.IntN(3)), id, first, d.now) // any refusal is right: the copies are compared
	}
}

// fill brings a copy the whole state, by its text, as a message does.
func (d *drawn) fill(c *Copy) error {
	s, err := ReadState(d.owner.State().AppendTo(nil), d.window)
	if err == nil {
		_, err = c.Fill(s, d.now)
	}
	return err
}

func (d *drawn) usesTwice(records []Record) bool {
	seen := map[request]bool{}
	for _, r := range records {
		q := request{r.UID, r.ID}
		if r.Kind == Take && r.ID != "" && seen[q] {
			return true
		}
		seen[q] = true
	}
	return false
}

// Of two requests of one bucket, the first has expired and its id is used again while the second is still
// under way.
func TestAnIDThatIsUsedAgainHastensNoOther(t *testing.T) {
	const end = 1104 // of a bucket: a multiple of a sixteenth of the window
	o := owned(t, 1, &State{}, 998)
	for i, at := range []int64{end - testWindow - 5, end - testWindow} {
		if _, err := o.Take(7, 1, []string{"a", "b"}[i], 0, at); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			commit(t, o)
		} else if _, ok := o.Begin(); !ok {
			t.Fatal("nothing to send")
		}
	}
	if len(o.state.ids.buckets) != 1 {
		t.Fatalf("%d buckets, want 1", len(o.state.ids.buckets))
	}
	if a, err := o.Take(7, 1, "a", 0, end-4); err != nil || a.Replayed || a.First != 3 {
		t.Errorf("after its window: got %+v, %v, want 3", a, err)
	}
	if a, err := o.Take(7, 1, "b", 0, end-4); err != nil || !a.Replayed || a.First != 2 || a.Round != o.Round() {
		t.Errorf("under way: got %+v, %v, want 2 with batch %d", a, err, o.Round())
	}
}
