package quorum

import (
	"context"
	"math/bits"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/bubble"
)

// missing has store 2 refuse all that it is to attach until hears says otherwise, and gives what was
// brought and how often it was asked.
func missing(t *testing.T, hears bool) (l *Leases, brought func() (all [][]StepItem, asked int)) {
	t.Helper()
	var mu sync.Mutex // guards all below
	var steps [][]StepItem
	attaches, heard := 0, false
	l, fakes := run(t, 3, func(c *LeaseConfig) {
		c.Step = func(_ context.Context, session seq.Session, items []StepItem) []Outcome {
			mu.Lock()
			defer mu.Unlock()
			if session != me {
				t.Errorf("a step of session %s", session)
			}
			steps, heard = append(steps, items), hears
			return nil
		}
	})
	fakes[2].onRenew(func(_ context.Context, req RenewRequest) (reply RenewReply, _ error) {
		mu.Lock()
		defer mu.Unlock()
		reply.BootCount = 1
		if len(req.Attach) > 0 {
			attaches++
			if !heard {
				reply.Refused = req.Attach
			}
		}
		return reply, nil
	})
	return l, func() ([][]StepItem, int) {
		mu.Lock()
		defer mu.Unlock()
		return steps, attaches
	}
}

func TestAStoreThatMissedAPromiseIsToldOfItAndAskedAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, brought := missing(t, true)
		h := l.Attach(section, 7)
		time.Sleep(2 * lease / renewals)
		steps, asked := brought()
		if diff := cmp.Diff([][]StepItem{{{Register: section, Round: 7}}}, steps); diff != "" || asked != 2 {
			t.Errorf("asked %d times, want 2; brought (-want +got)\n%s", asked, diff)
		}
		if n := bits.OnesCount64(h.attached.Load()); n != 3 {
			t.Errorf("attached at %d stores, want 3", n)
		}
	})
}

func TestAStoreThatGoesOnRefusingIsToldOnceAndAskedOnceALease(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, brought := missing(t, false)
		h := l.Attach(section, 7)
		time.Sleep(10 * lease)
		if steps, asked := brought(); len(steps) != 1 || asked < 2 || asked > 12 {
			t.Errorf("told %d times and asked %d, want once and about 11 times in ten leases", len(steps), asked)
		}
		if h.Lost() || h.Until() == 0 {
			t.Error("not held by the two others")
		}
	})
}
