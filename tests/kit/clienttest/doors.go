package clienttest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// named names keys of a space, as batches of all kinds do.
type named interface {
	GetSpace() string
	GetUids() []uint64
	GetKeys() []string
}

// places returns the UIDs that decide the sections of the keys.
func places(b named) []uint64 {
	all := slices.Clone(b.GetUids())
	for _, k := range b.GetKeys() {
		all = append(all, uint64(seq.HashKey(k)))
	}
	return all
}

// refuses returns why the node does not serve keys of a space, one error a key, and nil if it serves
// all. The AllocSvr refuses what no node serves.
func (n *Node) refuses(space string, uids ...uint64) []error {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []error
	for i, uid := range uids {
		err := cmp.Or(n.refused(), c.fault)
		if s, known := c.Mapping.Space(space); err == nil && known == nil {
			if _, err = c.mappingAt(n.index).Space(space); err == nil {
				id := s.SectionOf(seq.UID(uid))
				if to, gone := c.set.gone[id]; gone {
					err = &rpc.NotOwnerError{Section: id, Set: to.name, Addr: to.addr}
				} else {
					err = n.moved(id)
				}
			}
		}
		if err != nil && all == nil {
			all = make([]error, len(uids))
		}
		if err != nil {
			all[i] = err
		}
	}
	return all
}

// moved returns the redirect of a section that another node of the cluster serves. Needs c.mu.
func (n *Node) moved(id seq.SectionID) error {
	c := n.cluster
	owner := c.effective[id]
	if owner == n.index {
		return nil
	}
	moved := &rpc.NotOwnerError{Section: id, Owner: nameOf(owner), RouteVersion: c.routes.Version}
	if !c.noHints {
		moved.Addr = c.routes.Nodes[owner].Addr
	}
	return moved
}

// refusesTag is refuses for a segment tag.
func (n *Node) refusesTag(name string) error {
	c := n.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(n.refused(), c.fault, n.moved(c.Mapping.SectionOfName(name)))
}

// share is the part of the batches of a request that the AllocSvr answers.
type share struct {
	held    uint64    // the route version of the caller
	refused [][]error // by batch; nil if none of its keys is refused
	sizes   []int     // keys of each batch
}

func shareOf[B named](n *Node, held uint64, batches []B) *share {
	s := &share{held: held}
	for _, b := range batches {
		uids := places(b)
		s.sizes, s.refused = append(s.sizes, len(uids)), append(s.refused, n.refuses(b.GetSpace(), uids...))
	}
	return s
}

// whole reports whether the AllocSvr answers all keys of a batch.
func (s *share) whole(i int) bool { return s.refused[i] == nil }

// none reports whether the AllocSvr answers no key of any batch.
func (s *share) none() bool {
	left := 0
	for i, size := range s.sizes {
		left += size
		for _, err := range s.refused[i] {
			if err != nil {
				left--
			}
		}
	}
	return left == 0 && len(s.sizes) > 0
}

// kept leaves the entries of a list that are not refused. skip entries of the batch stand before it.
func kept[T any](s *share, batch, skip int, list []T) (out []T) {
	for i, v := range list {
		if at := i + skip; at >= len(s.refused[batch]) || s.refused[batch][at] == nil {
			out = append(out, v)
		}
	}
	return out
}

// spread puts the entries of an answer where their keys stood.
func spread[T any](s *share, batch int, list []T) []T {
	if s.whole(batch) || len(list) == 0 {
		return list
	}
	out, next := make([]T, s.sizes[batch]), 0
	for i := range out {
		if s.refused[batch][i] == nil && next < len(list) {
			out[i] = list[next]
			next++
		}
	}
	return out
}

// errors puts the errors of an answer where their keys stood, and adds the refusals.
func (s *share) errors(batch int, got []*pb.KeyError) []*pb.KeyError {
	if s.whole(batch) {
		return got
	}
	var at []int
	var out []*pb.KeyError
	for i, err := range s.refused[batch] {
		if err != nil {
			out = append(out, rpc.ToKeyError(i, err))
		} else {
			at = append(at, i)
		}
	}
	for _, e := range got {
		e.Index = uint32(at[e.GetIndex()])
		out = append(out, e)
	}
	return out
}

// forward leaves in the request what the AllocSvr answers.
func (s *share) forward(r *pb.BatchNextRequest) {
	r.RouteVersion = 0
	for i, b := range r.GetBatches() {
		if s.whole(i) {
			continue
		}
		r.Batches[i] = &pb.Batch{Space: b.GetSpace(), Uids: kept(s, i, 0, b.GetUids()), Keys: kept(s, i, len(b.GetUids()), b.GetKeys()),
			Counts: kept(s, i, 0, b.GetCounts()), RequestIds: kept(s, i, 0, b.GetRequestIds()), FirstSentMs: kept(s, i, 0, b.GetFirstSentMs())}
	}
}

// answer is the reply of the node: what the AllocSvr answered, nil if it was not asked, and the
// refusals, unless more follows.
func (s *share) answer(n *Node, got *pb.BatchNextReply, more bool) *pb.BatchNextReply {
	out := &pb.BatchNextReply{}
	out.RouteVersion, out.Routes = n.cluster.table(s.held)
	for i, size := range s.sizes {
		r := &pb.BatchResult{}
		if got != nil {
			r = got.GetResults()[i]
		}
		one := &pb.BatchResult{First: spread(s, i, r.GetFirst()), Last: spread(s, i, r.GetLast()), Replayed: spread(s, i, r.GetReplayed()),
			Unordered: r.GetUnordered() || n.cluster.behaves().unordered}
		if len(one.First) == 0 {
			one.First = make([]uint64, size)
		}
		if !more {
			one.Errors = s.errors(i, r.GetErrors())
		}
		out.Results = append(out.Results, one)
	}
	return out
}

// unary stands before the AllocSvr's calls.
func (n *Node) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	n.counts(req)
	if err := n.stall(ctx); err != nil {
		return nil, err
	}
	if strings.HasPrefix(info.FullMethod, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/") {
		return handle(ctx, req)
	}
	switch r := req.(type) {
	case *pb.RoutesRequest:
		return n.routes(r), nil
	case *pb.NextRequest:
		return n.single(ctx, r, &r.RouteVersion, handle)
	case *pb.RaiseRequest:
		return n.single(ctx, r, &r.RouteVersion, handle)
	case *pb.LookupRequest:
		return n.single(ctx, r, &r.RouteVersion, handle)
	case *pb.OpenRequest:
		return n.single(ctx, r, &r.RouteVersion, handle)
	case *pb.DoneRequest:
		return n.single(ctx, r, &r.RouteVersion, handle)
	case *pb.BatchNextRequest, *pb.BatchRaiseRequest, *pb.CurrentRequest, *pb.MarkRequest:
		return n.batches(ctx, req, handle)
	case *pb.SegmentTakeRequest, *pb.NumbersNextRequest, *pb.NumberShowRequest, *pb.SegmentStatusRequest:
		return n.tag(ctx, req, handle)
	}
	return n.id(ctx, req, handle)
}

// counts notes that a call arrived.
func (n *Node) counts(req any) {
	switch req.(type) {
	case *pb.SnowflakeGenerateRequest:
		n.Generates.Add(1)
	case *pb.SegmentTakeRequest, *pb.NumbersNextRequest:
		n.Takes.Add(1)
	case *pb.NextRequest, *pb.BatchNextRequest, *pb.CurrentRequest, *pb.RaiseRequest, *pb.BatchRaiseRequest, *pb.LookupRequest, *pb.SnowflakePutNamespaceRequest:
		n.Calls.Add(1)
	}
}

// single passes on a request for one key.
func (n *Node) single(ctx context.Context, r interface {
	GetSpace() string
	GetUid() uint64
	GetKey() string
}, version *uint64, handle grpc.UnaryHandler) (any, error) {
	uid := r.GetUid()
	if r.GetKey() != "" {
		uid = uint64(seq.HashKey(r.GetKey()))
	}
	if errs := n.refuses(r.GetSpace(), uid); errs != nil {
		return nil, errs[0]
	}
	held := *version
	*version = 0
	got, err := handle(ctx, r)
	if err != nil {
		return nil, err
	}
	switch reply := got.(type) {
	case *pb.NextReply:
		reply.RouteVersion, reply.Routes = n.cluster.table(held)
		reply.Unordered = reply.Unordered || n.cluster.behaves().unordered
		if n.lost() {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	case *pb.RaiseReply:
		reply.RouteVersion, reply.Routes = n.cluster.table(held)
	case *pb.LookupReply:
		reply.RouteVersion, reply.Routes = n.cluster.table(held)
	case *pb.OpenReply:
		reply.RouteVersion, reply.Routes = n.cluster.table(held)
	case *pb.DoneReply:
		reply.RouteVersion, reply.Routes = n.cluster.table(held)
	}
	return got, nil
}

// batches passes on the keys of batches that the node serves.
func (n *Node) batches(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	switch r := req.(type) {
	case *pb.CurrentRequest:
		s := shareOf(n, r.GetRouteVersion(), r.GetBatches())
		r.RouteVersion = 0
		got, err := handle(ctx, r) // reading a key that others serve changes nothing
		if err != nil {
			return nil, err
		}
		reply := got.(*pb.CurrentReply)
		reply.RouteVersion, reply.Routes = n.cluster.table(s.held)
		for i, res := range reply.GetResults() {
			for at, err := range s.refused[i] {
				if err != nil {
					res.Values[at], res.UpperBound[at], res.LastTakenUnix[at] = 0, false, 0
					res.Errors = append(slices.DeleteFunc(res.Errors, func(e *pb.KeyError) bool { return e.GetIndex() == uint32(at) }), rpc.ToKeyError(at, err))
				}
			}
		}
		return reply, nil
	case *pb.MarkRequest:
		s := shareOf(n, r.GetRouteVersion(), r.GetBatches())
		r.RouteVersion = 0
		got, err := handle(ctx, r) // nor does this
		if err != nil {
			return nil, err
		}
		reply := got.(*pb.MarkReply)
		reply.RouteVersion, reply.Routes = n.cluster.table(s.held)
		for i, res := range reply.GetResults() {
			for at, err := range s.refused[i] {
				if err != nil {
					res.Marks[at], res.Fences[at], res.Last[at], res.UnknownMs[at] = 0, 0, 0, 0
					res.Errors = append(slices.DeleteFunc(res.Errors, func(e *pb.KeyError) bool { return e.GetIndex() == uint32(at) }), rpc.ToKeyError(at, err))
				}
			}
		}
		return reply, nil
	case *pb.BatchRaiseRequest:
		s := shareOf(n, r.GetRouteVersion(), r.GetBatches())
		r.RouteVersion = 0
		for i, b := range r.GetBatches() {
			r.Batches[i] = &pb.RaiseBatch{Space: b.GetSpace(), MaxJump: b.GetMaxJump(), Uids: kept(s, i, 0, b.GetUids()), Keys: kept(s, i, len(b.GetUids()), b.GetKeys()), AtLeast: kept(s, i, 0, b.GetAtLeast())}
		}
		reply := &pb.BatchRaiseReply{Results: make([]*pb.RaiseResult, len(s.sizes))}
		if !s.none() {
			got, err := handle(ctx, r)
			if err != nil {
				return nil, err
			}
			reply = got.(*pb.BatchRaiseReply)
		}
		reply.RouteVersion, reply.Routes = n.cluster.table(s.held)
		for i, res := range reply.Results {
			reply.Results[i] = &pb.RaiseResult{Values: spread(s, i, res.GetValues()), Errors: s.errors(i, res.GetErrors())}
			if len(reply.Results[i].Values) == 0 {
				reply.Results[i].Values = make([]uint64, s.sizes[i])
			}
		}
		return reply, nil
	}
	r := req.(*pb.BatchNextRequest)
	s := shareOf(n, r.GetRouteVersion(), r.GetBatches())
	s.forward(r)
	var reply *pb.BatchNextReply
	if !s.none() {
		got, err := handle(ctx, r)
		if err != nil {
			return nil, err
		}
		reply = got.(*pb.BatchNextReply)
	}
	if n.lost() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.answer(n, reply, false), nil
}

// tag passes on a call for segment tags.
func (n *Node) tag(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	if name := req.(interface{ GetTag() string }).GetTag(); name != "" {
		if err := n.refusesTag(name); err != nil {
			return nil, err
		}
	}
	got, err := handle(ctx, req)
	if err != nil {
		return nil, err
	}
	switch reply := got.(type) {
	case *pb.SegmentTakeReply:
		reply.RouteVersion = n.cluster.Routes().Version
	case *pb.NumbersNextReply:
		reply.RouteVersion = n.cluster.Routes().Version
	case *pb.SegmentStatusReply:
		reply.Tags = slices.DeleteFunc(reply.Tags, func(s *pb.SegmentStatus) bool { return n.refusesTag(s.GetTag().GetTag()) != nil })
	}
	return got, nil
}

// id passes on a call for snowflake IDs, and every other one.
func (n *Node) id(ctx context.Context, req any, handle grpc.UnaryHandler) (any, error) {
	c := n.cluster
	f := c.behaves()
	switch r := req.(type) {
	case *pb.SnowflakeGenerateRequest:
		if err := cmp.Or(n.refused(), f.fault, n.in(r.GetDatacenter())); err != nil {
			return nil, err
		}
		if f.atOnce > 0 && int(r.GetCount()) > f.atOnce {
			return nil, fmt.Errorf("%w: %d of one tick", seq.ErrTickUsedUp, f.atOnce)
		}
		r.Datacenter = ""
		got, err := handle(ctx, r)
		if err == nil {
			n.Generated.Add(int64(r.GetCount()))
			c.agent(r.GetAgent(), int(r.GetCount()))
		}
		return got, err
	case *pb.SnowflakeDelegateRequest:
		if err := cmp.Or(n.refused(), f.fault, f.noLoans); err != nil {
			return nil, err
		}
		got, err := handle(ctx, r)
		if err != nil {
			return nil, err
		}
		reply := got.(*pb.SnowflakeDelegateReply)
		reply.Node = nameOf(n.index)
		c.lends()
		return reply, nil
	case *pb.SnowflakeGiveBackRequest:
		if r.GetNode() != nameOf(n.index) {
			return nil, fmt.Errorf("%w: of another node", seq.ErrConflict)
		}
		asked := proto.CloneOf(r)
		r.Node = nameOf(0)
		got, err := handle(ctx, r)
		if err == nil {
			c.returns(asked)
		}
		return got, err
	case *pb.SnowflakePutNamespaceRequest:
		return nil, seq.ErrConflict // as a change that came too late
	}
	got, err := handle(ctx, req)
	if reply, ok := got.(*pb.SnowflakeInfoReply); ok && err == nil {
		reply.Node = nameOf(n.index)
	}
	return got, err
}

// in checks that the node is in the named datacenter. Node i is in "dc-i", and does not know the
// datacenters of nodes with a higher index.
func (n *Node) in(datacenter string) error {
	for i := range n.index + 1 {
		switch {
		case datacenter != "" && datacenter != fmt.Sprint("dc-", i):
		case datacenter == "", i == n.index:
			return nil
		default:
			return fmt.Errorf("%w: this node is of datacenter \"dc-%d\", not %q", seq.ErrNodeUnfit, n.index, datacenter)
		}
	}
	return fmt.Errorf("%w: %q", seq.ErrUnknownDatacenter, datacenter)
}

// table is what a reply carries of the routes.
func (c *Cluster) table(held uint64) (uint64, *pb.RouteTable) {
	routes := c.Routes()
	if held == 0 || held >= routes.Version {
		return routes.Version, nil
	}
	return routes.Version, rpc.RoutesToProto(routes)
}

// routes answers by the table of the test.
func (n *Node) routes(r *pb.RoutesRequest) *pb.RoutesReply {
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
	return out
}

// stream stands before the AllocSvr's stream.
func (n *Node) stream(impl any, inner grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if info.FullMethod == pb.Sequence_Watch_FullMethodName {
		return n.watch(impl, inner, handle)
	}
	if info.FullMethod != pb.Sequence_Stream_FullMethodName {
		return handle(impl, inner)
	}
	return handle(impl, &door{ServerStream: inner, n: n, open: map[uint64]*share{}})
}

// door is a stream whose requests lose the keys that the node does not serve, and whose replies get
// them back as errors.
type door struct {
	grpc.ServerStream
	n *Node

	mu   sync.Mutex // guards open, and is held over a message that is sent
	open map[uint64]*share
}

// RecvMsg implements grpc.ServerStream.
func (d *door) RecvMsg(m any) error {
	for {
		r := m.(*pb.StreamRequest)
		if err := d.ServerStream.RecvMsg(r); err != nil {
			return err
		}
		d.n.Messages.Add(1)
		next := r.GetNext()
		for _, b := range next.GetBatches() {
			d.n.Keys.Add(int64(len(b.GetUids()) + len(b.GetKeys())))
		}
		if err := d.n.stall(d.Context()); err != nil {
			return err
		}
		if call := r.GetTickets(); call != nil {
			reply := d.n.tickets(call)
			if reply == nil {
				return nil
			}
			if reply.Id = r.GetId(); d.send(reply) != nil {
				return io.EOF
			}
			proto.Reset(r)
			continue
		}
		if next == nil {
			return nil
		}
		s := shareOf(d.n, next.GetRouteVersion(), next.GetBatches())
		if !s.none() {
			s.forward(next)
			d.mu.Lock()
			d.open[r.GetId()] = s
			d.mu.Unlock()
			return nil
		}
		if err := d.send(&pb.StreamReply{Id: r.GetId(), Result: &pb.StreamReply_Next{Next: s.answer(d.n, nil, false)}}); err != nil {
			return err
		}
		proto.Reset(r)
	}
}

// tickets answers a message of calls with tickets; nil leaves it to the AllocSvr.
func (n *Node) tickets(call *pb.TicketsRequest) *pb.StreamReply {
	n.Together.Add(1)
	n.mu.Lock()
	older := n.older
	n.mu.Unlock()
	if older {
		return &pb.StreamReply{Result: &pb.StreamReply_Error{Error: rpc.ToKeyError(0, fmt.Errorf("%w: a call of no known kind", seq.ErrBadArgument))}}
	}
	reply, all := &pb.TicketsReply{}, true
	for _, b := range call.GetOpens() {
		reply.Opens = append(reply.Opens, &pb.OpenResult{Apart: true})
		all = all && n.refuses(b.GetKeys().GetSpace(), places(b.GetKeys())...) == nil
	}
	for _, b := range call.GetDones() {
		reply.Dones = append(reply.Dones, &pb.DoneResult{Apart: true})
		all = all && n.refuses(b.GetKeys().GetSpace(), places(b.GetKeys())...) == nil
	}
	if all {
		return nil
	}
	return &pb.StreamReply{Result: &pb.StreamReply_Tickets{Tickets: reply}}
}

// SendMsg implements grpc.ServerStream.
func (d *door) SendMsg(m any) error {
	reply := m.(*pb.StreamReply)
	d.mu.Lock()
	s := d.open[reply.GetId()]
	if !reply.GetMore() {
		delete(d.open, reply.GetId())
	}
	d.mu.Unlock()
	if s != nil && reply.GetNext() != nil {
		reply = &pb.StreamReply{Id: reply.GetId(), More: reply.GetMore(), Result: &pb.StreamReply_Next{Next: s.answer(d.n, reply.GetNext(), reply.GetMore())}}
	}
	return d.send(reply)
}

func (d *door) send(reply *pb.StreamReply) error {
	if d.n.lost() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ServerStream.SendMsg(reply)
}
