package lab

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
)

const milli = time.Millisecond

// call is one of UID 1 or 2 that got a number, or failed for 0.
func call(uid, number uint64, start, end time.Duration) history.Call {
	c := history.Call{Key: history.Key{UID: uid}, First: number, Last: number, Start: start, End: end}
	if number == 0 {
		c.Err = "direct: no quorum of stores: 1 of 3"
	}
	return c
}

// after is a drill whose fault hit UID 1 at 100 ms, with a history.
func after(calls ...history.Call) *drill {
	t := newTimeline(nil)
	t.add(100*milli, eventFault, "alloc-1", "SIGKILL")
	d := &drill{Cluster: &Cluster{Own: &localcluster.Cluster{}}, timeline: t, lease: time.Second, load: &Load{}}
	d.faults = []fault{{from: 100 * milli, uids: func(uid seq.UID) bool { return uid == 1 }}}
	for _, c := range calls {
		d.load.History.Add(c)
	}
	return d
}

var outage = []history.Call{
	call(1, 1, 10*milli, 30*milli),
	call(1, 2, 90*milli, 101*milli), // answered while the fault was being made
	call(2, 1, 100*milli, 900*milli),
	call(1, 5, 110*milli, 800*milli),
	call(1, 6, 300*milli, 850*milli),
	call(1, 0, 300*milli, 820*milli),
	call(1, 7, 860*milli, 870*milli),
}

func TestTheReportCountsAndMeasuresFromTheHistory(t *testing.T) {
	r := after(outage...).measure(Scenario{Name: "x"})
	if r.Requests != 7 || r.Errors != 1 || r.Duplicates != 0 || r.Regressions != 0 || r.Gaps != 2 || r.LongestGap != 2 {
		t.Errorf("got %+v", r)
	}
	if r.MaxPauseMS != 800 || r.SteadyMS != 20 {
		t.Errorf("longest pause %v ms, before the fault %v ms, want 800 and 20", r.MaxPauseMS, r.SteadyMS)
	}
	if want := []string{"1 times direct: no quorum of stores: N of N"}; !cmp.Equal(r.Reasons, want) {
		t.Errorf("got %q, want %q", r.Reasons, want)
	}
}

func TestTheFirstAnswerEndsTheLongestSilenceOfTheUIDsThatWereHit(t *testing.T) {
	r := after(outage...).measure(Scenario{})
	got := map[string]float64{}
	for _, m := range r.Timeline {
		got[m.Event] = m.MS
	}
	if want := map[string]float64{eventFault: 0, eventAnswer: 700, eventLast: 750}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestABrokenHistoryIsReportedWithAnExample(t *testing.T) {
	r := after(call(1, 3, 10*milli, 20*milli), call(1, 3, 110*milli, 120*milli), call(1, 2, 130*milli, 140*milli)).measure(Scenario{})
	if r.Duplicates != 1 || r.Regressions == 0 || len(r.Examples) < 2 {
		t.Errorf("got %d duplicates, %d regressions, %q", r.Duplicates, r.Regressions, r.Examples)
	}
}

func TestNumbersBelowTheFirstCountOnlyWhereNobodyElseTookThem(t *testing.T) {
	d := after(call(1, 8, 110*milli, 120*milli))
	if r := d.measure(Scenario{}); r.Gaps != 7 || r.LongestGap != 7 {
		t.Errorf("in a cluster of its own: %d gaps, at most %d in a row, want 7 and 7", r.Gaps, r.LongestGap)
	}
	d.Own = nil
	if r := d.measure(Scenario{}); r.Gaps != 0 {
		t.Errorf("in a cluster of others: %d gaps, want 0", r.Gaps)
	}
}

func TestALeaseEndsWhenAQuorumOfStoresHasLetItGo(t *testing.T) {
	timeline := newTimeline(nil)
	timeline.add(0, eventFault, "a", "")
	w := &watch{places: &registers{w: 2}, timeline: timeline, node: "a", session: 1, sections: []seq.SectionID{7},
		names: func(uint64) string { return "b" }, taken: make([]bool, 1), seen: [][]sighted{make([]sighted, 3)}}
	w.seen[0][0] = sighted{holder: 0, freeAt: 900 * milli, told: true}
	w.seen[0][1] = sighted{holder: 1, freeAt: 950 * milli, told: true}
	w.tell(910 * milli)
	if got := len(timeline.list()); got != 1 {
		t.Fatalf("one store was enough: %v", timeline.list())
	}
	w.seen[0][1] = sighted{holder: 2, freeAt: 950 * milli, told: true}
	w.tell(960 * milli)
	w.seen[0][2] = sighted{holder: 2, freeAt: 940 * milli, told: true}
	w.tell(970 * milli)
	var got []string
	for _, m := range timeline.list() {
		got = append(got, m.Event)
	}
	if want := []string{eventFault, eventLeaseEnd, eventTaken}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestGapsOfCallersAreToldFromThoseOfTheCluster(t *testing.T) {
	got := func(uid, first, last uint64) history.Call {
		return history.Call{Key: history.Key{UID: uid}, First: first, Last: last, End: 1}
	}
	lost := history.Call{Key: history.Key{UID: 2}, End: 1, Err: "late"}
	calls := []history.Call{got(1, 1, 2), got(1, 4, 4), got(2, 1, 1), lost}
	tests := []struct {
		name   string
		stands map[uint64]uint64 // zero if unknown
		handed uint64
		want   Account
	}{
		{"all that was handed out was answered but 3 of uid 1 and 2 of uid 2", map[uint64]uint64{1: 4, 2: 2}, 6, Account{Answered: 4, Unheard: 2}},
		{"3 of uid 1 was never handed out", map[uint64]uint64{1: 4, 2: 2}, 5, Account{Answered: 4, Unheard: 1, Skipped: 1}},
		{"neither was", map[uint64]uint64{1: 4, 2: 2}, 4, Account{Answered: 4, Skipped: 2}},
		{"where uid 2 stands is not known", map[uint64]uint64{1: 4, 2: 0}, 5, Account{Answered: 4, Unheard: 1}},
	}
	for _, test := range tests {
		if got := *balance(calls, test.stands, test.handed); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.name, got, test.want)
		}
	}
	if err := (&Account{Skipped: 1}).err(); !errors.Is(err, ErrSkipped) {
		t.Errorf("got %v, want ErrSkipped", err)
	}
	if err := (&Account{Skipped: 1, Lapses: 1}).err(); err != nil {
		t.Errorf("after a lapse: got %v, want nothing", err)
	}
}

func TestTheTargetIsThatOfTheLeaseAndOfSupervision(t *testing.T) {
	sc, err := FindDrill("kill-alloc")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		lease     time.Duration
		supervise bool
		want      time.Duration
	}{{time.Second, false, 1200 * milli}, {600 * milli, false, 700 * milli}, {time.Second, true, 150 * milli}, {2 * time.Second, false, 0}} {
		if got := sc.Expect.target(test.lease, test.supervise); got != test.want {
			t.Errorf("lease %v, supervised %v: got %v, want %v", test.lease, test.supervise, got, test.want)
		}
	}
}

func TestEveryScenarioHasANameOfItsOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, sc := range append(Drills(), Wider()...) {
		if sc.Name == "" || seen[sc.Name] || sc.Run == nil {
			t.Errorf("%q: twice, or without a name or an act", sc.Name)
		}
		seen[sc.Name] = true
	}
}

func TestNoTwoScenesOfARoundBreakTheSameNode(t *testing.T) {
	c := &Cluster{Nodes: localcluster.DefaultConfig("").Planned()}
	round, seen := &Round{}, map[string]bool{}
	for range 3 {
		s := DrawnScene(c, time.Second, rand.New(rand.NewPCG(1, 2)), round)
		got, err := s.Victims(t.Context(), 2, store, router)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range got {
			if seen[name] {
				t.Errorf("%s is a victim twice", name)
			}
			seen[name] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("the victims are %v, want three stores and a router", seen)
	}
}
