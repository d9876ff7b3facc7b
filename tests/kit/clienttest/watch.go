package clienttest

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// watchDoor is a watch of the keys that the node serves. It tells of keys of sections that go to another node.
type watchDoor struct {
	grpc.ServerStream
	n *Node

	todo []*pb.WatchRequest // parts of a message, one key each

	mu   sync.Mutex // guards keys, and is held over a message that is sent
	keys map[uint32]watchedKey
}

// watchedKey is a key as the node refuses it.
type watchedKey struct {
	space string
	place uint64
}

// watch stands before the AllocSvr's Watch.
func (n *Node) watch(impl any, inner grpc.ServerStream, handle grpc.StreamHandler) error {
	d := &watchDoor{ServerStream: inner, n: n, keys: map[uint32]watchedKey{}}
	n.Watches.Add(1)
	defer n.Watches.Add(-1)
	over := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		for tick := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-over:
				tick.Stop()
				return
			case <-tick.C:
				_ = d.tell() // a broken stream ends the handler
			}
		}
	})
	defer telling.Wait()
	defer close(over)
	return handle(impl, d)
}

// tell says which keys went.
func (d *watchDoor) tell() error {
	if err := d.n.stall(d.Context()); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	reply := &pb.WatchReply{}
	for id, k := range d.keys {
		if errs := d.n.refuses(k.space, k.place); errs != nil {
			reply.Errors = append(reply.Errors, rpc.ToKeyError(int(id), errs[0]))
			delete(d.keys, id)
		}
	}
	if len(reply.Errors) == 0 {
		return nil
	}
	return d.ServerStream.SendMsg(reply)
}

// RecvMsg implements grpc.ServerStream.
func (d *watchDoor) RecvMsg(m any) error {
	for len(d.todo) == 0 {
		r := &pb.WatchRequest{}
		if err := d.ServerStream.RecvMsg(r); err != nil {
			return err
		}
		d.n.Messages.Add(1)
		if err := d.n.stall(d.Context()); err != nil {
			return err
		}
		if err := d.sort(r); err != nil {
			return err
		}
	}
	proto.Merge(m.(*pb.WatchRequest), d.todo[0])
	d.todo = d.todo[1:]
	return nil
}

// sort keeps the keys that the node serves for the AllocSvr, and refuses all others.
func (d *watchDoor) sort(r *pb.WatchRequest) error {
	if len(r.GetRemove()) > 0 {
		d.todo = append(d.todo, &pb.WatchRequest{Remove: r.GetRemove()})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	id, refused := r.GetFirstId(), &pb.WatchReply{}
	for _, b := range r.GetAdd() {
		for i, place := range places(b) {
			k := watchedKey{b.GetSpace(), place}
			if errs := d.n.refuses(k.space, place); errs != nil {
				refused.Errors = append(refused.Errors, rpc.ToKeyError(int(id), errs[0]))
			} else {
				d.keys[id] = k
				one := &pb.Batch{Space: k.space}
				if i < len(b.GetUids()) {
					one.Uids = b.GetUids()[i:][:1]
				} else {
					one.Keys = b.GetKeys()[i-len(b.GetUids()):][:1]
				}
				d.todo = append(d.todo, &pb.WatchRequest{Add: []*pb.Batch{one}, FirstId: id})
			}
			id++
		}
	}
	if len(refused.Errors) == 0 {
		return nil
	}
	return d.ServerStream.SendMsg(refused)
}

// SendMsg implements grpc.ServerStream.
func (d *watchDoor) SendMsg(m any) error {
	if err := d.n.stall(d.Context()); err != nil {
		return err
	}
	got := m.(*pb.WatchReply)
	reply := &pb.WatchReply{Errors: got.Errors}
	reply.RouteVersion, reply.Routes = d.n.cluster.table(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, id := range got.Ids {
		if _, here := d.keys[id]; here {
			reply.Ids, reply.Last, reply.Marks = append(reply.Ids, id), append(reply.Last, got.Last[i]), append(reply.Marks, got.Marks[i])
			reply.Fences, reply.UnknownMs = append(reply.Fences, got.Fences[i]), append(reply.UnknownMs, got.UnknownMs[i])
		}
	}
	for _, e := range got.Errors {
		delete(d.keys, e.GetIndex())
	}
	return d.ServerStream.SendMsg(reply)
}
