package acceptor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// preemptive returns a bench whose section 0 is of a space of the mode, and section 1 of an ordinary space.
func preemptive(t *testing.T, mode seq.Mode, before ...seq.Session) *bench {
	t.Helper()
	b := newBench(t)
	b.a.leases.over = preempting{
		space: func(id seq.SectionID) (*seq.Space, error) {
			return [...]*seq.Space{{Name: "first", Mode: mode}, {Name: "second", Mode: seq.Ordered}}[id], nil
		},
		ofBefore: func(s seq.Session) bool { return len(before) > 0 && s == before[0] },
	}
	return b
}

// preempt asks for a promise over a living lease, and commits.
func (b *bench) preempt(r seq.Register, round uint64, who seq.Session) quorum.Result {
	b.t.Helper()
	res, err := b.a.Prepare(quorum.PrepareRequest{Session: who, Preempt: true, Items: []quorum.PrepareItem{{Register: r, Round: round, Create: true}}}, b.now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.commit()
	return res[0]
}

// spy is what a look says that a preempting PREPARE would meet.
func (b *bench) spy(r seq.Register, who seq.Session) quorum.Result {
	return b.a.Read(quorum.ReadRequest{Session: who, Registers: []seq.Register{r}, Preempt: true}, b.now)[0]
}

func TestALeaseKeepsNoPreemptionOutOfAStrictOrExactSpace(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Strict, seq.Exact} {
		b := preemptive(t, mode)
		b.prepare(section, 1, alice)
		b.renew(alice, 1, item(section, 1))
		b.want("without preempt", b.prepare(section, 2, bob), quorum.VerdictHeld)
		b.want("a look without preempt", b.read(section, bob), quorum.VerdictHeld)
		b.want("a look", b.spy(section, bob), quorum.VerdictOK)
		b.want("an epoch below the promise", b.preempt(section, 0, bob), quorum.VerdictNack)
		b.want("preempted", b.preempt(section, 2, bob), quorum.VerdictOK)
		b.want("the former owner's step", b.step(section, 1, alice, 10), quorum.VerdictNack)
		b.want("the former owner's look", b.read(section, alice), quorum.VerdictOK)
		if got := b.read(section, alice); got.Promised != (seq.Epoch{Round: 2, Session: bob}) {
			t.Errorf("%s: the former owner sees %v, want bob's epoch", mode, got.Promised)
		}
		if diff := cmp.Diff([]quorum.LeaseItem{item(section, 1)}, b.renew(alice, 1).Lost); diff != "" {
			t.Errorf("%s: the former owner's renewal: %s", mode, diff)
		}
		b.renew(bob, 1, item(section, 2))
		b.want("its own lease keeps others out, without preempt", b.prepare(section, 3, alice), quorum.VerdictHeld)
		b.restart(0)
		if got := b.read(section, alice); got.Promised != (seq.Epoch{Round: 2, Session: bob}) {
			t.Errorf("%s: after a restart %v is promised, want bob's epoch", mode, got.Promised)
		}
	}
}

func TestWhatAnswersByItsLeaseIsNeverPreempted(t *testing.T) {
	for _, mode := range []seq.Mode{seq.Ordered, seq.UniqueOnly} {
		b := preemptive(t, mode)
		b.prepare(section, 1, alice)
		b.prepare(tag, 1, alice)
		b.prepare(worker, 1, alice)
		b.renew(alice, 3, item(section, 1), item(tag, 1), item(worker, 1))
		for _, leased := range []bool{true, false} {
			for r, name := range map[seq.Register]string{section: `space "first", which is ` + string(mode), tag: r(tag), worker: r(worker), seq.RoutesRegister: r(seq.RoutesRegister), seq.ArbiterRegister: r(seq.ArbiterRegister)} {
				got := b.preempt(r, 9, bob)
				if got.Verdict != quorum.VerdictRefused || !strings.Contains(got.Message, name) || b.a.registers.find(r).now.Promised.Session == bob {
					t.Errorf("%s, leased %v: got %v %q, want it refused by name", r, leased, got.Verdict, got.Message)
				}
				b.want("a look", b.spy(r, bob), quorum.VerdictRefused)
			}
			b.now += lease
		}
	}
}

func r(r seq.Register) string { return "preempt of " + r.String() }

func TestAPreemptionWaitsForAReservationAndForOwnersOfBefore(t *testing.T) {
	b := preemptive(t, seq.Strict, alice)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.want("an owner that answers by its lease", b.preempt(section, 2, bob), quorum.VerdictHeld)
	b.want("a look at it", b.spy(section, bob), quorum.VerdictHeld)

	b = preemptive(t, seq.Strict)
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.release(quorum.ReleaseRequest{Session: alice, Items: []quorum.LeaseItem{item(section, 1)}, To: carol})
	b.want("what is handed to another", b.preempt(section, 2, bob), quorum.VerdictHeld)
	b.now += quorum.ReserveTime
	b.want("after the reservation", b.preempt(section, 2, bob), quorum.VerdictOK)
}

func TestAPreemptionPassesTheGraceOnlyOfASessionThatRenewedSince(t *testing.T) {
	b := preemptive(t, seq.Strict)
	rules := b.a.leases.over
	b.prepare(section, 1, alice)
	b.renew(alice, 1, item(section, 1))
	b.restart(lease)
	b.a.leases.over = rules
	b.want("nobody knows of what build the owner is", b.preempt(section, 2, bob), quorum.VerdictGrace)
	b.renew(alice, 0)
	b.want("it has renewed", b.preempt(section, 2, bob), quorum.VerdictOK)
}
