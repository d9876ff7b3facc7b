package localcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// probeTimeout bounds the first question whether a node is ready; one that was not
// answered in time is given twice as long, up to longProbe, so that a slow machine comes
// to an answer as well. It is asked again after firstProbe, and then ever less often up to lastProbe: an allocator reads every
// section from the stores for its answer, which must not slow down what is waited for.
const (
	probeTimeout = 4 * time.Second
	longProbe    = time.Minute
	firstProbe   = 25 * time.Millisecond
	lastProbe    = 400 * time.Millisecond
)

// errUnready is a node that answers, but not yet well.
var errUnready = errors.New("answers, but is not ready")

// WaitReady waits until every running process serves: stores vote, allocators are
// ready and no section is without an owner, routers answer. ErrExited if a process
// ended by itself; ErrNotReady, with the first node that is missing, when ctx ends.
// It takes no number of any UID.
func (c *Cluster) WaitReady(ctx context.Context) error {
	return errors.Join(together(c.processes, func(p *Process) error {
		if !p.Running() && !p.Failed() {
			return nil // not started, or ended on purpose
		}
		return c.Layout.WaitNode(ctx, p.Node, p.Done(), p.Exit)
	})...)
}

// WaitNode waits until a node of the layout is ready, as the function of that name does.
func (l *Layout) WaitNode(ctx context.Context, n Node, ended <-chan struct{}, why func() string) error {
	opts, err := l.Secured.dial(n.Role)
	if err != nil {
		return err
	}
	return WaitNode(ctx, n, ended, why, opts...)
}

// WaitNode waits until one node is ready, as WaitReady defines it. ended, if not nil,
// is closed when the node ends, and why then says how.
func WaitNode(ctx context.Context, n Node, ended <-chan struct{}, why func() string, opts ...grpc.DialOption) error {
	conn, err := rpc.Dial(n.Addr, opts...)
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	defer conn.Close()
	var reason error // the last that says more than that the time was up
	timeout := probeTimeout
	for pause := firstProbe; ; pause = min(pause*3/2, lastProbe) {
		probe, cancel := context.WithTimeout(ctx, timeout)
		err := ask(probe, n.Role, conn)
		if probe.Err() != nil {
			timeout = min(2*timeout, longProbe)
		}
		cancel()
		if err == nil {
			return nil
		}
		if reason == nil || !errors.Is(err, context.DeadlineExceeded) {
			reason = err
		}
		select {
		case <-ended:
			return fmt.Errorf("%s: %w: %s", n.Name, ErrExited, why())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", n.Name, ErrNotReady, reason)
		case <-time.After(pause):
		}
	}
}

// ask puts one question to a node.
func ask(ctx context.Context, role Role, conn *grpc.ClientConn) error {
	switch role {
	case RoleStore:
		reply, err := pb.NewStoreClient(conn).Describe(ctx, &pb.DescribeRequest{})
		if err == nil && !reply.GetVoting() {
			return fmt.Errorf("%w: %s", errUnready, reply.GetState())
		}
		return err
	case RoleAlloc:
		routes, err := pb.NewSequenceClient(conn).Routes(ctx, &pb.RoutesRequest{})
		if err != nil {
			return err
		}
		if routes.GetRoutes() == nil {
			return fmt.Errorf("%w: no route table", errUnready)
		}
		reply, err := pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{})
		switch {
		case err != nil:
			return err
		case !reply.GetReady():
			return fmt.Errorf("%w: %s", errUnready, reply.GetReason())
		case reply.GetSectionsUnowned() > 0:
			return fmt.Errorf("%w: %d sections without an owner", errUnready, reply.GetSectionsUnowned())
		}
		return nil
	}
	reply, err := pb.NewSequenceClient(conn).Current(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{{Uids: []uint64{0}}}})
	if err != nil {
		return err
	}
	for _, result := range reply.GetResults() {
		for _, failed := range result.GetErrors() {
			return fmt.Errorf("%w: %w", errUnready, rpc.FromKeyError(failed))
		}
	}
	return nil
}
