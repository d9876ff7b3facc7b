package acceptor

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const keeper seq.Session = 0x5e

func (b *bench) merge(st quorum.RegisterState, learner bool) bool {
	b.t.Helper()
	changed, err := b.a.Merge(st, keeper, learner, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.commit()
	return changed
}

func state(r seq.Register, promised, accepted seq.Epoch, max uint64) quorum.RegisterState {
	return quorum.RegisterState{Register: r, Promised: promised, Accepted: accepted, Max: max}
}

func TestMergingRaisesEverythingAndLowersNothing(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.step(section, 5, alice, 100)
	older := state(section, seq.Epoch{Round: 4, Session: bob}, seq.Epoch{Round: 4, Session: bob}, 90)
	if b.merge(older, false) {
		t.Error("an older state changed something")
	}
	newer := state(section, seq.Epoch{Round: 7, Session: bob}, seq.Epoch{Round: 6, Session: bob}, 50)
	if !b.merge(newer, false) || b.merge(newer, false) {
		t.Error("a newer state: want a change, once")
	}
	want := State{Promised: newer.Promised, Accepted: newer.Accepted, Max: 100}
	if diff := cmp.Diff(want, b.disk[section]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.want("a step under the older epoch", b.step(section, 5, alice, 200), quorum.VerdictNack)
	if !b.merge(state(tag, seq.Epoch{Round: 1, Session: bob}, seq.Epoch{}, 0), false) || b.disk[tag].Promised.Round != 1 {
		t.Errorf("a tag that only others have: %+v", b.disk[tag])
	}
}

func TestAMergedPromiseDoesNotEndALeaseEarly(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.renew(alice, 1, item(section, 5))
	// Bob was promised by others, who had no lease.
	b.merge(state(section, seq.Epoch{Round: 6, Session: bob}, seq.Epoch{}, 0), false)
	b.want("bob", b.propose(section, 6, bob), quorum.VerdictNack)
	b.want("bob again", b.propose(section, 9, bob), quorum.VerdictHeld)
	b.want("carol", b.propose(section, 9, carol), quorum.VerdictHeld)
	if lost := b.renew(alice, 1).Lost; len(lost) != 1 {
		t.Errorf("alice hears of %v", lost)
	}
	// And a restart does not let bob in either.
	b.restart(lease)
	b.want("bob after a restart", b.propose(section, 9, bob), quorum.VerdictGrace)
	b.now += GraceOf(lease)
	b.want("bob after the grace", b.propose(section, 9, bob), quorum.VerdictOK)
}

func TestAProtectedLeaseStaysALeaseHoweverOftenItIsMergedAgain(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.renew(alice, 1, item(section, 5))
	bobs := state(section, seq.Epoch{Round: 6, Session: bob}, seq.Epoch{}, 0)
	b.merge(bobs, false)
	for round := uint64(8); round < 11; round++ { // one repair after the other, each with a higher promise from elsewhere
		b.merge(state(section, seq.Epoch{Round: round, Session: bob}, seq.Epoch{}, 0), false)
		b.want("bob after a merge", b.propose(section, round+5, bob), quorum.VerdictHeld)
		if got := b.read(section, bob); got.Holder != alice {
			t.Errorf("held by %v, want %v", got.Holder, alice)
		}
		if !b.a.Leased(b.now) {
			t.Error("a protected lease does not count: an orderly stop would leave no grace")
		}
	}
	b.now += lease - 1
	b.want("bob a moment before the end", b.propose(section, 20, bob), quorum.VerdictHeld)
	b.now++
	if b.a.Leased(b.now) {
		t.Error("leased after the end of the lease")
	}
	b.want("bob at the end", b.propose(section, 20, bob), quorum.VerdictOK)
}

func TestAMergeNeverShortensAProtectedLease(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.renew(alice, 1, item(section, 5))
	b.merge(state(section, seq.Epoch{Round: 6, Session: bob}, seq.Epoch{}, 0), false)
	// Carol steps with the promises of others and has a lease here, a shorter one.
	b.step(section, 9, carol, 10)
	if _, err := b.a.Renew(quorum.RenewRequest{Session: carol, Name: "carol", Lease: lease / 4, Attach: []quorum.LeaseItem{item(section, 9)}, Attached: 1}, b.now); err != nil {
		t.Fatal(err)
	}
	b.merge(state(section, seq.Epoch{Round: 10, Session: bob}, seq.Epoch{}, 0), false)
	b.now += lease / 2
	b.want("bob after carol's lease", b.propose(section, 20, bob), quorum.VerdictHeld)
	b.now += lease / 2
	b.want("bob after both", b.propose(section, 20, bob), quorum.VerdictOK)
}

func TestTheHolderOfAProtectedLeaseMayTakeItAgainAndEndIt(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.renew(alice, 1, item(section, 5))
	b.merge(state(section, seq.Epoch{Round: 6, Session: bob}, seq.Epoch{}, 0), false)
	b.want("alice", b.propose(section, 9, alice), quorum.VerdictOK)
	b.release(quorum.ReleaseRequest{Session: alice, All: true})
	b.want("bob after alice's end", b.propose(section, 10, bob), quorum.VerdictOK)
}

func TestALaterLeaseOfTheSameHolderIsProtectedToItsOwnEnd(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.renew(alice, 1, item(section, 5))
	b.merge(state(section, seq.Epoch{Round: 6, Session: bob}, seq.Epoch{}, 0), false)
	b.now += lease / 2
	b.prepare(section, 20, alice)
	b.renew(alice, 1, item(section, 20))
	b.merge(state(section, seq.Epoch{Round: 30, Session: bob}, seq.Epoch{}, 0), false)
	b.now += lease / 2
	b.want("bob after the first lease", b.propose(section, 40, bob), quorum.VerdictHeld)
	b.now += lease / 2
	b.want("bob after both", b.propose(section, 40, bob), quorum.VerdictOK)
}

// An operator dies between two fills, and repair runs twice more within one lease: the
// holder counts on two stores, and no other session may get the promise of two.
func TestRepairsInARowLetNoSecondSessionIn(t *testing.T) {
	a, b, c := newBench(t), newBench(t), newBench(t)
	for _, s := range []*bench{a, b} {
		s.prepare(section, 5, alice)
		s.renew(alice, 1, item(section, 5))
	}
	c.prepare(section, 6, bob) // of a takeover that found only this store
	have := func(s *bench) quorum.RegisterState {
		st := s.disk[section]
		return state(section, st.Promised, st.Accepted, st.Max)
	}
	a.merge(have(c), false) // and the operator dies
	b.merge(have(a), false)
	a.merge(have(b), false)
	c.merge(have(a), false)
	promises := 0
	for _, s := range []*bench{a, b, c} {
		if s.prepare(section, 50, bob).Verdict == quorum.VerdictOK {
			promises++
		}
	}
	if promises >= 2 {
		t.Errorf("%d stores promise bob what alice serves under a lease of two", promises)
	}
}

// A promise of a higher round that the holder had asked for before, and given up.
func TestAMergedPromiseOfTheHolderItselfDoesNotEndItsLease(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.renew(alice, 1, item(section, 5))
	b.merge(state(section, seq.Epoch{Round: 6, Session: alice}, seq.Epoch{}, 0), false)
	b.want("bob", b.propose(section, 9, bob), quorum.VerdictHeld)
	b.want("alice goes on", b.propose(section, 9, alice), quorum.VerdictOK)
}

func TestNoPromiseIsMergedDuringTheGrace(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.restart(lease)
	st := state(section, seq.Epoch{Round: 6, Session: bob}, seq.Epoch{}, 0)
	if _, err := b.a.Merge(st, keeper, false, b.now); !errors.Is(err, ErrGrace) {
		t.Errorf("got %v, want ErrGrace", err)
	}
	if !b.merge(st, true) {
		t.Error("a learner, which leased nothing, took nothing")
	}
}

func TestOnlyALearnerTakesDocuments(t *testing.T) {
	e := seq.Epoch{Round: 3, Session: bob}
	doc := quorum.RegisterState{Register: seq.RoutesRegister, Promised: e, Accepted: e, Max: 4, Payload: []byte("12345678x"), PayloadMax: 4}
	b := newBench(t)
	if b.merge(doc, false) || b.disk[seq.RoutesRegister].Max != 0 {
		t.Error("a voter took a document")
	}
	if !b.merge(doc, true) || string(b.disk[seq.RoutesRegister].Payload) != "12345678x" {
		t.Errorf("learner has %+v", b.disk[seq.RoutesRegister])
	}
}

func TestMergeRefusesWhatNoStoreCanHave(t *testing.T) {
	b := newBench(t)
	e := seq.Epoch{Round: 3, Session: bob}
	for name, st := range map[string]quorum.RegisterState{
		"accepted above promised": state(section, seq.Epoch{}, e, 1),
		"an unknown section":      state(seq.SectionRegister(99), e, e, 1),
		"a payload of a section":  {Register: section, Promised: e, Accepted: e, Payload: []byte("x")},
		"no name":                 state("", e, e, 1),
	} {
		if _, err := b.a.Merge(st, keeper, true, b.now); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v, want ErrBadArgument", name, err)
		}
	}
}

func TestADumpHasWhatIsOnDiskInOrder(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 5, alice)
	b.propose(section1, 6, alice) // not committed
	b.propose(tag, 1, alice)
	var all []quorum.RegisterState
	for after := seq.Register(""); ; {
		some := b.a.Dump(after, 2)
		if len(some) == 0 {
			break
		}
		all, after = append(all, some...), some[len(some)-1].Register
	}
	if len(all) != len(b.disk) {
		t.Fatalf("%d registers, want %d", len(all), len(b.disk))
	}
	for i, st := range all {
		if i > 0 && st.Register <= all[i-1].Register {
			t.Errorf("%s after %s", st.Register, all[i-1].Register)
		}
		if want := b.disk[st.Register]; st.Promised != want.Promised || st.Max != want.Max {
			t.Errorf("%s: got %+v, want %+v", st.Register, st, want)
		}
	}
}
