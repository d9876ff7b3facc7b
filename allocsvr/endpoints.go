package allocsvr

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/segment"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// endpoint is what an AllocSvr serves from registers of its own, beside sections.
type endpoint interface {
	// Run works until ctx ends; an error is a broken invariant.
	Run(ctx context.Context) error
	// Release gives every register up in order; nothing is handed out afterwards.
	Release(ctx context.Context) error
	// Lost tells that a store gave the register to another session.
	Lost(reg seq.Register, round uint64)
	// Register puts the service on the server.
	Register(srv *grpc.Server)
}

// endpoints makes the services for segments.
func (s *Server) endpoints(p *assembled, cluster storeclient.Cluster, boot clock.Clock) error {
	a := p.alloc
	segments, err := segment.New(segment.Config{
		Session: s.session, Mapping: cluster.Identity.Mapping, Registers: p.group, Documents: p.group,
		Attach: func(reg seq.Register, round uint64) segment.Hold { return p.leases.Attach(reg, round) },
		Owner:  a.mine, Clock: boot, RouteVersion: func() uint64 { return a.routes.table().version() }, Logger: s.cfg.Logger,
	})
	if err != nil {
		return err
	}
	a.routes.changed = segments.Recheck
	p.endpoints = []endpoint{segments}
	return nil
}

// lost tells whoever holds the register.
func (p *assembled) lost(h *quorum.Hold) {
	p.alloc.lost(h.Register(), h.Round())
	for _, e := range p.endpoints {
		e.Lost(h.Register(), h.Round())
	}
}

// release gives up the registers of all endpoints.
func (p *assembled) release(ctx context.Context) error {
	var errs []error
	for _, e := range p.endpoints {
		errs = append(errs, e.Release(ctx))
	}
	return errors.Join(errs...)
}

// mine says whether this node should own the section, from memory; if not, the
// error says who should.
func (a *Alloc) mine(id seq.SectionID) (bool, error) {
	c := a.cells[id]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == owned || c.state == acquiring {
		return true, nil
	}
	return false, a.notOwner(c)
}
