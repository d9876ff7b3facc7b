package clienttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// firstLent is the worker id of the first delegation; the next one is below.
const firstLent = 31

// Delegations counts the windows that were lent.
func (c *Cluster) Delegations() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delegations
}

// Lend has windows refused with an error, lent again with nil.
func (c *Cluster) Lend(refusal error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noLoans = refusal
}

// Returned are the windows that were given back, to the node that had lent them.
func (c *Cluster) Returned() []*pb.SnowflakeGiveBackRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.returned)
}

// ticket is what a node lends a worker id with.
func (n *Node) ticket(worker uint64) uint64 { return worker<<8 | uint64(n.index+1) }

// GiveBack implements pb.SnowflakeServer.
func (s snowflakes) GiveBack(ctx context.Context, r *pb.SnowflakeGiveBackRequest) (*pb.SnowflakeGiveBackReply, error) {
	if err := s.n.stall(ctx); err != nil {
		return nil, err
	}
	c := s.n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.GetTicket() != s.n.ticket(r.GetWorkerId()) || r.GetNode() != s.n.name() {
		return nil, fmt.Errorf("%w: of another node", seq.ErrConflict)
	}
	c.returned = append(c.returned, r)
	return &pb.SnowflakeGiveBackReply{}, nil
}

// Delegate implements pb.SnowflakeServer: each window is of a worker id of its own, but
// that one which goes on with the last.
func (s snowflakes) Delegate(ctx context.Context, r *pb.SnowflakeDelegateRequest) (*pb.SnowflakeDelegateReply, error) {
	if err := s.n.stall(ctx); err != nil {
		return nil, err
	}
	c := s.n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmp.Or(s.n.refused(), c.fault, c.noLoans); err != nil {
		return nil, err
	}
	name, l, err := resolve(r.GetNamespace(), r.GetAlias())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	floor, err := l.TickAt(now)
	if err != nil {
		return nil, err
	}
	until := now.Add(time.Duration(r.GetWindowMs()) * time.Millisecond)
	last, err := l.TickAt(until)
	if err != nil {
		return nil, err
	}
	out := &pb.SnowflakeDelegateReply{
		Namespace: name, Layout: l.String(), DatacenterId: Datacenter, WorkerId: firstLent - uint64(c.delegations),
		FloorTick: uint64(floor), LastTick: uint64(last), ConfirmedUnixMs: uint64(until.UnixMilli()), ValidUntilUnixMs: until.UnixMilli(),
	}
	if !l.HasDatacenter() {
		out.DatacenterId = 0
	}
	if old := c.lent; old != nil && r.GetHasWorker() && r.GetWorkerId() == old.GetWorkerId() && r.GetConfirmedUnixMs() == old.GetConfirmedUnixMs() {
		out.WorkerId, out.FloorTick, out.Continues = old.GetWorkerId(), old.GetLastTick(), true
		out.LastTick = uint64(max(last, snowflake.Tick(old.GetLastTick())))
	}
	out.Node, out.Ticket = s.n.name(), s.n.ticket(out.GetWorkerId())
	c.delegations++
	c.lent = out
	return out, nil
}

// name is the node's in the route table.
func (n *Node) name() string { return fmt.Sprintf("alloc-%d", n.index) }
