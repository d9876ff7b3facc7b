package sim

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// judge runs the checks of forged facts and tells which kinds they break.
func judge(t *testing.T, facts func(w *world, h *host)) map[string]bool {
	t.Helper()
	return judgeAs(t, false, facts)
}

// judgeAs is judge in a run with operators, or without.
func judgeAs(t *testing.T, care bool, facts func(w *world, h *host)) map[string]bool {
	t.Helper()
	kinds := map[string]bool{}
	bubble.Test(t, func(t *testing.T) {
		o := OptionsOf(1)
		o.Stores, o.Beyond, o.Care = 3, false, care
		w := newWorld(o, "")
		defer w.end()
		w.assemble()
		facts(w, w.hosts.named("a1"))
		for _, v := range w.check.violations() {
			kinds[v.Kind] = true
		}
	})
	return kinds
}

func epoch(round uint64, who seq.Session) seq.Epoch { return seq.Epoch{Round: round, Session: who} }

func owns(e seq.Epoch, owned bool, base, high, confirmed uint64) section.View {
	return section.View{Section: 0, Owned: owned, Epoch: e, Base: base, High: high, Confirmed: confirmed}
}

// ids has a session at a host make IDs of worker 0 at the moments.
func ids(w *world, h *host, session seq.Session, at ...uint64) {
	by := &allocProc{session: session}
	if h.alloc != nil && h.alloc.session == session {
		by = h.alloc
	}
	h.alloc = by
	for _, ms := range at {
		w.check.promises.alone(nodeSpace, ms<<12, by)
	}
}

// look shows the checks a section of a session.
func look(w *world, h *host, v section.View) {
	w.check.sections.seen(h, v.Epoch.Session, []section.View{v})
}

func TestForgedFactsAreJudgedByTheInvariants(t *testing.T) {
	reg := seq.SectionRegister(0)
	rows := []struct {
		name  string
		facts func(w *world, h *host)
		want  string // the only kind; may be empty
	}{
		{"a promise goes back", func(w *world, h *host) {
			w.check.durable(h, reg, acceptor.State{Promised: epoch(2, 1)}, acceptor.State{Promised: epoch(1, 9)})
		}, "I1"},
		{"a max goes back", func(w *world, h *host) {
			w.check.durable(h, reg, acceptor.State{Max: 5}, acceptor.State{Max: 4})
		}, "I2"},
		{"accepted above promised", func(w *world, h *host) {
			w.check.durable(h, reg, acceptor.State{}, acceptor.State{Promised: epoch(1, 1), Accepted: epoch(2, 1)})
		}, "I3"},
		{"a session twice", func(w *world, h *host) {
			w.check.sections.started(h, &allocProc{session: 7})
			w.check.sections.started(h, &allocProc{session: 7})
		}, "I4"},
		{"a number that one disk has", func(w *world, h *host) {
			w.hosts.named("s1").disk.highest[reg] = 10
			w.back.kept(h, reg, 10)
		}, "I5"},
		{"a number that two disks have", func(w *world, h *host) {
			w.hosts.named("s1").disk.highest[reg], w.hosts.named("s3").disk.highest[reg] = 10, 11
			w.back.kept(h, reg, 10)
		}, ""},
		{"an epoch above all that was confirmed", func(w *world, h *host) {
			look(w, h, owns(epoch(1, 1), true, 0, 5, 20))
			look(w, h, owns(epoch(2, 2), true, 20, 20, 40))
		}, ""},
		{"an epoch below what was confirmed", func(w *world, h *host) {
			look(w, h, owns(epoch(1, 1), true, 0, 5, 20))
			look(w, h, owns(epoch(2, 2), true, 19, 19, 40))
		}, "I6"},
		{"what an older epoch confirms later", func(w *world, h *host) {
			look(w, h, owns(epoch(1, 1), true, 0, 5, 20))
			look(w, h, owns(epoch(2, 2), true, 20, 20, 40))
			look(w, h, owns(epoch(1, 1), true, 0, 5, 30))
		}, "I6"},
		{"sealed counters that are gone on from", func(w *world, h *host) {
			look(w, h, owns(epoch(1, 1), false, 0, 5, 20))
			look(w, h, owns(epoch(2, 2), true, 0, 5, 40))
		}, ""},
		{"sealed counters that are older", func(w *world, h *host) {
			look(w, h, owns(epoch(1, 1), false, 0, 5, 20))
			look(w, h, owns(epoch(2, 2), true, 0, 4, 40))
		}, "I6"},
		{"IDs of one worker by one process after the other", func(w *world, h *host) {
			ids(w, h, 7, 10, 20)
			ids(w, w.hosts.named("a2"), 8, 30, 40)
			ids(w, h, 9, 50, 60)
		}, ""},
		{"an ID within what another process made IDs of", func(w *world, h *host) {
			ids(w, h, 7, 10, 20)
			ids(w, w.hosts.named("a2"), 8, 15)
		}, "U"},
		{"a session that does not tell a store what it has seen", func(w *world, h *host) {
			h.boot()
			h.told(&pb.RenewRequest{}, &pb.RenewReply{StoreUuid: "x", Commits: 9})
			w.check.tells(&call{from: h, to: w.hosts.named("s1"), seen: h.seen}, &pb.RenewRequest{Seen: []*pb.StoreClaim{{Commits: 8}}}, &pb.RenewReply{StoreUuid: "x"})
		}, "D"},
		{"a session that tells a store what it has seen", func(w *world, h *host) {
			h.boot()
			h.told(&pb.RenewRequest{}, &pb.RenewReply{StoreUuid: "x", Commits: 9})
			w.check.tells(&call{from: h, to: w.hosts.named("s1"), seen: h.seen}, &pb.RenewRequest{Seen: []*pb.StoreClaim{{Commits: 9}}}, &pb.RenewReply{StoreUuid: "x"})
		}, ""},
		{"a number after the end of the lease", func(w *world, h *host) {
			v := owns(epoch(1, 1), true, 0, 5, 20)
			v.Until = h.clock.Now()
			w.check.within(h, v, h.clock.Now())
		}, "lease"},
		{"a number in the lease", func(w *world, h *host) {
			v := owns(epoch(1, 1), true, 0, 5, 20)
			v.Until = h.clock.Now() + 1
			w.check.within(h, v, h.clock.Now())
		}, ""},
		{"an ID twice", func(w *world, h *host) {
			w.check.promises.unique(nodeSpace, 7, "a1")
			w.check.promises.unique(nodeSpace, 7, "a2")
		}, "U"},
		{"a number below one that was handed out", func(w *world, h *host) {
			c := &caller{w: w}
			key := history.Key{Space: "user", UID: 1}
			c.took(key, 0, 0, 7, 9, false, nil)
			c.took(key, 0, w.check.promises.floor(key), 8, 8, false, nil)
		}, "M"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := judge(t, row.facts)
			if row.want == "" && len(got) > 0 || row.want != "" && (len(got) != 1 || !got[row.want]) {
				t.Errorf("broken: %v, want %q", got, row.want)
			}
		})
	}
}

// A store counts its grace by its own clock, which may be fast: nothing but a renewal that shows it its
// disk may reach it when that is over.
func TestAnOldDiskIsAskedForNoVoteAfterTheGraceOfItsStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(OptionsOf(1), "")
		defer w.end()
		w.assemble()
		s := w.hosts.named("s1")
		s.disk.gate = 1
		prepare := &call{from: w.hosts.named("a1"), to: s, method: pb.Store_Prepare_FullMethodName}
		s.clock.setRate(1.3)
		s.boot()
		if !s.disk.letsIn(prepare) {
			t.Error("nothing reaches it in its grace")
		}
		<-time.After(acceptor.GraceOf(w.opts.Lease) * 10 / 13)
		if s.disk.letsIn(prepare) {
			t.Error("it is asked for a vote after its grace")
		}
	})
}
