package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/watch"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// watches watch keys for all callers of a router. However many callers watch a key, the AllocSvr are asked for
// it once. Safe for concurrent use.
type watches struct {
	watch.Stats

	sdk *client.Client

	mu   sync.Mutex
	up   *client.Watch // nil before the first key
	keys *watch.Keys[client.Key]
	told map[client.Key]*client.Update // of the keys that up watches; nil before the first update
	left []client.Key                  // that lost their last caller, and that up still watches
}

func newWatches(sdk *client.Client) *watches {
	s := &watches{sdk: sdk, told: map[client.Key]*client.Update{}}
	s.keys = watch.NewKeys(0, &s.mu, func(key client.Key) { s.left = append(s.left, key) })
	return s
}

// callerWatch is the watch of one caller, and its rpc.Watcher.
type callerWatch struct {
	*watch.Watcher[client.Key]

	of    *watches
	enter func(ctx context.Context, keys int) (leave func(), err error)
}

// open returns a watch without keys. Close it in the end.
func (s *watches) open(enter func(context.Context, int) (func(), error)) callerWatch {
	return callerWatch{watch.NewWatcher[client.Key](&s.Stats), s, enter}
}

// Close ends the watch.
func (w callerWatch) Close() {
	w.Watcher.Close()
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.of.sweep()
}

// add watches a key by the name id.
func (w callerWatch) add(key client.Key, id uint32) error {
	s := w.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.keys.Add(w.Watcher, key, id); err != nil {
		return err
	}
	if have, asked := s.told[key]; asked && (have == nil || !have.Ended) {
		return nil
	}
	if err := s.up.Add(key); err != nil {
		s.keys.Remove(w.Watcher, key)
		s.sweep()
		return err
	}
	s.told[key] = nil
	return nil
}

// begin begins to watch at the AllocSvr. Needs s.mu.
func (s *watches) begin() error {
	if s.up != nil {
		return nil
	}
	up, err := s.sdk.Watch(context.Background())
	if err != nil {
		return err
	}
	s.up = up
	s.sdk.Caller().Go(func() { s.hear(up) })
	return nil
}

// hear takes in what the AllocSvr tell, until the client is closed.
func (s *watches) hear(up *client.Watch) {
	for {
		news, err := up.Next(context.Background())
		if err != nil {
			return
		}
		s.mu.Lock()
		for i := range news {
			if _, watched := s.told[news[i].Key]; watched {
				u := news[i]
				s.told[u.Key] = &u
				s.keys.Mark(u.Key)
			}
		}
		s.mu.Unlock()
	}
}

// sweep gives up keys that no caller watches. Needs s.mu.
func (s *watches) sweep() {
	var gone []client.Key
	for _, key := range s.left {
		if _, asked := s.told[key]; asked && !s.keys.Watched(key) {
			delete(s.told, key)
			gone = append(gone, key)
		}
	}
	clear(s.left)
	if s.left = s.left[:0]; len(gone) > 0 {
		s.up.Remove(gone...)
	}
}

// next returns news of up to n keys with their names, and does not wait. A key with an error is not watched any
// more.
func (w callerWatch) next(n int) (news []client.Update, names []uint32) {
	taken := w.Take(nil, n)
	s := w.of
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range taken {
		u := s.told[e.Key]
		if e.Gone() || u == nil {
			continue // it is marked again when its present comes
		}
		news, names = append(news, *u), append(names, e.ID)
		if u.Err != nil {
			s.keys.Drop(e)
		}
	}
	s.sweep()
	return news, names
}

// Add implements rpc.Watcher.
func (w callerWatch) Add(ctx context.Context, batches []*pb.Batch, first uint32) (bad []*pb.KeyError) {
	leave, err := w.enter(ctx, rpc.Load(batches))
	if err != nil {
		return rpc.WatchErrors(first, rpc.Keys(batches), err)
	}
	defer leave()
	for key := range keysOf(batches) {
		if err := w.add(key, first); err != nil {
			bad = append(bad, rpc.ToKeyError(int(first), err))
		}
		first++
	}
	return bad
}

// Remove implements rpc.Watcher.
func (w callerWatch) Remove(batches []*pb.Batch) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for key := range keysOf(batches) {
		w.of.keys.Remove(w.Watcher, key)
	}
	w.of.sweep()
}

// keysOf are the keys of batches, UIDs first in each.
func keysOf(batches []*pb.Batch) func(yield func(client.Key) bool) {
	return func(yield func(client.Key) bool) {
		for _, b := range batches {
			for _, uid := range b.GetUids() {
				if !yield(client.Key{Space: b.GetSpace(), UID: seq.UID(uid)}) {
					return
				}
			}
			for _, name := range b.GetKeys() {
				if !yield(client.StringKey(b.GetSpace(), name)) {
					return
				}
			}
		}
	}
}

// Fill implements rpc.Watcher.
func (w callerWatch) Fill(_ context.Context, reply *pb.WatchReply, n int) {
	news, names := w.next(n)
	for i, u := range news {
		if u.Err != nil {
			reply.Errors = append(reply.Errors, rpc.ToKeyError(int(names[i]), u.Err))
			continue
		}
		reply.Ids, reply.Last = append(reply.Ids, names[i]), append(reply.Last, uint64(u.Last))
		reply.Marks, reply.Fences = append(reply.Marks, uint64(u.Seq)), append(reply.Fences, uint64(u.Fence))
		reply.UnknownMs = append(reply.UnknownMs, unknownMs(u.KnownIn))
	}
	w.of.Told.Add(uint64(len(news)))
}

// unknownMs rounds up, because 0 means that a mark is known.
func unknownMs(d time.Duration) uint32 {
	return uint32((d + time.Millisecond - 1) / time.Millisecond)
}

// Watch implements pb.SequenceServer.
func (s *server) Watch(stream grpc.BidiStreamingServer[pb.WatchRequest, pb.WatchReply]) error {
	w := s.watches.open(func(ctx context.Context, keys int) (func(), error) {
		place, err := s.door.inWork.Enter(ctx, keys)
		if err != nil {
			return nil, err
		}
		return place.Leave, nil
	})
	defer w.Close()
	return rpc.ServeWatch(stream, w, s.leaving, s.table)
}

// wait waits until a key that is watched alone has news, and returns them.
func (w callerWatch) wait(ctx context.Context, leaving <-chan struct{}) (client.Update, error) {
	for {
		if news, _ := w.next(1); len(news) > 0 {
			return news[0], news[0].Err
		}
		select {
		case <-w.Changed():
		case <-ctx.Done():
			return client.Update{}, ctx.Err()
		case <-leaving:
			return client.Update{}, seq.ErrShuttingDown
		}
	}
}

// waitIn returns the mark of a key once it is above a number, and after a time in any case. It fails if the key has
// not reached the number, and when the router leaves.
func (a admitted) waitIn(ctx context.Context, key client.Key, after seq.Seq, within time.Duration, leaving <-chan struct{}) (client.Mark, error) {
	w := a.watches.open(nil)
	defer w.Close()
	if err := w.add(key, 0); err != nil {
		return client.Mark{}, err
	}
	present, cancel := a.Caller().Within(ctx)
	u, err := w.wait(present, leaving)
	cancel()
	if err == nil && after > u.Last {
		err = a.reached(ctx, key, after)
	}
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for err == nil && u.Seq <= after {
		var next client.Update
		if next, err = w.wait(waiting, leaving); err == nil {
			u = next
		} else if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return u.Mark, nil
		}
	}
	return u.Mark, err
}

// reached asks the owner of a key whether it has reached a number, which may be newer than what the router was told.
func (a admitted) reached(ctx context.Context, key client.Key, after seq.Seq) error {
	name, named := key.Name()
	place, err := a.door.one(ctx, key.Space, key.UID, name)
	if err != nil {
		return err
	}
	defer place.Leave()
	var now []client.Value
	if named {
		now, err = a.CurrentKeys(ctx, key.Space, []string{name})
	} else {
		now, err = a.Client.Current(ctx, key.Space, []seq.UID{key.UID})
	}
	if err == nil {
		err = now[0].Err
	}
	if err == nil && after > now[0].Seq {
		err = fmt.Errorf("%w: after is %d, and the last number of %v is %d: expected at most that", seq.ErrBadArgument, after, key, now[0].Seq)
	}
	return err
}

// Watches returns how many watches callers have.
func (r *Router) Watches() int { return int(r.services.seqs.watches.Watchers.Load()) }
