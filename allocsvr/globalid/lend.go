package globalid

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Delegate implements pb.SnowflakeServer.
func (v server) Delegate(ctx context.Context, req *pb.SnowflakeDelegateRequest) (*pb.SnowflakeDelegateReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	wish := workers.WindowRequest{By: v.s.cfg.Caller(ctx), Holder: req.Holder, Window: workers.DefaultDelegation, Extends: req.HasWorker, Ticket: req.Ticket, Named: workers.Named{
		Datacenter: snowflake.Datacenter(req.DatacenterId), Worker: snowflake.Worker(req.WorkerId), Confirmed: workers.Mark(req.ConfirmedUnixMs),
	}}
	if req.WindowMs != 0 {
		// Capped far above what is allowed, so that no number of milliseconds overflows.
		wish.Window = time.Duration(min(req.WindowMs, 1<<32)) * time.Millisecond
	}
	ns, err := v.s.names.Find(ctx, namespaces.Ref{Name: req.Namespace, Alias: req.Alias})
	if err != nil {
		return nil, fmt.Errorf("delegate: %w", err)
	}
	d, err := v.s.workers.Of(ns.Name).Delegate(ctx, wish)
	if err != nil {
		return nil, fmt.Errorf("delegate: %w", err)
	}
	v.lent(audit.Lent, req.Holder, wish.By.Name, d.Namespace, d.Named, d.Floor, d.Last)
	return &pb.SnowflakeDelegateReply{
		Namespace: ns.Name, Layout: d.Namespace.Layout.String(), DatacenterId: uint64(d.Datacenter), WorkerId: uint64(d.Worker),
		FloorTick: uint64(d.Floor), LastTick: uint64(d.Last), ConfirmedUnixMs: uint64(d.Confirmed),
		ValidUntilUnixMs: d.ValidUntil().UnixMilli(), Continues: d.Continues, Node: v.s.cfg.Name, Ticket: d.Ticket,
	}, nil
}

// GiveBack implements pb.SnowflakeServer.
func (v server) GiveBack(ctx context.Context, req *pb.SnowflakeGiveBackRequest) (*pb.SnowflakeGiveBackReply, error) {
	ctx, cancel := rpc.Bounded(ctx)
	defer cancel()
	ns, err := v.s.names.Find(ctx, namespaces.Ref{Name: req.Namespace, Alias: req.Alias})
	by, used := v.s.cfg.Caller(ctx), snowflake.Tick(req.LastTickUsed)
	named := workers.Named{
		Datacenter: snowflake.Datacenter(req.DatacenterId), Worker: snowflake.Worker(req.WorkerId), Confirmed: workers.Mark(req.ConfirmedUnixMs),
	}
	if err == nil {
		err = v.s.workers.Of(ns.Name).GiveBack(by, named, req.Ticket, used)
	}
	if err != nil {
		return nil, fmt.Errorf("give back: %w", err)
	}
	v.lent(audit.Returned, "", by.Name, *ns, named, 0, used)
	return &pb.SnowflakeGiveBackReply{}, nil
}

// lent has it written down which IDs a client makes by itself: of the ticks above floor up to last.
func (v server) lent(kind audit.Kind, holder, by string, ns namespaces.Namespace, n workers.Named, floor, last snowflake.Tick) {
	if v.s.cfg.Audit == nil {
		return
	}
	parts := snowflake.Parts{Tick: min(floor+1, last), Datacenter: n.Datacenter, Worker: n.Worker}
	from, err := ns.Layout.Compose(parts)
	parts.Tick, parts.Sequence = last, ns.Layout.MaxSequence()
	to, err2 := ns.Layout.Compose(parts)
	if err != nil || err2 != nil {
		return // the layout is another one by now
	}
	v.s.cfg.Audit.Note(audit.Note{At: v.s.cfg.Wall(), Kind: kind, Agent: holder, Caller: by, Namespace: ns.Name,
		Datacenter: n.Datacenter, Worker: n.Worker, First: from, Last: to})
}
