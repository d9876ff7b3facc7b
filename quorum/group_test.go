package quorum

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestAConfigurationWhoseQuorumsCanMissEachOtherIsRefused(t *testing.T) {
	for _, c := range []struct {
		n, r, w int
		ok      bool
	}{
		{1, 1, 1, true}, {3, 2, 2, true}, {3, 1, 3, true}, {5, 3, 3, true}, {5, 2, 4, true}, {9, 5, 5, true},
		{3, 1, 2, false}, {3, 2, 1, false}, {3, 3, 1, false}, {4, 3, 2, false}, {5, 2, 3, false},
		{0, 0, 0, false}, {3, 0, 3, false}, {3, 4, 2, false}, {3, 2, 4, false}, {10, 6, 6, false},
	} {
		err := Config{N: c.n, R: c.r, W: c.w}.Validate()
		if got := err == nil; got != c.ok {
			t.Errorf("N=%d R=%d W=%d: %v, want ok %t", c.n, c.r, c.w, err, c.ok)
		}
		if err != nil && !errors.Is(err, ErrBadConfig) {
			t.Errorf("N=%d R=%d W=%d: %v, want ErrBadConfig", c.n, c.r, c.w, err)
		}
	}
}

func TestStoresThatCannotBeToldApartAreRefused(t *testing.T) {
	f := newFake("a")
	good := NamedStore{Name: "one", UUID: "a", Store: f}
	for name, stores := range map[string][]NamedStore{
		"too few":    {good, {Name: "two", Store: f}},
		"name twice": {good, {Name: "one", Store: f}, {Name: "three", Store: f}},
		"uuid twice": {good, {Name: "two", UUID: "a", Store: f}, {Name: "three", Store: f}},
		"nil":        {good, {Name: "two"}, {Name: "three", Store: f}},
	} {
		if _, err := NewGroup(Config{N: 3, R: 2, W: 2}, stores); !errors.Is(err, ErrBadConfig) {
			t.Errorf("%s: got %v, want ErrBadConfig", name, err)
		}
	}
}

// The rows are what three stores do to a PREPARE and a STEP of one item under
// epoch 5.
func TestAnItemIsDecidedByDistinctStores(t *testing.T) {
	nack := fault{verdict: VerdictNack, edit: func(r *Result) { r.Promised = epoch(9, other) }}
	held := fault{verdict: VerdictHeld, edit: func(r *Result) { r.Holder, r.Remaining = other, time.Hour }}
	foreign := fault{edit: func(r *Result) { r.Promised.Session, r.Accepted.Session = other, other }}
	low := fault{edit: func(r *Result) { r.Max, r.Promised.Round = 1, 4 }}
	drop, late := fault{before: errDropped}, fault{after: errDropped}
	as := func(uuid string) fault { return fault{uuid: uuid} }
	say := func(v Verdict) fault { return fault{verdict: v} }
	for _, c := range []struct {
		name          string
		stores        [3]fault
		prepare, step State
		err           error
	}{
		{"all well", [3]fault{}, Won, Won, nil},
		{"one dropped", [3]fault{drop}, Won, Won, nil},
		{"two dropped", [3]fault{drop, drop}, Unknown, Unknown, seq.ErrNoQuorum},
		{"two failed, but applied", [3]fault{late, late}, Unknown, Unknown, seq.ErrNoQuorum},
		{"the errors of the stores show", [3]fault{{before: seq.ErrStaleEra}, drop}, Unknown, Unknown, seq.ErrStaleEra},
		{"one store as two", [3]fault{{}, as("uuid-0"), drop}, Unknown, Unknown, ErrIdentity},
		{"one store as three", [3]fault{as("x"), as("x"), as("x")}, Unknown, Unknown, ErrIdentity},
		{"no uuid", [3]fault{{nameless: true}, drop}, Unknown, Unknown, ErrIdentity},
		{"too few results", [3]fault{{cut: true}, drop}, Unknown, Unknown, ErrBadReply},
		{"another session's epoch", [3]fault{foreign, foreign}, Unknown, Unknown, ErrBadReply},
		{"another round or max", [3]fault{low, low}, Unknown, Unknown, ErrBadReply},
		{"no verdict", [3]fault{{edit: func(r *Result) { r.Verdict = VerdictNone }}, drop}, Unknown, Unknown, ErrBadReply},
		{"one held", [3]fault{held}, Won, Won, nil},
		{"two held", [3]fault{held, held}, Refused, Refused, ErrHeld},
		{"one held, one dropped", [3]fault{held, drop}, Unknown, Unknown, seq.ErrNoQuorum},
		{"two full", [3]fault{say(VerdictFull), say(VerdictFull)}, Refused, Refused, seq.ErrStoreFull},
		{"two refuse", [3]fault{say(VerdictRefused), say(VerdictRefused)}, Refused, Refused, ErrRefused},
		{"two in grace", [3]fault{say(VerdictGrace), say(VerdictGrace)}, Refused, Refused, ErrHeld},
		{"two lack it", [3]fault{say(VerdictUnknown), say(VerdictUnknown)}, Refused, Refused, seq.ErrUnknownRegister},
		{"two nack", [3]fault{nack, nack}, Refused, Refused, ErrNack},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, fakes := cluster(t, 3, false, section)
			for i, x := range c.stores {
				fakes[i].always(x)
			}
			p := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 5}})[0]
			s := g.Step(t.Context(), me, []StepItem{{Register: section, Round: 5, Max: 100}})[0]
			for _, o := range []struct {
				op   string
				got  Outcome
				want State
			}{{"prepare", p, c.prepare}, {"step", s, c.step}} {
				if o.got.State != o.want || !errors.Is(o.got.Err, c.err) || (o.got.Err == nil) != (o.want == Won) {
					t.Errorf("%s: got %s, %v, want %s, %v", o.op, o.got.State, o.got.Err, o.want, c.err)
				}
				if (o.got.Acks >= 2) != (o.want == Won) {
					t.Errorf("%s: %s with %d acks", o.op, o.want, o.got.Acks)
				}
			}
		})
	}
}

func TestAStoreThatAnswersAsAnotherDoesNotCount(t *testing.T) {
	for _, uuid := range []string{"uuid-2", "stranger"} {
		g, fakes := cluster(t, 3, true, section)
		fakes[1].always(fault{uuid: uuid})
		fakes[2].always(fault{before: errDropped})
		out := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 1}})[0]
		if out.State != Unknown || out.Acks > 1 || !errors.Is(out.Err, ErrIdentity) {
			t.Errorf("as %s: got %s with %d acks, %v", uuid, out.State, out.Acks, out.Err)
		}
	}
}

func TestASingleNackRefusesAStepAndNotAPrepare(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, fakes := cluster(t, 3, true, section)
		fakes[0].set(section, Result{Promised: epoch(9, other)})
		for _, f := range fakes[1:] { // the NACK comes first
			f.always(fault{sleep: func(context.Context) { time.Sleep(time.Millisecond) }})
		}
		p := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 5}})[0]
		if p.State != Won || p.Promised != epoch(9, other) {
			t.Errorf("prepare: got %s, promised %s, want won and 9", p.State, p.Promised)
		}
		s := g.Step(t.Context(), me, []StepItem{{Register: section, Round: 5, Max: 10}})[0]
		if s.State != Refused || !errors.Is(s.Err, ErrNack) || s.Promised != epoch(9, other) {
			t.Errorf("step: got %s, %v, promised %s, want refused by 9", s.State, s.Err, s.Promised)
		}
	})
}

func TestTheBaseIsTheHighestOfAllPromisesNotTheFirst(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, fakes := cluster(t, 3, true, section)
		fakes[0].set(section, Result{Accepted: epoch(1, other), Promised: epoch(1, other), Max: 10}) // answers first
		fakes[1].set(section, Result{Accepted: epoch(3, other), Promised: epoch(3, other), Max: 30})
		fakes[1].always(fault{sleep: func(context.Context) { time.Sleep(time.Millisecond) }})
		fakes[2].always(fault{before: errDropped})
		out := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 5}})[0]
		if out.State != Won || out.Max != 30 || out.Accepted != epoch(3, other) {
			t.Errorf("got %s, max %d, accepted %s, want won, 30, 3", out.State, out.Max, out.Accepted)
		}
	})
}

func TestAMissingRegisterIsNeverReadAsZero(t *testing.T) {
	g, _ := cluster(t, 3, true)
	for name, out := range map[string]Outcome{
		"probe":   g.Probe(t.Context(), me, []seq.Register{section})[0],
		"prepare": g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 1, Create: true}})[0],
		"step":    g.Step(t.Context(), me, []StepItem{{Register: section, Round: 1, Max: 1}})[0],
	} {
		if out.State != Refused || !errors.Is(out.Err, seq.ErrUnknownRegister) {
			t.Errorf("%s: got %s, %v", name, out.State, out.Err)
		}
	}
	if _, err := g.LoadDocument(t.Context(), me, routes); !errors.Is(err, seq.ErrUnknownRegister) {
		t.Errorf("load: got %v", err)
	}
	if _, err := g.SwapDocument(t.Context(), me, routes, 0, nil); !errors.Is(err, seq.ErrUnknownRegister) {
		t.Errorf("swap: got %v", err)
	}
}

func TestAnOnDemandRegisterProbesFreeAndIsCreatedByPrepare(t *testing.T) {
	g, _ := cluster(t, 3, true)
	tag := seq.TagRegister("orders")
	if out := g.Probe(t.Context(), me, []seq.Register{tag})[0]; out.State != Won || !out.Promised.IsZero() {
		t.Errorf("probe: got %+v", out)
	}
	if out := g.Prepare(t.Context(), me, []PrepareItem{{Register: tag, Round: 1}})[0]; !errors.Is(out.Err, seq.ErrUnknownRegister) {
		t.Errorf("prepare without create: got %v", out.Err)
	}
	if out := g.Prepare(t.Context(), me, []PrepareItem{{Register: tag, Round: 1, Create: true}})[0]; out.State != Won {
		t.Errorf("prepare: got %s, %v", out.State, out.Err)
	}
}

func TestAStepOfUnknownOutcomeMayBeRepeatedUnderItsEpoch(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	item := StepItem{Register: section, Round: 5, Max: 100}
	for _, f := range fakes[1:] {
		f.always(fault{after: errDropped})
	}
	if out := g.Step(t.Context(), me, []StepItem{item})[0]; out.State != Unknown {
		t.Fatalf("got %s, want unknown", out.State)
	}
	for _, f := range fakes {
		f.script(nil)
	}
	if out := g.Step(t.Context(), me, []StepItem{item})[0]; out.State != Won || out.Max != 100 {
		t.Errorf("repeated: got %s, max %d, want won, 100", out.State, out.Max)
	}
}

func TestRemainingIsWhenTheWthStoreLetsGo(t *testing.T) {
	held := func(d time.Duration) fault {
		return fault{verdict: VerdictHeld, edit: func(r *Result) { r.Holder, r.Remaining = other, d }}
	}
	for _, c := range []struct {
		name   string
		stores [3]fault
		want   time.Duration
	}{
		{"all held", [3]fault{held(3 * time.Second), held(4 * time.Second), held(5 * time.Second)}, 4 * time.Second},
		{"one free", [3]fault{{}, held(5 * time.Second), held(4 * time.Second)}, 4 * time.Second},
		{"one silent", [3]fault{{before: errDropped}, held(5 * time.Second), held(4 * time.Second)}, 5 * time.Second},
		{"nothing known", [3]fault{{before: errDropped}, held(5 * time.Second), {before: errDropped}}, 0},
	} {
		bubble.Test(t, func(t *testing.T) {
			g, fakes := cluster(t, 3, true, section)
			for i, x := range c.stores {
				// The third answers a second after the others, whose answers age.
				d := time.Duration(i) * time.Second / 2
				x.sleep = func(context.Context) { time.Sleep(d) }
				fakes[i].always(x)
			}
			out := g.Probe(t.Context(), me, []seq.Register{section})[0]
			if out.State == Won {
				t.Fatalf("%s: won", c.name)
			}
			if got := out.Remaining; got > c.want || got < c.want-time.Second || (got == 0) != (c.want == 0) {
				t.Errorf("%s: got %s, want %s less the age of the answer", c.name, got, c.want)
			}
			if out.Holder != other {
				t.Errorf("%s: holder %s", c.name, out.Holder)
			}
		})
	}
}

func TestOneSlowStoreDelaysNoBatchAndIsWrittenAllTheSame(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, fakes := cluster(t, 5, true, section)
		fakes[3].always(fault{sleep: func(ctx context.Context) {
			time.Sleep(time.Second)
			if err := ctx.Err(); err != nil {
				t.Errorf("the slow store is told %v", err)
			}
		}})
		fakes[4].always(fault{sleep: func(ctx context.Context) { <-ctx.Done() }, before: errDropped})
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		out := g.Step(ctx, me, []StepItem{{Register: section, Round: 1, Max: 10}, {Register: section, Round: 1, Max: 20}})
		cancel() // what callers do with a defer must not take the write back
		if out[0].State != Won || out[1].State != Won || time.Since(start) != 0 {
			t.Errorf("got %s and %s after %s, want won at once", out[0].State, out[1].State, time.Since(start))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := fakes[3].get(section).Max; got != 20 {
			t.Errorf("the slow store has %d, want 20", got)
		}
		time.Sleep(DefaultTimeout) // the dead one is given up then, or the bubble would not end
	})
}

func TestARoundEndsWithItsTimeoutAndWithTheCallersContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g, fakes := cluster(t, 3, true, section)
		dead := make(chan struct{})
		defer close(dead)
		for _, f := range fakes[1:] {
			f.always(fault{hold: dead}) // does not even look at its context
		}
		for _, c := range []struct {
			patience, want time.Duration
		}{{time.Hour, DefaultTimeout}, {time.Second, time.Second}} {
			ctx, cancel := context.WithTimeout(t.Context(), c.patience)
			start := time.Now()
			out := g.Prepare(ctx, me, []PrepareItem{{Register: section, Round: 1}})[0]
			cancel()
			if out.State != Unknown || out.Acks != 1 || !errors.Is(out.Err, seq.ErrNoQuorum) || !errors.Is(out.Err, context.DeadlineExceeded) {
				t.Errorf("got %s with %d acks, %v", out.State, out.Acks, out.Err)
			}
			if got := time.Since(start); got != c.want {
				t.Errorf("took %s, want %s", got, c.want)
			}
		}
	})
}

func TestReadPrefixNeedsRStoresAndMergesThem(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	two := seq.SectionRegister(8)
	tag := seq.TagRegister("t")
	fakes[0].set(section, Result{Max: 5, Accepted: epoch(1, me), Promised: epoch(2, me)})
	fakes[1].set(section, Result{Max: 9, Accepted: epoch(3, me), Promised: epoch(3, me)})
	fakes[1].set(two, Result{Max: 1})
	fakes[1].set(tag, Result{Max: 1})
	fakes[2].always(fault{before: errDropped})
	got, err := g.ReadPrefix(t.Context(), me, string(seq.KindSection))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[section].State != Won || got[section].Max != 9 || got[section].Accepted != epoch(3, me) {
		t.Errorf("got %+v", got)
	}
	if got[two].State == Won {
		t.Error("a section that one of two stores lacks was taken for sound")
	}
	fakes[1].always(fault{before: errDropped})
	if _, err := g.ReadPrefix(t.Context(), me, "s"); !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, errDropped) {
		t.Errorf("with one store: got %v, want no quorum", err)
	}
}

func TestReleaseNeedsWDistinctStores(t *testing.T) {
	g, fakes := cluster(t, 3, false, section)
	items := []LeaseItem{{Register: section, Round: 1}}
	fakes[0].always(fault{before: errDropped})
	if err := g.Release(t.Context(), me, items, other); err != nil {
		t.Errorf("with two stores: %v", err)
	}
	fakes[1].always(fault{uuid: "uuid-2"})
	if err := g.Release(t.Context(), me, items, other); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("one store as two: got %v, want no quorum", err)
	}
	if err := g.EndSession(t.Context(), seq.NewSecret("")); !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("end session: got %v, want no quorum", err)
	}
	fakes[1].script(nil)
	if err := g.EndSession(t.Context(), seq.NewSecret("")); err != nil {
		t.Errorf("end session: %v", err)
	}
}

func TestAGroupOfOneStoreAndOneOfFiveWork(t *testing.T) {
	for _, n := range []int{1, 5} {
		g, fakes := cluster(t, n, true, section)
		for _, f := range fakes[:n/2] {
			f.always(fault{before: errDropped})
		}
		if out := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 1}})[0]; out.State != Won {
			t.Errorf("N=%d with %d stores: got %s, %v", n, n-n/2, out.State, out.Err)
		}
		fakes[n/2].always(fault{before: errDropped})
		if out := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 2}})[0]; out.State != Unknown {
			t.Errorf("N=%d with %d stores: got %s, want unknown", n, n-n/2-1, out.State)
		}
	}
}

func TestACallersSlicesAreItsOwnAfterTheCall(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	gate := make(chan struct{})
	fakes[2].always(fault{hold: gate})
	items := []StepItem{{Register: section, Round: 1, Max: 10}}
	g.Step(t.Context(), me, items)
	items[0].Max = 99
	close(gate)
	g.sent.Wait()
	var got []uint64
	for _, f := range fakes {
		got = append(got, f.get(section).Max)
	}
	if diff := cmp.Diff([]uint64{10, 10, 10}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAClosedGroupAnswersAtOnce(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	g.Close()
	out := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 1}})[0]
	if out.State != Unknown || !errors.Is(out.Err, ErrClosed) || fakes[0].count("prepare") != 0 {
		t.Errorf("got %s, %v after %d messages", out.State, out.Err, fakes[0].count("prepare"))
	}
	if len(g.Probe(t.Context(), me, nil)) != 0 {
		t.Error("outcomes of nothing")
	}
}

func TestAReadShowsARegisterThatAnotherSessionHolds(t *testing.T) {
	held := answer{uuid: "a", results: []Result{{Verdict: VerdictHeld, Accepted: seq.Epoch{Round: 3, Session: 9}, Max: 70, Holder: 9, Remaining: time.Second}}}
	older := answer{uuid: "b", results: []Result{{Verdict: VerdictHeld, Accepted: seq.Epoch{Round: 2, Session: 8}, Max: 60}}}
	for _, answers := range [][]answer{{held, older}, {older, held}} {
		b := &batch{op: "read", n: 3, w: 2, length: 1, shows: true, answers: answers,
			register: func(int) seq.Register { return seq.SectionRegister(0) }}
		o := b.outcomes(time.Now())[0]
		if o.Max != 70 || o.Accepted != (seq.Epoch{Round: 3, Session: 9}) || o.State == Won {
			t.Errorf("got %+v, want max 70 under epoch 3 and no win", o)
		}
	}
}

// A session that did not win a round must not own the register under a lower one: some
// store may have promised the higher one, or be about to, and that would end the lease.
func TestASessionNeverAsksForARoundBelowOneThatItAskedForBefore(t *testing.T) {
	g, fakes := cluster(t, 3, true, section)
	fakes[0].always(fault{before: errDropped})
	fakes[1].always(fault{before: errDropped})
	if got := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 5}})[0]; got.State == Won {
		t.Fatalf("one of three stores: %+v", got)
	}
	if got := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 4}})[0]; got.State == Won {
		t.Fatalf("one of three stores, below its promise: %+v", got)
	}
	fakes[0].script(nil)
	fakes[1].script(nil)
	fakes[2].always(fault{before: errDropped}) // the one that promised
	if got := g.Probe(t.Context(), me, []seq.Register{section})[0]; got.State != Won || got.Promised != (seq.Epoch{Round: 5, Session: me}) {
		t.Errorf("a look by the others: %+v, want it above round 5", got)
	}
	if got := g.Probe(t.Context(), other, []seq.Register{section})[0]; got.Promised.Round != 0 {
		t.Errorf("another session: %+v, want what the stores show", got)
	}
	if got := g.Prepare(t.Context(), me, []PrepareItem{{Register: section, Round: 6}})[0]; got.State != Won {
		t.Errorf("round 6: %+v", got)
	}
}
