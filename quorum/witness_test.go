package quorum

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seqsvr/seqsvr/seq"
)

// answers has store i answer a renew that was sent before; again if it asks for the next.
func (r *renewal) answers(i int, sent sentRenew, reply RenewReply) (again bool) {
	return r.renewed(r.place(i), sent, reply, r.clock.Now())
}

// calm takes back the wish for a renew of every store.
func (r *renewal) calm() {
	for _, s := range r.now.Load().stores {
		select {
		case <-s.kick:
		default:
		}
	}
}

func (r *renewal) kicked(i int) bool { return len(r.place(i).kick) > 0 }

var anyOrder = cmpopts.SortSlices(func(a, b Claim) bool { return a.Store+a.By < b.Store+b.By })

// wantTold wants store i to be told this of itself and of its fellows.
func (r *renewal) wantTold(when string, i int, seen, fellows []Claim) {
	r.Helper()
	req, _ := r.send(i)
	if diff := cmp.Diff(seen, req.Seen, anyOrder, cmpopts.EquateEmpty()); diff != "" {
		r.Errorf("%s: store %d of itself (-want +got)\n%s", when, i, diff)
	}
	if diff := cmp.Diff(fellows, req.Fellows, anyOrder, cmpopts.EquateEmpty()); diff != "" {
		r.Errorf("%s: store %d of its fellows (-want +got)\n%s", when, i, diff)
	}
}

func TestTheNewestOfEachDiskIsRememberedAndToldToAll(t *testing.T) {
	r := newRenewal(t, 3, true)
	of := func(store string, commits uint64) Claim { return Claim{Store: store, Boot: 1, Commits: commits} }
	r.wantTold("at first", 0, nil, nil)
	r.Witness(of("uuid-0", 9)) // with a promise, before the first renewal
	r.wantTold("by a promise", 0, []Claim{of("uuid-0", 9)}, nil)
	for i, commits := range []uint64{4, 5, 6} {
		uuid := []string{"uuid-0", "uuid-1", "uuid-2"}[i]
		_, sent := r.send(i)
		if r.answers(i, sent, RenewReply{UUID: uuid, BootCount: 1, Commits: commits, Remembered: []Claim{of("uuid-0", 99), of("uuid-1", 99), of("uuid-2", 99)}}) {
			t.Errorf("store %d wants the next renewal at once", i)
		}
	}
	r.Witness(of("uuid-0", 7))
	r.Witness(of("stranger", 70))
	r.wantTold("later", 0, []Claim{of("uuid-0", 9)}, []Claim{of("uuid-1", 5), of("uuid-2", 6)})
	r.wantTold("later", 2, []Claim{of("uuid-2", 6)}, []Claim{of("uuid-0", 9), of("uuid-1", 5)})
	r.renew(RenewReply{Commits: 3}, 1) // an old copy of the disk does not make it forgotten
	r.wantTold("less", 1, []Claim{of("uuid-1", 5)}, []Claim{of("uuid-0", 9), of("uuid-2", 6)})
}

// A store that has restarted grants nothing before it has heard what each of its fellows
// said after that.
func TestAStoreThatHasRestartedIsToldWhatItsFellowsSaidSince(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.cfg.Secret = seq.NewSecret("")
	h := r.Attach(section, 4)
	r.renew(RenewReply{Commits: 5}, 0, 1)
	r.until(h, Term(lease))
	_, early := r.send(1)
	_, sent := r.send(0)
	r.calm()
	r.clock.Advance(lease / 2)
	own := Claim{Store: "uuid-0", Boot: 2, Commits: 1}
	asks := RenewReply{UUID: "uuid-0", BootCount: 2, Commits: 1, Nonce: 7,
		Remembered: []Claim{{Store: "uuid-0", Boot: 9, Commits: 1000}}} // its own word is none
	if r.answers(0, sent, asks) || r.kicked(0) || !r.kicked(1) || !r.kicked(2) {
		t.Errorf("asked again: store 0 %v, 1 %v, 2 %v, want its fellows alone", r.kicked(0), r.kicked(1), r.kicked(2))
	}
	r.until(h, 0) // of the stores that have it one is left
	if got := r.Connected(); got != 2 {
		t.Errorf("%d connected", got)
	}
	req, first := r.send(0)
	if req.Nonce != 7 || len(req.Attach) != 1 || req.Attached != 1 || req.Secret != r.cfg.Secret {
		t.Errorf("it is sent %+v", req)
	}
	said := func(commits uint64) RenewReply {
		return RenewReply{UUID: "uuid-1", BootCount: 1, Commits: 5, Remembered: []Claim{{Store: "uuid-0", By: "liar", Boot: 1, Commits: commits}, {Store: "uuid-2", Boot: 1, Commits: 3}}}
	}
	fellow := []Claim{{Store: "uuid-1", Boot: 1, Commits: 5}}
	r.answers(1, early, said(50))
	r.wantTold("by what was sent before", 0, []Claim{own}, fellow)
	r.calm()
	_, since := r.send(1)
	r.answers(1, since, said(60))
	if !r.kicked(0) || r.kicked(2) {
		t.Errorf("to be told at once: store 0 %v, store 2 %v", r.kicked(0), r.kicked(2))
	}
	r.wantTold("by what was sent since", 0, []Claim{own, {Store: "uuid-0", By: "uuid-1", Boot: 1, Commits: 60}}, fellow)
	r.calm()
	_, same := r.send(1)
	if r.answers(1, same, said(60)); r.kicked(0) {
		t.Error("told again at once what it was told before: two stores that are compared would never rest")
	}
	_, all := r.send(0)
	if !r.answers(0, first, asks) {
		t.Error("more is known than was told, and the next renewal waits")
	}
	if r.answers(0, all, asks) {
		t.Error("all that is known was told, and the next renewal does not wait")
	}
	asks.BootCount, asks.Nonce = 3, 8
	_, sent = r.send(0)
	r.answers(0, sent, asks)
	own.Boot = 3
	r.wantTold("after another start", 0, []Claim{own}, fellow)

	_, since = r.send(1)
	r.answers(1, since, said(60))
	_, sent = r.send(0)
	r.answers(0, sent, RenewReply{UUID: "uuid-0", BootCount: 3, Commits: 1}) // it votes
	if req, _ := r.send(0); req.Nonce != 0 {
		t.Errorf("nonce %d of a store that votes", req.Nonce)
	}
	r.wantTold("once it votes", 0, []Claim{own}, fellow)
	r.until(h, Term(lease)) // by a renewal of each now
}

func TestAStoreThatGrantsNothingYetIsNotConnected(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.renew(RenewReply{}, 0, 1, 2)
	r.clock.Advance(2 * lease)
	r.renew(RenewReply{BootCount: 2, Nonce: 7}, 0)
	if got := r.Connected(); got != 0 {
		t.Errorf("%d connected", got)
	}
}

func TestSessionsHaveALeaseToComeBackToAStoreThatWasCompared(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.renew(RenewReply{Sessions: []SessionInfo{{Session: other, Name: "b", Remaining: lease}}}, 0, 1, 2)
	r.renew(RenewReply{BootCount: 2, Nonce: 7}, 0, 1)
	r.renew(RenewReply{BootCount: 2}, 0, 1)
	if r.Sessions()[0].Dead {
		t.Error("dead because two stores restarted")
	}
	r.clock.Advance(lease)
	r.renew(RenewReply{BootCount: 2}, 0, 1)
	if !r.Sessions()[0].Dead {
		t.Error("alive though it did not come back within a lease")
	}
}

func TestAnotherDiskAtTheSameAddressHasNothingOfTheOneBefore(t *testing.T) {
	r := newRenewal(t, 3, false)
	h := r.Attach(section, 4)
	r.renew(RenewReply{Commits: 50}, 0, 1)
	r.until(h, Term(lease))
	r.renew(RenewReply{UUID: "another", Commits: 3}, 0)
	r.until(h, 0)
	r.wantTold("the other disk", 0, []Claim{{Store: "another", Boot: 1, Commits: 3}}, []Claim{{Store: "uuid-1", Boot: 1, Commits: 50}})
	r = newRenewal(t, 3, true)
	if r.renew(RenewReply{UUID: "stranger"}, 0); r.Connected() != 0 {
		t.Error("a store counts that answers under another uuid than it is configured with")
	}
}

func TestASessionThatNoStoreHasIsDead(t *testing.T) {
	listed := RenewReply{Sessions: []SessionInfo{{Session: other, Name: "b", Remaining: time.Hour}}}
	dead := func(r *renewal) bool {
		r.Helper()
		got := r.Sessions()
		return len(got) == 1 && got[0].Dead
	}
	r := newRenewal(t, 3, true)
	r.renew(listed, 0)
	r.clock.Advance(2 * lease)
	r.renew(RenewReply{}, 1, 2)
	if dead(r) {
		t.Error("dead though the one store that had it has it still")
	}
	if got := r.Sessions()[0].FreeAt; got != 0 {
		t.Errorf("free at %v, want at once: two of three never had it", got)
	}
	r.renew(RenewReply{}, 0)
	if !dead(r) {
		t.Error("alive though the one store that had it let it go")
	}

	r = reconfigured(t, true, func(r *renewal) { r.renew(listed, 2) })
	r.renew(RenewReply{}, 0)
	if !dead(r) {
		t.Error("alive though the one store that had it is no member any more")
	}
	r.clock.Advance(keepDead)
	if r.renew(RenewReply{}, 0); len(r.Sessions()) != 0 {
		t.Error("it is shown for ever")
	}
}
