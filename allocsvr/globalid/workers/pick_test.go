package workers

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func layout(t *testing.T, text string) snowflake.Layout {
	t.Helper()
	l, err := namespaces.ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// whole are all worker ids of a layout.
func whole(l snowflake.Layout) namespaces.Own {
	return namespaces.Own{{First: 0, Last: l.MaxWorker()}}
}

func TestWorkerIDsNeverUsedComeFirstAndThenTheOldestMark(t *testing.T) {
	l := layout(t, "time:43,worker:3,sequence:12;epoch=0")
	used := []Used{
		{Worker: 0, Mark: 30, Free: true}, {Worker: 1, Mark: 5, Holder: 7}, {Worker: 3, Mark: 10, Free: true}, {Worker: 6, Mark: 20, Free: true},
	}
	c := choose(used, whole(l), order{}, rand.New(rand.NewPCG(1, 1)))
	fresh := slices.Clone(c.try[:4])
	slices.Sort(fresh)
	if diff := cmp.Diff([]snowflake.Worker{2, 4, 5, 7}, fresh); diff != "" {
		t.Errorf("never used: %s", diff)
	}
	if diff := cmp.Diff([]snowflake.Worker{3, 6, 0}, c.try[4:]); diff != "" {
		t.Errorf("used: %s", diff)
	}
	if c.pool != (Pool{Held: 1, Size: 8}) {
		t.Errorf("got pool %+v", c.pool)
	}
	six := snowflake.Worker(6)
	if c = choose(used, whole(l), order{first: &six}, rand.New(rand.NewPCG(1, 1))); c.try[0] != 6 || len(c.try) != 7 {
		t.Errorf("6 first: got %v", c.try)
	}
	one := snowflake.Worker(1)
	if c = choose(used, whole(l), order{first: &one}, rand.New(rand.NewPCG(1, 1))); slices.Contains(c.try, 1) {
		t.Errorf("1 is held: got %v", c.try)
	}
	fresh = slices.Clone(choose(used, whole(layout(t, "time:43,worker:6,sequence:12;epoch=0")), order{topDown: true}, rand.New(rand.NewPCG(1, 1))).try)
	slices.Sort(fresh)
	if diff := cmp.Diff([]snowflake.Worker{56, 57, 58, 59, 60, 61, 62, 63}, fresh); diff != "" {
		t.Errorf("for a client: %s", diff)
	}
	if got := c.only(1).try; len(got) != 0 {
		t.Errorf("only a held one: got %v", got)
	}
	if got := c.only(5).try; !slices.Equal(got, []snowflake.Worker{5}) {
		t.Errorf("only 5: got %v", got)
	}
}

func TestALargePoolUsesWorkerIDsAgainBeforeNewOnes(t *testing.T) {
	var used []Used
	for w := range snowflake.Worker(roomy) {
		used = append(used, Used{Worker: w, Mark: Mark(roomy - w), Free: w%2 == 0})
	}
	c := choose(used, whole(layout(t, "baidu")), order{}, rand.New(rand.NewPCG(1, 1)))
	if c.try[0] != roomy-2 {
		t.Errorf("got %v", c.try)
	}
}

func TestACrowdedPoolIsOneOfWhichMoreThanFourFifthsAreHeld(t *testing.T) {
	for _, row := range []struct {
		pool Pool
		want bool
	}{{Pool{8, 10}, false}, {Pool{9, 10}, true}, {Pool{0, 1 << 22}, false}, {Pool{0, 1 << 60}, false}, {Pool{2, 2}, true}} {
		if got := row.pool.Crowded(); got != row.want {
			t.Errorf("%+v: got %v", row.pool, got)
		}
	}
}

func TestAnExhaustedPoolNamesItsHoldersAndFitsAStatus(t *testing.T) {
	var used []Used
	for w := range snowflake.Worker(1024) {
		used = append(used, Used{Worker: w, Holder: seq.Session(w%3 + 1), Remaining: time.Second})
	}
	err := exhausted(used, Pool{1024, 1024}, map[seq.Session]string{1: strings.Repeat("n", 40)})
	if !errors.Is(err, seq.ErrWorkersExhausted) || !strings.Contains(err.Error(), "and 1012 more") || len(err.Error()) > 900 {
		t.Errorf("got %d bytes: %v", len(err.Error()), err)
	}
}

func TestASurveyReadsWhatTheStoresSay(t *testing.T) {
	got := survey("ns", map[seq.Register]quorum.Outcome{
		seq.WorkerRegister("ns", 1, 10): {State: quorum.Won, Max: 7},
		seq.WorkerRegister("ns", 0, 9):  {State: quorum.Refused, Holder: 5, Remaining: time.Second},
		seq.WorkerRegister("ns", 0, 2):  {State: quorum.Won, Max: 8, Holder: 6}, // attached at one store so far
		seq.WorkerRegister("ns", 0, 3):  {State: quorum.Won, Max: 9, Holder: 1}, // its own, given up
		seq.WorkerRegister("ns", 0, 4):  {State: quorum.Won, Max: 5_011},        // delegated
		"wns/strange":                   {State: quorum.Won},
	}, 1, 11)
	want := []Used{
		{Datacenter: 0, Worker: 2, Mark: 8, Holder: 6},
		{Datacenter: 0, Worker: 3, Mark: 9, Holder: 1, Free: true},
		{Datacenter: 0, Worker: 4, Mark: 5_011, Remaining: 5 * time.Second},
		{Datacenter: 0, Worker: 9, Holder: 5, Remaining: time.Second},
		{Datacenter: 1, Worker: 10, Mark: 7, Free: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A holder uses ticks up to the tick of its confirmed mark. The next holder uses ticks above the tick of a
// mark that is at least as high. In every layout the two have no tick in common.
func TestTheFloorOfTheNextHolderIsNeverBelowAConfirmedTick(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"1ms", "10ms", "1s", "7m"}).Draw(t, "unit")
		l, err := snowflake.ParseLayout("time:30,worker:4,sequence:12;epoch=1700000000000;unit=" + unit)
		if err != nil {
			t.Fatal(err)
		}
		confirmed := Mark(rapid.Uint64().Draw(t, "confirmed"))
		promised := Mark(rapid.Uint64Min(uint64(confirmed)).Draw(t, "promised"))
		if confirmed.tick(l) > promised.tick(l) {
			t.Errorf("confirmed to tick %d, next floor is %d", confirmed.tick(l), promised.tick(l))
		}
	})
}

func TestTheNextMarkIsAWindowAheadAndWithinReach(t *testing.T) {
	const w = 3 * time.Second
	for _, row := range []struct{ now, last, want Mark }{
		{10_000, 0, 13_000},
		{10_000, 9_999, 13_000},
		{10_000, 12_000, 15_000},
		{10_000, 39_000, 40_000}, // a borrower at the end of its reach
		{10_000, 50_000, 40_000},
	} {
		if got := target(row.now, row.last, w); got != row.want {
			t.Errorf("%+v: got %d", row, got)
		}
	}
	// The longest window is all that is in reach, whatever was borrowed.
	for _, last := range []Mark{0, 300_000, 600_000} {
		if got := target(0, last, MaxWindow); got != Mark(0).add(MaxWindow) || MaxWindow+maxBehind > quorum.WorkerAhead {
			t.Errorf("%d borrowed, window %v: got %d", last, MaxWindow, got)
		}
	}
	for _, row := range []struct {
		confirmed, now, last, target Mark
		want                         bool
	}{
		{13_000, 10_000, 0, 13_000, false},      // nothing used
		{13_000, 11_400, 0, 14_400, false},      // less than half
		{13_000, 11_600, 0, 14_600, true},       // more than half
		{13_000, 20_000, 0, 23_000, true},       // all
		{40_000, 10_000, 39_900, 40_000, false}, // no more to be had
		{40_000, 10_500, 39_900, 40_500, false}, // too little
		{40_000, 10_800, 39_900, 40_800, true},
	} {
		if got := due(row.confirmed, row.now, row.last, row.target, w); got != row.want {
			t.Errorf("%+v: got %v", row, got)
		}
	}
}

func TestAFloorAboveTheClockKeepsAllWorkerIDsBack(t *testing.T) {
	now := Mark(0).add(100 * time.Hour)
	late := now.add(2 * time.Hour)
	if err := kept(late, now, now); !errors.Is(err, seq.ErrWorkersKept) || !strings.Contains(err.Error(), "2h0m0s") {
		t.Errorf("kept: %v", err)
	}
	if err := kept(now, now, now); err != nil {
		t.Errorf("no longer kept: %v", err)
	}
}
