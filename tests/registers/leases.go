package registers

import (
	"errors"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// leaseRows are about who keeps whom out, and for how long.
var leaseRows = []row{
	{"a lease keeps all others out and its holder in", func(b *bench) {
		b.own(alice, 1, section)
		got := b.prepare(bob, 2, section)
		if left := b.wantKeptOut("another session", got); got.Holder != alice || left > lease {
			b.Errorf("got holder %v for %v, want %v for at most %v", got.Holder, left, alice, lease)
		}
		b.want("a read tells the same", b.read(bob, section), quorum.VerdictHeld)
		b.wantState("nothing was promised", section, epoch(1, alice), seq.Epoch{}, 0)
		b.want("a register beside it", b.prepare(bob, 2, section1), quorum.VerdictOK)
		b.want("the holder, a round up", b.prepare(alice, 2, section), quorum.VerdictOK)
	}},
	{"a lease ends when it was said to and not before", func(b *bench) {
		b.needClock()
		b.own(alice, 1, section)
		b.Advance(lease / 2)
		left := b.wantKeptOut("half-way", b.prepare(bob, 2, section))
		if left < lease/2 {
			b.Errorf("half-way it has %v left, want %v", left, lease/2)
		}
		b.Advance(lease/2 - time.Millisecond)
		b.wantKeptOut("shortly before the end", b.prepare(bob, 2, section))
		b.Advance(left)
		b.want("after the end", b.prepare(bob, 2, section), quorum.VerdictOK)
	}},
	{"a renewal lengthens the lease of everything attached", func(b *bench) {
		b.needClock()
		b.own(alice, 1, section, section1)
		for range 5 {
			b.Advance(lease * 3 / 4)
			if got := b.renew(alice, 2); got.Reset || len(got.Lost) > 0 {
				b.Fatalf("renew: %+v, want all kept", got)
			}
		}
		b.Advance(lease * 3 / 4)
		b.wantKeptOut("the first", b.prepare(bob, 2, section))
		b.wantKeptOut("the second", b.prepare(bob, 2, section1))
	}},
	{"a renewal for a shorter time does not shorten the lease", func(b *bench) {
		b.needClock()
		b.own(alice, 1, section)
		short := b.renewal(alice, 1)
		short.Lease = lease / 10
		b.renewWith(short)
		b.Advance(lease / 2)
		b.wantKeptOut("after the shorter time", b.prepare(bob, 2, section))
	}},
	{"only the promised epoch is leased", func(b *bench) {
		b.want("prepare", b.prepare(alice, 3, section), quorum.VerdictOK)
		missing := seq.SectionRegister(seq.SectionID(b.Mapping.Sections()))
		for _, bad := range []quorum.LeaseItem{item(section, 2), item(section, 4), item(section1, 1), item(missing, 1)} {
			if got := b.renew(alice, 0, bad); !slices.Equal(got.Refused, []quorum.LeaseItem{bad}) {
				b.Errorf("%v: refused %v, want it refused", bad, got.Refused)
			}
		}
		if got := b.renew(bob, 0, item(section, 3)); len(got.Refused) != 1 {
			b.Errorf("another session's epoch: refused %v, want it refused", got.Refused)
		}
		b.want("nobody is kept out", b.prepare(carol, 4, section), quorum.VerdictOK)
	}},
	{"a renewal does not bring a lost register back", func(b *bench) {
		b.needClock()
		b.own(alice, 1, section, section1)
		b.Advance(2 * lease)
		b.want("another takes it", b.prepare(bob, 2, section), quorum.VerdictOK)
		got := b.renew(alice, 2, item(section, 1))
		if !slices.Contains(got.Refused, item(section, 1)) {
			b.Errorf("got %+v, want the attach refused", got)
		}
		b.want("the new owner is not held up", b.prepare(bob, 3, section), quorum.VerdictOK)
		b.want("nor is anybody else", b.prepare(carol, 4, section), quorum.VerdictOK)
	}},
	{"a session is told what it lost until it drops it", func(b *bench) {
		b.needBareSteps() // else a register is lost only with all of its session
		b.own(alice, 1, section, section1)
		b.want("a step of a higher epoch takes it", b.step(bob, 2, section, 10), quorum.VerdictOK)
		for range 2 {
			if got := b.renew(alice, 2); !slices.Equal(got.Lost, []quorum.LeaseItem{item(section, 1)}) || got.Reset {
				b.Fatalf("got %+v, want section 0 lost", got)
			}
		}
		drop := b.renewal(alice, 1)
		drop.Drop = []quorum.LeaseItem{item(section, 1)}
		if got := b.renewWith(drop); len(got.Lost) > 0 || got.Reset {
			b.Errorf("after the drop: %+v, want nothing lost", got)
		}
		b.wantKeptOut("what it did not lose", b.prepare(bob, 2, section1))
	}},
	{"a session whose lease ended has nothing attached any more", func(b *bench) {
		b.needClock()
		b.own(alice, 1, section, section1)
		b.Advance(2 * lease)
		if got := b.renew(alice, 2, item(section, 1)); !got.Reset {
			b.Errorf("got %+v, want a reset", got)
		}
		b.wantKeptOut("attached anew", b.prepare(bob, 2, section))
		b.want("attached before", b.prepare(bob, 2, section1), quorum.VerdictOK)
	}},
	{"a session that believes in more than is attached is reset", func(b *bench) {
		b.own(alice, 1, section)
		if got := b.renew(alice, 2); !got.Reset {
			b.Errorf("got %+v, want a reset", got)
		}
		if got := b.renew(alice, 1, item(section, 1)); got.Reset || len(got.Refused) > 0 {
			b.Errorf("attached again: %+v, want it granted", got)
		}
	}},
	{"after a restart only the recorded owner gets in until every lease has ended", func(b *bench) {
		b.needRestart()
		b.needClock()
		b.own(alice, 1, section)
		b.restart()
		left := b.wantKeptOut("another session", b.prepare(bob, 2, section))
		if left < lease {
			b.Errorf("kept out for %v, want at least the lease of %v: nobody knows when it was granted", left, lease)
		}
		b.want("the recorded owner", b.prepare(alice, 1, section), quorum.VerdictOK)
		b.want("what nobody ever owned", b.prepare(bob, 1, section1), quorum.VerdictOK)
		b.Advance(lease - time.Millisecond)
		b.wantKeptOut("shortly before", b.prepare(bob, 2, section))
		b.Advance(left)
		b.want("after it", b.prepare(bob, 2, section), quorum.VerdictOK)
	}},
	{"the longest lease ever granted decides how long that is, over more than one restart", func(b *bench) {
		b.needRestart()
		b.needClock()
		b.want("prepare", b.prepare(alice, 1, section), quorum.VerdictOK)
		long := b.renewal(alice, 1, item(section, 1))
		long.Lease = b.MaxLease
		b.renewWith(long)
		b.restart()
		b.Advance(b.MaxLease / 2)
		b.restart()
		if left := b.wantKeptOut("another session", b.prepare(bob, 2, section)); left < b.MaxLease/2 {
			b.Errorf("kept out for %v, want at least %v", left, b.MaxLease/2)
		}
	}},
	{"an owner that attaches again after a restart keeps its lease", func(b *bench) {
		b.needRestart()
		b.needClock()
		b.own(alice, 1, section)
		b.restart()
		if b.renew(alice, 1).Reset {
			b.renew(alice, 1, item(section, 1))
		}
		b.Advance(lease * 9 / 10)
		b.renew(alice, 1)
		b.Advance(lease * 9 / 10)
		b.wantKeptOut("when all leases of before have ended", b.prepare(bob, 2, section))
	}},
	{"a lease is refused by name", func(b *bench) {
		b.own(alice, 1, section)
		for _, bad := range []struct {
			name   string
			change func(*quorum.RenewRequest)
			want   error
		}{
			{"too long", func(r *quorum.RenewRequest) { r.Lease = b.MaxLease + time.Millisecond }, seq.ErrBadLease},
			{"of no time", func(r *quorum.RenewRequest) { r.Lease = 0 }, seq.ErrBadLease},
			{"without a node name", func(r *quorum.RenewRequest) { r.Name = "" }, seq.ErrBadArgument},
			{"under the name of a live session", func(r *quorum.RenewRequest) { r.Name = alice.String() }, seq.ErrNameTaken},
		} {
			req := b.renewal(bob, 0)
			bad.change(&req)
			if _, err := b.store.Renew(b.context(), req); !errors.Is(err, bad.want) {
				b.Errorf("%s: got %v, want %v", bad.name, err, bad.want)
			}
		}
	}},
	{"live sessions are listed until their lease ends", func(b *bench) {
		b.needClock()
		b.own(alice, 1, section, section1)
		got := b.renew(bob, 0).Sessions
		if len(got) != 2 || got[0].Session != alice || got[0].Name != alice.String() || got[0].Addr != "127.0.0.1:1" || got[0].Attached != 2 ||
			got[0].Remaining <= 0 || got[0].Remaining > lease {
			b.Fatalf("got %+v, want alice and bob", got)
		}
		b.Advance(2 * lease)
		if got := b.renew(bob, 0).Sessions; len(got) != 1 || got[0].Session != bob {
			b.Errorf("after alice's lease: got %+v, want bob", got)
		}
	}},
}
