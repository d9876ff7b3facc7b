package api

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Watch implements pb.SequenceServer.
func (s *Sequence) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchReply]) error {
	w := watcher{Watch: s.Sections.Watch(), s: s, hashes: rpc.HashesKeys(stream.Context())}
	defer w.Close()
	return rpc.ServeWatch(stream, w, nil, s.routesFor)
}

// watcher is the rpc.Watcher of one stream.
type watcher struct {
	*section.Watch

	s      *Sequence
	hashes bool // the caller hashes string keys itself
}

// Add implements rpc.Watcher.
func (w watcher) Add(ctx context.Context, batches []*pb.Batch, first uint32) (bad []*pb.KeyError) {
	place, err := w.s.Limits.inWork.Enter(ctx, rpc.Load(batches))
	if err != nil {
		return rpc.WatchErrors(first, rpc.Keys(batches), err)
	}
	defer place.Leave()
	for i, b := range batches {
		n := len(b.GetUids()) + len(b.GetKeys())
		space, keys, err := w.s.countersOf(w.hashes, i, b.GetSpace(), seq.Batch{UIDs: b.GetUids(), Keys: b.GetKeys()})
		if err != nil {
			bad = append(bad, rpc.WatchErrors(first, n, err)...)
		} else {
			for _, f := range w.Watch.Add(space, keys, first) {
				bad = append(bad, rpc.ToKeyError(int(first+uint32(f.Index)), refusal(f.Err)))
			}
		}
		first += uint32(n)
	}
	return bad
}

// Remove implements rpc.Watcher. No key of an unknown space is watched.
func (w watcher) Remove(batches []*pb.Batch) {
	for i, b := range batches {
		space, keys, err := w.s.countersOf(w.hashes, i, b.GetSpace(), seq.Batch{UIDs: b.GetUids(), Keys: b.GetKeys()})
		if err == nil {
			w.Watch.Remove(space, keys)
		}
	}
}

// Fill implements rpc.Watcher.
func (w watcher) Fill(ctx context.Context, reply *pb.WatchReply, n int) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	news := w.Next(ctx, n)
	reply.Ids, reply.Last = make([]uint32, 0, len(news)), make([]uint64, 0, len(news))
	reply.Marks, reply.Fences = make([]uint64, 0, len(news)), make([]uint64, 0, len(news))
	reply.UnknownMs = make([]uint32, 0, len(news))
	for _, one := range news {
		if one.Err != nil {
			reply.Errors = append(reply.Errors, rpc.ToKeyError(int(one.ID), refusal(one.Err)))
			continue
		}
		reply.Ids, reply.Last = append(reply.Ids, one.ID), append(reply.Last, one.Mark.Last)
		reply.Marks, reply.Fences = append(reply.Marks, one.Mark.Value), append(reply.Fences, one.Mark.Fence)
		reply.UnknownMs = append(reply.UnknownMs, uint32((one.Mark.Unknown+time.Millisecond-1)/time.Millisecond))
	}
}
