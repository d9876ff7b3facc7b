package sim

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
)

// conn is a connection of one life of a host to another host.
type conn struct {
	w    *world
	from *host
	life int
	to   string
}

// Close implements api.PeerConn.
func (c *conn) Close() error { return nil }

// Invoke implements grpc.ClientConnInterface: the message is encoded, sent through the
// faults, decoded and handled by the real service at the other host.
func (c *conn) Invoke(ctx context.Context, name string, req, reply any, _ ...grpc.CallOption) error {
	body, err := proto.Marshal(req.(proto.Message))
	if err != nil {
		return err
	}
	k := c.call(ctx, name, body)
	if err := c.w.net.start(k, c.to); err != nil {
		return rpc.FromStatus(err)
	}
	r, err := c.wait(ctx, k)
	if err != nil {
		return rpc.FromStatus(err)
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

// wait waits for the answer of a call that has begun. Its errors are gRPC's.
func (c *conn) wait(ctx context.Context, k *call) (result, error) {
	select {
	case r := <-k.done:
		return r, r.err
	case <-ctx.Done():
		c.w.net.abandon(k)
		return result{cut: true}, status.FromContextError(ctx.Err()).Err()
	}
}

// through has clients of a life of a host speak over the simulated network.
func (n *network) through(h *host, life int) grpc.DialOption {
	return storeclient.Through(func(addr string) grpc.ClientConnInterface { return &conn{w: n.w, from: h, life: life, to: addr} })
}

// stores are the members as a life of a host speaks to them.
func (n *network) stores(from *host, life int, members []quorum.Member) []quorum.NamedStore {
	out := make([]quorum.NamedStore, len(members))
	for i, m := range members {
		c := &conn{w: n.w, from: from, life: life, to: m.Name}
		out[i] = quorum.NamedStore{Name: m.Name, UUID: m.UUID, Store: storeclient.Over(m.Name, c, c)}
	}
	return out
}

// overEtcd is a connection to etcd, whose errors mean to its clients what gRPC says.
func (n *network) overEtcd(h *host, life int) grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, name string, req, reply any, cc *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
		c := &conn{w: n.w, from: h, life: life, to: strings.TrimPrefix(cc.Target(), "passthrough:///")}
		body, err := proto.Marshal(req.(proto.Message))
		if err != nil {
			return err
		}
		k := c.call(ctx, name, body)
		if err := n.start(k, c.to); err != nil {
			return err
		}
		r, err := c.wait(ctx, k)
		if err != nil {
			return err
		}
		return proto.Unmarshal(r.body, reply.(proto.Message))
	})
}

// overNet has a client of the SDK that dials as it always does send all that it has to say
// over the simulated network, as a life of a host.
func (n *network) overNet(h *host, life int) []grpc.DialOption {
	to := func(cc *grpc.ClientConn) *conn {
		return &conn{w: n.w, from: h, life: life, to: strings.TrimPrefix(cc.Target(), "passthrough:///")}
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
