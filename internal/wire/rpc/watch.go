package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// WatchBeat is the time after which a server sends a WatchReply without keys, if it had no other one to send. A
// client that has heard nothing for WatchSilence takes the server for lost.
const (
	WatchBeat    = time.Second
	WatchSilence = 3 * time.Second
)

// watchReply is the largest number of keys of a WatchReply.
const watchReply = 2048

// Watcher is what a server has of one Watch. Its methods but Add and Remove are called by one goroutine, and
// these two by another one.
type Watcher interface {
	// Add watches the keys of sound batches, whose names begin with first. The index of an error is the name of
	// its key.
	Add(ctx context.Context, batches []*pb.Batch, first uint32) []*pb.KeyError
	Remove(batches []*pb.Batch)
	// Changed receives when Fill has something to tell.
	Changed() <-chan struct{}
	// Fill puts what is to be told of up to n keys into the reply.
	Fill(ctx context.Context, reply *pb.WatchReply, n int)
}

// ServeWatch serves a stream until its caller ends it, or until leaving is closed. routes returns the version of
// the route table, and the table if it is newer than a version.
func ServeWatch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchReply], w Watcher, leaving <-chan struct{}, routes func(uint64) (uint64, *pb.RouteTable)) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	var held atomic.Uint64 // version of the table that the caller has
	faults, ended := make(chan []*pb.KeyError), make(chan error, 1)
	go func() { ended <- readWatch(ctx, stream, w, faults, &held) }() // it ends with the stream at the latest
	beat := time.NewTimer(WatchBeat)
	defer beat.Stop()
	for {
		reply := &pb.WatchReply{}
		select {
		case <-leaving:
			return seq.ErrShuttingDown
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case reply.Errors = <-faults:
		case <-w.Changed():
			if w.Fill(ctx, reply, watchReply); len(reply.Ids)+len(reply.Errors) == 0 {
				continue
			}
		case <-beat.C:
		}
		reply.RouteVersion, reply.Routes = routes(held.Load())
		if reply.Routes != nil {
			held.Store(reply.RouteVersion)
		}
		if err := stream.Send(reply); err != nil {
			return err
		}
		beat.Reset(WatchBeat)
	}
}

// readWatch reads what the caller wants until the stream ends. It reads no further message before the faults of
// one are on their way.
func readWatch(ctx context.Context, stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchReply], w Watcher, faults chan<- []*pb.KeyError, held *atomic.Uint64) error {
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if r.GetRouteVersion() > held.Load() {
			held.Store(r.GetRouteVersion())
		}
		if err := checkWatch(r); err != nil {
			return err
		}
		w.Remove(r.GetRemove())
		if len(r.GetAdd()) == 0 {
			continue
		}
		if bad := w.Add(ctx, r.GetAdd(), r.GetFirstId()); len(bad) > 0 {
			select {
			case faults <- bad:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// checkWatch returns seq.ErrBadBatch or seq.ErrBadArgument for a request that is not sound.
func checkWatch(r *pb.WatchRequest) error {
	if err := seq.CheckKeys("add and remove", Keys(r.GetAdd())+Keys(r.GetRemove())); err != nil {
		return err
	}
	for what, batches := range map[string][]*pb.Batch{"add": r.GetAdd(), "remove": r.GetRemove()} {
		for i, b := range batches {
			if err := (seq.Batch{UIDs: b.GetUids(), Keys: b.GetKeys()}).Check(i); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
		}
	}
	return nil
}

// WatchErrors returns the error for n keys of a watch from a name on.
func WatchErrors(first uint32, n int, err error) []*pb.KeyError {
	out := make([]*pb.KeyError, n)
	for i := range out {
		out[i] = ToKeyError(int(first+uint32(i)), err)
	}
	return out
}
