package client

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Any carries unary calls to whichever AllocSvr answers, for the services that all of
// them answer alike: pb.NewSnowflakeClient(c.Any()). A call goes to another AllocSvr
// each time, steps over those that do not answer, and is repeated until ctx ends, or
// Config.Timeout if it has no deadline; so only calls that may be repeated belong
// here. Errors with a name that no retry cures come at once; else the context's error,
// wrapped with the last reason. A call that all AllocSvr answer without a name, as one
// that none serves, comes back with their status.
func (c *Client) Any() grpc.ClientConnInterface { return carrier{c.anywhere} }

// Once carries unary calls to one AllocSvr each, with one attempt until ctx ends, or
// Config.Timeout if it has no deadline: for calls whose repetition costs something.
func (c *Client) Once() grpc.ClientConnInterface { return carrier{c.once} }

// Owner carries unary calls to the AllocSvr that owns a segment tag, as Next does for
// keys: pb.NewSegmentClient(c.Owner(tag)). Retries and errors are as in Any.
func (c *Client) Owner(tag string) grpc.ClientConnInterface {
	return carrier{func(ctx context.Context, do deed) error { return c.owned(ctx, tag, do) }}
}

// Nodes are all AllocSvr of the route table, each for unary calls that only it can
// answer, about itself. A call is one attempt, bounded by four Config.AttemptTimeout.
// With Config.Indirect it is Any alone. ErrClosed, or no route table until ctx ends.
func (c *Client) Nodes(ctx context.Context) ([]grpc.ClientConnInterface, error) {
	v, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	if c.cfg.Indirect {
		return []grpc.ClientConnInterface{c.Any()}, nil
	}
	var out []grpc.ClientConnInterface
	for _, p := range v.nodes {
		if p == nil {
			continue
		}
		out = append(out, carrier{func(ctx context.Context, do deed) error {
			err := p.attempt(ctx, 4*c.cfg.AttemptTimeout, do)
			if err != nil && ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}})
	}
	return out, nil
}

// carrier is a connection that chooses its peer anew for each call.
type carrier struct {
	carry func(ctx context.Context, do deed) error
}

// Invoke implements grpc.ClientConnInterface. reply is written by the last attempt
// only: reading an answer begins with clearing it.
func (k carrier) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return k.carry(ctx, func(ctx context.Context, p *peer) error {
		return p.conn.Invoke(ctx, method, args, reply, opts...)
	})
}

// NewStream implements grpc.ClientConnInterface: streams are not carried.
func (k carrier) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "only unary calls are carried")
}
