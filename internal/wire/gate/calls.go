package gate

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// The memory that a call takes beside its message, in bytes: its goroutine and usual headers. Headers of
// more than usualHeaders bytes on the wire count by the byte, since each byte may name a header that both
// sides know.
const (
	callCost     = 8 << 10
	usualHeaders = 128
	headerCost   = 128
)

// Server is a grpc.Server that meets each call before gRPC reads its message.
type Server struct {
	*grpc.Server
	guard guard
}

// RegisterService implements grpc.ServiceRegistrar.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	early := *desc
	early.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		early.Methods[i] = s.guard.early(m, "/"+desc.ServiceName+"/"+m.MethodName)
	}
	s.Server.RegisterService(&early, impl)
}

// early counts a call of a method from before its message is read. Interceptors come later.
func (g guard) early(m grpc.MethodDesc, method string) grpc.MethodDesc {
	handler, control := m.Handler, controlAdmission{}.has(method)
	m.Handler = func(srv any, ctx context.Context, dec func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
		c, err := g.begin(ctx, control)
		if err != nil {
			g.refused.NoteCall(ctx, err)
			return nil, callStatus(err)
		}
		defer c.end()
		return handler(srv, ctx, func(m any) error { return rpc.ToStatus(c.receive(dec, m)) }, i)
	}
	return m
}

// call is one call of a connection, from before its message is read until its handler has ended.
type call struct {
	traffic *traffic // nil for other transports
	control bool
	cost    int64 // of the call
	work    int64 // what it has in work; 0 before its message
	message any   // that is to be read

	ctx    context.Context
	stream bool
	turns  *Admission            // nil takes no turns
	turn   atomic.Pointer[Place] // for the message that came last
	ended  atomic.Bool

	err error // why it was not
}

// begin counts a call. It refuses one whose messages are compressed: gRPC would unpack them before
// anything could count them, and no client of ours packs any.
func (g guard) begin(ctx context.Context, control bool) (*call, error) {
	c := &call{traffic: trafficOf(ctx), control: control, cost: callCost, ctx: ctx}
	if !control {
		c.turns = g.turns
	}
	if s, ok := grpc.ServerTransportStreamFromContext(ctx).(interface {
		RecvCompress() string
		HeaderWireLength() int
	}); ok {
		if by := s.RecvCompress(); by != "" && by != encoding.Identity {
			return nil, rpc.ErrCompressed
		}
		c.cost += int64(max(s.HeaderWireLength()-usualHeaders, 0)) * headerCost
	}
	if c.traffic == nil {
		return c, nil
	}
	c.traffic.met()
	c.traffic.calls.Add(1)
	if err := c.traffic.arrived(c.cost, control); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// callStatus is ToStatus for what a call ends with. gRPC has a status for messages that a server cannot unpack.
func callStatus(err error) error {
	if !errors.Is(err, rpc.ErrCompressed) {
		return rpc.ToStatus(err)
	}
	st := status.New(codes.Unimplemented, rpc.ErrCompressed.Error())
	if with, err := st.WithDetails(&pb.ErrorDetail{Code: rpc.CodeOf(rpc.ErrCompressed)}); err == nil {
		st = with
	}
	return st.Err()
}

// receive reads the next message by gRPC's function.
func (c *call) receive(read func(any) error, m any) error {
	if c.traffic == nil {
		return read(m)
	}
	c.pass()
	c.message, c.err = m, nil
	if err := read(c); c.err == nil {
		return err
	}
	return c.err
}

// came counts a message that has come whole, before it is unpacked.
func (c *call) came(data []byte) error {
	t, size := c.traffic, int64(len(data))
	m, ok := c.message.(proto.Message)
	if !ok {
		return nil
	}
	t.heard.Store(true)
	open := int64(0) // cost that counted as unfinished
	if c.work == 0 {
		open = c.cost
	}
	more := unpacked(m.ProtoReflect().Descriptor(), data)
	t.work.Add(c.cost + more - c.work)
	c.work = c.cost + more
	lower(&t.unfinished, open+size+size/64+overhead)
	return t.draw(c.control)
}

// turnlessMessage bounds the messages of streams that take no turn, in bytes. A stream has one message at
// a time, and a turn costs as much as a few keys.
const turnlessMessage = 1 << 10

// messageKey is the number of bytes of a message that make one key of work.
const messageKey = 4

// takeTurn waits until it is the turn of a message to be unpacked and handled.
func (c *call) takeTurn(size int) error {
	if c.turns == nil || c.stream && size < turnlessMessage {
		return nil
	}
	p, err := c.turns.take(c.ctx, c.traffic.caller(), size/messageKey)
	if err != nil {
		return err
	}
	c.turn.Store(p)
	if c.ended.Load() {
		c.pass()
	}
	return nil
}

// pass ends the turn, if the call has it.
func (c *call) pass() {
	if p := c.turn.Swap(nil); p != nil {
		p.Leave()
	}
}

// caller returns the caller that the messages of a connection are queued for: the identity in its
// certificate, else the connection. A token is not checked yet at that time.
func (t *traffic) caller() any {
	if t.wire != nil {
		if id, ok := t.wire.who.(auth.Identity); ok {
			return id
		}
	}
	return t
}

// end forgets the call.
func (c *call) end() {
	c.ended.Store(true)
	c.pass()
	t := c.traffic
	if t == nil {
		return
	}
	if c.work == 0 {
		lower(&t.unfinished, c.cost)
	}
	t.work.Add(-c.work)
	if t.calls.Add(-1) == 0 {
		t.unfinished.Store(0) // bytes of messages that were given up
	}
}
