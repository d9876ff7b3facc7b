package registers

import (
	"errors"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// releaseRows are about giving registers up before their lease ends.
var releaseRows = []row{
	{"a release lets others in at once", func(b *bench) {
		b.own(alice, 1, section, section1)
		b.release(alice, 0, item(section, 1))
		b.want("the released one", b.prepare(bob, 2, section), quorum.VerdictOK)
		b.wantKeptOut("the other", b.prepare(bob, 2, section1))
		b.release(alice, 0, item(section, 1))
		b.want("released again, by then another's", b.step(bob, 2, section, 5), quorum.VerdictOK)
	}},
	{"a release counts only under the promised epoch", func(b *bench) {
		b.own(alice, 2, section)
		b.release(alice, 0, item(section, 1))
		b.release(alice, 0, item(section, 3))
		b.release(carol, 0, item(section, 2))
		b.wantKeptOut("after releases of other epochs", b.prepare(bob, 4, section))
		b.want("the holder takes it again", b.prepare(alice, 3, section), quorum.VerdictOK)
		if got := b.renew(alice, 1, item(section, 3)); len(got.Refused) > 0 {
			b.Fatalf("lease: %+v", got)
		}
		b.release(alice, 0, item(section, 2))
		b.wantKeptOut("after a late release of the epoch before", b.prepare(bob, 4, section))
	}},
	{"a late renewal does not bring a released register back", func(b *bench) {
		b.own(alice, 1, section)
		b.release(alice, 0, item(section, 1))
		if got := b.renew(alice, 0, item(section, 1)); len(got.Refused) != 1 {
			b.Errorf("got %+v, want the attach refused", got)
		}
		b.want("another session", b.prepare(bob, 2, section), quorum.VerdictOK)
	}},
	{"a drop in a renewal is a release", func(b *bench) {
		b.own(alice, 1, section, section1)
		req := b.renewal(alice, 1)
		req.Drop = []quorum.LeaseItem{item(section, 1), item(section1, 9)}
		if got := b.renewWith(req); got.Reset {
			b.Errorf("got %+v, want no reset", got)
		}
		b.want("dropped", b.prepare(bob, 2, section), quorum.VerdictOK)
		b.wantKeptOut("dropped under another round", b.prepare(bob, 2, section1))
	}},
	{"a released register is reserved for its successor", func(b *bench) {
		b.own(alice, 1, section)
		b.release(alice, carol, item(section, 1))
		if left := b.wantKeptOut("another session", b.prepare(bob, 2, section)); left > quorum.ReserveTime {
			b.Errorf("kept out for %v, want at most %v", left, quorum.ReserveTime)
		}
		b.want("a read by the successor", b.read(carol, section), quorum.VerdictOK)
		b.want("the successor", b.prepare(carol, 2, section), quorum.VerdictOK)
		if got := b.renew(carol, 1, item(section, 2)); len(got.Refused) > 0 {
			b.Errorf("its lease: %+v, want it granted", got)
		}
	}},
	{"a reservation for nobody who comes ends by itself", func(b *bench) {
		b.needClock()
		b.own(alice, 1, section)
		b.release(alice, carol, item(section, 1))
		b.Advance(b.wantKeptOut("another session", b.prepare(bob, 2, section)))
		b.want("after it", b.prepare(bob, 2, section), quorum.VerdictOK)
	}},
	{"an ended session has nothing and is granted nothing", func(b *bench) {
		b.own(alice, 1, section, section1)
		b.releaseWith(quorum.ReleaseRequest{Ref: b.Ref, Session: alice, All: true})
		b.want("the first", b.prepare(bob, 2, section), quorum.VerdictOK)
		b.want("the second", b.prepare(bob, 2, section1), quorum.VerdictOK)
		if _, err := b.store.Renew(b.context(), b.renewal(alice, 0)); !errors.Is(err, seq.ErrSessionEnded) {
			b.Errorf("renew: got %v, want %v", err, seq.ErrSessionEnded)
		}
		if got := b.prepare(alice, 3, section2); got.Verdict == quorum.VerdictOK {
			b.Errorf("prepare: got %+v, want no promise", got)
		}
		for _, s := range b.renew(bob, 0).Sessions {
			if s.Session == alice {
				b.Errorf("still listed: %+v", s)
			}
		}
		if _, err := b.store.Renew(b.context(), func() quorum.RenewRequest {
			r := b.renewal(carol, 0)
			r.Name = alice.String()
			return r
		}()); err != nil {
			b.Errorf("its name for another session: %v", err)
		}
	}},
}
