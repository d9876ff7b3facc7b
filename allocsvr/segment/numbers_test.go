package segment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/numbers"
	"github.com/seqsvr/seqsvr/seq"
)

var invoices = Tag{Name: "inv", Format: numbers.Format{Template: "INV-{date:20060102}-{seq:6}", Reset: numbers.Daily}}

const aDay = 24 * time.Hour

// numbers takes count numbers, which must be those given.
func (n *node) numbers(t *testing.T, tag string, count uint32, first, last string) {
	t.Helper()
	got, err := n.NextNumbers(patient(t), tag, count)
	if err != nil || got.Texts[0] != first || got.Texts[len(got.Texts)-1] != last || len(got.Texts) != int(count) {
		t.Errorf("got %v, %v, want %s to %s", got, err, first, last)
	}
}

// The clock of a bubble begins at midnight of 2000-01-01, UTC.
func TestEachPeriodCountsByItselfAndAClockThatGoesBackGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		n.put(t, invoices)
		n.numbers(t, "inv", 3, "INV-20000101-000001", "INV-20000101-000003")
		n.ahead.Store(int64(aDay))
		n.numbers(t, "inv", 2, "INV-20000102-000001", "INV-20000102-000002")
		n.ahead.Store(0)
		n.numbers(t, "inv", 1, "INV-20000101-000004", "INV-20000101-000004")
		n.ahead.Store(int64(aDay))
		n.numbers(t, "inv", 1, "INV-20000102-000003", "INV-20000102-000003")
		monthly := Tag{Name: "po", Format: numbers.Format{Template: "{date:200601}/{seq:3}", Reset: numbers.Monthly, Zone: "America/New_York"}}
		n.put(t, monthly)
		n.ahead.Store(0) // where it is 1999 still
		n.numbers(t, "po", 2, "199912/001", "199912/002")
	})
}

// Nodes die without a word, the tag moves between two whose clocks are days apart, clocks jump
// over midnights both ways, and the count gets more digits: no text comes twice.
func TestNoNumberComesTwiceWhateverClocksAndNodesDo(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, func(t *testing.T, f *fakeStores, first *node) {
			r := rand.New(rand.NewPCG(seed, 48))
			first.put(t, invoices)
			nodes, session := []*node{first}, seq.Session(100)
			seen, digits := map[string]string{}, 6
			for range 60 {
				n := nodes[len(nodes)-1]
				switch r.IntN(6) {
				case 0: // a crash, or a clean end, and a successor with another clock
					if r.IntN(2) == 0 {
						_ = n.Release(patient(t))
					}
					_ = n.stop()
					f.expire(n.session, time.Second)
					session++
					nodes = append(nodes, newNode(t, f, session))
					nodes[len(nodes)-1].ahead.Store(int64(time.Duration(r.IntN(5)-2) * aDay))
				case 1:
					n.ahead.Store(int64(time.Duration(r.IntN(5)-2) * aDay))
				case 2:
					time.Sleep(time.Duration(r.Int64N(int64(20 * time.Minute))))
				case 3:
					digits = min(digits+r.IntN(2), 15)
					n.put(t, Tag{Name: "inv", Format: numbers.Format{Template: fmt.Sprintf("INV-{date:20060102}-{seq:%d}", digits)}})
				}
				n = nodes[len(nodes)-1]
				got, err := n.NextNumbers(patient(t), "inv", uint32(1+r.IntN(50)))
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for _, text := range got.Texts {
					who := fmt.Sprintf("session %d, period %s", n.session, got.Period)
					if before, twice := seen[text]; twice {
						t.Fatalf("seed %d: %s came to %s and to %s", seed, text, before, who)
					}
					seen[text] = who
				}
			}
		})
	}
}

func TestACountOfTooManyDigitsIsRefusedByNameUntilThePeriodIsOverOrItGetsMore(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		small := Tag{Name: "inv", Format: numbers.Format{Template: "{date:060102}-{seq:2}", Reset: numbers.Daily}}
		n.put(t, small)
		n.numbers(t, "inv", 90, "000101-01", "000101-90")
		if got, err := n.NextNumbers(patient(t), "inv", 10); !errors.Is(err, seq.ErrNumbersUsedUp) || !strings.Contains(err.Error(), "90 of 99") {
			t.Errorf("ten more: got %v, %v", got, err)
		}
		n.numbers(t, "inv", 9, "000101-91", "000101-99")
		if got, err := n.NextNumbers(patient(t), "inv", 1); !errors.Is(err, seq.ErrNumbersUsedUp) {
			t.Errorf("one more: got %v, %v", got, err)
		}
		if p, err := n.ShowNumber(patient(t), "inv"); err != nil || p.Text != "" || p.Left != 0 {
			t.Errorf("shown as %+v, %v", p, err)
		}
		n.ahead.Store(int64(aDay))
		n.numbers(t, "inv", 1, "000102-01", "000102-01")
		n.ahead.Store(0)
		n.put(t, Tag{Name: "inv", Format: numbers.Format{Template: "{date:060102}-{seq:3}"}})
		n.numbers(t, "inv", 1, "000101-100", "000101-100")
	})
}

func TestShowingANumberTakesAndReservesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.put(t, invoices)
		show := func(n *node, want string, left uint64) {
			t.Helper()
			if p, err := n.ShowNumber(patient(t), "inv"); err != nil || p.Text != want || p.Left != left || p.Period != "20000101" {
				t.Errorf("got %+v, %v, want %s", p, err, want)
			}
		}
		for range 3 {
			show(n, "INV-20000101-000001", 999_999)
		}
		if st := f.state("inv/20000101"); st.max != 0 {
			t.Errorf("a look reserved numbers up to %d", st.max)
		}
		n.numbers(t, "inv", 5, "INV-20000101-000001", "INV-20000101-000005")
		show(n, "INV-20000101-000006", 999_994)
		_ = n.stop() // a crash
		f.expire(n.session, 0)
		time.Sleep(time.Second)
		other := newNode(t, f, 7)
		p, err := other.ShowNumber(patient(t), "inv")
		if err != nil || p.Count <= 5 {
			t.Fatalf("after a crash: got %+v, %v", p, err)
		}
		other.numbers(t, "inv", 1, p.Text, p.Text)
	})
}

func TestPeriodsThatAreOverAreGivenUpAndForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeStores, n *node) {
		n.put(t, invoices)
		n.numbers(t, "inv", 4, "INV-20000101-000001", "INV-20000101-000004")
		for day := range 30 {
			n.ahead.Store(int64(time.Duration(day) * aDay))
			if _, err := n.NextNumbers(patient(t), "inv", 1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * idlePeriod)
		if all := n.Statuses(); len(all) != 1 || all[0].Tag.Tag != "inv/20000130" || all[0].State != "owned" {
			t.Errorf("in memory are %v, want the last period alone", all)
		}
		n.ahead.Store(0)
		if got, err := n.NextNumbers(patient(t), "inv", 1); err != nil || got.Period != "20000101" || got.First <= 5 {
			t.Errorf("back in the first period: got %+v, %v", got, err)
		}
	})
}

func TestTagsOfNumbersAndPlainTagsAreNotMixed(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *fakeStores, n *node) {
		n.put(t, invoices)
		n.put(t, limits)
		take := func(tag string) error { _, err := n.Take(patient(t), tag, 1); return err }
		next := func(tag string, count uint32) error { _, err := n.NextNumbers(patient(t), tag, count); return err }
		put := func(tag Tag) error { _, _, err := n.Put(patient(t), tag); return err }
		form := func(template, reset string) numbers.Format { return numbers.Format{Template: template, Reset: reset} }
		for what, row := range map[string]struct{ err, want error }{
			"a plain number of a template":  {take("inv"), seq.ErrBadArgument},
			"a plain number of a period":    {take("inv/20000101"), seq.ErrBadArgument},
			"a number of a plain tag":       {next("order", 1), seq.ErrBadArgument},
			"a number of no tag":            {next("nothing", 1), seq.ErrUnknownTag},
			"too many":                      {next("inv", seq.MaxNumbers+1), seq.ErrBadCount},
			"none":                          {next("inv", 0), seq.ErrBadCount},
			"a template for a plain tag":    {put(Tag{Name: "order", Format: form("{seq:3}", "")}), seq.ErrUnsafeChange},
			"another reset":                 {put(Tag{Name: "inv", Format: form("", numbers.Yearly)}), seq.ErrUnsafeChange},
			"another text":                  {put(Tag{Name: "inv", Format: form("I{date:20060102}{seq:6}", "")}), seq.ErrUnsafeChange},
			"a template that would repeat":  {put(Tag{Name: "new", Format: form("{seq:3}", numbers.Daily)}), seq.ErrBadArgument},
			"a start of too many digits":    {put(Tag{Name: "new", Start: 1000, Format: form("{seq:3}", "")}), seq.ErrBadArgument},
			"limits of a tag of numbers":    {put(Tag{Name: "inv", MaxStep: 5000}), nil},
			"the same again":                {put(invoices), nil},
			"a start for plain numbers":     {put(Tag{Name: "order", Start: 5}), nil},
			"numbers that begin at a start": {put(Tag{Name: "late", Start: 500, Format: form("{seq:3}", "")}), nil},
		} {
			if !errors.Is(row.err, row.want) {
				t.Errorf("%s: got %v, want %v", what, row.err, row.want)
			}
		}
		n.numbers(t, "late", 2, "500", "501")
		all, err := n.List(t.Context())
		if err != nil || all[0].MinStep != numbersMinStep || all[0].MaxStep != 5000 || all[0].Format.Zone != "UTC" {
			t.Errorf("listed as %+v, %v", all, err)
		}
		if _, err := n.Retire(t.Context(), "inv", false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if err := next("inv", 1); !errors.Is(err, seq.ErrRetired) {
			t.Errorf("retired: got %v", err)
		}
		n.mine.Store(false)
		if err := next("late", 1); !errors.Is(err, seq.ErrNotOwner) {
			t.Errorf("elsewhere: got %v", err)
		}
		if _, err := n.ShowNumber(context.Background(), "late"); !errors.Is(err, seq.ErrNotOwner) {
			t.Errorf("shown elsewhere: got %v", err)
		}
	})
}
