package globalid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// coarse has eight worker ids and so few IDs a second that whole windows can be used up.
const coarse = "time:40,worker:3,sequence:1;unit=1s;epoch=1700000000000;overflow=borrow;rollback=borrow"

// client makes IDs by itself in the windows delegated to it.
type client struct {
	c    *cluster
	name string
	book *ledger
	slow time.Duration              // by how much its clock is behind
	last *pb.SnowflakeDelegateReply // the delegation that it keeps, or nil
	gen  *snowflake.Generator
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, seen: map[string]map[snowflake.ID]string{}}
}

func (k *client) request(namespace string) *pb.SnowflakeDelegateRequest {
	req := &pb.SnowflakeDelegateRequest{Namespace: namespace, Holder: strings.ReplaceAll(k.name, " ", "-")}
	if k.last != nil {
		req.HasWorker, req.WorkerId, req.DatacenterId = true, k.last.WorkerId, k.last.DatacenterId
		req.ConfirmedUnixMs, req.Ticket, req.Node = k.last.ConfirmedUnixMs, k.last.Ticket, k.last.Node
	}
	return req
}

func (n *node) delegate(req *pb.SnowflakeDelegateRequest) (*pb.SnowflakeDelegateReply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return server{s: n.svc.Load()}.Delegate(ctx, req)
}

// ask gets a window, or extends the window that the client has.
func (k *client) ask(n *node, namespace string) (*pb.SnowflakeDelegateReply, error) {
	got, err := n.delegate(k.request(namespace))
	if err != nil {
		return nil, err
	}
	return got, k.adopt(got)
}

// adopt does what an SDK does with a reply.
func (k *client) adopt(got *pb.SnowflakeDelegateReply) error {
	l, err := snowflake.ParseLayout(got.Layout)
	if err != nil {
		return err
	}
	if got.Continues && k.gen == nil {
		return fmt.Errorf("%s continues what it never had: %v", k.name, got)
	}
	if got.Continues {
		k.gen.Extend(snowflake.Tick(got.LastTick))
		k.last = got
		return nil
	}
	gen, err := snowflake.New(l, snowflake.Datacenter(got.DatacenterId), snowflake.Worker(got.WorkerId), snowflake.Tick(got.FloorTick),
		snowflake.WithClock(func() int64 { return k.c.wall.Load() - k.slow.Milliseconds() }),
		snowflake.WithPolicy(snowflake.Policy{Overflow: snowflake.OverflowBorrow, Rollback: snowflake.RollbackBorrow}))
	if err != nil {
		return err
	}
	gen.Extend(snowflake.Tick(got.LastTick))
	k.gen, k.last = gen, got
	return nil
}

// giveBack ends the client's generator and tells a node.
func (k *client) giveBack(n *node) error {
	used := k.gen.Seal()
	return n.giveBack(&pb.SnowflakeGiveBackRequest{Namespace: k.last.Namespace, DatacenterId: k.last.DatacenterId, WorkerId: k.last.WorkerId,
		ConfirmedUnixMs: k.last.ConfirmedUnixMs, Ticket: k.last.Ticket, LastTickUsed: uint64(used)})
}

func (n *node) giveBack(req *pb.SnowflakeGiveBackRequest) error {
	_, err := server{s: n.svc.Load()}.GiveBack(context.Background(), req)
	return err
}

// drain makes every ID of the window that is left, at most n, and returns how many.
func (k *client) drain(n int) int {
	made := 0
	for made < n {
		b, err := k.gen.Take(context.Background(), n-made)
		if err != nil {
			if !errors.Is(err, snowflake.ErrNoWindow) {
				k.c.t.Errorf("%s: %v", k.name, err)
			}
			break
		}
		k.book.add(k.last.Namespace, fmt.Sprintf("%s worker %d", k.name, k.last.WorkerId), b.AppendTo(nil))
		made += b.Len()
	}
	return made
}

const all = 1 << 30

func (k *client) must(n *node, namespace string) *pb.SnowflakeDelegateReply {
	k.c.t.Helper()
	got, err := k.ask(n, namespace)
	if err != nil {
		k.c.t.Fatalf("%s at %s: %v", k.name, n.name, err)
	}
	return got
}

// leap lets leases of the dead end, and then much time pass at once: windows of clients
// end by the wall clock alone.
func (c *cluster) leap(d time.Duration) {
	c.pass(2 * testLease)
	c.wall.Add(d.Milliseconds())
}
