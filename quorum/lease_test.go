package quorum

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
)

const lease = time.Second

// renewal is a Leases driven by hand: no goroutine, a clock that stands.
type renewal struct {
	*testing.T
	*Leases
	clock *clock.Manual
	lost  []*Hold
	err   []error
	news  int
}

func newRenewal(t *testing.T, n int, known bool) *renewal {
	t.Helper()
	r := &renewal{T: t, clock: clock.NewManual(time.Hour)}
	_, stores := fakeStores(n, known)
	var err error
	r.Leases, err = NewLeases(LeaseConfig{
		Session: me, Name: "a", Addr: "a:1", Lease: lease, N: n, W: n/2 + 1, Clock: r.clock,
		OnLost: func(h *Hold) {
			if h.Until() != 0 || !h.Lost() {
				t.Errorf("%s is told to be lost and is still held", h.Register())
			}
			r.lost = append(r.lost, h)
		},
		OnRefused:  func(err error) { r.err = append(r.err, err) },
		OnSessions: func() { r.news++ },
	}, stores)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// send makes the renew that store i would be sent now.
func (r *renewal) send(i int) (RenewRequest, sentRenew) {
	req, sent, _ := r.prepareRenew(r.now.Load().stores[i])
	sent.at = r.clock.Now()
	return req, sent
}

// reply has store i answer a renew that was sent before.
func (r *renewal) reply(i int, sent sentRenew, reply RenewReply) {
	if reply.UUID == "" {
		reply.UUID = fmt.Sprintf("uuid-%d", i)
	}
	if reply.BootCount == 0 {
		reply.BootCount = 1
	}
	r.renewed(r.now.Load().stores[i], sent, reply, r.clock.Now())
}

// renew sends a renew to the stores and has them answer at once.
func (r *renewal) renew(reply RenewReply, stores ...int) {
	for _, i := range stores {
		_, sent := r.send(i)
		r.reply(i, sent, reply)
	}
}

// until wants the hold to end d after now; d = 0 stands for not held.
func (r *renewal) until(h *Hold, d time.Duration) {
	r.Helper()
	want := time.Duration(0)
	if d != 0 {
		want = r.clock.Now() + d
	}
	if got := h.Until(); got != want {
		r.Errorf("until %s, want %s (now is %s)", got, want, r.clock.Now())
	}
}

func isReady(h *Hold) bool {
	select {
	case <-h.Ready():
		return true
	default:
		return false
	}
}

func TestATermEndsBeforeTheSlowestHolderAndTheFastestStoreDisagree(t *testing.T) {
	for _, l := range []time.Duration{MinLease, 600 * time.Millisecond, time.Second, time.Minute} {
		// Ticks that a clock slow by Rho shows while one fast by Rho shows l.
		if got, limit := Term(l), time.Duration(float64(l)*(1-Rho)/(1+Rho))-Guard; got > limit || got <= 0 {
			t.Errorf("Term(%s) = %s, want above 0 and at most %s", l, got, limit)
		}
	}
}

func TestALeaseConfigurationIsChecked(t *testing.T) {
	_, stores := fakeStores(3, true)
	good := LeaseConfig{Session: me, Lease: lease, N: 3, W: 2, Clock: new(clock.Manual)}
	for name, c := range map[string]struct {
		edit func(*LeaseConfig)
		want error
	}{
		"good":        {func(*LeaseConfig) {}, nil},
		"W too small": {func(c *LeaseConfig) { c.W = 1 }, ErrBadConfig},
		"no session":  {func(c *LeaseConfig) { c.Session = 0 }, ErrBadConfig},
		"no clock":    {func(c *LeaseConfig) { c.Clock = nil }, ErrBadConfig},
		"short lease": {func(c *LeaseConfig) { c.Lease = MinLease - 1 }, seq.ErrBadLease},
		"other N":     {func(c *LeaseConfig) { c.N, c.W = 5, 3 }, ErrBadConfig},
	} {
		cfg := good
		c.edit(&cfg)
		if _, err := NewLeases(cfg, stores); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestALeaseIsCountedFromTheSendingNotTheAnswer(t *testing.T) {
	r := newRenewal(t, 3, true)
	h := r.Attach(section, 5)
	_, zero := r.send(0)
	_, one := r.send(1)
	r.clock.Advance(300 * time.Millisecond)
	r.reply(0, zero, RenewReply{})
	r.reply(1, one, RenewReply{})
	r.until(h, Term(lease)-300*time.Millisecond)
}

func TestALeaseOfFewerThanWStoresIsNone(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		r := newRenewal(t, n, true)
		h := r.Attach(section, 5)
		for i := range n/2 + 1 {
			r.until(h, 0)
			if isReady(h) {
				t.Errorf("N=%d: ready at %d stores", n, i)
			}
			r.renew(RenewReply{}, i)
		}
		r.until(h, Term(lease))
		if !isReady(h) {
			t.Errorf("N=%d: not ready at W stores", n)
		}
	}
}

func TestALeaseEndsByTheWthLargestSendTime(t *testing.T) {
	r := newRenewal(t, 5, true)
	h := r.Attach(section, 5)
	for i, store := range []int{3, 0, 4, 1, 2} { // at 0, 100, ... 400 ms
		if i > 0 {
			r.clock.Advance(100 * time.Millisecond)
		}
		r.renew(RenewReply{}, store)
	}
	r.until(h, Term(lease)-200*time.Millisecond) // the third largest is of 200 ms
	r.renew(RenewReply{}, 3)
	r.until(h, Term(lease)-100*time.Millisecond)

	r = newRenewal(t, 5, true) // one store less than all, where the third is not the middle
	h = r.Attach(section, 5)
	for i := range 4 {
		r.renew(RenewReply{}, i)
		r.clock.Advance(100 * time.Millisecond)
	}
	r.until(h, Term(lease)-300*time.Millisecond)
}

func TestAnOvertakenAnswerNeverMovesALeaseBack(t *testing.T) {
	r := newRenewal(t, 1, true)
	h := r.Attach(section, 5)
	r.renew(RenewReply{}, 0)
	_, old := r.send(0)
	r.clock.Advance(100 * time.Millisecond)
	r.renew(RenewReply{}, 0)
	r.reply(0, old, RenewReply{})
	r.until(h, Term(lease))
}

func TestAnAnswerToARenewSentBeforeTheAttachDoesNotCountForIt(t *testing.T) {
	r := newRenewal(t, 1, true)
	_, before := r.send(0)
	h := r.Attach(section, 5)
	r.reply(0, before, RenewReply{})
	r.until(h, 0)
	r.renew(RenewReply{}, 0)
	r.until(h, Term(lease))
}

func TestAnAnswerToARenewSentBeforeAResetDoesNotCount(t *testing.T) {
	r := newRenewal(t, 1, true)
	h := r.Attach(section, 5)
	_, first := r.send(0)
	_, second := r.send(0)
	r.reply(0, first, RenewReply{Reset: true})
	r.reply(0, second, RenewReply{})
	r.until(h, 0)
	req, sent := r.send(0)
	if len(req.Attach) != 1 {
		t.Errorf("attach %v, want the hold again", req.Attach)
	}
	r.reply(0, sent, RenewReply{})
	r.until(h, Term(lease))
}

func TestTheStoreIsToldHowManyItShouldHave(t *testing.T) {
	r := newRenewal(t, 1, true)
	for i := range seq.SectionID(10) {
		r.Attach(seq.SectionRegister(i), 1)
	}
	req, sent := r.send(0)
	if len(req.Attach) != 10 || req.Attached != 10 {
		t.Errorf("attach %d of %d, want 10 of 10", len(req.Attach), req.Attached)
	}
	r.Attach(seq.SectionRegister(10), 1).Drop()
	r.reply(0, sent, RenewReply{Commits: 77})
	r.Attach(seq.SectionRegister(0), 1).Drop()
	req, _ = r.send(0)
	if len(req.Attach) != 0 || len(req.Drop) != 1 || req.Attached != 9 || len(req.Seen) != 1 || req.Seen[0].Commits != 77 {
		t.Errorf("attach %d, drop %d of %d, seen %v, want 0, 1 of 9, 77", len(req.Attach), len(req.Drop), req.Attached, req.Seen)
	}
}

func TestANewRoundReplacesTheOldOneQuietly(t *testing.T) {
	r := newRenewal(t, 1, true)
	old := r.Attach(section, 5)
	r.renew(RenewReply{}, 0)
	if r.Attach(section, 5) != old {
		t.Error("the same epoch gives another hold")
	}
	if !r.Attach(section, 4).Lost() {
		t.Error("an older epoch was attached")
	}
	h := r.Attach(section, 6)
	r.until(old, 0)
	req, sent := r.send(0)
	if len(req.Attach) != 1 || len(req.Drop) != 1 || req.Attached != 1 {
		t.Errorf("attach %v, drop %v of %d", req.Attach, req.Drop, req.Attached)
	}
	r.reply(0, sent, RenewReply{})
	r.until(h, Term(lease))
	if len(r.lost) != 0 {
		t.Error("the replaced hold was told to be lost")
	}
}

func TestTwoAnswersOfOneStoreAreOneLease(t *testing.T) {
	for _, known := range []bool{true, false} {
		r := newRenewal(t, 3, known)
		h := r.Attach(section, 5)
		r.renew(RenewReply{UUID: "uuid-0"}, 0, 1, 2)
		r.until(h, 0)
		if got := r.Connected(); got != 1 {
			t.Errorf("known %t: %d stores connected, want 1", known, got)
		}
		r.renew(RenewReply{}, 1)
		r.until(h, Term(lease))
	}
}

func TestAStoreThatEndedTheSessionKeepsNothing(t *testing.T) {
	r := newRenewal(t, 1, true)
	h := r.Attach(section, 5)
	r.renew(RenewReply{}, 0)
	r.renewFailed(t.Context(), r.now.Load().stores[0], errDropped)
	r.until(h, Term(lease))
	r.renewFailed(t.Context(), r.now.Load().stores[0], fmt.Errorf("renew: %w", seq.ErrSessionEnded))
	r.until(h, 0)
	if len(r.err) != 1 || !errors.Is(r.err[0], seq.ErrSessionEnded) {
		t.Errorf("refusals %v, want one", r.err)
	}
}

func TestASessionHasEndedOnceNoQuorumCanGrantItALease(t *testing.T) {
	r := newRenewal(t, 3, true)
	gone := fmt.Errorf("renew: %w", seq.ErrSessionEnded)
	for i, want := range []bool{false, true, true} {
		r.renewFailed(t.Context(), r.now.Load().stores[i], gone)
		if got := r.Ended(); got != want {
			t.Errorf("ended by %d of 3: %t, want %t", i+1, got, want)
		}
	}
}

func TestConnectedCountsTheStoresOfTheLastLease(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.renew(RenewReply{RouteVersion: 7}, 0)
	r.clock.Advance(600 * time.Millisecond)
	r.renew(RenewReply{RouteVersion: 5}, 1)
	if r.Connected() != 2 || !r.Granted() || r.RouteVersion() != 7 {
		t.Errorf("%d connected, granted %t, routes %d, want 2, true, 7", r.Connected(), r.Granted(), r.RouteVersion())
	}
	r.clock.Advance(600 * time.Millisecond)
	if r.Connected() != 1 || r.Granted() {
		t.Errorf("%d connected, granted %t, want 1, false", r.Connected(), r.Granted())
	}
}

func TestUntilDoesNotAllocate(t *testing.T) {
	r := newRenewal(t, 5, true)
	h := r.Attach(section, 5)
	r.renew(RenewReply{}, 0, 1, 2, 3, 4)
	if n := testing.AllocsPerRun(100, func() { h.Until() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A store that answers a newer renew and no longer has the register must not
// lengthen its lease, however the reader is interleaved with that.
func TestAReaderNeverSeesTheNewTimeWithTheOldAttachment(t *testing.T) {
	for round := range uint64(500) {
		r := newRenewal(t, 1, true)
		h := r.Attach(section, round+1)
		r.renew(RenewReply{}, 0)
		limit := h.Until()
		var done atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !done.Load() {
				if got := h.Until(); got > limit {
					t.Errorf("until %s, want at most %s", got, limit)
				}
			}
		})
		r.clock.Advance(100 * time.Millisecond)
		r.renew(RenewReply{Reset: true}, 0)
		done.Store(true)
		wg.Wait()
	}
}
