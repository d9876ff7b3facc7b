package storeadmin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// orders is an exact space behind the founders' space.
var orders = seq.Space{Name: "order", Sections: 2, Mode: seq.Exact, Window: time.Minute, KeyHash: seq.SecretKeys}

var order = seq.SectionRegister(sections)

func ownerOf(t *testing.T, e seq.Epoch, found *exact.State) *exact.Owner {
	t.Helper()
	o, err := exact.NewOwner(exact.Config{Window: 60_000}, e, found, time.Now().UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// taken is the next batch of an owner, with a number for an id.
func taken(t *testing.T, o *exact.Owner, id string) exact.Change {
	t.Helper()
	now := time.Now().UnixMilli()
	if _, err := o.Take(7, 1, id, now, now); err != nil {
		t.Fatal(err)
	}
	b, _ := o.Begin()
	o.Committed()
	return exact.Change{Batch: b}
}

// log sends a change of the order section to some stores.
func log(t *testing.T, c exact.Change, stores ...*store) {
	t.Helper()
	e := c.Epoch()
	for _, s := range stores {
		client, id := at(t, s)
		reply, err := client.Step(within(t), quorum.StepRequest{Ref: id.Ref, Session: e.Session, Secret: sessiontest.SecretOf(e.Session),
			Items: []quorum.StepItem{{Register: order, Round: e.Round, Log: c.AppendTo(nil)}}})
		if err != nil || reply.Results[0].Verdict != quorum.VerdictOK {
			t.Fatalf("log at %s: %v, %+v", s.name, err, reply.Results)
		}
	}
}

// copyAt is what a store has of the order section.
func copyAt(t *testing.T, s *store) *exact.State {
	t.Helper()
	client, id := at(t, s)
	out := &exact.State{}
	_, err := client.Dump(within(t), id.Ref, func(states []quorum.RegisterState) error {
		for _, st := range states {
			if st.Register == order {
				var err error
				if out, err = acceptor.CopyOf(st, orders.Window.Milliseconds()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A record that two stores have, one of which is replaced, is afterwards whole at the other voter and at
// the new store.
func TestAReplacementBringsExactSectionsToWStores(t *testing.T) {
	s := founders(t, 3, orders)
	o := ownerOf(t, seq.Epoch{Round: 1, Session: alice}, &exact.State{})
	log(t, taken(t, o, "a"), s...)
	log(t, taken(t, o, "b"), s[0], s[2])
	s[2].stop()
	fresh := learner(t, "n", orders)
	c := open(t, s[:2]...)
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	run(t, steps, err)
	want := o.State().Describe()
	for _, x := range []*store{s[0], s[1], fresh} {
		if got := copyAt(t, x).Describe(); got != want {
			t.Errorf("store %s: got %s, want %s", x.name, got, want)
		}
	}
	snap, err := c.Snapshot(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range snap.States {
		if st.Register == order {
			if whole, err := acceptor.CopyOf(st, orders.Window.Milliseconds()); err != nil || whole.Describe() != want {
				t.Errorf("a snapshot: got %v, %v, want %s", whole, err, want)
			}
		}
	}
	log(t, taken(t, o, "c"), s[0], s[1], fresh) // and its owner goes on
}

// underTakeover is a cluster in which store b has promised a higher epoch and lacks a record that
// a and c have, of which c is away.
func underTakeover(t *testing.T) (s []*store, e seq.Epoch) {
	t.Helper()
	s = founders(t, 3, orders)
	o := ownerOf(t, seq.Epoch{Round: 1, Session: alice}, &exact.State{})
	log(t, taken(t, o, "a"), s...)
	log(t, taken(t, o, "b"), s[0], s[2])
	e = seq.Epoch{Round: 9, Session: bob}
	prepareAndStep(t, order, e, 0, s[1])
	s[2].stop()
	return s, e
}

// A store is brought several whole copies with one message, far more than other servers take.
func TestAMessageToAStoreMayBeAsLargeAsItsLimit(t *testing.T) {
	s := founders(t, 1, orders)
	client, id := at(t, s[0])
	reply, err := client.Step(within(t), quorum.StepRequest{Ref: id.Ref, Session: alice, Secret: sessiontest.SecretOf(alice),
		Items: []quorum.StepItem{{Register: order, Round: 1, Log: make([]byte, storewire.MaxRequest-1<<20)}}})
	if err != nil || reply.Results[0].Verdict != quorum.VerdictRefused || !strings.Contains(reply.Results[0].Message, "a change of kind 0") {
		t.Errorf("%v, %+v: want the log in it to be read, and refused", err, reply.Results)
	}
}

// While no AllocSvr has the promise, repair gives up by itself, says what to do, and has changed
// nothing: the same again goes on once one has taken the section over.
func TestRepairGivesUpWhereNoTakeoverEnds(t *testing.T) {
	s, e := underTakeover(t)
	behind := copyAt(t, s[1]).Describe()
	fresh := learner(t, "n", orders)
	c := open(t, s[:2]...)
	c.Takeovers = 500 * time.Millisecond
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	err = steps[0].Run(within(t))
	wantErr(t, "repair under a promise without an owner", err, seq.ErrNoQuorum)
	if err == nil || !strings.Contains(err.Error(), order.String()) || !strings.Contains(err.Error(), "while an AllocSvr runs") {
		t.Errorf("got %v, want the section's name and what to do", err)
	}
	if got := copyAt(t, s[1]).Describe(); got != behind {
		t.Errorf("store b has %s, want %s", got, behind)
	}
	next := ownerOf(t, e, copyAt(t, s[0]))
	taken(t, next, "c")
	log(t, exact.Change{Whole: next.State()}, s[0], s[1])
	steps, err = c.Replace(within(t), "c", fresh.addr, "")
	run(t, steps, err)
	if got, want := copyAt(t, fresh).Describe(), next.State().Describe(); got != want {
		t.Errorf("the new store: got %s, want %s", got, want)
	}
}

// A backup has no record that only one store has. Such a record may be dropped, and its number goes to
// another request.
func TestABackupHasWhatWStoresHaveOfAnExactSection(t *testing.T) {
	s := founders(t, 3, orders)
	o := ownerOf(t, seq.Epoch{Round: 1, Session: alice}, &exact.State{})
	log(t, taken(t, o, "a"), s...)
	found := o.State()
	log(t, taken(t, o, "b"), s[1])
	c := open(t, s...)
	c.Takeovers = 300 * time.Millisecond
	_, err := c.Snapshot(within(t))
	wantErr(t, "a snapshot of what one store has", err, seq.ErrNoQuorum)
	if err == nil || !strings.Contains(err.Error(), order.String()) {
		t.Errorf("got %v, want the section's name", err)
	}
	e := seq.Epoch{Round: 9, Session: bob}
	prepareAndStep(t, order, e, 0, s[0], s[2])
	next := ownerOf(t, e, found)
	log(t, taken(t, next, "c"), s[0], s[2])
	snap, err := c.Snapshot(within(t))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(snap.States, func(st quorum.RegisterState) bool { return st.Register == order })
	if got, err := acceptor.CopyOf(snap.States[at], seq.DefaultWindow.Milliseconds()); err != nil || got.Describe() != next.State().Describe() {
		t.Errorf("got %v, %v, want %s", got, err, next.State().Describe())
	}
}

// A voter that has promised a higher epoch takes no copy from here: repair waits for the owner
// that has that promise.
func TestRepairWaitsForATakeoverOfAnExactSection(t *testing.T) {
	s, e := underTakeover(t)
	behind := copyAt(t, s[1]).At()
	fresh, w := learner(t, "n", orders), &wire{}
	c := openBy(t, w, s[:2]...)
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	repaired := make(chan error, 1)
	go func() { repaired <- steps[0].Run(within(t)) }()
	for sent := 0; sent < 3; {
		w.mu.Lock()
		sent = len(w.fills)
		w.mu.Unlock()
		select {
		case err := <-repaired:
			t.Fatalf("repaired while a takeover is under way: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if got := copyAt(t, s[1]).At(); got != behind {
		t.Errorf("store b stands at %v under a promise of %v, want %v", got, e, behind)
	}
	next := ownerOf(t, e, copyAt(t, s[0]))
	taken(t, next, "c")
	log(t, exact.Change{Whole: next.State()}, s[0], s[1])
	if err := <-repaired; err != nil {
		t.Fatal(err)
	}
	run(t, steps[1:], nil)
	if got, want := copyAt(t, fresh).Describe(), next.State().Describe(); got != want {
		t.Errorf("the new store: got %s, want %s", got, want)
	}
}
