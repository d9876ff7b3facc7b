package quorum

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// run starts leases over n fake stores inside of a bubble, and stops them with the test.
func run(t *testing.T, n int, edit func(*LeaseConfig)) (*Leases, []*fakeStore) {
	t.Helper()
	fakes, stores := fakeStores(n, true)
	cfg := LeaseConfig{Session: me, Name: "a", Lease: lease, N: n, W: n/2 + 1, Clock: bubble.NewClock()}
	if edit != nil {
		edit(&cfg)
	}
	l, err := NewLeases(cfg, stores)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return l, fakes
}

func TestEachStoreIsRenewedFiveTimesALease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 3, nil)
		fakes[2].onRenew(func(context.Context, RenewRequest) (RenewReply, error) { return RenewReply{}, errDropped })
		time.Sleep(2*lease - time.Millisecond)
		for i, f := range fakes {
			if got := f.count("renew"); got != 10 {
				t.Errorf("store %d: %d renews in two leases, want 10", i, got)
			}
		}
		if got := l.Connected(); got != 2 {
			t.Errorf("%d connected, want 2", got)
		}
		if err := l.Run(t.Context()); !errors.Is(err, ErrBadConfig) {
			t.Errorf("second run: %v", err)
		}
	})
}

func TestABurstOfAttachesTravelsInOneMessage(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 1, nil)
		synctest.Wait()
		gate := make(chan struct{})
		var sizes []int // written by the renew loop alone
		fakes[0].onRenew(func(_ context.Context, req RenewRequest) (RenewReply, error) {
			<-gate
			sizes = append(sizes, len(req.Attach))
			return RenewReply{BootCount: 1}, nil
		})
		l.Kick()
		synctest.Wait() // one renew is under way
		var last *Hold
		for i := range seq.SectionID(5000) {
			last = l.Attach(seq.SectionRegister(i), 1)
		}
		close(gate)
		<-last.Ready()
		synctest.Wait()
		if diff := cmp.Diff([]int{0, 5000}, sizes); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnAttachDoesNotWaitForTheNextRenew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 3, nil)
		fakes[2].onRenew(func(context.Context, RenewRequest) (RenewReply, error) { return RenewReply{}, errDropped })
		synctest.Wait()
		start := time.Now()
		<-l.Attach(section, 1).Ready()
		if got := time.Since(start); got != 0 {
			t.Errorf("ready after %s", got)
		}
	})
}

func TestALeaseLastsWhileWStoresAnswerAndEndsWhenTheyDoNot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 3, nil)
		h := l.Attach(section, 1)
		<-h.Ready()
		silent := func(context.Context, RenewRequest) (RenewReply, error) { return RenewReply{}, errDropped }
		fakes[0].onRenew(silent)
		time.Sleep(10 * lease)
		if now := l.cfg.Clock.Now(); now >= h.Until() {
			t.Errorf("ended at %s with two of three stores", h.Until())
		}
		fakes[1].onRenew(silent)
		time.Sleep(lease)
		if now := l.cfg.Clock.Now(); now < h.Until() || h.Lost() {
			t.Errorf("at %s until %s, lost %t, want ended and not lost", now, h.Until(), h.Lost())
		}
	})
}

func TestAStuckRenewIsGivenUpAfterTheLeaseAndDelaysNoOtherStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 3, nil)
		calls := 0 // written by the renew loop alone
		fakes[0].onRenew(func(ctx context.Context, _ RenewRequest) (RenewReply, error) {
			if calls++; calls == 1 {
				<-ctx.Done()
				return RenewReply{}, ctx.Err()
			}
			return RenewReply{BootCount: 1}, nil
		})
		<-l.Attach(section, 1).Ready()
		time.Sleep(lease + time.Millisecond)
		synctest.Wait()
		if calls < 2 || l.Connected() != 3 {
			t.Errorf("%d renews at the stuck store, %d connected, want it back", calls, l.Connected())
		}
	})
}

func TestASlowRenewShortensTheLeaseByWhatItTook(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const slow = lease / 2
		l, fakes := run(t, 1, nil)
		synctest.Wait()
		fakes[0].onRenew(func(context.Context, RenewRequest) (RenewReply, error) {
			time.Sleep(slow)
			return RenewReply{BootCount: 1}, nil
		})
		h := l.Attach(section, 1)
		<-h.Ready()
		if got, want := h.Until()-l.cfg.Clock.Now(), Term(lease)-slow; got != want {
			t.Errorf("%s left, want %s", got, want)
		}
	})
}

func TestRefusalsThatLastAreTold(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var told []error // written by the renew loop alone
		_, fakes := run(t, 1, func(c *LeaseConfig) { c.OnRefused = func(err error) { told = append(told, err) } })
		fakes[0].onRenew(func(context.Context, RenewRequest) (RenewReply, error) { return RenewReply{}, seq.ErrNameTaken })
		time.Sleep(lease / 2)
		fakes[0].onRenew(func(context.Context, RenewRequest) (RenewReply, error) { return RenewReply{}, errDropped })
		time.Sleep(lease)
		synctest.Wait()
		if len(told) == 0 || len(told) > 3 || !errors.Is(told[0], seq.ErrNameTaken) {
			t.Errorf("told %v, want the name, each time", told)
		}
	})
}

func TestAStoreThatResetsEveryTimeIsNotHammered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, fakes := run(t, 1, nil)
		fakes[0].onRenew(func(context.Context, RenewRequest) (RenewReply, error) {
			return RenewReply{BootCount: 1, Reset: true}, nil
		})
		h := l.Attach(section, 1)
		time.Sleep(lease - time.Millisecond)
		if got := fakes[0].count("renew"); got > 8 {
			t.Errorf("%d renews in a lease", got)
		}
		if h.Until() != 0 {
			t.Error("held by resets")
		}
	})
}

func TestSessionsAreFreeWhenWStoresLetThemGo(t *testing.T) {
	r := newRenewal(t, 3, true)
	listed := func(remaining time.Duration) RenewReply {
		return RenewReply{Sessions: []SessionInfo{{Session: other, Name: "b", Addr: "b:1", Remaining: remaining, Attached: 4}}}
	}
	start := r.clock.Now()
	view := func(free time.Duration, attached uint32, dead bool) []SessionView {
		return []SessionView{{Session: other, Name: "b", Addr: "b:1", FreeAt: start + free, Attached: attached, Dead: dead}}
	}
	check := func(when string, want []SessionView, news int) {
		t.Helper()
		if diff := cmp.Diff(want, r.Sessions(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
		if r.news != news {
			t.Errorf("%s: told %d times of sessions, want %d", when, r.news, news)
		}
	}
	r.renew(listed(700*time.Millisecond), 0)
	check("at one store", view(700*time.Millisecond, 4, false), 1)
	r.renew(listed(900*time.Millisecond), 1)
	r.renew(listed(800*time.Millisecond), 2)
	check("at all", view(800*time.Millisecond, 4, false), 1)
	r.clock.Advance(400 * time.Millisecond)
	r.renew(RenewReply{}, 0)
	check("let go by one", view(800*time.Millisecond, 4, false), 1)
	r.clock.Advance(300 * time.Millisecond)
	r.renew(RenewReply{}, 2)
	check("let go by two", view(700*time.Millisecond, 4, true), 2)
	r.renew(listed(time.Second), 0, 1, 2)
	check("back", view(1700*time.Millisecond, 4, false), 3)
	r.renew(RenewReply{}, 0, 1, 2)
	check("gone", view(700*time.Millisecond, 0, true), 4)
	r.clock.Advance(keepDead)
	r.renew(RenewReply{}, 0)
	check("forgotten", nil, 5)
}

func TestARestartedStoreDoesNotDeclareSessionsDead(t *testing.T) {
	r := newRenewal(t, 3, true)
	reply := RenewReply{Sessions: []SessionInfo{{Session: other, Name: "b", Remaining: lease}}}
	r.renew(reply, 0, 1, 2)
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
