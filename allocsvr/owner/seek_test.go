package owner

import (
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// told are leases that know of these sessions, and of others once they are kicked.
type told struct {
	ownershiptest.Leases
	sessions, next []quorum.SessionView
}

func (l *told) Sessions() []quorum.SessionView { return l.sessions }

func (l *told) Kick() {
	if l.next != nil {
		l.sessions = l.next
	}
}

func TestANodeThatRestartedIsHandedSectionsAsWhatItIsNow(t *testing.T) {
	former, now := seq.Session(0xc), otherSession
	for _, swapped := range []bool{false, true} {
		o := newOwner(t)
		at := o.clock.Now()
		list := []quorum.SessionView{
			{Session: former, Name: "b", Addr: otherAddr, FreeAt: at + ownerLease/2}, // ended, but not known to have
			{Session: now, Name: "b", Addr: otherAddr, FreeAt: at + ownerLease},
			{Session: 0xd, Name: "a", Addr: "a", FreeAt: at + 2*ownerLease}, // of this node itself, before
		}
		if swapped {
			list[0], list[1] = list[1], list[0]
		}
		o.sessions = &told{sessions: list}
		if got := o.nodes.View(at).Live; got["b"].Session != now || got["a"].Session != ownerSession || len(got) != 2 {
			t.Errorf("alive: %v", got)
		}
		if got := o.nodes.Present(); got["b"].Session != now || got["a"].Session != ownerSession || len(got) != 2 {
			t.Errorf("present: %v", got)
		}
		if o.away.handAway(t.Context()); o.peers.to != now {
			t.Errorf("offered to session %s, want %s", o.peers.to, now)
		}
	}
}

func TestALeavingNodeLooksAgainForOneThatHasJustRestarted(t *testing.T) {
	const former = 0xc
	for _, known := range []bool{true, false} {
		o := newOwner(t)
		at := o.clock.Now()
		o.peers.gone = former
		leases := &told{sessions: []quorum.SessionView{{Session: former, Name: "b", Addr: otherAddr, FreeAt: at + ownerLease}}}
		if known {
			leases.next = append(leases.sessions[:1:1], quorum.SessionView{Session: otherSession, Name: "b", Addr: otherAddr, FreeAt: at + 2*ownerLease})
		}
		o.sessions = leases
		moved := o.away.handAway(t.Context())
		if got := len(moved) == 1 && len(o.peers.offered) == 1 && o.peers.to == otherSession; got != known {
			t.Errorf("handed over to session %s: %v, want %v; moved %v", o.peers.to, got, known, moved)
		}
		if !known && len(o.sections.Owned()) != 1 {
			t.Errorf("owns %v, want its section still", o.sections.Owned())
		}
	}
}
