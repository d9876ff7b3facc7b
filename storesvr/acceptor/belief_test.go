package acceptor

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// two is a bench on which alice has two sections under lease.
func two(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.prepare(section1, 1, alice)
	b.renew(alice, 2, item(section, 1), item(section1, 1))
	return b
}

func (b *bench) wantReset(what string, got quorum.RenewReply, want bool) {
	b.t.Helper()
	if got.Reset != want {
		b.t.Errorf("%s: reset %v, want %v (%+v)", what, got.Reset, want, got)
	}
}

func TestASessionThatExpiredHearsOfItIfItHadAnything(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.renew(bob, 0)
	b.now += lease
	b.wantReset("with everything attached again", b.renew(alice, 1, item(section, 1)), true)
	b.wantReset("a session that had nothing", b.renew(bob, 0), false)
}

func TestASessionThatHasTheSameBeliefIsNeverReset(t *testing.T) {
	b := two(t)
	for range 3 * excessTolerated {
		b.wantReset("both believe in two", b.renew(alice, 2), false)
	}
}

func TestOnlyBeliefInTooLittleThatLastsIsReset(t *testing.T) {
	b := two(t)
	few := func(n int) {
		t.Helper()
		for range n {
			b.wantReset("believes in one of two", b.renew(alice, 1), false)
		}
	}
	few(excessTolerated - 1)
	b.wantReset("believes in both", b.renew(alice, 2), false)
	few(excessTolerated - 1)
	b.wantReset("for too long", b.renew(alice, 1), true)
	few(excessTolerated - 1)
	b.wantReset("for too long again", b.renew(alice, 1), true)
}

func TestWhatASessionCouldNotKnowYetIsNoReset(t *testing.T) {
	b := two(t)
	b.step(section, 2, bob, 10) // with the promises of two other stores
	got := b.renew(alice, 2)
	b.wantReset("lost, and not heard of", got, false)
	if diff := cmp.Diff([]quorum.LeaseItem{item(section, 1)}, got.Lost); diff != "" {
		t.Errorf("lost %s", diff)
	}
	for range 2 * excessTolerated {
		b.wantReset("heard of, and not dropped", b.renew(alice, 1), false)
	}
	b.wantReset("more than that", b.renew(alice, 3), true)
	b.prepare(section, 3, bob)
	b.wantReset("refused just now", b.renew(alice, 3, item(section, 1)), false)
}

func TestAReleaseExcusesOneRenewalAndOnlyOfWhatWasAttached(t *testing.T) {
	b := two(t)
	b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section, 1)}})
	b.wantReset("that crosses it", b.renew(alice, 2), false)
	b.wantReset("the next", b.renew(alice, 2), true)

	b = newBench(t)
	b.prepare(section, 1, alice)
	b.prepare(section1, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section1, 1)}})
	b.wantReset("of what was never attached", b.renew(alice, 2), true)
}

func TestASessionThatTakesItsOwnSectionAnewLosesNothing(t *testing.T) {
	b := two(t)
	b.prepare(section, 2, alice)
	got := b.renew(alice, 2)
	b.wantReset("which it attaches later", got, false)
	if len(got.Lost) > 0 {
		t.Errorf("lost %+v", got.Lost)
	}
	b.want("it is not leased before", b.prepare(section, 3, bob), quorum.VerdictOK)
}

func TestASessionHearsOnlyOfLossesOfWhatItHad(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 0)
	b.prepare(section, 2, bob)
	if got := b.renew(alice, 0).Lost; len(got) > 0 {
		t.Errorf("lost %+v, which was promised to it and not attached", got)
	}
}

func TestLossesAreToldInOrderUntilTheyAreDroppedOrTheRegisterIsBack(t *testing.T) {
	b := newBench(t)
	var want, attach []quorum.LeaseItem
	for i := range 8 {
		r := seq.TagRegister(string(rune('h' - i)))
		b.prepare(r, 1, alice)
		attach = append(attach, item(r, 1))
	}
	b.renew(alice, 8, attach...)
	for _, x := range attach {
		b.step(x.Register, 2, bob, 1)
	}
	want = slices.Clone(attach)
	slices.Reverse(want)
	drop := func(items ...quorum.LeaseItem) []quorum.LeaseItem {
		t.Helper()
		reply, err := b.a.Renew(quorum.RenewRequest{Session: alice, Name: alice.String(), Lease: lease, Drop: items}, b.now)
		if err != nil {
			t.Fatal(err)
		}
		return reply.Lost
	}
	if diff := cmp.Diff(want, drop(item(want[0].Register, 7))); diff != "" {
		t.Errorf("after a drop of another round (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], drop(want[0])); diff != "" {
		t.Errorf("after a drop (-want +got)\n%s", diff)
	}
	b.prepare(want[1].Register, 3, alice)
	if diff := cmp.Diff(want[2:], b.renew(alice, 1, item(want[1].Register, 3)).Lost); diff != "" {
		t.Errorf("after one came back (-want +got)\n%s", diff)
	}
}

func TestADropGivesUpWhatIsLeased(t *testing.T) {
	b := two(t)
	if _, err := b.a.Renew(quorum.RenewRequest{Session: alice, Name: alice.String(), Lease: lease, Attached: 1,
		Drop: []quorum.LeaseItem{item(section, 1), item(section1, 9)}}, b.now); err != nil {
		t.Fatal(err)
	}
	b.want("what was dropped", b.prepare(section, 2, bob), quorum.VerdictOK)
	b.want("what was dropped under another round", b.prepare(section1, 2, bob), quorum.VerdictHeld)
}

func TestASessionThatExpiredIsRememberedForWhatItLost(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.now += lease
	b.prepare(section, 2, bob)
	b.now += forgetAfter
	b.renew(bob, 1, item(section, 2))
	if diff := cmp.Diff([]quorum.LeaseItem{item(section, 1)}, b.renew(alice, 0).Lost); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A renewal may come late, or twice, and then says what its session believed before the
// later ones: to be put right by it would take away what they were granted.
func TestARenewalThatWasOvertakenIsRefusedAndTakesNothingAway(t *testing.T) {
	b := newBench(t)
	b.prepare(section, 1, alice)
	numbered := func(n, attached uint64, attach ...quorum.LeaseItem) error {
		_, err := b.a.Renew(quorum.RenewRequest{Session: alice, Name: alice.String(), Lease: lease, Number: n, Attached: attached, Attach: attach}, b.now)
		return err
	}
	for n := range uint64(10) {
		if err := numbered(n+1, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := numbered(20, 1, item(section, 1)); err != nil {
		t.Fatal(err)
	}
	b.now += lease / 2
	for range 2 * excessTolerated {
		for _, n := range []uint64{10, 1, 20} {
			if err := numbered(n, 0); !errors.Is(err, seq.ErrBadArgument) {
				t.Fatalf("renewal %d after 20: got %v, want %v", n, err, seq.ErrBadArgument)
			}
		}
	}
	b.want("leased on", b.prepare(section, 2, bob), quorum.VerdictHeld)
	b.now += lease / 2
	b.want("and no longer for what came late", b.prepare(section, 3, bob), quorum.VerdictOK)
	for range 2 {
		if err := numbered(0, 0); err != nil {
			t.Errorf("of a node that does not count: %v", err)
		}
	}
}
