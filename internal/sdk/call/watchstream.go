package call

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// watchStream is the stream of a Watch to one server. It ends when the server is silent, and when no key is left.
type watchStream struct {
	w      *Watch
	to     *Server
	ctx    context.Context
	cancel context.CancelCauseFunc
	more   chan struct{} // receives when out has messages

	// Guarded by the lock of the watch.
	keys int // that it watches
	out  []*pb.WatchRequest
}

// watchAsk is an attempt that waits for the present of keys. Guarded by the lock of the watch.
type watchAsk struct {
	at   map[*watchedKey]int // those without an answer
	bad  []Fault
	done chan struct{} // closed when all have one
}

// answer says that a key has its present, or an error.
func (a *watchAsk) answer(k *watchedKey, err error) {
	i, waits := a.at[k]
	if k.ask = nil; !waits {
		return
	}
	delete(a.at, k)
	if err != nil {
		a.bad = append(a.bad, Fault{K: i, Err: err})
	}
	if len(a.at) == 0 {
		close(a.done)
	}
}

// errIdle ends a stream without keys.
var errIdle = errors.New("no key is watched here")

// attempt has a server watch the keys of an attempt, and waits until it told their present.
func (w *Watch) attempt(ctx context.Context, a *Attempt, batch stream.Keys, keys []*watchedKey) ([]Fault, error) {
	ask := w.ask(a, batch, keys)
	if ask == nil {
		return nil, nil
	}
	limit := w.c.cfg.AttemptTimeout
	if w.c.cfg.Indirect {
		limit *= 4 // a router waits for others in its turn
	}
	look := time.NewTicker(limit)
	defer look.Stop()
	for left := len(a.Idx) + 1; ; {
		select {
		case <-ask.done:
			return ask.bad, nil
		case <-ctx.Done():
			return w.give(ask, ctx.Err()), nil
		case <-look.C:
		}
		w.mu.Lock()
		now := len(ask.at)
		w.mu.Unlock()
		if now == left { // none came in that time
			return w.give(ask, fmt.Errorf("%w: %s: %w", seq.ErrNoRoute, a.Server.Addr, stream.ErrTimedOut)), nil
		}
		left = now
	}
}

// give gives up the keys of an attempt that have no answer, and returns its faults.
func (w *Watch) give(ask *watchAsk, why error) []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(slices.Collect(maps.Keys(ask.at)), why)
	return ask.bad
}

// forget has keys watched nowhere. Attempts that wait for them get the error. Needs w.mu.
func (w *Watch) forget(keys []*watchedKey, why error) {
	at := map[*watchStream][]*watchedKey{}
	for _, k := range keys {
		if k.at != nil {
			at[k.at] = append(at[k.at], k)
		}
		w.leave(k, why)
	}
	for s, keys := range at {
		if !s.idle() {
			s.remove(keys)
		}
	}
}

// ask sends the keys of an attempt that are still wanted. It returns nil if none is.
func (w *Watch) ask(a *Attempt, batch stream.Keys, keys []*watchedKey) *watchAsk {
	w.mu.Lock()
	defer w.mu.Unlock()
	ask, idx := &watchAsk{at: map[*watchedKey]int{}, done: make(chan struct{})}, []int(nil)
	for i, at := range a.Idx {
		if k := keys[at]; !k.gone && k.at == nil {
			ask.at[k] = i
			idx = append(idx, at)
		}
	}
	if len(idx) == 0 {
		return nil
	}
	s := w.streams[a.Server]
	if s == nil {
		s = &watchStream{w: w, to: a.Server, more: make(chan struct{}, 1)}
		s.ctx, s.cancel = context.WithCancelCause(w.ctx)
		w.streams[a.Server] = s
		w.c.Go(s.run)
	}
	for w.used(len(idx)) {
		w.name += uint32(len(idx))
	}
	s.send(&pb.WatchRequest{Add: []*pb.Batch{batch.Batch(a.Space, idx)}, FirstId: w.name, RouteVersion: a.Version})
	for _, at := range idx {
		k := keys[at]
		k.at, k.ask, k.name = s, ask, w.name
		w.names[k.name] = k
		w.name++
	}
	s.keys += len(idx)
	return ask
}

// used reports whether one of the next n names is in use. The names begin again after 4 billion.
func (w *Watch) used(n int) bool {
	for i := range uint32(n) {
		if w.names[w.name+i] != nil {
			return true
		}
	}
	return false
}

// send queues a message. Needs w.mu.
func (s *watchStream) send(r *pb.WatchRequest) {
	s.out = append(s.out, r)
	signal(s.more)
}

// remove has the server forget keys. Needs w.mu.
func (s *watchStream) remove(keys []*watchedKey) {
	r := &pb.WatchRequest{}
	for _, k := range keys {
		name, named := k.key.Name()
		if n := len(r.Remove); n == 0 || r.Remove[n-1].Space != k.key.Space {
			r.Remove = append(r.Remove, &pb.Batch{Space: k.key.Space})
		}
		b := r.Remove[len(r.Remove)-1]
		if named {
			b.Keys = append(b.Keys, name)
		} else {
			b.Uids = append(b.Uids, uint64(k.key.UID))
		}
		if rpc.Keys(r.Remove) == watchPiece {
			s.send(r)
			r = &pb.WatchRequest{}
		}
	}
	if len(r.Remove) > 0 {
		s.send(r)
	}
}

// run opens the stream, sends, and ends it.
func (s *watchStream) run() {
	defer s.cancel(nil)
	rpcs, err := s.to.RPC.Watch(s.ctx)
	if err != nil {
		s.end(err)
		return
	}
	silence := time.AfterFunc(rpc.WatchSilence, func() { s.cancel(stream.ErrTimedOut) })
	defer silence.Stop()
	ended := make(chan error, 1)
	s.w.c.Go(func() {
		for {
			r, err := rpcs.Recv()
			if err != nil {
				ended <- err
				return
			}
			silence.Reset(rpc.WatchSilence)
			s.heard(r)
		}
	})
	for err == nil {
		select {
		case err = <-ended:
		case <-s.more:
			for _, r := range s.queued() {
				if rpcs.Send(r) != nil {
					break // Recv has the reason
				}
			}
		}
	}
	s.end(err)
}

func (s *watchStream) queued() []*pb.WatchRequest {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	out := s.out
	s.out = nil
	return out
}

// heard takes a reply in.
func (s *watchStream) heard(r *pb.WatchReply) {
	s.to.Answered()
	s.to.Heard(r.GetRouteVersion(), r.GetRoutes())
	w, n := s.w, len(r.GetIds())
	if len(r.GetLast()) != n || len(r.GetMarks()) != n || len(r.GetFences()) != n || len(r.GetUnknownMs()) != n {
		s.cancel(fmt.Errorf("%w: a watch told %d keys in part", stream.ErrMalformed, n))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, name := range r.GetIds() {
		k := w.names[name]
		if k == nil || k.at != s {
			continue // removed meanwhile, or asked for again
		}
		k.err, k.last, k.mark, k.fence = nil, r.Last[i], r.Marks[i], r.Fences[i]
		k.knownIn = time.Duration(r.UnknownMs[i]) * time.Millisecond
		w.tell(k)
		if k.ask != nil {
			k.ask.answer(k, nil)
		}
	}
	var gone []*watchedKey
	for _, e := range r.GetErrors() {
		k := w.names[e.GetIndex()]
		if k == nil || k.at != s {
			continue
		}
		if k.ask == nil {
			gone = append(gone, k)
		}
		w.leave(k, rpc.FromKeyError(e))
	}
	w.again(gone)
	s.idle()
}

// idle ends the stream if it has no keys, and reports whether it had none. Needs w.mu.
func (s *watchStream) idle() bool {
	if s.keys > 0 {
		return false
	}
	s.close()
	s.cancel(errIdle)
	return true
}

// close has no attempt use the stream any more. Needs w.mu.
func (s *watchStream) close() {
	if s.w.streams[s.to] == s {
		delete(s.w.streams, s.to)
	}
}

// end takes the end of the stream in: its keys are asked for again.
func (s *watchStream) end(cause error) {
	if why := context.Cause(s.ctx); why != nil && s.w.ctx.Err() == nil {
		cause = why
	}
	switch {
	case s.w.ctx.Err() != nil:
		return
	case cause == errIdle:
	case status.Code(cause) == codes.Unimplemented:
		cause = &namelessError{s.to.Addr, cause} // a server from before watches
	case rpc.CodeOf(cause) == 0 || errors.Is(cause, stream.ErrTimedOut):
		cause = s.to.Ended(cause)
	}
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	s.close()
	var gone []*watchedKey
	for _, k := range w.names {
		if k.at == s {
			if k.ask == nil {
				gone = append(gone, k)
			}
			w.leave(k, cause)
		}
	}
	w.again(gone)
}
