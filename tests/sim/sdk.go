package sim

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
)

// overNet has a client of the SDK that dials as it always does send all that it has to say
// over the simulated network, as a life of a host.
func (w *world) overNet(h *host, life int) []grpc.DialOption {
	to := func(cc *grpc.ClientConn) *conn {
		return &conn{w: w, from: h, life: life, to: strings.TrimPrefix(cc.Target(), "passthrough:///")}
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, name string, req, reply any, cc *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			return to(cc).Invoke(ctx, name, req, reply)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, name string, _ grpc.Streamer, _ ...grpc.CallOption) (grpc.ClientStream, error) {
			return to(cc).NewStream(ctx, desc, name)
		}),
	}
}

// sdkOf is the SDK in the process that is up at a host. Close it in the end.
func (w *world) sdkOf(h *host, indirect bool, fallback *client.Fallback) *client.Client {
	var addrs []string
	for _, to := range w.of(map[bool]hostKind{true: routerHost, false: allocHost}[indirect]) {
		if to.twinOf == "" {
			addrs = append(addrs, to.name)
		}
	}
	api, err := client.New(w.life, client.Config{Addrs: addrs, Indirect: indirect, AllowUnordered: true, Lazy: true, Fallback: fallback,
		Timeout: 2 * w.opts.Patience, AttemptTimeout: w.opts.Patience, Logger: w.logger(h.name), DialOptions: w.overNet(h, h.life)})
	if err != nil {
		panic(fmt.Sprintf("sim: config of the SDK: %v", err))
	}
	return api
}

// startRouter starts the process of a router that is down.
func (w *world) startRouter(h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.up || w.life.Err() != nil {
		return
	}
	h.boot()
	dead := h.dead
	api := w.sdkOf(h, false, nil)
	router.Register(h, api)
	h.guard = rpc.Guard(rpc.ServerConfig{Logger: w.logger(h.name), ClusterID: api.ClusterID})
	w.trace.add("%-8s starts, life %d", h.name, h.life)
	w.work.Go(func() {
		<-dead
		_ = api.Close()
	})
}

// sdk is a caller that asks by the SDK: numbers travel on its streams, by the table of
// routes, or through routers; IDs come from a window of its own when nobody answers.
type sdk struct {
	*caller
	api *client.Client
}

// spaceKey is the key as the SDK has it.
func spaceKey(key history.Key) client.Key { return client.Key{Space: key.Space, UID: seq.UID(key.UID)} }

// next implements asker: now and then for several keys at once.
func (s *sdk) next(ctx context.Context, key history.Key, count uint32) error {
	if count > 1 && count%3 == 0 {
		return s.batch(ctx, key.Space)
	}
	start, floor := s.w.now(), s.w.check.floor(key)
	got, err := s.api.Take(ctx, spaceKey(key), count)
	if err == nil && uint64(got.Last-got.First)+1 != uint64(count) {
		s.w.check.broken("U", "%d numbers asked of %v, got %d-%d", count, key, got.First, got.Last)
	}
	s.took(key, start, floor, uint64(got.First), uint64(got.Last), got.Unordered, err)
	return err
}

// batch takes one number of each key of a space.
func (s *sdk) batch(ctx context.Context, space string) error {
	var keys []history.Key
	var uids []seq.UID
	var floors []uint64
	for _, key := range s.keys {
		if key.Space == space {
			keys, uids, floors = append(keys, key), append(uids, seq.UID(key.UID)), append(floors, s.w.check.floor(key))
		}
	}
	start := s.w.now()
	got, err := s.api.NextBatch(ctx, space, uids, nil)
	for i, key := range keys {
		one := client.Range{Err: err}
		if err == nil {
			one = got[i]
		}
		s.took(key, start, floors[i], uint64(one.First), uint64(one.Last), one.Unordered, one.Err)
	}
	return err
}

// current implements asker.
func (s *sdk) current(ctx context.Context, key history.Key) error {
	floor := s.w.check.floor(key)
	got, err := s.api.Current(ctx, key.Space, []seq.UID{seq.UID(key.UID)})
	if err == nil {
		err = got[0].Err
	}
	if err == nil {
		s.w.check.reads(key, floor, uint64(got[0].Seq))
	}
	return err
}

// raise implements asker.
func (s *sdk) raise(ctx context.Context, key history.Key, by uint64) error {
	floor := s.w.check.floor(key) + by
	got, err := s.api.Raise(ctx, spaceKey(key), seq.Seq(floor))
	if err == nil {
		s.w.check.raisedTo(key, floor, uint64(got))
	}
	return err
}

// tag implements asker.
func (s *sdk) tag(ctx context.Context, name string, count uint32) error {
	key := tagKey(name)
	start, floor := s.w.now(), s.w.check.floor(key)
	first, last, err := s.api.TakeSegment(ctx, name, count)
	s.took(key, start, floor, uint64(first), uint64(last), false, err)
	return s.tagAgain(ctx, name, err)
}

// id implements asker.
func (s *sdk) id(ctx context.Context, space *idSpace, count int) error {
	got, err := s.api.Generate(ctx, space.name, uint32(count))
	if err != nil {
		return err
	}
	for id := range got.All() {
		s.w.check.unique(space, uint64(id), s.h.name)
		if got.Fallback {
			s.w.check.alone(space, uint64(id), s.caller)
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.stats.IDs += uint64(got.Len())
	if got.Fallback {
		s.w.stats.Lent += uint64(got.Len())
	}
	return nil
}

// manners are the ways in which the callers of a run ask, drawn from its seed: the first
// one always by itself, since it makes what all others use.
func (w *world) manner(c *caller) (asker, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pick, window := w.rng.IntN(6), w.between(2*time.Second, 5*time.Minute)
	if c.index == 0 || w.opts.still || pick < 2 {
		return c, func() {}
	}
	indirect := pick == 2 && len(w.of(routerHost)) > 0
	var fallback *client.Fallback
	if pick >= 4 {
		after := min(w.opts.Patience, client.DefaultFallbackAfter)
		fallback = &client.Fallback{Namespace: lentSpace.name, After: cmp.Or(after, time.Second), Window: window}
	}
	api := w.sdkOf(c.h, indirect, fallback)
	return &sdk{c, api}, func() { _ = api.Close() }
}
