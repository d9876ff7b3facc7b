package allocsvr

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/counters"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// maxOffer bounds the counters of one Offer message, in bytes: well under the
// limit of a gRPC message here.
const maxOffer = 4 << 20

// grpcPeers reaches the other AllocSvr over gRPC. One connection an address.
type grpcPeers struct {
	cluster string
	from    seq.Session
	dial    func(addr string) (PeerConn, error)

	mu    sync.Mutex // guards conns
	conns map[string]PeerConn
}

// PeerConn is a connection to another AllocSvr.
type PeerConn interface {
	grpc.ClientConnInterface
	Close() error
}

// dialPeer connects over the network.
func (s *Server) dialPeer(addr string) (PeerConn, error) {
	return rpc.Dial(addr, s.dialOptions()...)
}

// dialOptions are those of all connections to stores and peers.
func (s *Server) dialOptions() []grpc.DialOption {
	return append(s.cfg.TLS.DialOptions(), s.cfg.Traces.DialOptions()...)
}

func newGRPCPeers(cluster string, from seq.Session, dial func(string) (PeerConn, error)) *grpcPeers {
	return &grpcPeers{cluster: cluster, from: from, dial: dial, conns: make(map[string]PeerConn)}
}

func (p *grpcPeers) client(addr string) (pb.PeerClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn, ok := p.conns[addr]
	if !ok {
		var err error
		if conn, err = p.dial(addr); err != nil {
			return nil, fmt.Errorf("dial peer %s: %w", addr, err)
		}
		p.conns[addr] = conn
	}
	return pb.NewPeerClient(conn), nil
}

// close ends all connections.
func (p *grpcPeers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for addr, conn := range p.conns {
		_ = conn.Close() // nothing to do about a connection that will not close
		delete(p.conns, addr)
	}
}

// Offer implements Peers, in as many messages as the counters need.
func (p *grpcPeers) Offer(ctx context.Context, addr string, to seq.Session, sections []handover.Sealed) error {
	client, err := p.client(addr)
	if err != nil {
		return err
	}
	for first := true; first || len(sections) > 0; first = false {
		req := &pb.OfferRequest{ClusterId: p.cluster, From: uint64(p.from), To: uint64(to)}
		for size := 0; len(sections) > 0 && size < maxOffer; sections = sections[1:] {
			s := sections[0]
			body := s.Body
			if body == nil {
				body = s.Table.AppendBinary(nil)
			}
			size += len(body)
			req.Sections = append(req.Sections, &pb.SealedSection{Section: uint32(s.ID), Round: s.Epoch.Round, Counters: body})
		}
		if _, err := client.Offer(ctx, req); err != nil {
			return fmt.Errorf("offer to %s: %w", addr, err)
		}
	}
	return nil
}

// Take implements Peers.
func (p *grpcPeers) Take(ctx context.Context, addr string, to seq.Session, ids []seq.SectionID) ([]seq.SectionID, error) {
	client, err := p.client(addr)
	if err != nil {
		return nil, err
	}
	req := &pb.TakeRequest{ClusterId: p.cluster, From: uint64(p.from), To: uint64(to), Sections: make([]uint32, len(ids))}
	for i, id := range ids {
		req.Sections[i] = uint32(id)
	}
	reply, err := client.Take(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("take by %s: %w", addr, err)
	}
	owned := make([]seq.SectionID, len(reply.Owned))
	for i, id := range reply.Owned {
		owned[i] = seq.SectionID(id)
	}
	return owned, nil
}

// peerServer is the receiving side of a hand-over: translation only.
type peerServer struct {
	pb.UnimplementedPeerServer
	a *Alloc
}

// check refuses messages meant for another cluster or incarnation.
func (p peerServer) check(cluster string, to uint64) error {
	if cluster != p.a.cluster {
		return fmt.Errorf("%w: peer of %q, this is %q", seq.ErrForeignCluster, cluster, p.a.cluster)
	}
	if seq.Session(to) != p.a.session {
		return fmt.Errorf("%w: meant for session %v, this is %v", seq.ErrNodeUnfit, seq.Session(to), p.a.session)
	}
	return nil
}

// section checks one section id of a message.
func (p peerServer) section(id uint32) (seq.SectionID, error) {
	if int64(id) >= int64(len(p.a.cells)) {
		return 0, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, id, len(p.a.cells)-1)
	}
	return seq.SectionID(id), nil
}

// Look implements pb.PeerServer.
func (p peerServer) Look(_ context.Context, req *pb.LookRequest) (*pb.LookReply, error) {
	if err := p.check(req.ClusterId, uint64(p.a.session)); err != nil {
		return nil, err
	}
	p.a.log.Info("told that a session has ended", "session", seq.Session(req.Ended))
	p.a.leases.Kick()
	return &pb.LookReply{}, nil
}

// Offer implements pb.PeerServer.
func (p peerServer) Offer(_ context.Context, req *pb.OfferRequest) (*pb.OfferReply, error) {
	if err := p.check(req.ClusterId, req.To); err != nil {
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
			ID: id, Epoch: seq.Epoch{Round: s.Round, Session: seq.Session(req.From)}, Table: table, Body: s.Counters})
	}
	if err := p.a.acceptOffer(sections); err != nil {
		return nil, err
	}
	return &pb.OfferReply{}, nil
}

// Take implements pb.PeerServer.
func (p peerServer) Take(ctx context.Context, req *pb.TakeRequest) (*pb.TakeReply, error) {
	if err := p.check(req.ClusterId, req.To); err != nil {
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
	for _, id := range p.a.takeOffered(ctx, ids) {
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
