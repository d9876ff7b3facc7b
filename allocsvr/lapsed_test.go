package allocsvr

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// mute is a store that the renewals of one node do not reach while off is set. Writes do.
type mute struct {
	quorum.Store
	off *atomic.Bool
}

func (m mute) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	if m.off.Load() {
		return quorum.RenewReply{}, errStarved
	}
	return m.Store.Renew(ctx, req)
}

func TestAStepWithoutALeaseIsWrittenUntilAnotherOwnerWasPromised(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 10, Mode: seq.UniqueOnly})
	var off atomic.Bool
	f.renews = func(node string, s quorum.Store) quorum.Store {
		if node == "a" {
			return mute{s, &off}
		}
		return s
	}
	a := f.start("a", 1, "")
	f.serving(a)
	off.Store(true)
	space, ctx := &f.stores.Mapping.Spaces[0], context.Background()
	seen, last := map[uint64]bool{}, uint64(0)
	take := func(n *node) section.Taken {
		got := n.Take(ctx, space, seq.PlainAll(1), nil)
		if first := got.First[0]; first != 0 {
			if seen[first] {
				t.Fatalf("%d twice", first)
			}
			seen[first], last = true, max(last, first)
		}
		return got
	}
	f.until("the lease has ended", func() bool { return take(a).Unordered })
	ceiling := func() uint64 {
		regs, err := a.group.ReadPrefix(ctx, a.session, string(seq.KindSection))
		if err != nil {
			t.Fatal(err)
		}
		return regs[seq.SectionRegister(0)].Max
	}
	before := ceiling()
	f.until("numbers above the ceiling that the lease ended with", func() bool { return take(a).First[0] > before })
	if at := ceiling(); last > at {
		t.Errorf("%d was handed out, and the stores have %d", last, at)
	}

	b := f.start("b", 1, "")
	f.until("another owner", func() bool {
		got := take(b)
		return got.First[0] != 0 && !got.Unordered
	})
	f.until("the first one is refused its step", func() bool {
		got := take(a)
		take(b)
		return len(got.Faults) > 0 && errors.Is(got.Faults[0].Err, seq.ErrNoQuorum) // all that it knows of owners is old
	})
}
