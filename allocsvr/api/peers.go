package api

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Peers reaches the other AllocSvr over gRPC. One connection an address.
type Peers struct {
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

// NewPeers makes Peers of a session of the cluster; dial connects without waiting.
func NewPeers(cluster string, from seq.Session, dial func(string) (PeerConn, error)) *Peers {
	return &Peers{cluster: cluster, from: from, dial: dial, conns: make(map[string]PeerConn)}
}

func (p *Peers) client(addr string) (pb.PeerClient, error) {
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

// Close ends all connections.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for addr, conn := range p.conns {
		_ = conn.Close() // nothing to do about a connection that will not close
		delete(p.conns, addr)
	}
}

// Offer implements owner.Peers, in as many messages as the counters need.
func (p *Peers) Offer(ctx context.Context, addr string, to seq.Session, sections []handover.Sealed) error {
	client, err := p.client(addr)
	if err != nil {
		return err
	}
	for first := true; first || len(sections) > 0; first = false {
		req := &pb.OfferRequest{ClusterId: p.cluster, From: uint64(p.from), To: uint64(to)}
		for size := 0; len(sections) > 0 && size < rpc.MaxCounters; sections = sections[1:] {
			s := sections[0]
			body := s.Body
			if body == nil {
				body = s.Table.AppendBinary(nil)
			}
			size += len(body) + len(s.Tickets)
			req.Sections = append(req.Sections, &pb.SealedSection{Section: uint32(s.ID), Round: s.Epoch.Round, Counters: body, Tickets: s.Tickets})
		}
		if _, err := client.Offer(ctx, req); err != nil {
			return fmt.Errorf("offer to %s: %w", addr, err)
		}
	}
	return nil
}

// Take implements owner.Peers.
func (p *Peers) Take(ctx context.Context, addr string, to seq.Session, ids []seq.SectionID) ([]seq.SectionID, error) {
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

// Ping asks for a sign of life.
func (p *Peers) Ping(ctx context.Context, addr string) error {
	client, err := p.client(addr)
	if err == nil {
		_, err = client.Ping(ctx, &pb.PingRequest{ClusterId: p.cluster})
	}
	return err
}

// Hears asks a node whether a session answers its pings.
func (p *Peers) Hears(ctx context.Context, addr string, session seq.Session) (bool, error) {
	client, err := p.client(addr)
	if err != nil {
		return false, err
	}
	reply, err := client.Hears(ctx, &pb.HearsRequest{ClusterId: p.cluster, Session: uint64(session)})
	return reply.GetHears(), err
}

// Refresh asks the node of a session to read the documents of tags and namespaces again. It returns when
// the node uses them.
func (p *Peers) Refresh(ctx context.Context, addr string, to seq.Session) error {
	client, err := p.client(addr)
	if err != nil {
		return err
	}
	if _, err := client.Refresh(ctx, &pb.RefreshRequest{ClusterId: p.cluster, From: uint64(p.from), To: uint64(to)}); err != nil {
		return fmt.Errorf("refresh at %s: %w", addr, err)
	}
	return nil
}
