package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// exactSections is the number of sections that are taken over in an exact space.
const exactSections = 64

// BenchmarkExactTakeover is a takeover of an exact space whose owner is dead: promises, the
// copies of W stores, and a commit in each section, until the new owner answers for all.
func BenchmarkExactTakeover(b *testing.B) {
	for _, uids := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("uids=%d", uids), func(b *testing.B) {
			group := exactStores(b)
			own(b, group, 1, func(all []*logs.Log) { takeExact(b, all, uids) })
			start := processTime(b)
			for round := uint64(2); b.Loop(); round++ {
				own(b, group, round, func([]*logs.Log) {})
			}
			b.ReportMetric((processTime(b)-start).Seconds()*1e3/float64(b.N), "cpu-ms")
		})
	}
}

func TestATakeoverOfAnExactSpaceAnswersForAll(t *testing.T) {
	group := exactStores(t)
	own(t, group, 1, func(all []*logs.Log) { takeExact(t, all, 200) })
	own(t, group, 2, func(all []*logs.Log) {
		uids := 0
		for _, g := range all {
			n, ids := g.Size()
			if uids += n; n != ids {
				t.Errorf("%d UIDs with %d ids, expected one each", n, ids)
			}
		}
		if uids != 200 {
			t.Errorf("got %d UIDs, want 200", uids)
		}
	})
}

// exactStores are three stores with an exact space behind the default one.
func exactStores(b testing.TB) *quorum.Group {
	b.Helper()
	g, _ := group(b, harness.Stores(b, 3, seq.Space{Sections: 1}, seq.Space{Name: "orders", Sections: exactSections, Mode: seq.Exact, Window: time.Hour}))
	return g
}

// own takes all exact sections over, and calls do once they answer.
func own(b testing.TB, group *quorum.Group, round uint64, do func([]*logs.Log)) {
	b.Helper()
	session := sessiontest.Session(round)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	l := logs.New(logs.Config{Stores: group, Session: session, Clock: clock.Boot(), Lost: func(seq.SectionID, seq.Epoch, seq.Epoch) {},
		Grow: func(int64) {}, Full: func(seq.SectionID) error { return nil }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	prepare := make([]quorum.PrepareItem, exactSections)
	for i := range prepare {
		prepare[i] = quorum.PrepareItem{Register: seq.SectionRegister(seq.SectionID(1 + i)), Round: round}
	}
	all := make([]*logs.Log, len(prepare))
	for i, out := range group.Prepare(ctx, session, prepare) {
		if out.State != quorum.Won {
			b.Fatalf("prepare %v: %v", prepare[i].Register, out.Err)
		}
		all[i] = l.Open(seq.SectionID(1+i), seq.Epoch{Round: round, Session: session}, time.Hour)
	}
	wait(b, all, func(g *logs.Log) (logs.Ticket, error) { return g.Current(ctx, 1) })
	do(all)
}

// takeExact takes a number for each of that many UIDs, each with an id of 16 bytes.
func takeExact(b testing.TB, all []*logs.Log, uids int) {
	b.Helper()
	for done := 0; done < uids; {
		some := make([]*logs.Log, min(10_000, uids-done))
		for i := range some {
			some[i] = all[(done+i)%len(all)]
		}
		uid := done
		wait(b, some, func(g *logs.Log) (logs.Ticket, error) {
			uid++
			return g.Take(b.Context(), &logs.Instant{}, seq.UID(uid), 1, fmt.Sprintf("%016x", uid), time.Time{})
		})
		done += len(some)
	}
}

// wait asks each log, and waits until all answers hold.
func wait(b testing.TB, all []*logs.Log, ask func(*logs.Log) (logs.Ticket, error)) {
	b.Helper()
	tickets := make([]logs.Ticket, len(all))
	for i, g := range all {
		ticket, err := ask(g)
		if err != nil {
			b.Fatal(err)
		}
		tickets[i] = ticket
	}
	for _, ticket := range tickets {
		if err := ticket.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
