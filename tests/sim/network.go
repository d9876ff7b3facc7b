package sim

import (
	"context"
	"fmt"
	"maps"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// keepalive is when a connection without any sign of life is given up.
const keepalive = 13 * time.Second

// call is one RPC under way.
type call struct {
	id       uint64
	from, to *host
	fromLife int
	toLife   int // of the process that has it; 0 before
	method   string
	name     *methodName
	body     []byte
	md       metadata.MD
	timeout  time.Duration // from when it arrives, as in gRPC: a late one is handled all the same; 0: none
	done     chan result
	answered bool           // guarded by world.mu
	seen     map[saw]uint64 // of a renewal: what the sender had seen then
	cancel   context.CancelFunc
}

type result struct {
	body []byte
	more messages // of a stream, instead of body
	err  error
}

// conn is a connection of one life of a host to another host.
type conn struct {
	w    *world
	from *host
	life int
	to   string
}

// Close implements allocsvr.PeerConn.
func (c *conn) Close() error { return nil }

// Invoke implements grpc.ClientConnInterface: the message is encoded, sent through the
// faults, decoded and handled by the real service at the other host.
func (c *conn) Invoke(ctx context.Context, name string, req, reply any, _ ...grpc.CallOption) error {
	body, err := proto.Marshal(req.(proto.Message))
	if err != nil {
		return err
	}
	k := c.call(ctx, name, body)
	if err := c.w.start(k, c.to); err != nil {
		return rpc.FromStatus(err)
	}
	r, err := c.wait(ctx, k)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(r.body, reply.(proto.Message)); err != nil {
		return err
	}
	if told, ok := reply.(*pb.RenewReply); ok {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		c.from.told(req.(*pb.RenewRequest), told)
	}
	return nil
}

// call is one that has not begun yet.
func (c *conn) call(ctx context.Context, name string, body []byte) *call {
	k := &call{from: c.from, fromLife: c.life, method: name, body: body, done: make(chan result, 1)}
	if deadline, ok := ctx.Deadline(); ok {
		k.timeout = max(1, time.Until(deadline))
	}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		k.md = md.Copy()
	}
	return k
}

// wait is for the answer of a call that has begun.
func (c *conn) wait(ctx context.Context, k *call) (result, error) {
	select {
	case r := <-k.done:
		return r, rpc.FromStatus(r.err)
	case <-ctx.Done():
		c.w.abandon(k)
		return result{}, rpc.FromStatus(status.FromContextError(ctx.Err()).Err())
	}
}

// start sends a call on its way.
func (w *world) start(k *call, to string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !k.from.up || k.from.life != k.fromLife {
		return status.Error(codes.Unavailable, "the process has ended")
	}
	if at := w.astray[k.from][to]; at != "" {
		to = at
	}
	if k.to = w.host(to); k.to == nil {
		return status.Errorf(codes.Unavailable, "no host %q", to)
	}
	w.stats.Messages++
	k.id, k.name = w.stats.Messages, w.nameOf(k.method)
	if k.name.point == "renew" {
		k.seen = maps.Clone(k.from.seen)
	}
	w.leave(k.from, func() { w.request(k) })
	return nil
}

// leave lets something out of a host, later if it is paused. Needs w.mu.
func (w *world) leave(h *host, do func()) {
	if h.paused {
		life := h.life
		h.held = append(h.held, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if h.up && h.life == life {
				do()
			}
		})
		return
	}
	do()
}

// request puts a request on the wire. Needs w.mu.
func (w *world) request(k *call) {
	if w.cut(k.from, k.to) {
		w.trace.add("%-8s -> %-8s %s #%d lost in the partition", k.from.name, k.to.name, k.name.short, k.id)
		w.fail(k, keepalive, "keepalive timeout")
		return
	}
	if w.chance(w.loss()) {
		w.trace.add("%-8s -> %-8s %s #%d lost", k.from.name, k.to.name, k.name.short, k.id)
		w.stats.Lost++
		w.fail(k, w.between(0, time.Second), "connection lost")
		return
	}
	late := time.Duration(0)
	if k.name.point == "prepare" {
		late = w.late[link{k.from.name, k.to.name}]
	}
	w.after(w.travel(k.to)+late, func() { w.arrive(k, false) })
	if w.chance(w.dup()) {
		w.stats.Duplicated++
		w.after(w.latency()+w.between(0, 2*time.Second), func() { w.arrive(k, true) })
	}
}

// arrive is a request at its host, a second time if again.
func (w *world) arrive(k *call, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := k.to
	switch {
	case w.cut(k.from, h): // cut while it was under way
		w.fail(k, keepalive, "keepalive timeout")
		return
	case h.paused:
		h.held = append(h.held, func() { w.arrive(k, again) })
		w.fail(k, keepalive, "keepalive timeout")
		return
	case !h.up:
		w.fail(k, w.latency(), "connection refused")
		return
	case h.disk != nil && !h.disk.letsIn(k):
		w.fail(k, w.latency(), "not reachable yet")
		return
	}
	m, ok := h.methods[k.method]
	if !ok {
		w.fail(k, w.latency(), "unknown method "+k.method)
		return
	}
	if !again {
		k.toLife = h.life
		h.inbound[k] = struct{}{}
	}
	if w.trace.on { // the arguments cost more than the event
		w.trace.add("%-8s <- %-8s %s #%d %s", h.name, k.from.name, k.name.short, k.id, seen{k.body, k.method, true, nil})
	}
	w.point(h, k.from, k.name.point)
	if k.name.point == "prepare" && w.awaited("acquire") && ofSections(k.body) {
		w.point(h, k.from, "acquire")
	}
	w.handle(h, m, k, again)
}

// handle runs the real handler in a goroutine for it alone, as gRPC does. Needs w.mu.
func (w *world) handle(h *host, m method, k *call, again bool) {
	ctx := metadata.NewIncomingContext(h.ctx, k.md)
	cancel := context.CancelFunc(func() {})
	if k.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, k.timeout)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	if !again {
		k.cancel = cancel
	}
	life, guard := h.life, h.guard
	w.do(func() {
		defer cancel()
		var req proto.Message
		reply, err := m.desc.Handler(m.impl, ctx, func(into any) error {
			req = into.(proto.Message)
			return proto.Unmarshal(k.body, req)
		}, guard)
		w.reply(h, life, k, req, reply, err, again)
	})
}

// chain calls the guards one around the other.
func chain(guards []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		for i := len(guards) - 1; i >= 0; i-- {
			guard, inner := guards[i], next
			next = func(ctx context.Context, req any) (any, error) { return guard(ctx, req, info, inner) }
		}
		return next(ctx, req)
	}
}

// reply takes a handler's answer and sends it back.
func (w *world) reply(h *host, life int, k *call, req proto.Message, msg any, err error, again bool) {
	r := result{err: err}
	whole, _ := msg.(proto.Message)
	if whole != nil && err == nil {
		r.body, r.err = proto.Marshal(whole)
	} else if err == nil {
		r.more = msg.(messages)
	}
	w.mu.Lock()
	if !h.up || h.life != life {
		w.mu.Unlock()
		return
	}
	if h.disk != nil {
		h.disk.heard(k, err)
	}
	w.mu.Unlock()
	if err == nil && whole != nil {
		w.check.answer(h, life, k, req, whole)
	}
	w.check.inspect()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !h.up || h.life != life || again {
		return
	}
	delete(h.inbound, k)
	w.leave(h, func() { w.respond(h, k, r) })
}

// respond puts an answer on the wire. Needs w.mu.
func (w *world) respond(h *host, k *call, r result) {
	if r.err == nil {
		w.point(h, k.from, k.name.ok)
	}
	if w.trace.on {
		w.trace.add("%-8s => %-8s %s #%d %s", h.name, k.from.name, k.name.short, k.id, seen{r.body, k.method, false, r.err})
	}
	if w.cut(h, k.from) {
		w.fail(k, keepalive, "keepalive timeout")
		return
	}
	if w.chance(w.loss()) {
		w.stats.Lost++
		w.fail(k, w.between(0, time.Second), "connection lost")
		return
	}
	lag := time.Duration(0)
	if h.kind == storeHost {
		lag = w.lags[k.from]
	}
	w.after(w.travel(h)+lag, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cut(h, k.from) {
			w.fail(k, keepalive, "keepalive timeout")
			return
		}
		w.finish(k, r)
	})
}

// finish gives an answer to the process that waits for it, when it is awake. Needs w.mu.
func (w *world) finish(k *call, r result) {
	h := k.from
	switch {
	case k.answered || !h.up || h.life != k.fromLife:
	case h.paused:
		h.held = append(h.held, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.finish(k, r)
		})
	default:
		k.answered = true
		k.done <- r
	}
}

// fail ends a call with an error of the transport after d, unless it is answered before.
// Needs w.mu.
func (w *world) fail(k *call, d time.Duration, why string) {
	w.after(d, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(k.to.inbound, k)
		w.finish(k, result{err: status.Error(codes.Unavailable, why)})
	})
}

// abandon is a caller that does not wait any longer: the handler hears of it.
func (w *world) abandon(k *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k.answered = true
	w.after(w.latency(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(k.to.inbound, k)
		if k.cancel != nil && !w.cut(k.from, k.to) {
			k.cancel()
		}
	})
}

func (w *world) cut(from, to *host) bool { return w.cuts[link{from.name, to.name}] > 0 }

// travel is the time between a server and another host. On a still stage the first
// server is always the fastest. Needs w.mu.
func (w *world) travel(server *host) time.Duration {
	if w.opts.still {
		return w.opts.Latency + time.Duration(server.index)*w.opts.Latency/10
	}
	return w.latency()
}

// latency of one message. Needs w.mu.
func (w *world) latency() time.Duration {
	if w.opts.still {
		return w.opts.Latency
	}
	d := w.opts.Latency/2 + w.between(0, w.opts.Latency)
	for _, b := range w.bad {
		d += w.between(0, b.slow)
	}
	return d
}

func (w *world) loss() float64 {
	p := 0.0
	for _, b := range w.bad {
		p = max(p, b.loss)
	}
	return p
}

func (w *world) dup() float64 {
	p := 0.0
	for _, b := range w.bad {
		p = max(p, b.dup)
	}
	return p
}

// seen is a message in a trace, which becomes text when somebody reads it.
type seen struct {
	body    []byte
	method  string
	request bool
	err     error
}

// String is the message in a few words.
func (s seen) String() string {
	if s.err != nil {
		return fmt.Sprintf("error: %v", s.err)
	}
	return describe(s.body, s.method, s.request)
}
