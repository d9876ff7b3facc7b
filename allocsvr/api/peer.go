package api

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Successor takes sections that another node hands to this one. owner.Owner does.
type Successor interface {
	// Accept keeps counters that a peer hands to this session.
	Accept(sections []handover.Sealed) error
	// TakeOffered acquires what a peer has released, and lists what this node owns now.
	TakeOffered(ctx context.Context, ids []seq.SectionID) []seq.SectionID
}

// Peer is the receiving side of a hand-over: translation only.
type Peer struct {
	pb.UnimplementedPeerServer
	Cluster  string
	Session  seq.Session // of this node
	Sections func() int  // of the cluster
	Owner    Successor
	Known    func() []quorum.SessionView // sessions that the stores reported
	Kick     func()                      // asks the stores for sessions at once
	// Reread reads the documents of tags and namespaces again and uses them.
	Reread func(context.Context) error
	// Hear reports whether a session answers this node's pings. If nil, this node pings no others.
	Hear   func(seq.Session) bool
	Guard  *auth.Guard // if nil, any caller may speak for every session
	Logger *slog.Logger
}

// check refuses messages meant for another cluster or incarnation.
func (p *Peer) check(cluster string, to uint64) error {
	if cluster != p.Cluster {
		return fmt.Errorf("%w: peer of %q, this is %q", seq.ErrForeignCluster, cluster, p.Cluster)
	}
	if seq.Session(to) != p.Session {
		return fmt.Errorf("%w: meant for session %v, this is %v", seq.ErrNodeUnfit, seq.Session(to), p.Session)
	}
	return nil
}

// speaks refuses a call for a session that the stores do not list for the node in the call's
// certificate: seq.ErrNotSession. One that they do not list at all may be newer than what was
// last heard of them, so they are asked; its owner calls again.
func (p *Peer) speaks(ctx context.Context, method string, session seq.Session) error {
	if p.Guard == nil {
		return nil
	}
	for _, s := range p.Known() {
		if s.Session == session {
			return p.Guard.Speaks(rpc.WhoOf(ctx), method, s.Name)
		}
	}
	p.Kick()
	if p.Guard.Mode() != auth.Require {
		return nil
	}
	return fmt.Errorf("%w: the stores have not listed session %v here: expected one that they list; it comes with the next renewal", seq.ErrNotSession, session)
}

// section checks one section id of a message.
func (p *Peer) section(id uint32) (seq.SectionID, error) {
	if n := p.Sections(); int64(id) >= int64(n) {
		return 0, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, id, n-1)
	}
	return seq.SectionID(id), nil
}

// Look implements pb.PeerServer.
func (p *Peer) Look(ctx context.Context, req *pb.LookRequest) (*pb.LookReply, error) {
	if err := p.check(req.ClusterId, uint64(p.Session)); err != nil {
		return nil, err
	}
	if err := p.speaks(ctx, pb.Peer_Look_FullMethodName, seq.Session(req.Ended)); err != nil {
		return nil, err
	}
	p.Logger.Info("told that a session has ended", "session", seq.Session(req.Ended))
	p.Kick()
	return &pb.LookReply{}, nil
}

// Ping implements pb.PeerServer.
func (p *Peer) Ping(_ context.Context, req *pb.PingRequest) (*pb.PingReply, error) {
	if err := p.check(req.ClusterId, uint64(p.Session)); err != nil {
		return nil, err
	}
	return &pb.PingReply{}, nil
}

// Hears implements pb.PeerServer.
func (p *Peer) Hears(_ context.Context, req *pb.HearsRequest) (*pb.HearsReply, error) {
	if err := p.check(req.ClusterId, uint64(p.Session)); err != nil {
		return nil, err
	}
	return &pb.HearsReply{Hears: p.Hear != nil && p.Hear(seq.Session(req.Session))}, nil
}

// Refresh implements pb.PeerServer.
func (p *Peer) Refresh(ctx context.Context, req *pb.RefreshRequest) (*pb.RefreshReply, error) {
	if err := p.check(req.ClusterId, req.To); err != nil {
		return nil, err
	}
	if err := p.speaks(ctx, pb.Peer_Refresh_FullMethodName, seq.Session(req.From)); err != nil {
		return nil, err
	}
	if err := p.Reread(ctx); err != nil {
		return nil, fmt.Errorf("refresh: %w", err)
	}
	return &pb.RefreshReply{}, nil
}

// Offer implements pb.PeerServer.
func (p *Peer) Offer(ctx context.Context, req *pb.OfferRequest) (*pb.OfferReply, error) {
	if err := p.check(req.ClusterId, req.To); err != nil {
		return nil, err
	}
	if err := p.speaks(ctx, pb.Peer_Offer_FullMethodName, seq.Session(req.From)); err != nil {
		return nil, err
	}
	sections := make([]handover.Sealed, 0, len(req.Sections))
	for _, s := range req.Sections {
		id, err := p.section(s.Section)
		if err != nil {
			return nil, err
		}
		table, err := counters.Decode(s.Counters)
		if err != nil {
			return nil, fmt.Errorf("%w: counters of section %d: %w", seq.ErrBadArgument, id, err)
		}
		sections = append(sections, handover.Sealed{
			ID: id, Epoch: seq.Epoch{Round: s.Round, Session: seq.Session(req.From)}, Table: table, Body: s.Counters, Tickets: s.Tickets})
	}
	if err := p.Owner.Accept(sections); err != nil {
		return nil, err
	}
	return &pb.OfferReply{}, nil
}

// Take implements pb.PeerServer.
func (p *Peer) Take(ctx context.Context, req *pb.TakeRequest) (*pb.TakeReply, error) {
	if err := p.check(req.ClusterId, req.To); err != nil {
		return nil, err
	}
	if err := p.speaks(ctx, pb.Peer_Take_FullMethodName, seq.Session(req.From)); err != nil {
		return nil, err
	}
	ids := make([]seq.SectionID, 0, len(req.Sections))
	for _, s := range req.Sections {
		id, err := p.section(s)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	reply := &pb.TakeReply{}
	have := make(map[seq.SectionID]bool)
	for _, id := range p.Owner.TakeOffered(ctx, ids) {
		have[id] = true
		reply.Owned = append(reply.Owned, uint32(id))
	}
	for _, id := range ids {
		if !have[id] {
			reply.Failed = append(reply.Failed, uint32(id))
		}
	}
	return reply, nil
}
