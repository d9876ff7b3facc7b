package allocsvr

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// silentFleet is two nodes that serve a strict, an exact and an ordinary space, four sections each.
func silentFleet(t *testing.T) (f *fleet, a, b *node) {
	f = newFleetOn(t, bubble.NewClock(), seq.Space{Name: "user", Sections: 4, Step: 10}, seq.Space{Name: "ledger", Sections: 4, Step: 10, Mode: seq.Strict},
		seq.Space{Name: "orders", Sections: 4, Mode: seq.Exact, Window: time.Minute})
	a, b = f.start("a", 2, ""), f.start("b", 2, "")
	f.serving(a, b)
	return f, a, b
}

// has lists the node's sections by the mode of their space.
func (n *node) has() map[seq.Mode]int {
	out := make(map[seq.Mode]int)
	for _, id := range n.Owned() {
		out[n.Table.Section(id).Space().Mode]++
	}
	return out
}

func TestTheSectionsOfASilentNodeAreTakenOverBeforeItsLeaseEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, a, b := silentFleet(t)
		before, own := a.has(), b.has()
		spaces := f.stores.Mapping.Spaces
		last := make(map[seq.UID]uint64)
		for uid := range seq.UID(400) {
			if got := a.Take(t.Context(), &spaces[1], seq.PlainAll(uid<<6), nil); len(got.Faults) == 0 {
				last[uid<<6] = got.First[0]
			}
		}
		begun := time.Now()
		b.Suspect(map[string]seq.Session{"a": a.session})
		f.until("b has all of the strict and the exact space", func() bool {
			now := b.has()
			return now[seq.Strict] == 4 && now[seq.Exact] == 4
		})
		if took := time.Since(begun); took > f.lease/4 {
			t.Errorf("took %v, the lease is %v", took, f.lease)
		}
		if got := b.has()[seq.Ordered]; got != own[seq.Ordered] {
			t.Errorf("b has %d ordinary sections, want %d as before", got, own[seq.Ordered])
		}
		if got := int(b.Preempted()); got != before[seq.Strict]+before[seq.Exact] || got == 0 {
			t.Errorf("preempted %d sections, a had %v", got, before)
		}
		for uid, n := range last {
			if got := a.Take(t.Context(), &spaces[1], seq.PlainAll(uid), nil); len(got.Faults) == 0 {
				t.Errorf("the former owner answers %d", got.First[0])
			}
			if _, faults := a.Current(t.Context(), &spaces[1], seq.PlainAll(uid)); len(faults) == 0 {
				t.Error("the former owner answers Current")
			}
			if got := b.Take(t.Context(), &spaces[1], seq.PlainAll(uid), nil); len(got.Faults) > 0 || got.First[0] <= n {
				t.Errorf("uid %d: %d, %v after %d", uid, got.First[0], got.Faults, n)
			}
		}
		f.until("the event is written", func() bool {
			events, err := b.routes.Events(t.Context())
			return err == nil && len(events) > 0 && events[len(events)-1].Kind == "preempt" && events[len(events)-1].Subject == "a"
		})
	})
}

func TestASectionIsNotTakenTwiceInALeaseFromANodeThatCameBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, a, b := silentFleet(t)
		silent := map[string]seq.Session{"a": a.session}
		b.Suspect(silent)
		f.until("b has all", func() bool { return b.has()[seq.Strict] == 4 && b.has()[seq.Exact] == 4 })
		first := b.Preempted()
		time.Sleep(f.lease / 2)
		if n := b.has(); n[seq.Strict] != 4 || n[seq.Exact] != 4 {
			t.Errorf("b has %v, and gave some to a node that it takes for silent", n)
		}
		b.Suspect(nil)
		b.Look()
		f.until("a has its sections again", func() bool { return b.has()[seq.Strict] < 4 && a.has()[seq.Strict] > 0 })
		began := time.Now()
		b.Suspect(silent)
		f.until("b takes some again", func() bool { return b.Preempted() > first })
		if again := time.Since(began); again < f.lease/4 {
			t.Errorf("taken again after %v, the lease is %v", again, f.lease)
		}
	})
}

// One store of three has b's messages: it must not be asked for a promise.
func TestANodeThatWStoresDoNotAnswerPreemptsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, a, b := silentFleet(t)
		promises := func(s quorum.Store) (out []seq.Epoch) {
			reply, err := s.Read(t.Context(), quorum.ReadRequest{Ref: f.stores.Ref, Session: b.session, Prefix: string(seq.KindSection)})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range reply.Results {
				out = append(out, r.Promised)
			}
			return out
		}
		before := promises(f.stores.Stores[0])
		for _, s := range f.stores.Stores[1:] {
			s.SetDown(true)
		}
		b.Suspect(map[string]seq.Session{"a": a.session})
		time.Sleep(f.lease / 4)
		for i, e := range promises(f.stores.Stores[0]) {
			if e != before[i] {
				t.Errorf("section %d is promised to %v, want %v as before", i, e, before[i])
			}
		}
		for _, s := range f.stores.Stores[1:] {
			s.SetDown(false)
		}
		f.until("b has all", func() bool { return b.has()[seq.Strict] == 4 })
	})
}

func TestANodeIsNotTakenForSilentInItsNextLife(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f, a, b := silentFleet(t)
		b.Suspect(map[string]seq.Session{"a": a.session + 1, "b": b.session})
		time.Sleep(f.lease / 4)
		if b.Preempted() > 0 {
			t.Errorf("preempted %d sections", b.Preempted())
		}
	})
}
