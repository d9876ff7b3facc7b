package clienttest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// doorway is a listener fed by hand, whose Close leaves the address bound.
type doorway struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (g *doorway) Accept() (net.Conn, error) {
	select {
	case conn := <-g.conns:
		return conn, nil
	case <-g.done:
		return nil, net.ErrClosed
	}
}

func (g *doorway) Close() error {
	g.once.Do(func() { close(g.done) })
	return nil
}

// offer is false when the server behind it has stopped.
func (g *doorway) offer(conn net.Conn) bool {
	select {
	case g.conns <- conn:
		return true
	case <-g.done:
		return false
	}
}

func (g *doorway) Addr() net.Addr { return g.addr }

// table is what a reply carries of the routes.
func (c *Cluster) table(held uint64) (uint64, *pb.RouteTable) {
	routes := c.Routes()
	if held == 0 || held >= routes.Version {
		return routes.Version, nil
	}
	return routes.Version, rpc.RoutesToProto(routes)
}

// serve runs do on each key of a batch that this node owns, and gives the errors of
// the others.
func (n *Node) serve(b *pb.Batch, do func(i int, key *uint64, count uint64)) ([]*pb.KeyError, bool) {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []*pb.KeyError
	uids := b.GetUids()
	for _, k := range b.GetKeys() {
		uids = append(uids, uint64(seq.HashKey(k)))
	}
	for i, uid := range uids {
		if err := n.one(b, i, seq.UID(uid), do); err != nil {
			errs = append(errs, rpc.ToKeyError(i, err))
		}
	}
	return errs, c.unordered
}

// one serves a key under c.mu.
func (n *Node) one(b *pb.Batch, i int, uid seq.UID, do func(i int, key *uint64, count uint64)) error {
	c := n.cluster
	if err := cmp.Or(n.refused(), c.fault); err != nil {
		return err
	}
	space, err := c.mappingAt(n.index).Space(b.GetSpace())
	if err != nil {
		return err
	}
	id := space.SectionOf(uid)
	if to, gone := c.set.gone[id]; gone {
		return &rpc.NotOwnerError{Section: id, Set: to.name, Addr: to.addr}
	}
	if owner := c.effective[id]; owner != n.index {
		moved := &rpc.NotOwnerError{Section: id, Owner: c.routes.Nodes[owner].Name, RouteVersion: c.routes.Version}
		if !c.noHints {
			moved.Addr = c.routes.Nodes[owner].Addr
		}
		return moved
	}
	count := uint64(1)
	if len(b.GetCounts()) > 0 {
		count = uint64(b.GetCounts()[i])
	}
	users := c.last[uint64(space.First)]
	if users == nil {
		users = map[seq.UID]uint64{}
		c.last[uint64(space.First)] = users
	}
	last := users[uid]
	if last+count > uint64(seq.MaxSeq) {
		return seq.ErrOverflow
	}
	do(i, &last, count)
	users[uid] = last
	return nil
}

// Next implements pb.SequenceServer.
func (n *Node) Next(ctx context.Context, r *pb.NextRequest) (*pb.NextReply, error) {
	b := batchOf(r, r.GetSpace(), r.GetCount())
	if r.RequestId != nil {
		b.RequestIds, b.FirstSentMs = [][]byte{r.RequestId}, []int64{r.FirstSentMs}
	}
	got, err := n.BatchNext(ctx, &pb.BatchNextRequest{Batches: []*pb.Batch{b}, RouteVersion: r.GetRouteVersion()})
	if err != nil {
		return nil, err
	}
	res := got.GetResults()[0]
	if len(res.GetErrors()) > 0 {
		return nil, rpc.FromKeyError(res.GetErrors()[0])
	}
	return &pb.NextReply{First: res.GetFirst()[0], Last: res.GetLast()[0], RouteVersion: got.GetRouteVersion(), Routes: got.GetRoutes(), Unordered: res.GetUnordered(), Replayed: len(res.GetReplayed()) > 0}, nil
}

// BatchNext implements pb.SequenceServer.
func (n *Node) BatchNext(ctx context.Context, r *pb.BatchNextRequest) (*pb.BatchNextReply, error) {
	n.Calls.Add(1)
	if err := n.stall(ctx); err != nil {
		return nil, err
	}
	got := n.next(r)
	if n.lost() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return got, nil
}

func (n *Node) next(r *pb.BatchNextRequest) *pb.BatchNextReply {
	out := &pb.BatchNextReply{}
	out.RouteVersion, out.Routes = n.cluster.table(r.GetRouteVersion())
	for _, b := range r.GetBatches() {
		size := len(b.GetUids()) + len(b.GetKeys())
		res := &pb.BatchResult{First: make([]uint64, size)}
		if len(b.GetCounts()) > 0 {
			res.Last = make([]uint64, size)
		}
		var once []*pb.KeyError
		res.Errors, res.Unordered = n.serve(b, func(i int, last *uint64, count uint64) {
			if had, err := n.cluster.repeats(b, i, *last+1, count); err != nil {
				once = append(once, rpc.ToKeyError(i, err))
				return
			} else if had.count > 0 {
				if res.Replayed == nil {
					res.Replayed = make([]bool, size)
				}
				if res.First[i], res.Replayed[i] = had.first, true; res.Last != nil {
					res.Last[i] = had.first + had.count - 1
				}
				return
			}
			res.First[i] = *last + 1
			*last += count
			if res.Last != nil {
				res.Last[i] = *last
			}
		})
		res.Errors = append(res.Errors, once...)
		out.Results = append(out.Results, res)
	}
	return out
}

// Current implements pb.SequenceServer.
func (n *Node) Current(ctx context.Context, r *pb.CurrentRequest) (*pb.CurrentReply, error) {
	n.Calls.Add(1)
	if err := n.stall(ctx); err != nil {
		return nil, err
	}
	out := &pb.CurrentReply{}
	out.RouteVersion, out.Routes = n.cluster.table(r.GetRouteVersion())
	for _, b := range r.GetBatches() {
		size := len(b.GetUids()) + len(b.GetKeys())
		res := &pb.CurrentResult{Values: make([]uint64, size), UpperBound: make([]bool, size), LastTakenUnix: make([]int64, size)}
		res.Errors, _ = n.serve(b, func(i int, last *uint64, _ uint64) {
			res.Values[i] = *last
			if *last > 0 {
				res.LastTakenUnix[i] = 1_700_000_000
			}
		})
		out.Results = append(out.Results, res)
	}
	return out, nil
}

// batchOf is a request for one key as a batch.
func batchOf(r interface {
	GetUid() uint64
	GetKey() string
}, space string, count uint32) *pb.Batch {
	b := &pb.Batch{Space: space, Counts: []uint32{count}}
	if r.GetKey() != "" {
		b.Keys = []string{r.GetKey()}
	} else {
		b.Uids = []uint64{r.GetUid()}
	}
	return b
}

// Raise implements pb.SequenceServer.
func (n *Node) Raise(ctx context.Context, r *pb.RaiseRequest) (*pb.RaiseReply, error) {
	n.Calls.Add(1)
	if err := n.stall(ctx); err != nil {
		return nil, err
	}
	out := &pb.RaiseReply{}
	out.RouteVersion, out.Routes = n.cluster.table(r.GetRouteVersion())
	b := batchOf(r, r.GetSpace(), 1)
	var far error // as an AllocSvr of one section a UID would see it
	errs, _ := n.serve(b, func(_ int, last *uint64, _ uint64) {
		space, err := n.cluster.Mapping.Space(r.GetSpace())
		if err == nil && !r.GetForce() && r.GetAtLeast() > *last && r.GetAtLeast()-*last > space.Jump() {
			far = fmt.Errorf("%w: from %d to %d, expected at most %d more", seq.ErrJump, *last, r.GetAtLeast(), space.Jump())
			return
		}
		*last = max(*last, r.GetAtLeast())
		out.Value = *last
	})
	if len(errs) > 0 {
		return nil, rpc.FromKeyError(errs[0])
	}
	if far != nil {
		return nil, far
	}
	return out, nil
}

// BatchRaise implements pb.SequenceServer.
func (n *Node) BatchRaise(ctx context.Context, r *pb.BatchRaiseRequest) (*pb.BatchRaiseReply, error) {
	n.Calls.Add(1)
	if err := n.stall(ctx); err != nil {
		return nil, err
	}
	out := &pb.BatchRaiseReply{}
	out.RouteVersion, out.Routes = n.cluster.table(r.GetRouteVersion())
	for _, b := range r.GetBatches() {
		res := &pb.RaiseResult{Values: make([]uint64, len(b.GetAtLeast()))}
		var far []*pb.KeyError
		errs, _ := n.serve(&pb.Batch{Space: b.GetSpace(), Uids: b.GetUids(), Keys: b.GetKeys()}, func(i int, last *uint64, _ uint64) {
			if jump := b.GetAtLeast()[i] - *last; b.GetMaxJump() > 0 && b.GetAtLeast()[i] > *last && jump > b.GetMaxJump() {
				far = append(far, rpc.ToKeyError(i, fmt.Errorf("%w: by %d", seq.ErrForbidden, jump)))
				return
			}
			*last = max(*last, b.GetAtLeast()[i])
			res.Values[i] = *last
		})
		res.Errors = append(errs, far...)
		out.Results = append(out.Results, res)
	}
	return out, nil
}

// Stream implements pb.SequenceServer.
func (n *Node) Stream(stream grpc.BidiStreamingServer[pb.StreamRequest, pb.StreamReply]) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return nil // the caller left
		}
		n.Messages.Add(1)
		for _, b := range r.GetNext().GetBatches() {
			n.Keys.Add(int64(len(b.GetUids()) + len(b.GetKeys())))
		}
		if err := n.stall(stream.Context()); err != nil {
			return err
		}
		reply := &pb.StreamReply{Id: r.GetId(), Result: &pb.StreamReply_Next{Next: n.next(r.GetNext())}}
		if n.lost() {
			continue
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
	}
}

// Routes implements pb.SequenceServer.
func (n *Node) Routes(ctx context.Context, r *pb.RoutesRequest) (*pb.RoutesReply, error) {
	if err := n.stall(ctx); err != nil {
		return nil, err
	}
	c := n.cluster
	c.mu.Lock()
	routes, mapping, set := c.routes, c.mappingAt(n.index), c.set
	c.mu.Unlock()
	n.Asked.Add(1)
	out := &pb.RoutesReply{ClusterId: c.ID, RouteVersion: routes.Version, Mapping: rpc.MappingToProto(mapping), Set: set.name, Incarnation: rpc.IncarnationToProto(n.incarnation())}
	if r.GetSetsVersion() < set.known.Version {
		out.Sets = rpc.SetMapToProto(set.known)
	}
	if r.GetRouteVersion() < routes.Version {
		out.Routes = rpc.RoutesToProto(routes)
	}
	return out, nil
}
