package acceptor

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// A node that comes back under its name is another session: the process before it may
// still be serving under its lease, whatever the name says.
func TestANewIncarnationIsNotTheOldHolder(t *testing.T) {
	b := newBench(t)
	renew := func(who seq.Session) error {
		_, err := b.a.Renew(quorum.RenewRequest{Session: who, Name: "node", Lease: lease,
			Attach: []quorum.LeaseItem{item(section, 1)}, Attached: 1}, b.now)
		return err
	}
	b.prepare(section, 1, alice)
	if err := renew(alice); err != nil {
		t.Fatal(err)
	}
	if err := renew(bob); !errors.Is(err, seq.ErrNameTaken) {
		t.Errorf("a renewal under the name of a live session: got %v, want ErrNameTaken", err)
	}
	b.want("the next incarnation during the lease", b.prepare(section, 2, bob), quorum.VerdictHeld)
	b.restart(lease)
	b.want("the next incarnation in the grace", b.prepare(section, 2, bob), quorum.VerdictGrace)
	b.want("the holder itself in the grace", b.prepare(section, 1, alice), quorum.VerdictOK)
	b.now += GraceOf(lease)
	b.want("the next incarnation afterwards", b.prepare(section, 2, bob), quorum.VerdictOK)
	if got := b.step(section, 1, alice, 10); got.Verdict != quorum.VerdictNack {
		t.Errorf("a step of the incarnation before: got %v, want nack", got.Verdict)
	}
}
