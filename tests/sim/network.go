package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// keepalive is when a connection without any sign of life is given up.
const keepalive = 13 * time.Second

// network carries messages from host to host, each as its links and the processes at both
// ends allow.
type network struct {
	part
	names map[string]*methodName // of methods ever called
	// severed: nothing that was sent before so many messages gets to the registers any more.
	severed uint64
}

// ofRegisters are the requests about registers.
var ofRegisters = []string{"read", "prepare", "step", "release"}

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
	timeout  time.Duration // from its arrival, as in gRPC: a late call is handled all the same; zero means no timeout
	done     chan result
	answered bool           // guarded by world.mu
	seen     map[saw]uint64 // of a renewal: what the sender had seen then
	cancel   context.CancelFunc
}

type result struct {
	body []byte
	more messages // of a stream, instead of body
	err  error
	cut  bool // the transport failed
}

// start sends a call on its way.
func (n *network) start(k *call, to string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var err error
	if k.to, err = n.route(k.from, k.fromLife, to); err != nil {
		return err
	}
	k.id, k.name = n.stats.Messages, n.nameOf(callName(k))
	if k.name.point == "renew" {
		k.seen = maps.Clone(k.from.seen)
	}
	n.leave(k.from, func() { n.request(k) })
	return nil
}

// route finds the host that a message of a life of another one goes to, and counts it.
// Needs w.mu.
func (n *network) route(from *host, life int, to string) (*host, error) {
	if !from.up || from.life != life {
		return nil, status.Error(codes.Unavailable, "the process has ended")
	}
	if at := n.w.links.astray[from][to]; at != "" {
		to = at
	}
	if at := n.w.links.copied[from][to]; at != "" {
		to = at
	}
	h := n.w.hosts.named(to)
	if h == nil {
		return nil, status.Errorf(codes.Unavailable, "no host %q", to)
	}
	n.stats.Messages++
	return h, nil
}

// leave lets something out of a host, later if it is paused. Needs w.mu.
func (n *network) leave(h *host, do func()) {
	if h.paused {
		life := h.life
		h.held = append(h.held, n.locked(func() {
			if h.up && h.life == life {
				do()
			}
		}))
		return
	}
	do()
}

// request puts a request on the wire. Needs w.mu.
func (n *network) request(k *call) {
	if k.method == txnMethod {
		n.w.point(k.from, k.from, k.name.out)
	}
	if n.w.links.cut(k.from, k.to) {
		n.trace.add("%-8s -> %-8s %s #%d lost in the partition", k.from.name, k.to.name, k.name.short, k.id)
		n.fail(k, keepalive, "keepalive timeout")
		return
	}
	if n.chance(n.w.links.loss()) {
		n.trace.add("%-8s -> %-8s %s #%d lost", k.from.name, k.to.name, k.name.short, k.id)
		n.stats.Lost++
		n.fail(k, n.between(0, time.Second), "connection lost")
		return
	}
	late := time.Duration(0)
	if k.name.delayed {
		late = n.w.links.late[link{k.from.name, k.to.name}]
	}
	n.after(n.w.links.travel(k.to)+late, func() { n.arrive(k, false) })
	if k.method != txnMethod && n.chance(n.w.links.dup()) { // what etcd gets twice, its client sends twice
		n.stats.Duplicated++
		n.after(n.w.links.latency()+n.between(0, 2*time.Second), func() { n.arrive(k, true) })
	}
}

// arrive is a request at its host, a second time if again.
func (n *network) arrive(k *call, again bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := k.to
	switch {
	case n.w.links.cut(k.from, h): // cut while it was under way
		n.fail(k, keepalive, "keepalive timeout")
		return
	case h.paused:
		h.held = append(h.held, func() { n.arrive(k, again) })
		n.fail(k, keepalive, "keepalive timeout")
		return
	case !h.up:
		n.fail(k, n.w.links.latency(), "connection refused")
		return
	case h.kind == storeHost && k.id < n.severed:
		n.fail(k, n.w.links.latency(), "connection reset")
		return
	case h.shut && slices.Contains(ofRegisters, k.name.point):
		n.fail(k, n.w.links.latency(), "not reachable yet")
		return
	case h.disk != nil && !h.disk.letsIn(k):
		n.fail(k, n.w.links.latency(), "not reachable yet")
		return
	}
	m, ok := h.methods[k.method]
	if !ok {
		n.fail(k, n.w.links.latency(), "unknown method "+k.method)
		return
	}
	if !again {
		k.toLife = h.life
		h.inbound[k] = struct{}{}
	}
	if n.trace.on { // the arguments cost more than the event
		n.trace.add("%-8s <- %-8s %s #%d %s", h.name, k.from.name, k.name.short, k.id, seen{k.body, k.method, true, nil})
	}
	n.w.point(h, k.from, k.name.point)
	if k.name.point == "prepare" && h.w.faults.awaited("acquire") && ofSections(k.body) {
		n.w.point(h, k.from, "acquire")
	}
	n.handle(h, m, k, again)
}

// handle runs the real handler in a goroutine for it alone, as gRPC does. Needs w.mu.
func (n *network) handle(h *host, m method, k *call, again bool) {
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
	n.do(func() {
		defer cancel()
		var req proto.Message
		reply, err := m.desc.Handler(m.impl, ctx, func(into any) error {
			req = into.(proto.Message)
			return proto.Unmarshal(k.body, req)
		}, guard)
		n.reply(h, life, k, req, reply, err, again)
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
func (n *network) reply(h *host, life int, k *call, req proto.Message, msg any, err error, again bool) {
	r := result{err: err}
	whole, _ := msg.(proto.Message)
	if whole != nil && err == nil {
		r.body, r.err = proto.Marshal(whole)
	} else if err == nil {
		r.more = msg.(messages)
	}
	n.mu.Lock()
	if !h.up || h.life != life {
		n.mu.Unlock()
		return
	}
	if h.disk != nil {
		h.disk.heard(k, err)
	}
	n.mu.Unlock()
	if err == nil && whole != nil {
		h.w.check.answer(h, life, k, req, whole)
	}
	n.w.check.inspect()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !h.up || h.life != life || again {
		return
	}
	delete(h.inbound, k)
	n.leave(h, func() { n.respond(h, k, r) })
}

// respond puts an answer on the wire. Needs w.mu.
func (n *network) respond(h *host, k *call, r result) {
	if r.err == nil {
		n.w.point(h, k.from, k.name.ok)
	}
	if n.trace.on {
		n.trace.add("%-8s => %-8s %s #%d %s", h.name, k.from.name, k.name.short, k.id, seen{r.body, k.method, false, r.err})
	}
	if n.w.links.cut(h, k.from) {
		n.fail(k, keepalive, "keepalive timeout")
		return
	}
	if n.chance(n.w.links.loss()) {
		n.stats.Lost++
		n.fail(k, n.between(0, time.Second), "connection lost")
		return
	}
	lag := time.Duration(0)
	if h.kind == storeHost {
		lag = n.w.links.lags[k.from]
	}
	n.after(n.w.links.travel(h)+lag, n.locked(func() {
		if n.w.links.cut(h, k.from) {
			n.fail(k, keepalive, "keepalive timeout")
			return
		}
		n.finish(k, r)
	}))
}

// finish gives an answer to the process that waits for it, when it is awake. Needs w.mu.
func (n *network) finish(k *call, r result) {
	h := k.from
	switch {
	case k.answered || !h.up || h.life != k.fromLife:
	case h.paused:
		h.held = append(h.held, n.locked(func() {
			n.finish(k, r)
		}))
	default:
		k.answered = true
		k.done <- r
	}
}

// fail ends a call with an error of the transport after d, unless it is answered before.
// Needs w.mu.
func (n *network) fail(k *call, d time.Duration, why string) {
	n.after(d, n.locked(func() {
		delete(k.to.inbound, k)
		n.finish(k, result{err: status.Error(codes.Unavailable, why), cut: true})
	}))
}

// abandon is a caller that does not wait any longer: the handler hears of it.
func (n *network) abandon(k *call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k.answered = true
	n.after(n.w.links.latency(), n.locked(func() {
		delete(k.to.inbound, k)
		if k.cancel != nil && !n.w.links.cut(k.from, k.to) {
			k.cancel()
		}
	}))
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
