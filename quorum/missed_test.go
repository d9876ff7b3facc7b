package quorum

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// missing makes store 2 refuse every attach until the session has sent told steps. If told is 0, store 2
// refuses forever. brought returns these steps, and how often store 2 was asked.
func missing(t *testing.T, told int) (l *Leases, brought func() (all [][]StepItem, asked int)) {
	t.Helper()
	var mu sync.Mutex // guards all below
	var steps [][]StepItem
	attaches := 0
	l, fakes := run(t, 3, func(c *LeaseConfig) {
		c.Step = func(_ context.Context, session seq.Session, items []StepItem) []Outcome {
			mu.Lock()
			defer mu.Unlock()
			if session != me {
				t.Errorf("a step of session %s", session)
			}
			steps = append(steps, items)
			return nil
		}
	})
	fakes[2].onRenew(func(_ context.Context, req RenewRequest) (reply RenewReply, _ error) {
		mu.Lock()
		defer mu.Unlock()
		reply.BootCount = 1
		if len(req.Attach) > 0 {
			attaches++
			if told == 0 || len(steps) < told {
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
	for _, test := range []struct {
		told int           // until it keeps the hold
		in   time.Duration // by then
	}{{1, 2 * lease / renewals}, {2, lease}} {
		bubble.Test(t, func(t *testing.T) {
			l, brought := missing(t, test.told)
			h := l.Attach(section, 7)
			time.Sleep(test.in)
			steps, asked := brought()
			want := slices.Repeat([][]StepItem{{{Register: section, Round: 7}}}, test.told)
			if diff := cmp.Diff(want, steps); diff != "" {
				t.Errorf("asked %d times; brought (-want +got)\n%s", asked, diff)
			}
			if n := bits.OnesCount64(h.attached.Load()); n != 3 {
				t.Errorf("attached at %d stores, want 3", n)
			}
			time.Sleep(10 * lease)
			if steps, _ := brought(); len(steps) != test.told {
				t.Errorf("told %d times in all, want %d", len(steps), test.told)
			}
		})
	}
}

func TestAStoreThatGoesOnRefusingIsToldAndAskedTwiceALeaseAtMost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, brought := missing(t, 0)
		h := l.Attach(section, 7)
		time.Sleep(10 * lease)
		if steps, asked := brought(); len(steps) < 2 || len(steps) > 21 || asked > 22 {
			t.Errorf("told %d times and asked %d, want about 20 times in ten leases", len(steps), asked)
		}
		if h.Lost() || h.Until() == 0 {
			t.Error("not held by the two others")
		}
	})
}
