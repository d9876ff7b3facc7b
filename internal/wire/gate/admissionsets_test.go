package gate

import (
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// enteredFor is a call that was let in for Sets at once.
func enteredFor(t *testing.T, a *Admission, who string, keys int, sets ...int) *Place {
	t.Helper()
	p, err := a.Try(WithCaller(t.Context(), who), keys, sets...)
	if err != nil {
		t.Fatalf("%s: %v with %d of %d in work", who, err, a.InWork(), a.Limit())
	}
	return p
}

func refusedFor(t *testing.T, a *Admission, who string, keys int, sets ...int) {
	t.Helper()
	if p, err := a.Try(WithCaller(t.Context(), who), keys, sets...); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("%s, for %v: got %v, %v with %d of %d in work, want %v", who, sets, p, err, a.InWork(), a.Limit(), seq.ErrOverloaded)
	}
}

func allLeft(t *testing.T, a *Admission, places []*Place) {
	t.Helper()
	left(t, a, places...)
	if a.InWork() != 0 || len(a.sets) != 0 {
		t.Errorf("after all have left %d are in work, and %d Sets have some", a.InWork(), len(a.sets))
	}
}

func TestCallsForOneSetTakeHalfAndNothingFromCallsForOthers(t *testing.T) {
	a := NewAdmission(32 * CallCost)
	a.NameSets(func(set int) string { return []string{"main", "b"}[set] })
	var all []*Place
	for range 14 { // a caller that is alone gets half of all except an eighth
		all = append(all, enteredFor(t, a, "greedy", 0, 1))
	}
	if _, err := a.Try(WithCaller(t.Context(), "greedy"), 0, 1); err == nil || !strings.Contains(err.Error(), "Set b") {
		t.Errorf("beyond its share: %v", err)
	}
	all = append(all, enteredFor(t, a, "polite", 0, 1), enteredFor(t, a, "other", 0, 1))
	if _, err := a.Try(WithCaller(t.Context(), "late"), 0, 1); !errors.Is(err, seq.ErrOverloaded) || !strings.Contains(err.Error(), "Set b") {
		t.Errorf("beyond half: %v", err)
	}
	for range 14 { // the same caller, for the other Set
		all = append(all, enteredFor(t, a, "greedy", 0, 0))
	}
	all = append(all, enteredFor(t, a, "greedy", 0), enteredFor(t, a, "late", 0))
	refusedFor(t, a, "late", 0, 2) // all is full
	allLeft(t, a, all)
}

func TestACallForNoSetCountsNoneOfItsCallersForSets(t *testing.T) {
	a := NewAdmission(32 * CallCost)
	var all []*Place
	for range 14 {
		all = append(all, enteredFor(t, a, "one", 0, 1))
	}
	all = append(all, enteredFor(t, a, "two", 0))
	for range 12 { // above half of all, and of its share
		all = append(all, enteredFor(t, a, "one", 0))
	}
	allLeft(t, a, all)
}

// It counts whole at each of its Sets, and no longer where it is answered.
func TestACallForSeveralSetsCountsWhereItWaits(t *testing.T) {
	a := NewAdmission(16 * CallCost)
	both := enteredFor(t, a, "one", 5*CallCost, 0, 1)
	refusedFor(t, a, "two", 2*CallCost, 0)
	refusedFor(t, a, "two", 2*CallCost, 1)
	both.Answered(0)
	both.Answered(0) // once more does nothing
	here := enteredFor(t, a, "two", 2*CallCost, 0)
	refusedFor(t, a, "two", 2*CallCost, 1)
	if n := a.InWork(); n != 9*CallCost {
		t.Errorf("%d in work, want both calls whole", n)
	}
	mixed := enteredFor(t, a, "two", 2*CallCost, 0, 1)
	if mixed.Refused(0) != nil || !errors.Is(mixed.Refused(1), seq.ErrOverloaded) || mixed.Refused(7) != nil {
		t.Errorf("refused for %v, %v", mixed.Refused(0), mixed.Refused(1))
	}
	if got := a.Refused(); got != 4 {
		t.Errorf("%d refused, want 4", got)
	}
	allLeft(t, a, []*Place{both, here, mixed})
}

func TestTheLargestBatchFitsAtASetThatHasNothingInWork(t *testing.T) {
	a := NewAdmission(MinInWork)
	large := enteredFor(t, a, "one", seq.MaxBatch, 1)
	allLeft(t, a, []*Place{large})
	small := enteredFor(t, a, "one", 0, 1)
	refusedFor(t, a, "two", seq.MaxBatch-CallCost, 1)
	allLeft(t, a, []*Place{small})
}
