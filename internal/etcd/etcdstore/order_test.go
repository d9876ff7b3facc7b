package etcdstore_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
)

func item(round uint64) quorum.LeaseItem { return quorum.LeaseItem{Register: section, Round: round} }

// The tests below deliver messages late, twice, or between others.

func TestALateStepIsNothingAfterALargerOne(t *testing.T) {
	a, _ := rig(t)
	a.own(alice, 1, section)
	a.kv.hold = func(t etcdstore.Txn) bool { return puts(t, "r/") }
	if _, err := a.tryStep(alice, 1, section, 150); !errors.Is(err, etcdmodel.ErrLost) {
		t.Fatalf("the held step: %v", err)
	}
	held := a.kv.held
	a.kv.held, a.kv.hold = nil, nil
	a.want("the step again, larger", a.step(alice, 1, section, 200), quorum.VerdictOK)
	a.kv.held = held
	a.kv.late(t)
	if got := a.shown(section); got.Max != 200 {
		t.Errorf("max %d after the late step, want 200", got.Max)
	}
}

func TestARegisterThatIsKeptSinceTheSessionsWereListedIsNotTaken(t *testing.T) {
	etcd := initRig(t, 300)
	a, b := newNode(t, etcd), newNode(t, etcd)
	var regs []seq.Register
	for id := range seq.SectionID(300) {
		regs = append(regs, seq.SectionRegister(id))
	}
	far := regs[299] // its read is a second message, after the read of the sessions
	if _, err := b.tryPrepare(bob, 1, section); err != nil {
		t.Fatal(err)
	}
	listed, once := make(chan struct{}), sync.Once{}
	b.kv.after = func(t etcdstore.Txn) {
		if t.Then[0].End != "" {
			once.Do(func() { close(listed) })
		}
	}
	var taken sync.Once
	b.kv.before = func(t etcdstore.Txn) {
		for _, op := range t.Then {
			if op.Key == rigPrefix+"/r/"+string(far) {
				<-listed
				taken.Do(func() { a.own(alice, 5, far) })
			}
		}
	}
	got, err := b.tryPrepare(bob, 9, regs...)
	if err != nil {
		t.Fatal(err)
	}
	b.want("what alice has taken meanwhile", got[299], quorum.VerdictHeld)
	if shown := a.shown(far); shown.Promised.Session != alice {
		t.Errorf("got %+v, want it alice's", shown)
	}
	b.want("a free one", got[17], quorum.VerdictOK)
}

func TestAnItemOfABatchIsDecidedByItsOwnCompare(t *testing.T) {
	a, b := rig(t)
	other := seq.SectionRegister(1)
	if _, err := b.tryPrepare(bob, 1, section, other); err != nil { // it has seen both
		t.Fatal(err)
	}
	b.kv.before = func(txn etcdstore.Txn) {
		if puts(txn, "r/") {
			b.kv.before = nil
			a.want("between", a.prepare(alice, 7, other), quorum.VerdictOK)
		}
	}
	got, err := b.tryPrepare(bob, 5, section, other)
	if err != nil {
		t.Fatal(err)
	}
	b.want("the first", got[0], quorum.VerdictOK)
	b.want("the other, by then promised higher", got[1], quorum.VerdictNack)
	if shown := a.shown(other); shown.Promised != (seq.Epoch{Round: 7, Session: alice}) {
		t.Errorf("got %+v, want alice's promise", shown)
	}
}

func TestAnEpochThatIsBeingReleasedIsNotSteppedAgain(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	a.kv.hold = func(t etcdstore.Txn) bool { return puts(t, "r/") }
	if err := a.release(alice, 0, item(1)); err == nil {
		t.Fatal("the held release was answered")
	}
	a.kv.hold, a.kv.held = nil, nil // it never comes
	a.want("a step under the released epoch", a.step(alice, 1, section, 300), quorum.VerdictRefused)
	if got := a.renew(alice, 0); got.Reset {
		t.Errorf("got %+v, want no reset", got)
	}
	b.want("after the release was sent again with a renewal", b.prepare(bob, 2, section), quorum.VerdictOK)
}

func TestALateStepAfterAReleaseKeepsTheRegisterFromNobody(t *testing.T) {
	a, b := rig(t)
	a.renew(alice, 0)
	a.want("take", a.prepare(alice, 1, section), quorum.VerdictOK)
	a.kv.hold = func(t etcdstore.Txn) bool { return puts(t, "r/") }
	if _, err := a.tryStep(alice, 1, section, 100); err == nil {
		t.Fatal("the held step was answered")
	}
	late := a.kv.held
	a.kv.hold, a.kv.held = nil, nil
	if err := a.release(alice, 0, item(1)); err != nil {
		t.Fatal(err)
	}
	a.kv.held = late
	a.kv.late(t)
	b.want("another session", b.prepare(bob, 2, section), quorum.VerdictOK)
}

func TestWhatWasSteppedAndNeverAttachedIsReleased(t *testing.T) {
	a, b := rig(t)
	a.renew(alice, 0)
	a.want("take", a.prepare(alice, 1, section), quorum.VerdictOK)
	a.want("step", a.step(alice, 1, section, 100), quorum.VerdictOK)
	b.want("another session, just after", b.prepare(bob, 2, section), quorum.VerdictHeld)
	for range 20 {
		a.clock.Advance(rigLease / 5)
		a.renew(alice, 0)
	}
	b.want("another session, later", b.prepare(bob, 2, section), quorum.VerdictOK)
	a.want("the late owner", a.step(alice, 1, section, 200), quorum.VerdictNack)
}

func TestWhatIsAttachedIsNoOrphan(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	for range 30 {
		a.clock.Advance(rigLease / 5)
		a.renew(alice, 1)
		a.want("step", a.step(alice, 1, section, 100), quorum.VerdictOK)
	}
	b.want("another session", b.prepare(bob, 2, section), quorum.VerdictHeld)
}

func TestASessionThatHasEndedIsNotMadeAgainByALateMessage(t *testing.T) {
	a, b := rig(t)
	a.kv.hold = func(t etcdstore.Txn) bool { return puts(t, "s/") }
	if _, err := a.tryRenew(alice, "a", 0); err == nil {
		t.Fatal("the held renewal was answered")
	}
	late := a.kv.held
	a.kv.hold, a.kv.held = nil, nil
	if _, err := a.Release(t.Context(), quorum.ReleaseRequest{Ref: a.ref(), Session: alice, Secret: secretOf(alice), All: true}); err != nil {
		t.Fatal(err)
	}
	a.kv.held = late
	a.kv.late(t)
	for _, s := range b.renew(bob, 0).Sessions {
		if s.Session == alice {
			t.Errorf("alice's session is back: %+v", s)
		}
	}
	if _, err := a.tryRenew(alice, "a", 0); !errors.Is(err, seq.ErrSessionEnded) {
		t.Errorf("a renewal: got %v, want %v", err, seq.ErrSessionEnded)
	}
}

func TestANewSessionOfANameWaitsForTheFormerOne(t *testing.T) {
	a, b := rig(t)
	if _, err := a.tryRenew(alice, "node", 0); err != nil {
		t.Fatal(err)
	}
	began := b.clock.Now()
	for {
		_, err := b.tryRenew(bob, "node", 0)
		if err == nil {
			break
		}
		if !errors.Is(err, seq.ErrNameTaken) || b.clock.Now()-began > 3*rigLease {
			t.Fatalf("after %v: %v", b.clock.Now()-began, err)
		}
		b.clock.Advance(rigLease / 5)
	}
	if waited := b.clock.Now() - began; waited <= rigLease {
		t.Errorf("it got the name after %v, want more than the former lease of %v", waited, rigLease)
	}
}

func TestAResetIsToldWhateverFailsUntilThen(t *testing.T) {
	a, b := rig(t)
	other := seq.SectionRegister(1)
	a.own(alice, 1, section)
	a.want("take", a.prepare(alice, 1, other), quorum.VerdictOK)
	a.renew(alice, 2, quorum.LeaseItem{Register: other, Round: 1})
	if b.pass(2 * rigLease); b.prepare(bob, 2, section).Verdict != quorum.VerdictOK {
		t.Fatal("the silent session was not taken for dead")
	}
	third := seq.SectionRegister(2)
	a.want("take", a.prepare(alice, 1, third), quorum.VerdictOK)
	a.kv.hold = func(t etcdstore.Txn) bool { return puts(t, "r/") } // the beat passes, the attach does not
	_, err := a.tryRenew(alice, alice.String(), 2, func(r *quorum.RenewRequest) {
		r.Drop = []quorum.LeaseItem{{Register: other, Round: 1}}
		r.Attach = []quorum.LeaseItem{{Register: third, Round: 1}}
	})
	if err == nil {
		t.Fatal("the held attach was answered")
	}
	a.kv.hold, a.kv.held = nil, nil
	if got := a.renew(alice, 1); !got.Reset {
		t.Errorf("got %+v, want the reset of a session that goes on believing in section 0", got)
	}
}

func TestOutagesShortenNoWait(t *testing.T) {
	for _, row := range []struct {
		name string
		wait func(b *node)
	}{
		{"nothing was written for ten leases", func(b *node) { b.clock.Advance(10 * rigLease) }},
		{"reads alone were answered", func(b *node) {
			b.kv.etcd.SetFull(true)
			for range 30 {
				b.clock.Advance(rigLease / 5)
				b.look()
			}
			b.kv.etcd.SetFull(false)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := rig(t)
			a.own(alice, 1, section)
			b.renew(bob, 0)
			row.wait(b)
			b.renew(bob, 0)
			b.want("at the first answer after it", b.prepare(bob, 2, section), quorum.VerdictHeld)
			b.pass(2 * rigLease)
			b.want("a whole lease later", b.prepare(bob, 2, section), quorum.VerdictOK)
		})
	}
}

func (n *node) look() {
	n.Helper()
	if _, err := n.Read(n.Context(), quorum.ReadRequest{Ref: n.ref(), Session: bob, Registers: []seq.Register{section}}); err != nil {
		n.Fatal(err)
	}
}

func TestTheWaitForASessionBeginsWithTheReceiptOfItsBeat(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	const long = rigLease * 2 / 5
	b.kv.after = func(etcdstore.Txn) { b.clock.Advance(long) } // each answer is long under way
	if err := b.Observe(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.kv.after = nil
	b.pass(rigLease * 9 / 10) // 1.3 leases after the sending
	b.want("before the lease has passed since the receipt", b.prepare(bob, 2, section), quorum.VerdictHeld)
	b.pass(rigLease)
	b.want("after it", b.prepare(bob, 2, section), quorum.VerdictOK)
}

func TestABeatDefeatsTheEndOfASession(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	b.kv.before = func(txn etcdstore.Txn) {
		if removes(txn) {
			b.kv.before = nil
			a.renew(alice, 1)
		}
	}
	b.pass(rigLease * 15 / 10)
	if b.kv.before != nil {
		t.Fatal("it was never taken for dead")
	}
	b.want("another session", b.prepare(bob, 2, section), quorum.VerdictHeld)
	if got := a.renew(alice, 1); got.Reset {
		t.Errorf("got %+v, want the session as it was", got)
	}
}

func TestABeatUnderAnotherLifeProtectsNothing(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	b.pass(2 * rigLease)
	if got := a.renew(alice, 1); !got.Reset {
		t.Fatalf("got %+v, want a reset: its key was deleted meanwhile", got)
	}
	b.want("another session", b.prepare(bob, 2, section), quorum.VerdictOK)
}

// A renewal whose session is ended between its beat and its attachments keeps nothing for it: the
// next session may take the registers at once.
func TestWhatIsAttachedAfterTheSessionsKeyIsGoneIsNotAnsweredAsKept(t *testing.T) {
	a, b := rig(t)
	a.renew(alice, 0)
	a.want("take", a.prepare(alice, 1, section), quorum.VerdictOK)
	a.want("step", a.step(alice, 1, section, 100), quorum.VerdictOK)
	other := seq.SectionRegister(1)
	a.want("another", a.prepare(alice, 1, other), quorum.VerdictOK)
	a.kv.before = func(txn etcdstore.Txn) {
		if puts(txn, "r/") {
			a.kv.before = nil
			b.pass(2 * rigLease)
		}
	}
	attach := []quorum.LeaseItem{item(1), {Register: other, Round: 1}}
	reply, err := a.tryRenew(alice, alice.String(), 0, func(r *quorum.RenewRequest) { r.Attach = attach })
	if err == nil && !reply.Reset && len(reply.Refused) == 0 {
		t.Errorf("got %+v, want an error or what is not kept", reply)
	}
	if a.kv.before != nil {
		t.Fatal("nothing was attached by a write of its own")
	}
	b.want("another session", b.prepare(bob, 2, section), quorum.VerdictOK)
}

func TestReservationsEndByObservation(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	if err := a.release(alice, carol, item(1)); err != nil {
		t.Fatal(err)
	}
	b.want("another than the successor", b.prepare(bob, 2, section), quorum.VerdictHeld)
	b.clock.Advance(quorum.ReserveTime - time.Millisecond)
	b.want("shortly before the end", b.prepare(bob, 2, section), quorum.VerdictHeld)
	b.clock.Advance(time.Millisecond)
	b.want("after it", b.prepare(bob, 2, section), quorum.VerdictOK)
}

func TestAReservationCanBeTakenBack(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	for _, to := range []seq.Session{carol, 0} {
		if err := a.release(alice, to, item(1)); err != nil {
			t.Fatal(err)
		}
	}
	b.want("another than the successor", b.prepare(bob, 2, section), quorum.VerdictOK)
}
