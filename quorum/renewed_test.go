package quorum

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func refused(round uint64, regs ...seq.Register) RenewReply {
	var r RenewReply
	for _, reg := range regs {
		r.Refused = append(r.Refused, LeaseItem{Register: reg, Round: round})
	}
	return r
}

func TestAnOvertakenAnswerTakesBackNoDropThatIsNeededAgain(t *testing.T) {
	r := newRenewal(t, 1, true)
	item := LeaseItem{Register: section, Round: 4}
	r.Attach(section, 4)
	r.renew(RenewReply{Lost: []LeaseItem{item}}, 0)
	_, first := r.send(0)
	_, second := r.send(0)
	r.reply(0, second, RenewReply{Lost: []LeaseItem{item}}) // the store tells of it again
	r.reply(0, first, RenewReply{})
	if req, _ := r.send(0); len(req.Drop) != 1 || req.Drop[0] != item {
		t.Errorf("drop %v, want the lost one", req.Drop)
	}
}

func TestARefusalIsOfTheHoldThatItNamesAlone(t *testing.T) {
	r := newRenewal(t, 3, true)
	h := r.Attach(section, 4)
	r.renew(RenewReply{}, 0, 1)
	r.renew(refused(3, section), 0)
	r.renew(refused(4, seq.SectionRegister(99)), 0)
	r.until(h, Term(lease))
	r.renew(refused(4, section), 0)
	r.until(h, 0) // attached at one of three
	if h.Lost() {
		t.Error("lost by one refusal")
	}
}

// Each row undoes the refusal of store 0, so that only store 1 still refuses.
func TestARefusalThatIsOverDoesNotAddUp(t *testing.T) {
	for name, undo := range map[string]func(r *renewal){
		"by a reset": func(r *renewal) { r.renew(RenewReply{Reset: true}, 0) },
		"by an attach": func(r *renewal) {
			r.clock.Advance(lease)
			r.renew(RenewReply{}, 0)
		},
	} {
		r := newRenewal(t, 3, true)
		h := r.Attach(section, 4)
		r.renew(refused(4, section), 0)
		undo(r)
		r.renew(refused(4, section), 1)
		if h.Lost() {
			t.Errorf("%s: lost", name)
		}
		// It is tried again once, and counted once.
		r.renew(RenewReply{}, 0)
		r.clock.Advance(2 * lease)
		if req, _ := r.send(0); len(req.Attach) != 0 || req.Attached != 1 {
			t.Errorf("%s: attach %v of %d, want none of 1", name, req.Attach, req.Attached)
		}
	}
}

func TestARefusedAttachIsTriedALeaseAfterTheFirstRefusal(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.Attach(section, 4)
	r.renew(refused(4, section), 0)
	r.clock.Advance(lease / 2)
	r.Attach(seq.SectionRegister(8), 4)
	r.renew(refused(4, seq.SectionRegister(8)), 0)
	r.clock.Advance(lease / 2)
	if req, _ := r.send(0); len(req.Attach) != 2 {
		t.Errorf("attach %v, want both: others that are refused do not put the first off", req.Attach)
	}
}

func TestAHoldIsNotLostByTheFirstRefusalOfAStore(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.renew(RenewReply{}, 0, 2) // store 1 is away
	h := r.Attach(section, 4)
	r.renew(RenewReply{}, 0)
	r.renew(refused(4, section), 2)
	if h.Lost() {
		t.Fatal("lost before the step that may bring the promise")
	}
	r.renew(refused(4, section), 2)
	if !h.Lost() {
		t.Fatal("not lost by the second")
	}
	r.clock.Advance(2 * lease)
	if req, _ := r.send(2); len(req.Attach) != 0 {
		t.Errorf("attach %v of what is lost", req.Attach)
	}
}

func TestRoutesAreToldWhenTheirVersionGoesUp(t *testing.T) {
	r := newRenewal(t, 3, true)
	told := 0
	r.cfg.OnRoutes = func() { told++ }
	for i, row := range []struct {
		version uint64
		want    int
	}{{0, 0}, {7, 1}, {7, 1}, {5, 1}, {8, 2}} {
		if r.renew(RenewReply{RouteVersion: row.version}, i%3); told != row.want {
			t.Errorf("after version %d: told %d times, want %d", row.version, told, row.want)
		}
	}
}

// contested is a number that another goroutine changes between a look and the swap.
type contested struct{ now, meanwhile uint64 }

func (c *contested) Load() uint64 { return c.now }

func (c *contested) CompareAndSwap(_, v uint64) bool {
	if c.meanwhile > 0 {
		c.now, c.meanwhile = c.meanwhile, 0
		return false
	}
	c.now = v
	return true
}

func TestANumberThatSomebodyElseMovedIsLookedAtAgain(t *testing.T) {
	for _, row := range []struct {
		meanwhile uint64
		moved     bool
		want      uint64
	}{{0, true, 5}, {4, true, 5}, {5, false, 5}, {6, false, 6}} {
		c := &contested{now: 3, meanwhile: row.meanwhile}
		if got := advance(c, 5); got != row.moved || c.now != row.want {
			t.Errorf("3 to 5, by another to %d: moved %v, is %d", row.meanwhile, got, c.now)
		}
	}
}

func TestLeasesThatTellNobodyWork(t *testing.T) {
	r := newRenewal(t, 1, true)
	r.cfg.OnLost, r.cfg.OnRefused, r.cfg.OnSessions, r.cfg.OnRoutes = nil, nil, nil, nil
	h := r.Attach(section, 4)
	r.renew(RenewReply{RouteVersion: 3, Sessions: []SessionInfo{{Session: other, Remaining: lease}}}, 0)
	r.renewFailed(t.Context(), r.place(0), seq.ErrNameTaken)
	r.renew(RenewReply{Lost: []LeaseItem{{Register: section, Round: 4}}}, 0)
	if !h.Lost() || len(r.Sessions()) != 1 || r.RouteVersion() != 3 {
		t.Errorf("lost %v, sessions %v, routes %d", h.Lost(), r.Sessions(), r.RouteVersion())
	}
}

func TestTheLogSaysOnceWhatIsNew(t *testing.T) {
	var text bytes.Buffer
	_, stores := fakeStores(1, true)
	l, err := NewLeases(LeaseConfig{Session: me, Name: "a", Lease: lease, N: 1, W: 1, Clock: newRenewal(t, 1, true).clock,
		Logger: slog.New(slog.NewTextHandler(&text, nil))}, stores)
	if err != nil {
		t.Fatal(err)
	}
	s := l.now.Load().stores[0]
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fail := func(ctx context.Context, err error) func() { return func() { l.renewFailed(ctx, s, err) } }
	renew := func(reply RenewReply) func() {
		return func() {
			_, sent, _ := l.prepareRenew(s)
			reply.UUID, reply.BootCount = "uuid-0", 1
			l.renewed(s, sent, reply, l.cfg.Clock.Now())
		}
	}
	l.Attach(section, 4)
	for i, row := range []struct {
		do   func()
		want []string
	}{
		{renew(RenewReply{}), nil},
		{fail(t.Context(), errDropped), []string{"renewal failed"}},
		{fail(t.Context(), errDropped), nil},
		{fail(t.Context(), seq.ErrNameTaken), []string{"renewal failed"}},
		{fail(t.Context(), seq.ErrNameTaken), nil},
		{renew(RenewReply{}), []string{"store renews again"}},
		{renew(RenewReply{}), nil},
		{fail(ended, errDropped), nil},
		{renew(RenewReply{Lost: []LeaseItem{{Register: section, Round: 4}}}), []string{"store renews again", "leases lost"}},
		{renew(RenewReply{}), nil},
	} {
		text.Reset()
		row.do()
		got := text.String()
		if strings.Count(got, "msg=") != len(row.want) {
			t.Errorf("line %d: got %q, want %q", i, got, row.want)
		}
		for _, line := range row.want {
			if !strings.Contains(got, line) {
				t.Errorf("line %d: got %q, want %q", i, got, line)
			}
		}
	}
}

func TestAGroupStartsOverOnlyForAListThatSomebodyCanFindOut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		stale := fault{before: fmt.Errorf("%w: newer", seq.ErrStaleEra)}
		for _, row := range []struct {
			name   string
			listen bool
			says   [3]fault
			state  State
			asked  int // -1: more than once
		}{
			{"nobody can find out", false, [3]fault{stale, stale, stale}, Unknown, 1},
			{"somebody can", true, [3]fault{stale, stale, stale}, Unknown, -1},
			{"decided all the same", true, [3]fault{stale, after(1), after(1)}, Won, 1},
			{"undecided for another reason", true, [3]fault{{before: errDropped}, {before: errDropped}, after(1)}, Unknown, 1},
		} {
			fakes, stores := fakeStores(3, true, section)
			cfg := Config{N: 3, R: 2, W: 2}
			if row.listen {
				cfg.OnStale = func() {}
			}
			g, err := NewGroup(cfg, stores)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range fakes {
				f.always(row.says[i])
			}
			out := g.Probe(t.Context(), me, []seq.Register{section})[0]
			g.Close()
			if n := fakes[0].count("read"); out.State != row.state || row.asked >= 0 && n != row.asked || row.asked < 0 && n < 2 {
				t.Errorf("%s: got %v after %d rounds, want %v, %d", row.name, out.State, n, row.state, row.asked)
			}
		}
	})
}

func TestAListThatCameMeanwhileIsGoneOverToAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, stores := fakeStores(3, true, section)
		g, err := NewGroup(Config{N: 3, R: 2, W: 2, OnStale: func() {}}, stores)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		old := g.now.Load()
		for members := range uint64(2) {
			if err := g.Reconfigure(Config{Ref: Ref{Members: members + 2}, N: 3, R: 2, W: 2}, stores); err != nil {
				t.Fatal(err)
			}
		}
		var p patience
		start := time.Now()
		if !g.refreshed(t.Context(), old, &p) || time.Since(start) != 0 {
			t.Errorf("another try after %v, want one at once", time.Since(start))
		}
	})
}

func TestALossIsToldWithWhatItIs(t *testing.T) {
	r := newRenewal(t, 3, true)
	r.renewFailed(t.Context(), r.place(1), seq.ErrNameTaken)
	if len(r.err) != 1 || !errors.Is(r.err[0], seq.ErrNameTaken) || !contains(r.err[0], "store1") {
		t.Errorf("told %v, want the store and why", r.err)
	}
}
