package quorum

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
)

func TestAClaimIsWhatTheStoreSaidOfItsDisk(t *testing.T) {
	want := Claim{Store: "u", Boot: 3, Commits: 70, Seal: [16]byte{9}}
	if got := (RenewReply{UUID: "u", BootCount: 3, Commits: 70, Seal: [16]byte{9}}).Claim(); got != want {
		t.Errorf("of a renewal: got %+v, want %+v", got, want)
	}
}

func TestClaimsAreInTheOrderOfStartsAndThenOfCommits(t *testing.T) {
	if (Claim{}).Less(Claim{Boot: 1}) || (Claim{Boot: 1, Commits: 5}).Less(Claim{Boot: 2}) {
		t.Error("a claim of no commits takes the place of another")
	}
	claims := []Claim{{Boot: 1, Commits: 5}, {Boot: 1, Commits: 8}, {Boot: 2, Commits: 5}, {Boot: 2, Commits: 6}, {Boot: 3, Commits: 1}}
	for i, a := range claims {
		for j, b := range claims {
			if got := a.Less(b); got != (i < j) {
				t.Errorf("%+v before %+v: %v", a, b, got)
			}
		}
	}
}

func TestAFloorIsThatOfTheRegistersKind(t *testing.T) {
	f := Floors{Tag: 7, Worker: 90}
	for reg, want := range map[seq.Register]uint64{seq.TagRegister("t"): 7, seq.WorkerRegister("ns", 1, 2): 90, section: 0, routes: 0} {
		if got := f.Of(reg); got != want {
			t.Errorf("%s: got %d, want %d", reg, got, want)
		}
	}
	higher := Floors{Tag: 8, Worker: 80}
	for _, got := range []Floors{f.Over(higher), higher.Over(f)} {
		if want := (Floors{Tag: 8, Worker: 90}); got != want {
			t.Errorf("the higher of both is %+v, want %+v", got, want)
		}
	}
}

// outcomeOf is what a request of one item comes to, whatever the order of the answers is.
func outcomeOf(t *testing.T, b batch, results ...Result) Outcome {
	t.Helper()
	b.length = 1
	if b.n == 0 {
		b.n, b.w = 3, 2
	}
	if b.register == nil {
		b.register = func(int) seq.Register { return section }
	}
	now := time.Now()
	outcome := func(order []Result) Outcome {
		b.answers, b.decided = nil, 0
		for i, r := range order {
			b.answers = append(b.answers, answer{store: i, results: []Result{r}, at: now})
		}
		return b.outcomes(now)[0]
	}
	there := outcome(results)
	slices.Reverse(results)
	back, said := outcome(results), cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })
	if diff := cmp.Diff(there, back, said); diff != "" {
		t.Errorf("%+v: it depends on the order of the answers: %s", results, diff)
	}
	return there
}

func TestAWriteShowsNothingOfTheStoresThatRefusedIt(t *testing.T) {
	held := Result{Verdict: VerdictHeld, Max: 70, Floor: 60, Accepted: epoch(3, other), Promised: epoch(4, other), Seal: 5, Payload: []byte("x")}
	got := outcomeOf(t, batch{op: "prepare"}, held, held)
	if got.Max != 0 || got.Floor != 0 || !got.Accepted.IsZero() || got.Seal != 0 || got.Payload != nil || got.Promised != epoch(4, other) {
		t.Errorf("got %+v, want the promise alone", got)
	}
	// A store that does not have the register has nothing to show, whatever it says.
	missing := Result{Verdict: VerdictUnknown, Max: 70, Floor: 60}
	if got := outcomeOf(t, batch{op: "read", shows: true}, missing, missing); got.Max != 0 || got.Floor != 0 {
		t.Errorf("a register that there is not: %+v", got)
	}
}

func TestAnOutcomeHasTheHighestOfWhatWasShown(t *testing.T) {
	a := Result{Verdict: VerdictOK, Max: 70, Floor: 60, Accepted: epoch(3, me), Payload: []byte("old"), Seal: 33}
	b := Result{Verdict: VerdictOK, Max: 65, Floor: 62, Accepted: epoch(4, me), Payload: []byte("new"), Seal: 44}
	got := outcomeOf(t, batch{op: "prepare"}, a, b)
	if got.Max != 70 || got.Floor != 62 || got.Accepted != epoch(4, me) || string(got.Payload) != "new" || got.Seal != 44 {
		t.Errorf("got %+v", got)
	}
	// A store that has restarted keeps no seal, so only the other store's seal is left.
	b.Seal = 0
	if got := outcomeOf(t, batch{op: "prepare"}, a, b); got.Seal != 33 {
		t.Errorf("seal %d, want the one that a store has", got.Seal)
	}
	fresh := Result{Verdict: VerdictOK, Payload: []byte("first")}
	if got := outcomeOf(t, batch{op: "prepare", n: 1, w: 1}, fresh); string(got.Payload) != "first" {
		t.Errorf("nothing accepted yet: %+v", got)
	}
}

func TestTheWaitIsForStoresThatAdmitAsSoonAsTheyLetGo(t *testing.T) {
	held := Result{Verdict: VerdictHeld, Holder: other, Remaining: time.Second}
	grace := Result{Verdict: VerdictGrace, Remaining: 3 * time.Second}
	nack := Result{Verdict: VerdictNack, Promised: epoch(9, other)}
	for _, row := range []struct {
		name string
		says []Result
		want time.Duration
	}{
		{"a higher round passes at once", []Result{nack, held}, time.Second},
		{"a grace ends", []Result{held, grace}, 3 * time.Second},
		{"a full disk does not let go", []Result{held, {Verdict: VerdictFull, Remaining: time.Second}}, 0},
		{"nor does a rule", []Result{grace, {Verdict: VerdictRefused, Remaining: time.Second}}, 0},
		{"one store is no quorum", []Result{held}, 0},
		{"time is up, and that is known", []Result{{Verdict: VerdictHeld, Holder: other}, {Verdict: VerdictHeld}}, 1},
	} {
		if got := outcomeOf(t, batch{op: "probe"}, row.says...); got.Remaining != row.want || got.State == Won {
			t.Errorf("%s: wait %v, %v, want %v", row.name, got.Remaining, got.State, row.want)
		}
	}
	// A holder counts also if no store says how long its lease lasts.
	if got := outcomeOf(t, batch{op: "probe"}, Result{Verdict: VerdictHeld, Holder: other}); got.Holder != other {
		t.Errorf("holder %v, want %v", got.Holder, other)
	}
}

func TestARefusalNamesEachReasonOnceAndNoneThatIsNotProved(t *testing.T) {
	say := func(v Verdict, message string) Result { return Result{Verdict: v, Message: message} }
	for _, row := range []struct {
		name string
		says []Result
		want []error
		text string
	}{
		{"held and in grace are one reason", []Result{say(VerdictHeld, ""), say(VerdictGrace, "")}, []error{ErrHeld}, ""},
		{"what was said first is kept", []Result{say(VerdictRefused, "first"), say(VerdictRefused, "second")}, []error{ErrRefused}, " (first)"},
		{"one that lacks it proves nothing", []Result{say(VerdictUnknown, ""), say(VerdictFull, "")}, []error{seq.ErrStoreFull}, ""},
		{"two that lack it do", []Result{say(VerdictUnknown, ""), say(VerdictUnknown, ""), say(VerdictFull, "")}, []error{seq.ErrStoreFull, seq.ErrUnknownRegister}, ""},
		{"nothing else was said", []Result{say(VerdictUnknown, "")}, []error{seq.ErrUnknownRegister}, ""},
	} {
		b := &batch{op: "step", n: 3, w: 2, length: 1, register: func(int) seq.Register { return section }}
		for _, r := range row.says {
			b.answers = append(b.answers, answer{results: []Result{r}})
		}
		err := b.err(0, Refused, nil)
		var item *itemError
		if !errors.As(err, &item) || !slices.Equal(item.reasons, row.want) || !strings.HasSuffix(err.Error(), row.want[len(row.want)-1].Error()+row.text) {
			t.Errorf("%s: got %v, want %v%s", row.name, err, row.want, row.text)
		}
	}
}

func TestOnlyAnAnswerThatMakesNoSenseIsCalledABadReply(t *testing.T) {
	b := &batch{op: "prepare", n: 3, w: 2, length: 1, register: func(int) seq.Register { return section }}
	ok := answer{results: []Result{{Verdict: VerdictOK}}}
	for name, row := range map[string]struct {
		answers []answer
		want    bool
	}{
		"a yes and silence": {[]answer{ok, {err: errDropped}, {err: errDropped}}, false},
		"no verdict":        {[]answer{ok, {results: make([]Result, 1)}, {err: errDropped}}, true},
	} {
		b.answers = row.answers
		o := b.outcomes(time.Now())[0]
		if o.State != Unknown || errors.Is(o.Err, ErrBadReply) != row.want || !errors.Is(o.Err, seq.ErrNoQuorum) || !errors.Is(o.Err, errDropped) {
			t.Errorf("%s: got %v, %v", name, o.State, o.Err)
		}
		if o.Err != nil && !strings.Contains(o.Err.Error(), "dropped") { // a text at all: each reason is an error
			t.Errorf("%s: got %q", name, o.Err)
		}
	}
}
