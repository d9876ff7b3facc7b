package owner

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// newMoving is an owner of section 0 whose Set's record says what place says of it.
func newMoving(t *testing.T, place sets.Place) (*owned, *willing, *scriptedRecord) {
	t.Helper()
	o, w, _ := newWilling(t)
	r := &scriptedRecord{now: sets.Record{Name: "main", Rest: place}}
	o.record = r
	return o, w, r
}

var (
	sealedBy7 = sets.Place{State: sets.Sealed, Move: 7, To: "b"}
	all1      = []sets.Range{{First: 0, Sections: 1}}
	plenty    = Room{Message: 1 << 20, Section: 1 << 20}
)

func TestASectionIsStoppedOnlyForTheMoveThatSealedIt(t *testing.T) {
	o, _, _ := newMoving(t, sealedBy7)
	for _, place := range []sets.Place{{}, {State: sets.Sealed, Move: 8, To: "b"}, {State: sets.Inactive}, {State: sets.Active, Move: 7}} {
		o.record = &scriptedRecord{now: sets.Record{Rest: place}}
		if _, _, err := o.moves.Stop(t.Context(), 7, []seq.SectionID{0}, true, plenty); !errors.Is(err, seq.ErrMoveOver) {
			t.Errorf("%v: got %v", place, err)
		}
	}
	o.must(1)
	o.record = &scriptedRecord{now: sets.Record{Rest: sealedBy7}}
	for range 2 { // a repeated call gives the same
		stopped, left, err := o.moves.Stop(t.Context(), 7, []seq.SectionID{0}, false, plenty)
		if err != nil || len(left) > 0 || len(stopped) != 1 || stopped[0].Ceiling != 1 || len(stopped[0].Body) == 0 {
			t.Fatalf("got %+v, left %v: %v", stopped, left, err)
		}
	}
	if late := o.take(1); late.Settled() {
		t.Errorf("got %d after the stop", late.Out().First[0])
	}
}

// stop stops section 0 for move 7. It returns the counters, or nil if the section is left.
func (o *owned) stop() *counters.Table {
	o.t.Helper()
	stopped, left, err := o.moves.Stop(o.t.Context(), 7, []seq.SectionID{0}, false, plenty)
	if err != nil || len(stopped)+len(left) != 1 {
		o.t.Fatalf("stopped %+v, left %v: %v", stopped, left, err)
	}
	if len(left) > 0 {
		return nil
	}
	table, err := counters.Decode(stopped[0].Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return table
}

// asked are stores that answer the next looks as the test says.
type asked struct {
	*willing
	next []quorum.Outcome
}

func (a *asked) Probe(ctx context.Context, id seq.Session, regs []seq.Register) []quorum.Outcome {
	if len(a.next) == 0 {
		return a.willing.Probe(ctx, id, regs)
	}
	out := a.next[0]
	a.next = a.next[1:]
	return []quorum.Outcome{out}
}

// A node may have been succeeded, by one that handed out more, whatever its clock says of its lease.
func TestASectionIsStoppedFromMemoryOnlyIfTheStoresPromisedItToNoOther(t *testing.T) {
	unknown := quorum.Outcome{State: quorum.Unknown, Err: seq.ErrNoQuorum}
	other := quorum.Outcome{State: quorum.Won, Promised: seq.Epoch{Round: 8, Session: otherSession}}
	for name, row := range map[string]struct {
		next  []quorum.Outcome
		after time.Duration
		want  []bool // of calls in a row
	}{
		"leased":                    {want: []bool{true, true}},
		"the lease has ended":       {after: 2 * ownerLease, want: []bool{true}},
		"promised to another":       {next: []quorum.Outcome{other}, want: []bool{false, false}},
		"held by another":           {next: []quorum.Outcome{{State: quorum.Refused, Err: quorum.ErrHeld}}, want: []bool{false}},
		"not known, and then":       {next: []quorum.Outcome{unknown, unknown}, want: []bool{false, false, true}},
		"known, and not asked more": {next: []quorum.Outcome{{State: quorum.Won, Promised: seq.Epoch{Round: 7, Session: ownerSession}}, other}, want: []bool{true, true}},
	} {
		o, w, _ := newMoving(t, sealedBy7)
		o.holder.Registers = &asked{w, row.next}
		o.must(3)
		o.clock.Advance(row.after)
		for i, want := range row.want {
			table := o.stop()
			if (table != nil) != want {
				t.Errorf("%s: call %d: stopped %v, want %v", name, i+1, table != nil, want)
			}
			if table == nil {
				continue
			}
			if got, _ := table.Get(1); got != 3 {
				t.Errorf("%s: the counters say %d, want 3", name, got)
			}
		}
		if late := o.take(1); late.Settled() {
			t.Errorf("%s: got %d", name, late.Out().First[0])
		}
	}
}

// A stop says how far the section had got for its own move. Another node may have served the section
// between two moves, and this node may have heard of neither.
func TestAStopIsToldForItsOwnMoveOnly(t *testing.T) {
	o, w, _ := newMoving(t, sealedBy7)
	o.must(3)
	if o.stop() == nil {
		t.Fatal("not stopped")
	}
	w.max = 900
	o.record = &scriptedRecord{now: sets.Record{Name: "main", Rest: sets.Place{State: sets.Sealed, Move: 9, To: "b"}}}
	stopped, left, err := o.moves.Stop(t.Context(), 9, []seq.SectionID{0}, false, plenty)
	if err != nil || len(stopped) > 0 || len(left) != 1 {
		t.Errorf("for a later move: stopped %+v, left %v: %v", stopped, left, err)
	}
}

// Callers of a section that stays sealed, since it is not known whether it was lost, are answered
// once the record has decided on it, though no coordinator asks again.
func TestASectionThatMayBeLostIsGivenUpOnceTheRecordHasDecided(t *testing.T) {
	for _, op := range []sets.Op{sets.Finish, sets.Reopen} {
		o, w, r := newMoving(t, sealedBy7)
		o.must(3)
		o.holder.Registers = &asked{w, []quorum.Outcome{{State: quorum.Unknown, Err: seq.ErrNoQuorum}}}
		o.stop()
		waiting := o.take(1)
		if o.moves.Settle(); waiting.Settled() || o.c.State() != section.Sealed {
			t.Fatalf("it is %v before anything was decided", o.c.State())
		}
		if _, err := r.Step(t.Context(), sets.Step{Op: op, Move: 7}, all1); err != nil {
			t.Fatal(err)
		}
		o.moves.Settle()
		if err := o.refused(waiting); !errors.Is(err, seq.ErrNotOwner) {
			t.Errorf("after %v: %v", op, err)
		}
		if done := o.acquire(t.Context(), []seq.SectionID{0}, nil); len(done.owned) == 1 != (op == sets.Reopen) {
			t.Errorf("after %v it owns %v", op, done.owned)
		}
		if op == sets.Reopen {
			if got := o.must(1); got != 4 {
				t.Errorf("got %d, want 4 without a gap", got)
			}
		}
	}
}

// A stopped section's counters do not change when the section is served again.
func TestStoppedCountersDoNotChangeWhenTheSectionStays(t *testing.T) {
	o, _, r := newMoving(t, sealedBy7)
	o.must(4)
	stopped, _, err := o.moves.Stop(t.Context(), 7, []seq.SectionID{0}, false, plenty)
	if err != nil || len(stopped) != 1 || stopped[0].Table != nil {
		t.Fatalf("stopped %+v: %v", stopped, err)
	}
	if _, err := r.Step(t.Context(), sets.Step{Op: sets.Reopen, Move: 7}, all1); err != nil {
		t.Fatal(err)
	}
	o.moves.Settle()
	if done := o.acquire(t.Context(), []seq.SectionID{0}, nil); len(done.owned) != 1 {
		t.Fatal("not acquired")
	}
	o.must(3)
	table, err := counters.Decode(stopped[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := table.Get(1); got != 4 {
		t.Errorf("the stopped counters say %d, want 4", got)
	}
}

func TestASectionThatHasGoneLeavesNoCountersBehind(t *testing.T) {
	for op, want := range map[sets.Op]int{sets.Finish: 0, sets.Reopen: 1} {
		o, _, r := newMoving(t, sealedBy7)
		o.must(4)
		o.stop()
		if _, err := r.Step(t.Context(), sets.Step{Op: op, Move: 7}, all1); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "parked")
		if err := o.Leave(t.Context(), file); err != nil {
			t.Fatal(err)
		}
		if left := o.kept.All(); len(left) != want {
			t.Errorf("after %v: the counters of %d sections are kept, want %d", op, len(left), want)
		}
		next := newOwner(t)
		if err := next.Adopt(file); err != nil {
			t.Fatal(err)
		}
		if left := next.kept.All(); len(left) != want {
			t.Errorf("after %v: the next process has those of %d, want %d", op, len(left), want)
		}
	}
}

// A node that has stopped a section it did not own is acquiring it again, under no epoch yet.
func TestAnAcquisitionIsNotEndedByAStopOfBefore(t *testing.T) {
	o, _, r := newMoving(t, sealedBy7)
	o.c.Drop(o.epoch, "")
	if stopped, _, err := o.moves.Stop(t.Context(), 7, []seq.SectionID{0}, true, plenty); err != nil || len(stopped) != 1 {
		t.Fatalf("stopped %+v: %v", stopped, err)
	}
	if !o.c.Begin() {
		t.Fatal("the section is not absent")
	}
	if _, err := r.Step(t.Context(), sets.Step{Op: sets.Reopen, Move: 7}, all1); err != nil {
		t.Fatal(err)
	}
	o.moves.SendOn(7, map[seq.SectionID]string{0: "b:1"})
	o.moves.Settle()
	if got := o.c.State(); got != section.Acquiring {
		t.Errorf("it is %v", got)
	}
}

func TestASectionThatNoNodeOwnsIsStoppedByGainingItsRegister(t *testing.T) {
	o, w, _ := newMoving(t, sealedBy7)
	o.c.Drop(o.epoch, "")
	w.max = 4711
	if _, left, err := o.moves.Stop(t.Context(), 7, []seq.SectionID{0}, false, plenty); err != nil || len(left) != 1 {
		t.Errorf("unasked: left %v, %v", left, err)
	}
	stopped, left, err := o.moves.Stop(t.Context(), 7, []seq.SectionID{0}, true, plenty)
	if err != nil || len(left) > 0 || len(stopped) != 1 || stopped[0].Ceiling != 4711 || len(stopped[0].Body) > 0 {
		t.Errorf("stopped %+v, left %v: %v", stopped, left, err)
	}
	if len(w.asked) > 0 {
		t.Errorf("stepped %+v", w.asked)
	}
	if late := o.take(1); late.Settled() {
		t.Errorf("got %d", late.Out().First[0])
	}
}

// come is a section that was stopped elsewhere, where uid 1 has had up to last.
func come(last uint64) Stopped {
	table := counters.New(0)
	table.Raise(1, last)
	return Stopped{ID: 0, Ceiling: last, Table: table}
}

// goneCaller is a record in which a step is under way when the caller of the node is gone.
type goneCaller struct {
	*scriptedRecord
	leave func()
}

func (r goneCaller) Step(ctx context.Context, s sets.Step, ranges []sets.Range) (sets.Record, error) {
	now, err := r.scriptedRecord.Step(ctx, s, ranges)
	if r.leave(); ctx.Err() != nil {
		return sets.Record{}, ctx.Err()
	}
	return now, err
}

func TestASectionGoesOnFromItsCountersThoughTheCoordinatorIsGone(t *testing.T) {
	o, _, r := newMoving(t, sets.Place{State: sets.Inactive})
	o.c.Drop(o.epoch, "")
	ctx, leave := context.WithCancel(t.Context())
	o.record = goneCaller{r, leave}
	_, _, _, _ = o.moves.Open(ctx, 7, []Stopped{come(30)}, false)
	if got := o.must(1); got != 31 {
		t.Errorf("got %d, want 31", got)
	}
}

func TestASectionThatArrivesGoesOnFromItsCounters(t *testing.T) {
	o, w, r := newMoving(t, sets.Place{State: sets.Inactive})
	o.c.Drop(o.epoch, "")
	w.max = 0
	opened, active, left, err := o.moves.Open(t.Context(), 7, []Stopped{come(30)}, false)
	if err != nil || len(opened) != 1 || len(active)+len(left) > 0 || r.now.At(0).State != sets.Active || r.now.At(0).Move != 7 {
		t.Fatalf("opened %v, active %v, left %v, %v: %v", opened, active, left, r.now.At(0), err)
	}
	if w.asked[0].Max < 30 {
		t.Errorf("the stores were told of %d before it was activated, expected its ceiling at least", w.asked[0].Max)
	}
	if got := o.must(1); got != 31 {
		t.Errorf("got %d, want 31", got)
	}
}

// late is a record at which another call may have activated the section in between.
type late struct {
	*scriptedRecord
	took bool
}

func (l *late) Step(ctx context.Context, s sets.Step, ranges []sets.Range) (sets.Record, error) {
	if !l.took {
		s.By++
	}
	return l.scriptedRecord.Step(ctx, s, ranges)
}

func TestASectionThatArrivesWithoutCountersGoesOnAboveAllThatIsKnown(t *testing.T) {
	for name, row := range map[string]struct {
		in   Stopped
		max  uint64 // at the stores of this Set
		took bool
		want uint64
	}{
		"no counters":                        {in: Stopped{Ceiling: 500}, took: true, want: 501},
		"here before":                        {in: Stopped{Ceiling: 500}, max: 900, took: true, want: 901},
		"activated by another":               {in: come(30), max: 70, want: 71},
		"activated by another, not heard of": {in: come(30), want: 31},
		"keys hashed otherwise":              {in: func() Stopped { s := come(30); s.Mark = 9; return s }(), max: 200, took: true, want: 201},
	} {
		o, w, r := newMoving(t, sets.Place{State: sets.Inactive})
		o.record = &late{r, row.took}
		o.c.Drop(o.epoch, "")
		w.max = row.max
		if opened, _, _, err := o.moves.Open(t.Context(), 7, []Stopped{row.in}, false); err != nil || len(opened) != 1 {
			t.Fatalf("%s: opened %v: %v", name, opened, err)
		}
		if got := o.must(1); got != row.want {
			t.Errorf("%s: got %d, want %d", name, got, row.want)
		}
	}
}

func TestASectionIsNotOpenedForAMoveThatWasRefused(t *testing.T) {
	o, w, _ := newMoving(t, sets.Place{State: sets.Refused, Move: 7})
	o.c.Drop(o.epoch, "")
	w.max = 0
	if opened, _, _, err := o.moves.Open(t.Context(), 7, []Stopped{come(30)}, false); !errors.Is(err, seq.ErrMoveOver) || len(opened) > 0 {
		t.Errorf("opened %v: %v", opened, err)
	}
	if late := o.take(1); late.Settled() {
		t.Errorf("got %d", late.Out().First[0])
	}
}

// promising are stores at which a section is sealed at the moment of a promise.
type promising struct {
	*willing
	then func()
}

func (p *promising) Prepare(ctx context.Context, id seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	out := p.willing.Prepare(ctx, id, items)
	p.then()
	return out
}

func TestASectionThatIsSealedWhileItIsAcquiredIsNotServed(t *testing.T) {
	o, w, r := newMoving(t, sets.Place{})
	o.c.Drop(o.epoch, "")
	o.holder.Registers = &promising{w, func() {
		if _, err := r.Step(t.Context(), sets.Step{Op: sets.Seal, Move: 7, To: "b"}, all1); err != nil {
			t.Error(err)
		}
	}}
	if done := o.acquire(t.Context(), []seq.SectionID{0}, nil); len(done.owned) > 0 {
		t.Errorf("owns %v", done.owned)
	}
	if late := o.take(1); late.Settled() {
		t.Errorf("got %d", late.Out().First[0])
	}
}

func TestCallersWaitWhileASectionIsSealedAndThenAreSentOnOrServed(t *testing.T) {
	for name, row := range map[string]struct {
		op   sets.Op
		want error
	}{"moved": {sets.Finish, seq.ErrNotOwner}, "stays": {sets.Reopen, nil}} {
		o, _, r := newMoving(t, sealedBy7)
		o.must(4)
		if _, _, err := o.moves.Stop(t.Context(), 7, []seq.SectionID{0}, false, plenty); err != nil {
			t.Fatal(err)
		}
		waiting := o.take(1)
		if waiting.Settled() {
			t.Fatalf("%s: settled while it is sealed", name)
		}
		if row.want != nil { // the other Set serves it, and the record does not say so yet
			o.moves.SendOn(6, map[seq.SectionID]string{0: "c:1"})
			if waiting.Settled() || o.moves.SentOn(0) != "" {
				t.Fatalf("%s: sent on by another move", name)
			}
			o.moves.SendOn(7, map[seq.SectionID]string{0: "b:1"})
			if err := o.refused(waiting); !errors.Is(err, row.want) {
				t.Errorf("%s: got %v", name, err)
			}
			if got := o.moves.SentOn(0); got != "b:1" {
				t.Errorf("%s: callers are sent to %q", name, got)
			}
		}
		if _, err := r.Step(t.Context(), sets.Step{Op: row.op, Move: 7}, all1); err != nil {
			t.Fatal(err)
		}
		o.moves.Settle()
		if row.want != nil {
			if got := o.c.Successor(); got != "b:1" {
				t.Errorf("%s: callers are sent to %q", name, got)
			}
			continue
		}
		if done := o.acquire(t.Context(), []seq.SectionID{0}, nil); len(done.owned) != 1 {
			t.Fatalf("%s: not acquired again", name)
		}
		if got := o.must(1); got != 5 {
			t.Errorf("%s: got %d, want 5 without a gap", name, got)
		}
	}
}

// Counters that do not fit into an answer come in a later answer. The section is served until the node
// comes to it.
func TestAStopTellsTheCountersThatThereIsRoomFor(t *testing.T) {
	o := newOwnerOf(t, 3)
	o.record, o.holder.Registers = &scriptedRecord{now: sets.Record{Rest: sealedBy7}}, &willing{Registers: o.regs, promised: o.epoch}
	for id := seq.SectionID(1); id < 3; id++ {
		c, table := o.sections.Section(id), counters.New(0)
		c.Begin()
		c.Expect(o.epoch)
		table.Raise(1, uint64(id))
		if ok, err := o.sections.Install(id, o.epoch, table, ownerStep, &ownershiptest.Lease{End: o.clock.Now() + ownerLease}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	all := []seq.SectionID{0, 1, 2}
	stopped, _, err := o.moves.Stop(t.Context(), 7, all, false, Room{Message: 1, Section: 1 << 20})
	if err != nil || len(stopped) != 1 || len(stopped[0].Body) == 0 || o.sections.Section(2).State() != section.Owned {
		t.Fatalf("stopped %+v, the last is %v: %v", stopped, o.sections.Section(2).State(), err)
	}
	if stopped, _, err = o.moves.Stop(t.Context(), 7, all[1:], false, Room{Message: 1, Section: 1}); err != nil || len(stopped) != 2 {
		t.Fatalf("stopped %+v: %v", stopped, err)
	}
	for _, s := range stopped {
		if len(s.Body) > 0 || s.Ceiling != uint64(s.ID) || s.Table != nil {
			t.Errorf("section %d comes with %d bytes, of which one fits, and ceiling %d", s.ID, len(s.Body), s.Ceiling)
		}
	}
}
