package acceptor

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func TestALeaseKeepsOthersOutUntilItEnds(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.now += 300 * time.Millisecond
	got := b.prepare(section, 2, bob)
	b.want("during the lease", got, quorum.VerdictHeld)
	if got.Holder != alice || got.Remaining != 700*time.Millisecond {
		t.Errorf("got holder %v for %v, want %v for 700ms", got.Holder, got.Remaining, alice)
	}
	b.want("a read tells the same", b.read(section, bob), quorum.VerdictHeld)
	b.want("the holder itself", b.prepare(section, 1, alice), quorum.VerdictOK)
	b.renew(alice, 1)
	b.now += lease - 1
	b.want("a moment before the end", b.prepare(section, 2, bob), quorum.VerdictHeld)
	b.now++
	b.want("at the end", b.prepare(section, 2, bob), quorum.VerdictOK)
}

func TestARenewalNeverBringsALostRegisterBack(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.now += lease
	b.prepare(section, 2, bob)
	reply := b.renew(alice, 1, item(section, 1))
	lost := []quorum.LeaseItem{item(section, 1)}
	if diff := cmp.Diff(lost, reply.Refused); diff != "" {
		t.Errorf("refused: %s", diff)
	}
	if diff := cmp.Diff(lost, reply.Lost); diff != "" {
		t.Errorf("lost: %s", diff)
	}
	if diff := cmp.Diff(lost, b.renew(alice, 1).Lost); diff != "" {
		t.Errorf("lost, told again until dropped: %s", diff)
	}
	reply, err := b.a.Renew(quorum.RenewRequest{Session: alice, Name: "a", Lease: lease, Drop: lost}, b.now)
	if err != nil || len(reply.Lost) != 0 || reply.Reset {
		t.Errorf("after the drop: %+v, %v", reply, err)
	}
	b.want("bob is not held up by alice's renewals", b.prepare(section, 3, bob), quorum.VerdictOK)
}

func TestAnEpochIsNotLeasedBeforeItsPromiseIsOnDisk(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.propose(section, 2, bob)
	if got := b.renew(bob, 1, item(section, 2)); len(got.Refused) != 1 {
		t.Errorf("bob's lease on a promise in memory only: %+v, want it refused", got)
	}
	if got := b.renew(alice, 1, item(section, 1)); len(got.Refused) != 1 {
		t.Errorf("alice's lease on an epoch about to be outrun: %+v, want it refused", got)
	}
	b.commit()
	if got := b.renew(bob, 1, item(section, 2)); len(got.Refused) != 0 {
		t.Errorf("bob's lease after the commit: %+v, want it granted", got)
	}
}

func TestAnExpiredSessionStartsFromNothing(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.prepare(section1, 1, alice)
	b.renew(alice, 2, item(section, 1), item(section1, 1))
	b.now += lease
	if got := b.renew(alice, 2, item(section, 1)); !got.Reset {
		t.Errorf("got %+v, want a reset", got)
	}
	b.want("attached in that request", b.prepare(section, 2, bob), quorum.VerdictHeld)
	b.want("attached before", b.prepare(section1, 2, bob), quorum.VerdictOK)
}

func TestASessionThatBelievesInMoreThanIsAttachedIsReset(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.restart(0)
	b.a.SetLeaseBound(lease)
	if got := b.renew(alice, 1); !got.Reset {
		t.Errorf("after a restart: %+v, want a reset", got)
	}
	if got := b.renew(alice, 1, item(section, 1)); got.Reset {
		t.Errorf("after it attached all again: %+v, want no reset", got)
	}
	if got := b.renew(alice, 1); got.Reset {
		t.Errorf("when all is well: %+v, want no reset", got)
	}
}

func TestAResetWhoseAnswerIsLostTakesNothingAwayThatWasGranted(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	if got := b.renew(alice, 5); !got.Reset {
		t.Errorf("got %+v, want a reset", got)
	}
	b.want("granted before", b.prepare(section, 2, bob), quorum.VerdictHeld)
	if got := b.renew(alice, 1, item(section, 1)); got.Reset {
		t.Errorf("after it attached all again: %+v, want no reset", got)
	}
}

func TestARenewalThatCrossesAReleaseIsNotReset(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.prepare(section1, 1, alice)
	b.renew(alice, 2, item(section, 1), item(section1, 1))
	b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section, 1)}})
	if got := b.renew(alice, 2); got.Reset {
		t.Errorf("sent before the release, arrived after it: %+v, want no reset", got)
	}
	if got := b.renew(alice, 0); got.Reset {
		t.Errorf("sent after a release, arrived before it: %+v, want no reset", got)
	}
	for range excessTolerated - 2 {
		b.renew(alice, 0)
	}
	if got := b.renew(alice, 0); !got.Reset {
		t.Errorf("still believes in less: %+v, want a reset", got)
	}
	b.want("what nobody believes in is free", b.prepare(section1, 2, bob), quorum.VerdictOK)
}

func TestALeaseIsRefusedByName(t *testing.T) {
	b := newBench(t)
	b.renew(alice, 0)
	request := quorum.RenewRequest{Session: bob, Name: "b", Lease: lease}
	rows := []struct {
		name   string
		change func(*quorum.RenewRequest)
		want   error
	}{
		{"too long", func(r *quorum.RenewRequest) { r.Lease = 10*lease + 1 }, seq.ErrBadLease},
		{"zero", func(r *quorum.RenewRequest) { r.Lease = 0 }, seq.ErrBadLease},
		{"no name", func(r *quorum.RenewRequest) { r.Name = "" }, seq.ErrBadArgument},
		{"another live session's name", func(r *quorum.RenewRequest) { r.Name = alice.String() }, seq.ErrNameTaken},
	}
	for _, row := range rows {
		req := request
		row.change(&req)
		if _, err := b.a.Renew(req, b.now); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
	b.now += lease
	request.Name = alice.String()
	if _, err := b.a.Renew(request, b.now); err != nil {
		t.Errorf("a name whose session expired: %v", err)
	}
}

func TestNoLeaseIsLongerThanTheBoundOnDisk(t *testing.T) {
	b := newBench(t)
	b.restart(0)
	req := quorum.RenewRequest{Session: alice, Name: "a", Lease: lease}
	if _, err := b.a.Renew(req, b.now); !errors.Is(err, ErrLeaseBound) {
		t.Fatalf("got %v, want ErrLeaseBound", err)
	}
	b.a.SetLeaseBound(lease)
	if _, err := b.a.Renew(req, b.now); err != nil {
		t.Fatal(err)
	}
	b.a.SetLeaseBound(lease / 2)
	if got := b.a.LeaseBound(); got != lease {
		t.Errorf("the bound is %v, want %v", got, lease)
	}
}

func TestARenewalTellsTheLiveSessionsAndTheRoutes(t *testing.T) {
	b := newBench(t)
	b.prepare(seq.RoutesRegister, 1, carol)
	b.stepItem(quorum.StepItem{Register: seq.RoutesRegister, Round: 1, Max: 7}, carol)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.now += lease / 2
	got := b.renew(bob, 0)
	want := quorum.RenewReply{RouteVersion: 7, Sessions: []quorum.SessionInfo{
		{Session: alice, Name: alice.String(), Remaining: lease / 2, Attached: 1},
		{Session: bob, Name: bob.String(), Remaining: lease},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.now += lease / 2
	if got := b.renew(bob, 0).Sessions; len(got) != 1 || got[0].Session != bob {
		t.Errorf("after alice's end: %+v", got)
	}
}

func TestAfterARestartOnlyTheRecordedOwnerComesInDuringTheGrace(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.restart(lease)
	grace := GraceOf(lease)
	if want := lease + 2*lease/100; grace != want {
		t.Fatalf("the grace is %v, want %v", grace, want)
	}
	got := b.prepare(section, 2, bob)
	b.want("another session", got, quorum.VerdictGrace)
	if got.Remaining != grace {
		t.Errorf("remaining is %v, want %v", got.Remaining, grace)
	}
	b.want("a read tells the same", b.read(section, bob), quorum.VerdictGrace)
	b.want("a register that nobody owned", b.prepare(section1, 1, bob), quorum.VerdictOK)
	b.want("the recorded owner", b.prepare(section, 3, alice), quorum.VerdictOK)
	b.now += grace - 1
	b.want("a moment before the end", b.prepare(section, 4, bob), quorum.VerdictGrace)
	b.now++
	b.want("at the end", b.prepare(section, 4, bob), quorum.VerdictOK)
}

func TestNobodyWaitsForWhatWasReleased(t *testing.T) {
	rows := []struct {
		name    string
		restart bool
		request quorum.ReleaseRequest
	}{
		{"items, leased", false, quorum.ReleaseRequest{Items: []quorum.LeaseItem{item(section, 1)}}},
		{"items, in the grace", true, quorum.ReleaseRequest{Items: []quorum.LeaseItem{item(section, 1)}}},
		{"all, leased", false, quorum.ReleaseRequest{All: true}},
		{"all, in the grace", true, quorum.ReleaseRequest{All: true}},
	}
	for _, row := range rows {
		b := newBench(t)
		b.prepare(section, 1, alice)
		b.renew(alice, 1, item(section, 1))
		if row.restart {
			b.restart(lease)
		}
		row.request.Session = alice
		b.release(row.request)
		if got := b.renew(carol, 0); got.Reset {
			t.Errorf("%s: %+v", row.name, got)
		}
		b.want(row.name, b.prepare(section, 2, bob), quorum.VerdictOK)
	}
}

func TestAReleaseOfAnotherEpochChangesNothing(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 2, alice)
	b.renew(alice, 1, item(section, 2))
	if n := b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section, 1)}}); n != 0 {
		t.Errorf("released %d, want 0", n)
	}
	if n := b.release(quorum.ReleaseRequest{Session: bob, Items: []quorum.LeaseItem{item(section, 2)}}); n != 0 {
		t.Errorf("released %d for another session, want 0", n)
	}
	b.want("still held", b.prepare(section, 3, bob), quorum.VerdictHeld)
}

func TestAReleasedEpochIsNeverLeasedAgain(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section, 1)}})
	if got := b.renew(alice, 1, item(section, 1)); len(got.Refused) != 1 {
		t.Errorf("a late renewal attached it again: %+v", got)
	}
	b.prepare(section, 2, alice)
	if got := b.renew(alice, 1, item(section, 2)); len(got.Refused) != 0 {
		t.Errorf("a new epoch: %+v, want it granted", got)
	}
}

func TestAReleasedRegisterIsKeptForItsSuccessor(t *testing.T) {
	setup := func() *bench {
		b := newBench(t)
		b.prepare(section, 1, alice)
		b.renew(alice, 1, item(section, 1))
		b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section, 1)}, To: bob})
		return b
	}
	b := setup()
	got := b.prepare(section, 2, carol)
	b.want("another session", got, quorum.VerdictHeld)
	if got.Remaining != quorum.ReserveTime {
		t.Errorf("remaining is %v, want %v", got.Remaining, quorum.ReserveTime)
	}
	b.want("the successor", b.prepare(section, 2, bob), quorum.VerdictOK)
	b.want("after the successor came", b.prepare(section, 3, carol), quorum.VerdictOK)

	b = setup()
	b.now += quorum.ReserveTime
	b.want("after the reservation", b.prepare(section, 2, carol), quorum.VerdictOK)
}

func TestAnEndedSessionIsGrantedNothing(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	if n := b.release(quorum.ReleaseRequest{Session: alice, All: true, To: bob}); n != 1 {
		t.Errorf("released %d, want 1", n)
	}
	if _, err := b.a.Renew(quorum.RenewRequest{Session: alice, Name: "a", Lease: lease, Attach: []quorum.LeaseItem{item(section, 1)}}, b.now); !errors.Is(err, seq.ErrSessionEnded) {
		t.Errorf("renew: got %v, want ErrSessionEnded", err)
	}
	b.want("prepare", b.prepare(section1, 1, alice), quorum.VerdictRefused)
	b.want("reserved with All, too", b.prepare(section, 2, carol), quorum.VerdictHeld)
	b.want("the successor", b.prepare(section, 2, bob), quorum.VerdictOK)
}

func TestOnlyTheLatestEndedSessionsAreRemembered(t *testing.T) {
	var e endedSessions
	for id := range seq.Session(maxEnded + 10) {
		e.add(id + 1)
		e.add(id + 1)
	}
	if len(e.set) != maxEnded || e.has(10) || !e.has(11) || !e.has(maxEnded+10) {
		t.Errorf("remembers %d, the 10th %v, the 11th %v", len(e.set), e.has(10), e.has(11))
	}
}

func TestALongDeadSessionIsForgotten(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.now += lease + forgetAfter + 1
	b.renew(bob, 0)
	if _, there := b.a.leases.sessions[alice]; there {
		t.Error("alice is remembered")
	}
	if got := b.renew(alice, 1); !got.Reset {
		t.Errorf("when she comes back: %+v, want a reset", got)
	}
}

func TestAShorterRenewalDoesNotShortenTheLease(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	if _, err := b.a.Renew(quorum.RenewRequest{Session: alice, Name: "a", Lease: lease / 4, Attached: 1}, b.now); err != nil {
		t.Fatal(err)
	}
	b.now += lease - 1
	b.want("within the longer lease", b.prepare(section, 2, bob), quorum.VerdictHeld)
}

func TestAPromiseTellsWhatTheReleaseLeftUntilSomethingElseIsAccepted(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.step(section, 1, alice, 10)
	b.renew(alice, 1, item(section, 1))
	stale := quorum.LeaseItem{Register: section, Round: 9, Seal: 66}
	b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{stale, {Register: section, Round: 1, Seal: 77}, stale}, To: bob})
	for round := uint64(2); round < 4; round++ { // the first answer may be lost
		if got := b.prepare(section, round, bob).Seal; got != 77 {
			t.Errorf("promise %d shows %d, want 77", round, got)
		}
	}
	b.step(section, 3, bob, 20)
	if got := b.prepare(section, 4, bob).Seal; got != 0 {
		t.Errorf("after another epoch was accepted: %d, want 0", got)
	}
	b.step(section, 4, bob, 20)
	b.release(quorum.ReleaseRequest{Session: bob, Items: []quorum.LeaseItem{{Register: section, Round: 4, Seal: 88}}})
	b.restart(0)
	if got := b.prepare(section, 5, carol).Seal; got != 0 {
		t.Errorf("after a restart: %d, want 0", got)
	}
}
