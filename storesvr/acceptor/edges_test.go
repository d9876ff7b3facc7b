package acceptor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

var routes = seq.RoutesRegister

func TestAnOwnersStepsKeepItsLeaseAndAreAllOnDisk(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	for _, max := range []uint64{0, 10, 20, 20} {
		b.want("a step", b.step(section, 1, alice, max), quorum.VerdictOK)
		e := seq.Epoch{Round: 1, Session: alice}
		if diff := cmp.Diff(State{Promised: e, Accepted: e, Max: max}, b.disk[section]); diff != "" {
			t.Errorf("on disk after a step to %d (-want +got)\n%s", max, diff)
		}
		b.want("another session", b.prepare(section, 2, bob), quorum.VerdictHeld)
	}
	if got := b.renew(alice, 1); got.Reset || len(got.Lost) > 0 {
		t.Errorf("the owner hears of %+v", got)
	}
	b.stepItem(quorum.StepItem{Register: section, Round: 1, Max: 20}, alice)
	if _, err := b.a.Step(quorum.StepRequest{Session: alice, Items: []quorum.StepItem{{Register: section, Round: 1, Max: 20}}}, Limits{}); err != nil || len(b.a.Changes()) > 0 {
		t.Errorf("a step once more: %v, to be written %v, want nothing", err, b.a.Changes())
	}
}

func TestAReadShowsItsHolderToTheHolderToo(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.now += 300 * time.Millisecond
	for _, who := range []seq.Session{alice, bob} {
		if got := b.read(section, who); got.Holder != alice || got.Remaining != 700*time.Millisecond {
			t.Errorf("%v reads holder %v for %v, want %v for 700ms", who, got.Holder, got.Remaining, alice)
		}
	}
	b.now += time.Second
	if got := b.read(section, bob); got.Holder != 0 || got.Remaining != 0 {
		t.Errorf("after the lease: holder %v for %v", got.Holder, got.Remaining)
	}
}

func TestAReadGoesByItsRegistersAndAnEmptyOneReadsNothing(t *testing.T) {
	b := newBench(t)
	b.prepare(tag, 1, alice)
	for _, row := range []struct {
		req  quorum.ReadRequest
		want int
	}{
		{quorum.ReadRequest{}, 0},
		{quorum.ReadRequest{Prefix: string(tag)}, 1},
		{quorum.ReadRequest{Prefix: string(tag), Registers: []seq.Register{section, section1}}, 2},
	} {
		if got := b.a.Read(row.req, b.now); len(got) != row.want {
			t.Errorf("%+v: got %d results, want %d", row.req, len(got), row.want)
		}
	}
}

func TestASectionThatTheMappingDoesNotHaveIsUnknown(t *testing.T) {
	b := newBench(t)
	for _, id := range []seq.SectionID{2, 3, seq.MaxSections - 1} {
		b.want("a read", b.read(seq.SectionRegister(id), alice), quorum.VerdictUnknown)
		b.want("a prepare", b.prepare(seq.SectionRegister(id), 1, alice), quorum.VerdictUnknown)
	}
}

func TestAPromiseOfADocumentShowsItsPayload(t *testing.T) {
	b := newBench(t)
	b.prepare(routes, 1, alice)
	b.stepItem(quorum.StepItem{Register: routes, Round: 1, Max: 1, Payload: []byte("one")}, alice)
	if got := b.prepare(routes, 2, bob); string(got.Payload) != "one" {
		t.Errorf("got %q, want what was accepted", got.Payload)
	}
}

func TestOnlySectionsEndAtTheLargestNumberAndOnlyWorkersAtTheClock(t *testing.T) {
	b := newBench(t)
	b.prepare(tag, 1, alice)
	b.want("a tag", b.step(tag, 1, alice, uint64(seq.MaxSeq)+1), quorum.VerdictOK)
	b.prepare(worker, 1, alice)
	res, err := b.a.Step(quorum.StepRequest{Session: alice, Items: []quorum.StepItem{{Register: worker, Round: 1, Max: 1 << 50}}}, Limits{})
	if err != nil || res[0].Verdict != quorum.VerdictOK {
		t.Errorf("a worker without a limit: %v, %v", res, err)
	}
}

func TestDumpsAreWholeAndBounded(t *testing.T) {
	b := newBench(t)
	b.prepare(routes, 3, alice)
	b.stepItem(quorum.StepItem{Register: routes, Round: 3, Max: 4, Payload: []byte("one")}, alice)
	b.prepare(section, 5, alice)
	b.step(section, 5, alice, 70)
	b.prepare(section, 6, bob)
	if got := b.a.Dump("", 2); len(got) != 2 {
		t.Errorf("got %d registers, want 2", len(got))
	}
	for _, st := range b.a.Dump("", 1000) {
		got := State{Promised: st.Promised, Accepted: st.Accepted, Max: st.Max, Payload: st.Payload, PayloadMax: st.PayloadMax}
		if diff := cmp.Diff(b.disk[st.Register], got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", st.Register, diff)
		}
	}
	if got, want := b.a.Registers(), len(b.disk); got != want {
		t.Errorf("%d registers, want %d", got, want)
	}
}

func TestChangesAreInTheOrderOfTheirNames(t *testing.T) {
	b := newBench(t)
	for _, r := range []seq.Register{worker, section1, tag, routes, section} {
		b.propose(r, 1, alice)
	}
	var names []seq.Register
	for _, c := range b.a.Changes() {
		names = append(names, c.Register)
	}
	if len(names) != 5 || !slices.IsSorted(names) {
		t.Errorf("got %q", names)
	}
}

func TestAMergeOfWhatAVoterPromisedTooTouchesNoLease(t *testing.T) {
	b := newBench(t)
	e := seq.Epoch{Round: 1, Session: alice}
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	if !b.merge(state(section, e, e, 50), false) || b.disk[section].Max != 50 {
		t.Errorf("on disk: %+v", b.disk[section])
	}
	b.want("the lease", b.prepare(section, 2, bob), quorum.VerdictHeld)
	if got := b.renew(alice, 1); got.Reset || len(got.Lost) > 0 {
		t.Errorf("the holder hears of %+v", got)
	}
	b.restart(lease)
	if !b.merge(state(section, e, e, 60), false) || b.disk[section].Max != 60 {
		t.Errorf("in the grace: %+v", b.disk[section])
	}
}

func TestALearnerHasTheRegistersOfTheOthersAndTheNewerDocument(t *testing.T) {
	b := newBench(t)
	if !b.merge(state(tag, seq.Epoch{}, seq.Epoch{}, 0), true) {
		t.Error("a register that only others have, at zero, is not taken")
	}
	if _, there := b.disk[tag]; !there {
		t.Error("it is not on disk")
	}
	doc := func(round, max uint64, text string) quorum.RegisterState {
		e := seq.Epoch{Round: round, Session: bob}
		return quorum.RegisterState{Register: routes, Promised: e, Accepted: e, Max: max, Payload: []byte(text), PayloadMax: max}
	}
	b.merge(doc(3, 4, "new"), true)
	b.merge(doc(2, 3, "old"), true)
	if got := b.disk[routes]; string(got.Payload) != "new" || got.PayloadMax != 4 {
		t.Errorf("got %+v, want the newer one", got)
	}
	b.merge(doc(3, 5, "newer"), true)
	if got := b.disk[routes]; string(got.Payload) != "newer" || got.PayloadMax != 5 {
		t.Errorf("got %+v, want the newest one", got)
	}
}

func TestAMergeNamesARegisterAndASession(t *testing.T) {
	b := newBench(t)
	bad := state(seq.TagRegister(""), seq.Epoch{}, seq.Epoch{}, 1)
	if _, err := b.a.Merge(bad, keeper, true, b.now); !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("a tag without a name: got %v, want ErrBadArgument", err)
	}
	if _, err := b.a.Merge(state(section, seq.Epoch{}, seq.Epoch{}, 1), 0, true, b.now); !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("by no session: got %v, want ErrBadArgument", err)
	}
}

func TestALeaseIsGrantedUpToTheLongestThatIsSet(t *testing.T) {
	b := newBench(t)
	ask := func(d time.Duration) error {
		_, err := b.a.Renew(quorum.RenewRequest{Session: alice, Name: "a", Lease: d}, b.now)
		return err
	}
	if err := ask(10 * lease); err != nil {
		t.Error(err)
	}
	b.a.SetMaxLease(lease)
	if err := ask(lease); err != nil {
		t.Error(err)
	}
	if err := ask(lease + 1); !errors.Is(err, seq.ErrBadLease) {
		t.Errorf("above what was set: got %v, want ErrBadLease", err)
	}
}

func TestWhatCannotBeLeasedIsRefusedOrNotReleased(t *testing.T) {
	b := newBench(t)
	b.prepare(routes, 1, alice)
	unknown := seq.SectionRegister(77)
	got := b.renew(alice, 0, item(routes, 1), item(unknown, 1), item(tag, 1))
	if len(got.Refused) != 3 {
		t.Errorf("got %+v, want a document and two registers that are not there refused", got)
	}
	if n := b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(routes, 1), item(unknown, 1)}}); n != 0 {
		t.Errorf("released %d of them", n)
	}
	b.restart(lease)
	b.want("a document in the grace", b.prepare(routes, 2, bob), quorum.VerdictOK)
}

func TestLeasesAndSessionsAreCounted(t *testing.T) {
	b := newBench(t)
	check := func(when string, leased bool, live, attached int) {
		t.Helper()
		l, at := b.a.Sessions(b.now)
		if got := b.a.Leased(b.now); got != leased || l != live || at != attached {
			t.Errorf("%s: leased %v, %d sessions with %d; want %v, %d, %d", when, got, l, at, leased, live, attached)
		}
	}
	b.prepare(section, 1, alice)
	b.prepare(section1, 1, alice)
	check("nobody", false, 0, 0)
	b.renew(bob, 0)
	check("a session with nothing", false, 1, 0)
	b.renew(alice, 2, item(section, 1), item(section1, 1))
	check("another with two", true, 2, 2)
	b.now += lease - 1
	check("a moment before the end", true, 2, 2)
	b.now++
	check("at the end", false, 0, 0)
}

func TestLiveSessionsAreListedByName(t *testing.T) {
	b := newBench(t)
	for _, id := range []seq.Session{5, 2, 9, 1, 7, 3} {
		if _, err := b.a.Renew(quorum.RenewRequest{Session: id, Name: id.String(), Addr: "at " + id.String(), Lease: lease}, b.now); err != nil {
			t.Fatal(err)
		}
	}
	got := b.renew(4, 0).Sessions
	if len(got) != 7 || !slices.IsSortedFunc(got, func(x, y quorum.SessionInfo) int { return strings.Compare(x.Name, y.Name) }) {
		t.Errorf("got %+v", got)
	}
	for _, s := range got {
		if s.Session != 4 && s.Addr != "at "+s.Name {
			t.Errorf("session %v is at %q", s.Session, s.Addr)
		}
	}
}

func TestAnEndedSessionIsListedNoMoreAndItsNameIsFree(t *testing.T) {
	b := newBench(t)
	b.renew(alice, 0)
	b.release(quorum.ReleaseRequest{Session: alice, All: true})
	reply, err := b.a.Renew(quorum.RenewRequest{Session: bob, Name: alice.String(), Lease: lease}, b.now)
	if err != nil || len(reply.Sessions) != 1 || reply.Sessions[0].Session != bob {
		t.Errorf("got %+v, %v, want the next session of that name alone", reply, err)
	}
}

func TestARegisterReleasedToNobodyElseIsFree(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section, 1)}, To: alice})
	b.want("anybody", b.prepare(section, 2, carol), quorum.VerdictOK)
}
