package call

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Any carries unary calls to whichever AllocSvr answers, for the services that all of
// them answer alike: pb.NewSnowflakeClient(c.Any()). A call goes to another AllocSvr
// each time, steps over those that do not answer, and is repeated until ctx ends, or
// Config.Timeout if it has no deadline; so only calls that may be repeated belong
// here. An error that no retry cures is returned immediately; else the context's error,
// wrapped with the last reason. If all AllocSvr answer with an error that has no name, as for
// a call that none serves, their status is returned.
func (c *Caller) Any() grpc.ClientConnInterface { return conn{c: c, rules: &forAny} }

// Once carries unary calls to one AllocSvr each, with one attempt until ctx ends, or
// Config.Timeout if it has no deadline: for calls whose repetition costs something. The node
// that a message names is asked first.
func (c *Caller) Once() grpc.ClientConnInterface { return conn{c: c, rules: &forOnce} }

// Owner carries unary calls to the AllocSvr that owns a segment tag, as Next does for
// keys: pb.NewSegmentClient(c.Owner(tag)). Retries and errors are as in Any.
func (c *Caller) Owner(tag string) grpc.ClientConnInterface {
	return conn{c: c, rules: &forTag, tag: tag}
}

// OwnerOf carries unary calls to the AllocSvr that owns a section, as Next does for keys:
// pb.NewAdminClient(c.OwnerOf(17)), for operators. Retries and errors are as in Any.
func (c *Caller) OwnerOf(section seq.SectionID) grpc.ClientConnInterface {
	return conn{c: c, rules: &forSection, at: &section}
}

// Nodes are all AllocSvr of the route table, of several Sets of the root's, each for unary calls that only it can
// answer, about itself. A call is one attempt, bounded by four Config.AttemptTimeout.
// With Config.Indirect it is Any alone. ErrClosed, or no route table until ctx ends.
func (c *Caller) Nodes(ctx context.Context) ([]grpc.ClientConnInterface, error) {
	v, err := c.table.Current(ctx)
	if err != nil {
		return nil, err
	}
	if c.cfg.Indirect {
		return []grpc.ClientConnInterface{c.Any()}, nil
	}
	var out []grpc.ClientConnInterface
	for _, s := range v.Root().Nodes {
		if s != nil {
			out = append(out, nodeConn{s: peer(s)})
		}
	}
	return out, nil
}

// anySets are the calls that nodes of all Sets answer alike; others of Any go to the root.
var anySets = map[string]bool{
	pb.Snowflake_Generate_FullMethodName: true, pb.Snowflake_Info_FullMethodName: true, pb.Snowflake_Layouts_FullMethodName: true,
	pb.Snowflake_Decode_FullMethodName: true, pb.Snowflake_Compose_FullMethodName: true,
}

// conn is a connection that chooses a server for each call.
type conn struct {
	unaryOnly

	c     *Caller
	rules *rules
	tag   string         // whose owner is asked, by forTag
	at    *seq.SectionID // whose owner is asked, if it is set
}

// Invoke implements grpc.ClientConnInterface. reply is written by the last attempt
// only: reading an answer begins with clearing it.
func (k conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if k.rules == &forAny && anySets[method] {
		k.rules = &forIDs
	}
	at := place{tag: k.tag, section: k.at}
	if r, ok := args.(interface{ GetNode() string }); ok && k.rules.once {
		at.node = r.GetNode()
	}
	return unary(ctx, k.c, k.rules, at, func(ctx context.Context, s *Server) error {
		return s.conn.Invoke(ctx, method, args, reply, opts...)
	})
}

// nodeConn is the connection to one server, for one attempt a call.
type nodeConn struct {
	unaryOnly

	s *Server
}

// Invoke implements grpc.ClientConnInterface.
func (n nodeConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := n.s.try(ctx, 4*n.s.c.cfg.AttemptTimeout, func(ctx context.Context) error {
		return n.s.conn.Invoke(ctx, method, args, reply, opts...)
	})
	if _, silent := err.(*lostError); silent {
		if of := n.s.Set(); of != nil {
			of.Poke() // the table may name nodes that are gone
		}
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// unaryOnly refuses streams.
type unaryOnly struct{}

// NewStream implements grpc.ClientConnInterface: streams are not carried.
func (unaryOnly) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "only unary calls are carried")
}

// AskTag makes a unary call to the owner of a segment tag.
func (c *Caller) AskTag(ctx context.Context, tag string, do func(context.Context, *Server) error) error {
	return unary(ctx, c, &forTag, place{tag: tag}, do)
}

// AskIDs makes a unary call that the nodes of all Sets answer alike.
func (c *Caller) AskIDs(ctx context.Context, do func(context.Context, *Server) error) error {
	err := unary(ctx, c, &forIDs, place{}, do)
	c.table.Glance(time.Now())
	return err
}

// AskOnce makes one attempt, at a node if it is there, and elsewhere after refusals for the node's own
// reasons.
func (c *Caller) AskOnce(ctx context.Context, node string, do func(context.Context, *Server) error) error {
	return unary(ctx, c, &forOnce, place{node: node}, do)
}

// place is where a unary call belongs: with the owner of a section or of a tag, or with a node
// if it is there. All may be empty.
type place struct {
	section   *seq.SectionID
	tag, node string
}

// in is the section that the place has to do with.
func (p place) in(m seq.Mapping) (seq.SectionID, error) {
	switch {
	case p.section == nil:
		return m.SectionOfName(p.tag), nil
	case *p.section >= seq.SectionID(m.Sections()):
		return 0, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, *p.section, m.Sections()-1)
	}
	return *p.section, nil
}

// unary makes a unary call by the rules, until ctx or Config.Timeout ends. It may make many attempts.
func unary(ctx context.Context, c *Caller, r *rules, at place, do func(context.Context, *Server) error) error {
	ctx, cancel, v, err := c.begin(ctx)
	defer cancel()
	if err != nil {
		return err
	}
	section, err := at.in(v.Mapping)
	if err != nil {
		return err
	}
	k := call{c: c, rules: r, section: section, node: at.node}
	k.ask = func(ctx context.Context, a *Attempt) ([]Fault, error) {
		return nil, a.Unary(ctx, func(ctx context.Context) error { return do(ctx, a.Server) })
	}
	return k.one(ctx)
}
