package acceptor

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const logWindow = 1000

// newLogs is a bench in which section 0 is of an exact space, with what is written of it.
func newLogs(t *testing.T) (*bench, *exact.Copy) {
	t.Helper()
	b := newBench(t)
	c := exact.NewCopy(logWindow)
	b.withCopy(c)
	return b, c
}

func (b *bench) withCopy(c *exact.Copy) {
	b.t.Helper()
	a, err := New(Config{Registers: maps.Clone(b.disk), MaxLease: 10 * lease, LeaseBound: 10 * lease, Start: b.now - time.Hour,
		Copies: func(id seq.SectionID) *exact.Copy {
			if id == 0 {
				return c
			}
			return nil
		}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.a = a
}

func ownerOf(t *testing.T, e seq.Epoch, found *exact.State) *exact.Owner {
	t.Helper()
	o, err := exact.NewOwner(exact.Config{Window: logWindow}, e, found, 100)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// batch is the next of an owner, with a number for each id.
func batch(t *testing.T, o *exact.Owner, ids ...string) exact.Batch {
	t.Helper()
	for _, id := range ids {
		if _, err := o.Take(7, 1, id, 100, 100); err != nil {
			t.Fatal(err)
		}
	}
	out, ok := o.Begin()
	if !ok {
		t.Fatal("nothing to send")
	}
	o.Committed()
	return out
}

func logOf(b exact.Batch) quorum.StepItem {
	return quorum.StepItem{Register: section, Round: b.Epoch.Round, Log: (&exact.Change{Batch: b}).AppendTo(nil)}
}

func TestAnAppendRaisesThePromise(t *testing.T) {
	b, c := newLogs(t)
	o := ownerOf(t, seq.Epoch{Round: 5, Session: alice}, &exact.State{})
	b.prepare(section, 1, bob)
	first := batch(t, o, "a")
	b.want("an append", b.stepItem(logOf(first), alice), quorum.VerdictOK)
	if got := b.disk[section]; got.Promised != first.Epoch || got.Max != 0 || !got.Accepted.IsZero() {
		t.Errorf("the register: %+v", got)
	}
	b.want("a promise below", b.propose(section, 4, bob), quorum.VerdictNack)
	b.want("an append below", b.stepItem(logOf(exact.Batch{Epoch: seq.Epoch{Round: 4, Session: bob}, After: c.At()}), bob), quorum.VerdictNack)
	// One that finds the copy elsewhere has promised its epoch all the same.
	later := exact.Batch{Epoch: seq.Epoch{Round: 6, Session: bob}, After: exact.Position{Epoch: seq.Epoch{Round: 6, Session: bob}, Index: 9}}
	got := b.stepItem(logOf(later), bob)
	b.want("records that do not follow", got, quorum.VerdictElsewhere)
	if got.Accepted == later.Epoch || b.disk[section].Promised != later.Epoch {
		t.Errorf("got %+v, and on disk %+v", got, b.disk[section])
	}
	if uids, ids, bytes := b.a.Kept(); uids != 1 || ids != 1 || bytes != c.Borrow().Bytes() || bytes == 0 {
		t.Errorf("%d UIDs and %d ids of %d bytes, want 1 and 1 of %d", uids, ids, bytes, c.Borrow().Bytes())
	}
	b.withCopy(c)
	if uids, ids, bytes := b.a.Kept(); uids != 1 || ids != 1 || bytes != c.Borrow().Bytes() {
		t.Errorf("after a start %d UIDs and %d ids of %d bytes, want 1 and 1 of %d", uids, ids, bytes, c.Borrow().Bytes())
	}
}

func TestEntriesAreWhatTheCopiesTookIn(t *testing.T) {
	b, _ := newLogs(t)
	o := ownerOf(t, seq.Epoch{Round: 1, Session: alice}, &exact.State{})
	send := func(items ...quorum.StepItem) {
		t.Helper()
		if _, err := b.a.Step(quorum.StepRequest{Session: alice, Items: items}, Limits{Latest: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	first, second := batch(t, o, "a"), batch(t, o, "b")
	send(logOf(first), logOf(first), logOf(second), logOf(exact.Batch{Epoch: second.Epoch, After: second.End()}))
	if got := b.a.Entries(); len(got) != 2 || len(got[0].Records) != 2 || len(got[1].Records) != 1 {
		t.Errorf("entries %+v, want each record once", got)
	}
	b.a.Committed()
	if got := b.a.Entries(); len(got) != 0 {
		t.Errorf("after the commit: %+v", got)
	}
}

// The copy of a repair must not come between a promise and what follows from it: the session
// that has the promise was told where this store stands.
func TestAVoterTakesACopyOnlyAtOrAboveItsPromise(t *testing.T) {
	first, second := seq.Epoch{Round: 1, Session: alice}, seq.Epoch{Round: 2, Session: bob}
	o := ownerOf(t, first, &exact.State{})
	start := batch(t, o, "a")
	batch(t, o, "b")
	more := o.State()
	st := quorum.RegisterState{Register: section, Promised: first, Accepted: first, PayloadMax: more.At().Index, Payload: more.AppendTo(nil)}
	for _, row := range []struct {
		name     string
		promised uint64
		learner  bool
		takes    bool
	}{
		{"a voter that promised the copy's epoch", 0, false, true},
		{"a voter that promised a higher one", 2, false, false},
		{"a learner, whatever was promised", 2, true, true},
	} {
		b, c := newLogs(t)
		b.want(row.name, b.stepItem(logOf(start), alice), quorum.VerdictOK)
		if row.promised > 0 {
			b.prepare(section, row.promised, bob)
		}
		before := c.At()
		if changed := b.merge(st, row.learner); changed != row.takes {
			t.Errorf("%s: changed %v, want %v", row.name, changed, row.takes)
		}
		want := before
		if row.takes {
			want = more.At()
		}
		if c.At() != want {
			t.Errorf("%s: stands at %v, want %v", row.name, c.At(), want)
		}
	}
	// Promises are merged as ever, and one that comes with the copy does not keep it out.
	b, c := newLogs(t)
	b.want("the first batch", b.stepItem(logOf(start), alice), quorum.VerdictOK)
	st.Promised = second
	if !b.merge(st, false) || c.At() != more.At() || b.disk[section].Promised != second {
		t.Errorf("stands at %v, promised %v", c.At(), b.disk[section].Promised)
	}
	if b.merge(st, false) || b.merge(quorum.RegisterState{Register: section, Promised: first}, false) {
		t.Error("the same again, or less, changed something")
	}
}

// A copy and the promise that comes with it are taken together or not at all: in the grace the
// higher promise is refused, since it is not known here which session may rely on the lower one.
func TestACopyIsNotTakenWithoutThePromiseThatComesWithIt(t *testing.T) {
	first, second := seq.Epoch{Round: 1, Session: alice}, seq.Epoch{Round: 2, Session: bob}
	o := ownerOf(t, first, &exact.State{})
	start := batch(t, o, "a")
	batch(t, o, "b")
	more := o.State()
	b, c := newLogs(t)
	b.want("the first batch", b.stepItem(logOf(start), alice), quorum.VerdictOK)
	b.withCopy(c)
	b.now -= time.Hour // as it starts
	before := c.At()
	st := quorum.RegisterState{Register: section, Promised: second, Accepted: first, PayloadMax: more.At().Index, Payload: more.AppendTo(nil)}
	changed, err := b.a.Merge(st, keeper, false, b.now)
	if !errors.Is(err, ErrGrace) || changed || c.At() != before {
		t.Errorf("got %v, %v, and the copy stands at %v, expected %v", changed, err, c.At(), before)
	}
	if len(b.a.Entries()) > 0 {
		t.Error("records are to be written of what was refused")
	}
}

func TestACopyThatNoStoreCanHaveIsRefused(t *testing.T) {
	b, c := newLogs(t)
	e := seq.Epoch{Round: 1, Session: alice}
	o := ownerOf(t, e, &exact.State{})
	batch(t, o, "a")
	good := quorum.RegisterState{Register: section, Promised: e, Accepted: e, PayloadMax: 2, Payload: o.State().AppendTo(nil)}
	for name, change := range map[string]func(*quorum.RegisterState){
		"another index":        func(st *quorum.RegisterState) { st.PayloadMax = 3 },
		"another epoch":        func(st *quorum.RegisterState) { st.Accepted.Round, st.Promised.Round = 2, 2 },
		"a max":                func(st *quorum.RegisterState) { st.Max = 1 },
		"half a copy":          func(st *quorum.RegisterState) { st.Payload = st.Payload[:len(st.Payload)-1] },
		"more than a copy":     func(st *quorum.RegisterState) { st.Payload = append(st.Payload[:len(st.Payload):len(st.Payload)], 0) },
		"no copy":              func(st *quorum.RegisterState) { st.Payload = nil },
		"above the promise":    func(st *quorum.RegisterState) { st.Promised = seq.Epoch{} },
		"of another section":   func(st *quorum.RegisterState) { st.Register = section1 },
		"of no exact register": func(st *quorum.RegisterState) { st.Register = tag },
	} {
		st := good
		change(&st)
		if _, err := b.a.Merge(st, keeper, false, b.now); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v, want ErrBadArgument", name, err)
		}
	}
	if c.At().Index != 0 || len(b.a.Entries()) > 0 {
		t.Errorf("stands at %v", c.At())
	}
}

func TestACopyAboveItsPromiseEndsTheStart(t *testing.T) {
	b, c := newLogs(t)
	o := ownerOf(t, seq.Epoch{Round: 1, Session: alice}, &exact.State{})
	for i := range 3 {
		b.want("a batch", b.stepItem(logOf(batch(t, o, fmt.Sprint(i))), alice), quorum.VerdictOK)
	}
	b.disk[section] = State{}
	_, err := New(Config{Registers: maps.Clone(b.disk), MaxLease: lease, Copies: func(seq.SectionID) *exact.Copy { return c }})
	if !errors.Is(err, ErrInvariant) {
		t.Errorf("got %v, want ErrInvariant", err)
	}
}
