package ids

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// localWindow is the time for which a worker id stays reserved if seqctl is killed.
const localWindow = 10_000 // milliseconds

// genLocally makes IDs in this process, like client.NewLocal. It borrows a worker id and gives it back at
// once.
func genLocally(ctx context.Context, o *ctl.Options, namespace string, count int) (*pb.SnowflakeGenerateReply, error) {
	lent, err := askSnowflake(ctx, o, pb.SnowflakeClient.Delegate, &pb.SnowflakeDelegateRequest{Namespace: namespace, Holder: agent, WindowMs: localWindow})
	if err != nil {
		return nil, err
	}
	layout, err := snowflake.ParseLayout(lent.GetLayout())
	if err != nil {
		return nil, fmt.Errorf("layout of the worker id that was lent: %w", err)
	}
	g, err := snowflake.New(layout, snowflake.Datacenter(lent.GetDatacenterId()), snowflake.Worker(lent.GetWorkerId()), snowflake.Tick(lent.GetFloorTick()))
	if err != nil {
		return nil, fmt.Errorf("worker id that was lent: %w", err)
	}
	g.Extend(snowflake.Tick(lent.GetLastTick()))
	made := make([]snowflake.ID, count)
	n, err := g.NextN(ctx, made)
	used := g.Seal() // before it is told
	back := &pb.SnowflakeGiveBackRequest{Namespace: lent.GetNamespace(), DatacenterId: lent.GetDatacenterId(), WorkerId: lent.GetWorkerId(),
		ConfirmedUnixMs: lent.GetConfirmedUnixMs(), Node: lent.GetNode(), Ticket: lent.GetTicket(), LastTickUsed: uint64(used)}
	// The IDs are good whatever becomes of this: the worker id is free when its window is over.
	_, _ = askSnowflake(ctx, o, pb.SnowflakeClient.GiveBack, back)
	if err != nil {
		return nil, fmt.Errorf("made %d of %d IDs here: %w", n, count, err)
	}
	out := &pb.SnowflakeGenerateReply{Namespace: lent.GetNamespace(), Layout: lent.GetLayout(), DatacenterId: lent.GetDatacenterId(), WorkerId: lent.GetWorkerId()}
	for _, id := range made {
		out.Ids = append(out.Ids, uint64(id))
	}
	return out, nil
}
