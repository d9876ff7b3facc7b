package globalid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func TestADelegatedWindowIsTheClientsAloneAndBeginsNow(t *testing.T) {
	c := newCluster(t)
	n := c.start("a", func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 1, Name: "cn"} })
	_, own := n.must("1", 1)
	book := newLedger(t)
	used := map[uint64]bool{uint64(own.Worker): true}
	for k := range 3 {
		got := (&client{c: c, name: fmt.Sprint("client-", k), book: book}).must(n, "1")
		l, err := snowflake.ParseLayout(got.Layout)
		if err != nil {
			t.Fatal(err)
		}
		end := c.wall.Load() + workers.DefaultDelegation.Milliseconds()
		last, _ := l.TickAt(time.UnixMilli(end))
		if got.Namespace != "regional-1" || l.PresetName() != "regional" || got.DatacenterId != 1 || got.Continues || used[got.WorkerId] ||
			got.FloorTick != 0 || got.WorkerId < 48 || // far from the nodes'
			got.LastTick != uint64(last) || got.ConfirmedUnixMs != uint64(end) || got.ValidUntilUnixMs != end+1 {
			t.Errorf("got %v, worker ids before %v", got, used)
		}
		used[got.WorkerId] = true
		if m := c.max(seq.WorkerRegister("regional-1", 1, got.WorkerId)); m != got.ConfirmedUnixMs {
			t.Errorf("the stores have %d, the client %d", m, got.ConfirmedUnixMs)
		}
	}
	if _, same := n.must("1", 1); same.Worker != own.Worker {
		t.Errorf("the node changed its own worker id from %d to %d", own.Worker, same.Worker)
	}
	if got := n.svc.Load().workers.Of("regional-1").Delegated.Load(); got != 3 {
		t.Errorf("counted %d windows, want 3", got)
	}
}

func TestAnExtendedWindowGoesOnWithoutAHoleAtAnyNode(t *testing.T) {
	c := newCluster(t)
	nodes := []*node{c.start("a"), c.start("b"), c.start("c")}
	c.add(nodes[0], "s", coarse)
	k := &client{c: c, name: "k", book: newLedger(t)}
	first := k.must(nodes[0], "s")
	made := k.drain(100)
	for round := range 6 {
		// Before the end, and twice after it, no other client took the worker id.
		c.leap([]time.Duration{5, 5, 5, 12, 15, 5}[round] * time.Minute)
		was := k.last
		got := k.must(nodes[round%3], "s")
		if !got.Continues || got.WorkerId != first.WorkerId || got.FloorTick != was.LastTick ||
			got.ConfirmedUnixMs != uint64(c.wall.Load())+uint64(workers.DefaultDelegation.Milliseconds()) {
			t.Errorf("round %d: got %v after %v", round, got, was)
		}
		made += k.drain(100)
	}
	if made != 700 {
		t.Errorf("made %d ids, want 700", made)
	}
	// A shorter window takes nothing back.
	req, was := k.request("s"), k.last
	req.WindowMs = 1000
	if got, err := nodes[1].delegate(req); err != nil || !got.Continues || got.ConfirmedUnixMs != was.ConfirmedUnixMs || got.LastTick != was.LastTick {
		t.Errorf("got %v, %v after %v", got, err, was)
	}
}

func TestALostReplyCostsAWindowAndRepeatsNothing(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.add(n, "s", coarse)
	k := &client{c: c, name: "k", book: newLedger(t)}
	first := k.must(n, "s")
	k.drain(10)
	c.leap(5 * time.Minute)
	lost, err := n.delegate(k.request("s"))
	if err != nil || !lost.Continues {
		t.Fatalf("got %v, %v", lost, err)
	}
	k.drain(10) // the old window is as good as before
	got := k.must(n, "s")
	if got.Continues || got.WorkerId == first.WorkerId {
		t.Errorf("got %v after %v, and %v which was lost", got, first, lost)
	}
	k.drain(all)
	// The lost reply comes after all: it was of this client alone.
	late := &client{c: c, name: "late", book: k.book, last: first}
	lost.Continues, lost.FloorTick = false, first.LastTick
	if err := late.adopt(lost); err != nil || late.drain(all) == 0 {
		t.Errorf("the late reply is of no use: %v", err)
	}
	// Once its window is over, the old worker id is one like others: not below its mark,
	// whatever the client's clock says.
	c.leap(11 * time.Minute)
	back := &client{c: c, name: "back", book: k.book, last: first, slow: time.Hour}
	if got := back.must(n, "s"); got.Continues || back.drain(all) == 0 {
		t.Errorf("got %v", got)
	}
}

func TestAStepOfUnknownOutcomeDelegatesNothing(t *testing.T) {
	for _, f := range []fault{failsNotApplied, failsButApplied} {
		c := newCluster(t)
		n, other := c.start("a"), c.start("b")
		c.add(n, "s", coarse)
		k := &client{c: c, name: "k", book: newLedger(t)}
		k.must(n, "s")
		k.drain(10)
		for _, who := range []*client{k, {c: c, name: "new", book: k.book}} {
			c.fail(f, 0, 1)
			if _, err := n.delegate(who.request("s")); !errors.Is(err, seq.ErrNoQuorum) {
				t.Errorf("fault %d: %s: got %v, want %v", f, who.name, err, seq.ErrNoQuorum)
			}
			c.fail(works, 0, 1, 2)
			for _, at := range []*node{n, other} {
				who.must(at, "s")
				who.drain(200)
			}
		}
		if got := n.svc.Load().workers.Of("s").Delegated.Load(); got != 3 {
			t.Errorf("fault %d: counted %d windows of one node, want 3", f, got)
		}
	}
}

// dying is a node's way to the stores that breaks for good at a Step of a worker id.
type dying struct {
	ownership.Registers
	after bool // the step still arrives
}

func (d dying) Step(ctx context.Context, session seq.Session, items []quorum.StepItem) []quorum.Outcome {
	if d.after {
		d.Registers.Step(ctx, session, items)
	}
	return []quorum.Outcome{{State: quorum.Unknown, Err: seq.ErrNoQuorum}}
}

func TestAnAllocatorThatDiesInTheMiddleLeavesNothingDoubtful(t *testing.T) {
	for _, after := range []bool{false, true} {
		c := newCluster(t)
		a := c.start("a")
		c.add(a, "s", coarse)
		k := &client{c: c, name: "k", book: newLedger(t)}
		first := k.must(a, "s")
		k.drain(10)
		c.leap(5 * time.Minute)
		b := c.start("b", func(cfg *Config) { cfg.Holder.Registers = dying{cfg.Holder.Registers, after} })
		if _, err := b.delegate(k.request("s")); !errors.Is(err, seq.ErrNoQuorum) {
			t.Errorf("after %v: got %v", after, err)
		}
		b.kill()
		// At once: no lease has to end.
		got := k.must(a, "s")
		if got.Continues == after || after == (got.WorkerId == first.WorkerId) {
			t.Errorf("after %v: got %v after %v", after, got, first)
		}
		if k.drain(all) == 0 {
			t.Errorf("after %v: the window is empty", after)
		}
	}
}

func TestAHolderTakesADelegatedWorkerIDAboveItsWindowOnly(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", small) // two worker ids
	book := newLedger(t)
	k := &client{c: c, name: "k", book: book}
	mine := k.must(a, "s")
	k.drain(1000)
	_, own := a.must("s", 1)
	if uint64(own.Worker) == mine.WorkerId {
		t.Fatalf("the node has worker %d of its client", own.Worker)
	}
	if _, _, err := b.gen("s", 1); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("in the window: got %v, want %v", err, seq.ErrWorkersExhausted)
	}
	if got := k.must(b, "s"); !got.Continues || got.WorkerId != mine.WorkerId {
		t.Errorf("its own is no further worker id: got %v", got)
	}
	shown, err := server{s: a.svc.Load()}.Workers(t.Context(), &pb.SnowflakeWorkersRequest{Namespace: "s"})
	if w := shown.GetWorkers(); err != nil || len(w) != 2 || w[mine.WorkerId].Free || w[mine.WorkerId].Session != 0 {
		t.Errorf("got %v, %v", shown, err)
	}
	k.drain(1000)
	c.leap(workers.DefaultDelegation)
	end := k.last.LastTick
	eventually(t, "the worker id is taken over", func() bool { _, _, err := b.gen("s", 1); return err == nil })
	ids, got := b.must("s", 5)
	book.add("s", "b", ids)
	if p := parts(t, small, ids[0]); uint64(got.Worker) != mine.WorkerId || uint64(p.Tick) <= end {
		t.Errorf("got worker %d at tick %d, the client's was %d up to tick %d", got.Worker, p.Tick, mine.WorkerId, end)
	}
	if _, err := k.ask(a, "s"); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("the client comes back: got %v, want %v", err, seq.ErrWorkersExhausted)
	}
	ids, got = b.must("s", 5)
	book.add("s", "b", ids)
	if uint64(got.Worker) != mine.WorkerId {
		t.Errorf("the client took the worker id from its holder")
	}
}

func TestClientsLeaveTheLastWorkerIDsToNodes(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "s", coarse) // eight worker ids, of which four fifths are six
	var clients []*client
	for i := range 6 {
		k := &client{c: c, name: fmt.Sprint("client-", i), book: newLedger(t)}
		k.must(a, "s")
		clients = append(clients, k)
	}
	late := &client{c: c, name: "late", book: newLedger(t)}
	if _, err := late.ask(b, "s"); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("the seventh: got %v, want %v", err, seq.ErrWorkersExhausted)
	}
	a.must("s", 1)
	b.must("s", 1)
	if _, _, err := c.start("c").gen("s", 1); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("the third node: got %v, want %v", err, seq.ErrWorkersExhausted)
	}
	for _, k := range clients {
		if got := k.must(b, "s"); !got.Continues {
			t.Errorf("%s lost its worker id: got %v", k.name, got)
		}
	}
	c.leap(11 * time.Minute)
	late.must(b, "s")
}

func TestWhatOneClientNamesGainsNothingOfAnothers(t *testing.T) {
	c := newCluster(t)
	a := c.start("a", func(c *Config) { c.Node.Datacenter.ID = 1 })
	b := c.start("b", func(c *Config) { c.Node.Datacenter.ID = 2 })
	book := newLedger(t)
	k := &client{c: c, name: "k", book: book}
	mine := k.must(a, "1")
	k.drain(100)
	for what, named := range map[string]*pb.SnowflakeDelegateReply{
		"a mark too low":     {WorkerId: mine.WorkerId, DatacenterId: 1, ConfirmedUnixMs: mine.ConfirmedUnixMs - 1},
		"a mark too high":    {WorkerId: mine.WorkerId, DatacenterId: 1, ConfirmedUnixMs: 1<<64 - 1},
		"another worker":     {WorkerId: 1, DatacenterId: 1, ConfirmedUnixMs: mine.ConfirmedUnixMs},
		"another datacenter": {WorkerId: mine.WorkerId, DatacenterId: 2, ConfirmedUnixMs: mine.ConfirmedUnixMs},
	} {
		liar := &client{c: c, name: what, book: book, last: named}
		if got := liar.must(a, "1"); got.Continues || got.WorkerId == mine.WorkerId || liar.drain(100) != 100 {
			t.Errorf("%s: got %v", what, got)
		}
	}
	// Of another datacenter's node a client gets one of that datacenter.
	away := &client{c: c, name: "away", book: book, last: mine}
	if got := away.must(b, "1"); got.Continues || got.DatacenterId != 2 || away.drain(100) != 100 {
		t.Errorf("got %v", got)
	}
	if got := k.must(a, "1"); !got.Continues || k.drain(100) != 100 {
		t.Errorf("got %v", got)
	}
	// Nor does a node's own worker id go to a client that names it.
	_, own := a.must("1", 1)
	mark := c.max(seq.WorkerRegister("regional-1", 1, uint64(own.Worker)))
	liar := &client{c: c, name: "own", book: book,
		last: &pb.SnowflakeDelegateReply{WorkerId: uint64(own.Worker), DatacenterId: 1, ConfirmedUnixMs: mark}}
	if got := liar.must(a, "1"); got.Continues || got.WorkerId == uint64(own.Worker) {
		t.Errorf("got %v", got)
	}
	if _, same := a.must("1", 1); same.Worker != own.Worker {
		t.Errorf("the node lost its worker id")
	}
}

func TestAWrongClockOfANodeMakesNoDelegationDoubtful(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	k := &client{c: c, name: "k", book: newLedger(t)}
	first := k.must(n, "")
	k.drain(100)
	n.jump(365 * 24 * time.Hour)
	if _, err := k.ask(n, ""); !errors.Is(err, seq.ErrClockOff) {
		t.Errorf("ahead: got %v, want %v", err, seq.ErrClockOff)
	}
	n.offset.Store(0)
	n.jump(-time.Hour)
	got := k.must(n, "")
	if !got.Continues || got.LastTick != first.LastTick {
		t.Errorf("behind: got %v after %v", got, first)
	}
	n.offset.Store(0)
	c.leap(time.Minute)
	if got := k.must(n, ""); !got.Continues || got.LastTick <= first.LastTick || k.drain(100) != 100 {
		t.Errorf("right again: got %v after %v", got, first)
	}
}

func TestABadWishIsRefusedByName(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	c.addEnded(n, "old", "baidu")
	client := n.dial()
	for what, row := range map[string]struct {
		req  *pb.SnowflakeDelegateRequest
		want error
	}{
		"a window too short":      {&pb.SnowflakeDelegateRequest{WindowMs: 999}, seq.ErrBadArgument},
		"a window too long":       {&pb.SnowflakeDelegateRequest{WindowMs: 3_000_001}, seq.ErrBadArgument},
		"a window of ages":        {&pb.SnowflakeDelegateRequest{WindowMs: 1<<64 - 1}, seq.ErrBadArgument},
		"a holder with a newline": {&pb.SnowflakeDelegateRequest{Holder: "a\nb"}, seq.ErrBadArgument},
		"a holder too long":       {&pb.SnowflakeDelegateRequest{Holder: fmt.Sprintf("%065d", 1)}, seq.ErrBadArgument},
		"no mark to extend":       {&pb.SnowflakeDelegateRequest{HasWorker: true, WorkerId: 1}, seq.ErrBadArgument},
		"a mark of no worker":     {&pb.SnowflakeDelegateRequest{ConfirmedUnixMs: 1}, seq.ErrBadArgument},
		"a worker not meant":      {&pb.SnowflakeDelegateRequest{WorkerId: 1}, seq.ErrBadArgument},
		"a worker out of range":   {&pb.SnowflakeDelegateRequest{HasWorker: true, WorkerId: 32, ConfirmedUnixMs: 1}, seq.ErrBadArgument},
		"an unknown namespace":    {&pb.SnowflakeDelegateRequest{Namespace: "moon"}, seq.ErrUnknownNamespace},
		"an unknown alias":        {&pb.SnowflakeDelegateRequest{Alias: 77}, seq.ErrUnknownNamespace},
		"a layout that ran out":   {&pb.SnowflakeDelegateRequest{Namespace: "old"}, seq.ErrTimeExhausted},
	} {
		if got, err := client.Delegate(long(t), row.req); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, %v, want %v", what, got, err, row.want)
		}
	}
	if got, err := client.Delegate(long(t), &pb.SnowflakeDelegateRequest{WindowMs: 1000, Holder: "pod/web-1:80"}); err != nil || got.Namespace != "default" {
		t.Errorf("after all that: got %v, %v", got, err)
	}
	if err := n.svc.Load().Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Delegate(long(t), &pb.SnowflakeDelegateRequest{}); !errors.Is(err, seq.ErrShuttingDown) {
		t.Errorf("of a node that leaves: got %v, want %v", err, seq.ErrShuttingDown)
	}
}

// delegateAs asks the node for a window in the name of a caller.
func (c *cluster) delegateAs(n *node, name string) (*pb.SnowflakeDelegateReply, error) {
	return c.delegateVia(n, workers.Caller{Name: name})
}

func (c *cluster) delegateVia(n *node, who workers.Caller) (*pb.SnowflakeDelegateReply, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), callerKey{}, who), patience)
	defer cancel()
	return server{s: n.svc.Load()}.Delegate(ctx, &pb.SnowflakeDelegateRequest{Namespace: "s"})
}

type callerKey struct{}

func byName(c *Config) {
	c.Caller = func(ctx context.Context) workers.Caller {
		who, _ := ctx.Value(callerKey{}).(workers.Caller)
		return who
	}
}

func TestNobodyEmptiesThePoolOfWorkerIDsAlone(t *testing.T) {
	const pool = "time:40,worker:5,sequence:1;unit=1s;epoch=1700000000000;overflow=borrow;rollback=borrow" // 32
	for _, atOnce := range []bool{false, true} {
		c := newCluster(t)
		a, b := c.start("a", byName), c.start("b", byName)
		c.add(a, "s", pool)
		a.must("s", 1)
		b.must("s", 1)
		var greedy sync.WaitGroup
		var got atomic.Int32
		ask := func() {
			_, err := c.delegateAs(a, "caller/greedy")
			if err == nil {
				got.Add(1)
			} else if !errors.Is(err, seq.ErrQuota) && !errors.Is(err, seq.ErrOverloaded) { // others were faster
				t.Errorf("refused with %v, want %v", err, seq.ErrQuota)
			}
		}
		for range 40 {
			if atOnce {
				greedy.Go(ask)
			} else {
				ask()
			}
		}
		greedy.Wait()
		if n := got.Load(); n > 14 || n < 1 || !atOnce && n != 14 { // with two of nodes that is half of the pool
			t.Errorf("at once %v: one who asks got %d windows, want 14 of 32", atOnce, n)
		}
		_, err := c.delegateAs(a, "caller/greedy")
		if !errors.Is(err, seq.ErrQuota) && !atOnce || !atOnce && !strings.Contains(err.Error(), "caller/greedy has 14 delegated worker ids of this node, and 16 of 32 are held in all: extend one of them, or come again in 10m") {
			t.Errorf("the next: got %v", err)
		}
		if atOnce {
			continue
		}
		if _, err := c.delegateAs(b, "caller/greedy"); err != nil { // a node has its own book, and gives one more
			t.Errorf("at another node: %v", err)
		}
		if _, err := c.delegateAs(b, "caller/greedy"); !errors.Is(err, seq.ErrQuota) {
			t.Errorf("once more at another node: got %v", err)
		}
		for k := range 5 {
			who := fmt.Sprint("caller/polite-", k)
			if _, err := c.delegateAs(a, who); err != nil {
				t.Errorf("%s: %v", who, err)
			}
			if _, err := c.delegateAs(a, who); !errors.Is(err, seq.ErrQuota) {
				t.Errorf("%s, once more: got %v, want %v", who, err, seq.ErrQuota)
			}
		}
		c.leap(workers.DefaultDelegation + time.Minute)
		if _, err := c.delegateAs(a, "caller/greedy"); err != nil {
			t.Errorf("when its windows are over: %v", err)
		}
	}
}

// A router without a certificate names the callers that it asks for, as any host may. If it names many
// callers, worker ids are still left for other hosts.
func TestCallersBehindAnUnprovedRouterHaveSharesOfTheirOwn(t *testing.T) {
	const pool = "time:40,worker:5,sequence:1;unit=1s;epoch=1700000000000;overflow=borrow;rollback=borrow" // 32
	c := newCluster(t)
	n := c.start("a", byName)
	c.add(n, "s", pool)
	n.must("s", 1)
	behind := func(address string) workers.Caller {
		return workers.Caller{Name: "host router for host " + address, Via: "host router"}
	}
	got := 0
	for ; got < 32; got++ {
		if _, err := c.delegateVia(n, behind("greedy")); err != nil {
			break
		}
	}
	if got != 15 { // with the node's half of the pool
		t.Errorf("one address behind the router got %d windows, want 15 of 32", got)
	}
	named := 0
	for ; named < 32; named++ {
		who := behind(fmt.Sprint("polite-", named))
		if _, err := c.delegateVia(n, who); err != nil {
			if !errors.Is(err, seq.ErrQuota) || !strings.Contains(err.Error(), "host router has ") {
				t.Errorf("%s: got %v", who.Name, err)
			}
			break
		}
		if _, err := c.delegateVia(n, who); !errors.Is(err, seq.ErrQuota) {
			t.Errorf("%s, once more: got %v, want %v", who.Name, err, seq.ErrQuota)
		}
	}
	if named != 5 { // up to two thirds
		t.Errorf("%d other addresses behind the router got a window, want 5", named)
	}
	for _, who := range []workers.Caller{{Name: "host other"}, {Name: "host second for host a", Via: "host second"}, {Name: "caller/proved"}} {
		if _, err := c.delegateVia(n, who); err != nil {
			t.Errorf("%s: %v", who.Name, err)
		}
	}
	if _, err := c.delegateVia(n, workers.Caller{Name: "host second for host b", Via: "host second"}); !errors.Is(err, seq.ErrQuota) {
		t.Errorf("a second caller of a host above two thirds: got %v, want %v", err, seq.ErrQuota)
	}
}

func TestAnExtensionIsNoFurtherWindowOfAShare(t *testing.T) {
	c := newCluster(t)
	n := c.start("a", byName)
	c.add(n, "s", coarse) // eight
	ctx := context.WithValue(t.Context(), callerKey{}, workers.Caller{Name: "caller/chat"})
	req := &pb.SnowflakeDelegateRequest{Namespace: "s"}
	for k := range 4 {
		if _, err := (server{s: n.svc.Load()}).Delegate(ctx, req); err != nil {
			t.Fatalf("window %d of half of the pool: %v", k, err)
		}
	}
	if _, err := (server{s: n.svc.Load()}).Delegate(ctx, req); !errors.Is(err, seq.ErrQuota) {
		t.Fatalf("beyond: got %v", err)
	}
	other := context.WithValue(t.Context(), callerKey{}, workers.Caller{Name: "caller/other"})
	for round := range 5 {
		got, err := server{s: n.svc.Load()}.Delegate(other, req)
		if err != nil || got.Continues != (round > 0) {
			t.Fatalf("round %d: got %v, %v", round, got, err)
		}
		req = &pb.SnowflakeDelegateRequest{Namespace: "s", HasWorker: true, WorkerId: got.WorkerId, DatacenterId: got.DatacenterId, ConfirmedUnixMs: got.ConfirmedUnixMs}
		c.leap(time.Minute)
	}
}
