package quorum

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// place is store i of those that vote now.
func (r *renewal) place(i int) *storeLease { return r.now.Load().stores[i] }

// reconfigured is a renewal of three stores after the third went and a fourth came, which
// has the place of the third by then; before runs while the third is still there.
func reconfigured(t *testing.T, known bool, before func(r *renewal)) *renewal {
	t.Helper()
	r := newRenewal(t, 3, known)
	before(r)
	_, stores := fakeStores(4, known)
	for version, list := range [][]NamedStore{stores[:2], {stores[0], stores[1], stores[3]}} {
		if err := r.Reconfigure(Ref{Members: uint64(version) + 2}, 2, list); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.place(2).index; got != 2 {
		t.Fatalf("the store that came has place %d, want that of the one that went", got)
	}
	return r
}

func TestNothingOfAStoreThatWentCountsForTheOneInItsPlace(t *testing.T) {
	item := LeaseItem{Register: section, Round: 4}
	t.Run("a late answer", func(t *testing.T) {
		var goes *storeLease
		var late sentRenew
		var h *Hold
		r := reconfigured(t, false, func(r *renewal) {
			h = r.Attach(section, 4)
			r.renew(RenewReply{}, 1)
			goes = r.place(2)
			_, late = r.send(2)
		})
		r.renewed(goes, late, RenewReply{UUID: "uuid-2", BootCount: 1, Lost: []LeaseItem{item}}, r.clock.Now())
		if got := r.Connected(); got != 1 || h.Lost() || len(r.lost) != 0 {
			t.Errorf("%d connected, the hold lost %v, want the one that has answered, and the hold as it was", got, h.Lost())
		}
		if _, _, current := r.prepareRenew(goes); current {
			t.Error("the store that went is renewed")
		}
	})
	t.Run("how many it has", func(t *testing.T) {
		r := reconfigured(t, true, func(r *renewal) {
			r.Attach(section, 4)
			r.renew(RenewReply{}, 0, 1, 2)
		})
		r.renew(RenewReply{UUID: "uuid-3"}, 2)
		if req, _ := r.send(2); req.Attached != 1 {
			t.Errorf("it is told that it has %d, want 1", req.Attached)
		}
	})
	t.Run("what it was told", func(t *testing.T) {
		var h *Hold
		r := reconfigured(t, true, func(r *renewal) {
			h = r.Attach(section, 4)
			r.renew(RenewReply{}, 0, 1, 2)
		})
		h.Drop()
		if req, _ := r.send(2); len(req.Drop)+len(req.Attach) != 0 {
			t.Errorf("attach %v, drop %v at a store that never heard of it", req.Attach, req.Drop)
		}
	})
	t.Run("what it refused", func(t *testing.T) {
		var h *Hold
		r := reconfigured(t, true, func(r *renewal) {
			h = r.Attach(section, 4)
			r.renew(RenewReply{}, 0)
			r.renew(RenewReply{Refused: []LeaseItem{item}}, 2)
		})
		r.renew(RenewReply{Refused: []LeaseItem{item}}, 1)
		if h.Lost() {
			t.Error("lost by the refusal of one store of three")
		}
	})
	t.Run("whom it let go", func(t *testing.T) {
		listed := RenewReply{Sessions: []SessionInfo{{Session: other, Name: "b", Remaining: time.Hour}}}
		r := reconfigured(t, true, func(r *renewal) {
			r.renew(listed, 0, 1, 2)
			r.clock.Advance(2 * lease)
			r.renew(RenewReply{}, 2)
		})
		r.renew(RenewReply{}, 0)
		if got := r.Sessions(); len(got) != 1 || got[0].Dead {
			t.Errorf("got %+v, want it alive: one of three let it go", got)
		}
	})
}

// The list can change while the losses of an answer are told.
func TestAStoreThatGoesWhileItsLossesAreToldCountsForNothingMore(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.Attach(section, 4)
	kept := r.Attach(seq.SectionRegister(8), 4)
	r.renew(RenewReply{}, 0, 1, 2)
	goes := r.place(2)
	r.clock.Advance(lease / 2)
	_, stores := fakeStores(4, true)
	r.cfg.OnLost = func(*Hold) {
		for version, list := range [][]NamedStore{stores[:2], {stores[0], stores[1], stores[3]}} {
			if err := r.Reconfigure(Ref{Members: uint64(version) + 2}, 2, list); err != nil {
				t.Error(err)
			}
		}
	}
	r.clock.Advance(lease / 2)
	_, sent := r.send(2)
	again := r.renewed(goes, sent, RenewReply{UUID: "uuid-2", BootCount: 1, Lost: []LeaseItem{{Register: section, Round: 4}},
		Sessions: []SessionInfo{{Session: other, Name: "b", Remaining: lease}}}, r.clock.Now())
	if got := r.Connected(); got != 0 || again || r.news != 0 || len(r.Sessions()) != 0 {
		t.Errorf("%d connected, again %v, %d sessions told, want nothing of the store that went", got, again, r.news)
	}
	if now := r.clock.Now(); kept.Until() > now {
		t.Errorf("held until %v at %v", kept.Until(), now)
	}
}

func TestMoreStoresThanThereArePlacesAreRefused(t *testing.T) {
	r := newRenewal(t, 9, true)
	_, stores := fakeStores(18, true)
	if err := r.Reconfigure(Ref{Members: 2}, 5, stores[9:]); !errors.Is(err, ErrBadConfig) {
		t.Errorf("got %v, want ErrBadConfig", err)
	}
	if got := r.now.Load(); got.ref.Members != 0 || len(got.stores) != 9 {
		t.Errorf("the list in force is %+v", got.ref)
	}
	if err := r.Reconfigure(Ref{Members: 2}, 5, stores[4:13]); err != nil { // the leases go on
		t.Error(err)
	}
}

func TestAChangeOfTheListIsToldAtOnceAndEndsWhatIsUnderWayToTheStoresThatWent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 3, nil)
		synctest.Wait()
		ended := false // written by the renew loop alone
		fakes[2].onRenew(func(ctx context.Context, _ RenewRequest) (RenewReply, error) {
			<-ctx.Done()
			ended = true
			return RenewReply{}, ctx.Err()
		})
		l.Kick()
		synctest.Wait()
		before := fakes[0].count("renew")
		_, stores := fakeStores(2, true)
		if err := l.Reconfigure(Ref{Members: 2}, 2, stores); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := fakes[0].count("renew") - before; got != 1 || !ended {
			t.Errorf("a store that stays was renewed %d times at once, and the renewal of the one that went has ended: %v", got, ended)
		}
	})
}

func TestAStoreThatHasStartedAnewIsRenewedAgainAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 1, nil)
		h := l.Attach(section, 1)
		<-h.Ready()
		fakes[0].onRenew(func(context.Context, RenewRequest) (RenewReply, error) { return RenewReply{BootCount: 2}, nil })
		l.Kick()
		synctest.Wait()
		if got, want := h.Until()-l.cfg.Clock.Now(), Term(lease); got != want {
			t.Errorf("%v left without a moment's wait, want %v", got, want)
		}
	})
}

func TestNoStoreIsRenewedAfterTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, stores := fakeStores(4, true)
		l, err := NewLeases(LeaseConfig{Session: me, Name: "a", Lease: lease, N: 3, W: 2, Clock: bubble.NewClock()}, stores[:3])
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if err := l.Reconfigure(Ref{Members: 2}, 2, stores[1:]); err != nil {
			t.Fatal(err)
		}
		if came := l.now.Load().stores[2]; came.stop != nil {
			t.Error("renewals to a store that came after the end were begun")
		}
	})
}

func TestAStoreThatWentIsSentNothing(t *testing.T) {
	r := newRenewal(t, 3, true)
	goes := r.place(2)
	_, stores := fakeStores(2, true)
	if err := r.Reconfigure(Ref{Members: 2}, 2, stores); err != nil {
		t.Fatal(err)
	}
	if again := r.renewOnce(t.Context(), goes); again || goes.store.Store.(*fakeStore).count("renew") != 0 {
		t.Error("it was renewed")
	}
}

func TestTheStoresThatDidNotAnswerWithinTheLeaseAreNamed(t *testing.T) {
	r := newRenewal(t, 3, true)
	check := func(when string, want ...string) {
		t.Helper()
		if got := r.Missing(); fmt.Sprint(got) != fmt.Sprint(want) || r.Connected() != 3-len(want) {
			t.Errorf("%s: %d connected, missing %v, want %v", when, r.Connected(), got, want)
		}
	}
	check("before the first answer", "store0", "store1", "store2")
	r.renew(RenewReply{}, 1)
	check("one has answered", "store0", "store2")
	r.clock.Advance(Term(lease) - 1)
	r.renew(RenewReply{}, 0, 2)
	check("all have")
	r.clock.Advance(1)
	check("the lease of one is over", "store1")
}

func TestAHoldThatIsOverIsNotAttachedAgainAndDroppedOnce(t *testing.T) {
	r := newRenewal(t, 3, true)
	h := r.Attach(section, 4)
	r.renew(RenewReply{Refused: []LeaseItem{{Register: section, Round: 4}}}, 0)
	h.Drop()
	r.renew(RenewReply{}, 0)
	r.clock.Advance(2 * lease)
	if req, _ := r.send(0); len(req.Attach) != 0 || req.Attached != 0 {
		t.Errorf("attach %v of %d", req.Attach, req.Attached)
	}
	h.Drop()
	if req, _ := r.send(0); len(req.Drop) != 0 {
		t.Errorf("drop %v again after it was answered", req.Drop)
	}
}

func TestALeaseIsTrustedForItsTermToTheNanosecond(t *testing.T) {
	if got, want := Term(time.Second), 970*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	_, stores := fakeStores(3, true)
	cfg := LeaseConfig{Session: me, Lease: MinLease, N: 3, W: 2, Clock: newRenewal(t, 3, true).clock}
	if _, err := NewLeases(cfg, stores); err != nil {
		t.Errorf("the shortest lease: %v", err)
	}
}
