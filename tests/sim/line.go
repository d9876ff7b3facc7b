package sim

import (
	"context"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// line is a stream of messages both ways, which the SDK and allocators use. Messages arrive in the order of
// their sending. While the way is cut they wait, as in TCP, until they arrive late or the connection is
// given up. Both ends notice that.
type line struct {
	w        *world
	id       uint64
	from, to *host
	fromLife int
	toLife   int // of the process that has it; 0 before
	method   string
	md       metadata.MD
	up, down *way               // to the server, and back
	over     bool               // nothing moves any more; guarded by world.mu
	cancel   context.CancelFunc // of the handler; nil before it runs
}

// way is one direction of a line. Guarded by world.mu, except news.
type way struct {
	from, to *host
	queue    []parcel
	moving   bool          // an event for the first in the queue is scheduled, or held
	stuck    time.Duration // since when the way is cut; zero if it is not
	last     time.Duration // when the last one sent arrives
	got      []parcel      // arrived and not read yet
	news     chan struct{} // of one place: something has arrived
}

// parcel is a message, or the end of all.
type parcel struct {
	at   time.Duration
	body []byte
	err  error // the end: io.EOF if it is a good one
}

func newWay(from, to *host) *way { return &way{from: from, to: to, news: make(chan struct{}, 1)} }

// open begins a line.
func (c *conn) open(ctx context.Context, method string) (*callerEnd, error) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	h, err := w.net.route(c.from, c.life, c.to)
	if err != nil {
		return nil, err
	}
	l := &line{w: w, id: w.stats.Messages, from: c.from, to: h, fromLife: c.life, method: method, up: newWay(c.from, h), down: newWay(h, c.from)}
	if md, ok := metadata.FromOutgoingContext(ctx); ok {
		l.md = md.Copy()
	}
	w.net.leave(c.from, func() { l.push(l.up, parcel{}) }) // the headers
	e := &callerEnd{ctx: ctx, l: l}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		l.hangUp(status.FromContextError(ctx.Err()).Err())
	})
	return e, nil
}

// push sends a parcel on its way. Needs world.mu.
func (l *line) push(y *way, p parcel) {
	if l.over {
		return
	}
	w := l.w
	d := w.links.travel(l.to)
	if w.chance(w.links.loss()) { // sent again, or the connection goes
		w.stats.Lost++
		if w.chance(0.1) {
			l.lost(w.links.latency(), "connection lost")
			return
		}
		d += w.between(200*time.Millisecond, time.Second)
	}
	w.stats.Messages++
	p.at = max(y.last, w.now()+d)
	y.last = p.at
	y.queue = append(y.queue, p)
	if !y.moving {
		y.moving = true
		w.after(p.at-w.now(), func() { l.move(y) })
	}
}

// move brings the first parcel of a way to its end.
func (l *line) move(y *way) {
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	h := y.to
	switch {
	case l.over:
		return
	case w.links.cut(y.from, h):
		if y.stuck == 0 {
			y.stuck = w.now()
		}
		if w.now()-y.stuck >= keepalive {
			l.lost(0, "keepalive timeout")
			return
		}
		w.after(w.between(100*time.Millisecond, 500*time.Millisecond), func() { l.move(y) })
		return
	case h.paused:
		h.held = append(h.held, func() { l.move(y) })
		return
	case !h.up || h == l.from && h.life != l.fromLife || h == l.to && l.toLife != 0 && h.life != l.toLife:
		l.lost(w.links.latency(), "connection refused")
		return
	}
	y.stuck = 0
	p := y.queue[0]
	y.queue = y.queue[1:]
	if y == l.up && l.toLife == 0 {
		l.accept()
	} else {
		y.bring(p)
	}
	if y.moving = len(y.queue) > 0 && !l.over; y.moving {
		w.after(y.queue[0].at-w.now(), func() { l.move(y) })
	}
}

// bring hands a parcel to who reads. Needs world.mu.
func (y *way) bring(p parcel) {
	y.got = append(y.got, p)
	select {
	case y.news <- struct{}{}:
	default:
	}
}

// accept starts the handler at the server, whose process is up. Needs world.mu.
func (l *line) accept() {
	h := l.to
	m, ok := h.streams[l.method]
	if !ok {
		l.lost(l.w.links.latency(), "unknown method "+l.method)
		return
	}
	l.toLife = h.life
	h.lines[l] = struct{}{}
	l.from.lines[l] = struct{}{}
	ctx, cancel := context.WithCancel(metadata.NewIncomingContext(h.ctx, l.md))
	l.cancel = cancel
	guard, life := h.guard, h.life
	l.w.do(func() {
		defer cancel()
		_, err := guard(ctx, nil, &grpc.UnaryServerInfo{Server: m.impl, FullMethod: l.method}, func(ctx context.Context, _ any) (any, error) {
			return nil, m.desc.Handler(m.impl, &serverEnd{ctx: ctx, l: l, life: life, asked: map[uint64]*pb.StreamRequest{}})
		})
		if err == nil {
			err = io.EOF
		}
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		if h.up && h.life == life {
			l.w.net.leave(h, func() { l.push(l.down, parcel{err: err}) })
		}
	})
}

// lost ends the line after d: nothing more arrives, and both ends hear of it. Needs
// world.mu.
func (l *line) lost(d time.Duration, why string) {
	l.w.after(d, l.w.locked(func() {
		l.hangUp(status.Error(codes.Unavailable, why))
	}))
}

// hangUp ends the line for its caller at this moment, and for the server when it hears of
// it. Needs world.mu.
func (l *line) hangUp(err error) {
	if l.over {
		return
	}
	l.over = true
	delete(l.to.lines, l)
	delete(l.from.lines, l)
	l.down.bring(parcel{err: err})
	if l.cancel == nil {
		return
	}
	d := l.w.links.latency()
	if l.w.links.cut(l.from, l.to) {
		d = keepalive
	}
	l.w.after(d, l.cancel)
}

// next waits for what arrives.
func (l *line) next(ctx context.Context, y *way) ([]byte, error) {
	for {
		l.w.mu.Lock()
		if len(y.got) > 0 {
			p := y.got[0]
			if p.err == nil { // the end stays
				y.got = y.got[1:]
			}
			l.w.mu.Unlock()
			return p.body, p.err
		}
		l.w.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-y.news:
		}
	}
}

// callerEnd is the line as the caller has it.
type callerEnd struct {
	grpc.ClientStream // nil, because no other method is called
	ctx               context.Context
	l                 *line
}

// Context implements grpc.ClientStream.
func (e *callerEnd) Context() context.Context { return e.ctx }

// SendMsg implements grpc.ClientStream: after the end io.EOF, and RecvMsg tells why.
func (e *callerEnd) SendMsg(m any) error {
	body, err := proto.Marshal(m.(proto.Message))
	if err != nil {
		return err
	}
	w, h := e.l.w, e.l.from
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.l.over || !h.up || h.life != e.l.fromLife {
		return io.EOF
	}
	w.net.leave(h, func() { e.l.push(e.l.up, parcel{body: body}) })
	return nil
}

// CloseSend implements grpc.ClientStream.
func (e *callerEnd) CloseSend() error {
	w := e.l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.net.leave(e.l.from, func() { e.l.push(e.l.up, parcel{err: io.EOF}) })
	return nil
}

// RecvMsg implements grpc.ClientStream.
func (e *callerEnd) RecvMsg(m any) error {
	body, err := e.l.next(e.ctx, e.l.down)
	switch {
	case err == io.EOF:
		return err
	case err != nil:
		return rpc.FromStatus(err)
	}
	return proto.Unmarshal(body, m.(proto.Message))
}

// serverEnd is the line as the handler has it.
type serverEnd struct {
	grpc.ServerStream // nil, because no other method is called
	ctx               context.Context
	l                 *line
	life              int
	asked             map[uint64]*pb.StreamRequest // not answered yet; guarded by world.mu
}

// Context implements grpc.ServerStream.
func (e *serverEnd) Context() context.Context { return e.ctx }

// RecvMsg implements grpc.ServerStream.
func (e *serverEnd) RecvMsg(m any) error {
	body, err := e.l.next(e.ctx, e.l.up)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(body, m.(proto.Message)); err != nil {
		return err
	}
	w := e.l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point(e.l.to, e.l.from, "stream")
	if req, ok := m.(*pb.StreamRequest); ok && e.l.to.kind == allocHost {
		e.asked[req.GetId()] = req
	}
	return nil
}

// SendMsg implements grpc.ServerStream.
func (e *serverEnd) SendMsg(m any) error {
	w, h := e.l.w, e.l.to
	body, err := proto.Marshal(m.(proto.Message))
	if err != nil {
		return err
	}
	w.mu.Lock()
	alive := h.up && h.life == e.life
	var req *pb.StreamRequest
	reply, ok := m.(*pb.StreamReply)
	if ok {
		if req = e.asked[reply.GetId()]; !reply.GetMore() {
			delete(e.asked, reply.GetId())
		}
	}
	w.mu.Unlock()
	if !alive || e.ctx.Err() != nil {
		return status.Error(codes.Unavailable, "the line has ended")
	}
	if req.GetNext() != nil && reply.GetNext() != nil {
		h.w.check.batch(h, req.GetNext(), reply.GetNext())
		w.check.inspect()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !h.up || h.life != e.life || e.l.over {
		return status.Error(codes.Unavailable, "the line has ended")
	}
	w.point(h, e.l.from, "stream.ok")
	w.net.leave(h, func() { e.l.push(e.l.down, parcel{body: body}) })
	return nil
}
