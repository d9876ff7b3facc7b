package globalid

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func TestAWorkerIDThatIsGivenBackIsLentAgainAtOnceAboveWhatWasUsed(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.add(n, "s", coarse) // eight worker ids
	book := newLedger(t)
	var one uint64
	for round := range 20 { // of one worker id, within one window
		c.pass(2 * time.Second)
		k := &client{c: c, name: fmt.Sprint("client-", round), book: book}
		got := k.must(n, "s")
		if round == 0 {
			one = got.WorkerId
		}
		if got.WorkerId != one || got.Continues || got.Node != "a" || got.Ticket == 0 {
			t.Fatalf("round %d: got %v, want worker %d", round, got, one)
		}
		if made := k.drain(round % 4); made != round%4 {
			t.Errorf("round %d: made %d ids of %v", round, made, got)
		}
		used := k.gen.Last()
		if err := k.giveBack(n); err != nil {
			t.Fatal(err)
		}
		if mark := c.max(seq.WorkerRegister("s", 0, one)); mark < got.ConfirmedUnixMs {
			t.Errorf("the mark fell from %d to %d", got.ConfirmedUnixMs, mark)
		}
		c.pass(time.Second) // some IDs were of the next second
		next := &client{c: c, name: fmt.Sprint("next-", round), book: book}
		if got := next.must(n, "s"); got.WorkerId != one || got.FloorTick != uint64(used) || next.drain(2) != 2 {
			t.Errorf("round %d: got %v, used up to %d", round, got, used)
		}
		if err := next.giveBack(n); err != nil {
			t.Fatal(err)
		}
	}
	last := &client{c: c, name: "last", book: book}
	last.must(n, "s")
	if last.drain(all) < 1000 {
		t.Error("the last one's window is short")
	}
	if i := n.svc.Load().workers.Of("s"); i.GivenBack.Load() != 40 || i.Delegated.Load() != 41 {
		t.Errorf("counted %d of %d", i.GivenBack.Load(), i.Delegated.Load())
	}
}

func TestAnExtendedWindowIsGivenBackAsAWholeIfTheSameNodeExtendedIt(t *testing.T) {
	for _, same := range []bool{true, false} {
		c := newCluster(t)
		a, b := c.start("a"), c.start("b")
		c.add(a, "s", coarse)
		k := &client{c: c, name: "k", book: newLedger(t)}
		k.must(a, "s")
		at := a
		if !same {
			at = b
		}
		c.leap(5 * time.Minute)
		first := k.last
		got := k.must(at, "s")
		if !got.Continues || k.drain(3) != 3 {
			t.Fatalf("got %v", got)
		}
		used := uint64(k.gen.Last())
		if err := k.giveBack(at); err != nil {
			t.Fatal(err)
		}
		c.pass(2 * time.Second)
		next := &client{c: c, name: "next", book: k.book}
		switch got := next.must(at, "s"); {
		case same && (got.WorkerId != first.WorkerId || got.FloorTick != used):
			t.Errorf("got %v, used up to %d", got, used)
		case !same && got.WorkerId == first.WorkerId: // what a lent may still be held
			t.Errorf("lent by another node: got %v", got)
		}
		next.drain(all)
		if c.leap(5 * time.Minute); !same { // the first window is over, and the rest is known to be free
			late := &client{c: c, name: "late", book: k.book}
			if got := late.must(at, "s"); got.WorkerId != first.WorkerId || got.FloorTick != first.LastTick || late.drain(all) == 0 {
				t.Errorf("later: got %v after %v", got, first)
			}
		}
	}
}

func TestAWindowIsTakenBackOnlyFromWhoHasIt(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", coarse)
	k := &client{c: c, name: "k", book: newLedger(t)}
	got := k.must(a, "s")
	good := func(change func(*pb.SnowflakeGiveBackRequest)) *pb.SnowflakeGiveBackRequest {
		req := &pb.SnowflakeGiveBackRequest{Namespace: "s", WorkerId: got.WorkerId, ConfirmedUnixMs: got.ConfirmedUnixMs, Ticket: got.Ticket, LastTickUsed: got.FloorTick}
		change(req)
		return req
	}
	nothing := func(*pb.SnowflakeGiveBackRequest) {}
	for what, row := range map[string]struct {
		at   *node
		req  *pb.SnowflakeGiveBackRequest
		want error
	}{
		"no ticket":            {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.Ticket = 0 }), seq.ErrConflict},
		"another ticket":       {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.Ticket++ }), seq.ErrConflict},
		"another mark":         {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.ConfirmedUnixMs++ }), seq.ErrConflict},
		"another worker":       {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.WorkerId ^= 1 }), seq.ErrConflict},
		"another datacenter":   {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.DatacenterId++ }), seq.ErrConflict},
		"another namespace":    {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.Namespace = "" }), seq.ErrConflict},
		"no namespace":         {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.Namespace = "moon" }), seq.ErrUnknownNamespace},
		"a tick it never had":  {a, good(func(r *pb.SnowflakeGiveBackRequest) { r.LastTickUsed = got.LastTick + 1 }), seq.ErrBadArgument},
		"to who never lent it": {b, good(nothing), seq.ErrConflict},
	} {
		if err := row.at.giveBack(row.req); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", what, err, row.want)
		}
	}
	if k.drain(10) != 10 {
		t.Error("the window was disturbed")
	}
	if err := k.giveBack(a); err != nil {
		t.Fatal(err)
	}
	used := uint64(k.gen.Last())
	if err := a.giveBack(good(nothing)); err != nil { // once more, with less: an older message that comes late
		t.Errorf("told twice: %v", err)
	}
	c.pass(10 * time.Second)
	next := &client{c: c, name: "next", book: k.book}
	if got := next.must(a, "s"); got.FloorTick < used {
		t.Errorf("got %v, used up to %d", got, used)
	}
	if err := a.giveBack(good(nothing)); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("after it was lent again: got %v, want %v", err, seq.ErrConflict)
	}
	next.drain(all)
	again := &client{c: c, name: "again", book: k.book}
	if got := again.must(a, "s"); got.WorkerId == next.last.WorkerId {
		t.Errorf("lent to two: %v and %v", got, next.last)
	}
}

// A returned window is tried once, because a step of unknown outcome may have given it to another client.
func TestAStepOfUnknownOutcomeUsesAReturnedWindowUp(t *testing.T) {
	for _, f := range []fault{failsNotApplied, failsButApplied} {
		c := newCluster(t)
		n := c.start("a")
		c.add(n, "s", coarse)
		book := newLedger(t)
		k := &client{c: c, name: "k", book: book}
		k.must(n, "s")
		k.drain(10)
		if err := k.giveBack(n); err != nil {
			t.Fatal(err)
		}
		c.pass(10 * time.Second)
		c.fail(f, 0, 1)
		next := &client{c: c, name: "next", book: book}
		if _, err := next.ask(n, "s"); !errors.Is(err, seq.ErrNoQuorum) {
			t.Errorf("fault %d: got %v", f, err)
		}
		c.fail(works, 0, 1, 2)
		if got := next.must(n, "s"); got.WorkerId == k.last.WorkerId {
			t.Errorf("fault %d: got %v of a worker id that is in doubt", f, got)
		}
		next.drain(all)
	}
}

// A late message extends a client's window after the client gave it back. The client gets ticks above its
// mark, and the rest is not lent to another client meanwhile.
func TestAnExtensionAfterTheReturnLeavesNothingToTwo(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", coarse)
	book := newLedger(t)
	for _, at := range []*node{a, b} {
		k := &client{c: c, name: "k", book: book}
		k.must(a, "s")
		k.drain(10)
		req := k.request("s")
		if err := k.giveBack(a); err != nil {
			t.Fatal(err)
		}
		c.pass(10 * time.Second)
		late, err := at.delegate(req)
		if err != nil || !late.Continues || late.FloorTick != k.last.LastTick {
			t.Fatalf("got %v, %v", late, err)
		}
		next := &client{c: c, name: "next", book: book}
		if got := next.must(a, "s"); got.WorkerId == late.WorkerId {
			t.Errorf("at %s: got %v beside %v", at.name, got, late)
		}
		next.drain(all)
	}
}

func TestAReturnFromBeforeARestoreIsWorthNothing(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.add(n, "s", coarse)
	k := &client{c: c, name: "k", book: newLedger(t)}
	got := k.must(n, "s")
	k.drain(10)
	if err := k.giveBack(n); err != nil {
		t.Fatal(err)
	}
	// A restored era in which the wait was ended: another process may have been lent the rest.
	c.pass(10 * time.Second)
	for _, s := range c.stores {
		s.setFloors(quorum.Floors{Worker: uint64(c.wall.Load())})
	}
	c.pass(time.Second)
	if next := (&client{c: c, name: "next", book: k.book}).must(n, "s"); next.WorkerId == got.WorkerId {
		t.Errorf("got %v after %v", next, got)
	}
}

func TestAReturnedWorkerIDCountsForNobodysShareAndOthersShowWhomTheyAreLentTo(t *testing.T) {
	c := newCluster(t)
	n := c.start("a", byName)
	c.add(n, "s", coarse)
	srv, ctx := server{s: n.svc.Load()}, context.WithValue(long(t), callerKey{}, workers.Caller{Name: "caller/chat"})
	req := &pb.SnowflakeDelegateRequest{Namespace: "s", Holder: "chat@host"}
	for range 3 {
		if _, err := srv.Delegate(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 { // the last of its share, half of eight
		got, err := srv.Delegate(ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Delegate(ctx, req); !errors.Is(err, seq.ErrQuota) {
			t.Errorf("a fifth of four: got %v, want %v", err, seq.ErrQuota)
		}
		if _, err = srv.GiveBack(ctx, &pb.SnowflakeGiveBackRequest{Namespace: "s", WorkerId: got.WorkerId, ConfirmedUnixMs: got.ConfirmedUnixMs, Ticket: got.Ticket}); err != nil {
			t.Fatal(err)
		}
		shown, err := srv.Workers(ctx, &pb.SnowflakeWorkersRequest{Namespace: "s"})
		lent := 0
		for _, w := range shown.GetWorkers() {
			if w.Client == "chat@host" {
				lent++
			}
		}
		if err != nil || len(shown.GetWorkers()) != 4 || lent != 3 {
			t.Errorf("got %v, %v, want 3 of 4 lent", shown, err)
		}
		c.pass(time.Second)
	}
}
