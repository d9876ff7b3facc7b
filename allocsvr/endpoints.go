package allocsvr

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/globalid"
	"github.com/seqsvr/seqsvr/allocsvr/segment"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
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

// endpoints makes the services for segments and snowflake IDs.
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
	ids, err := globalid.New(globalid.Config{
		Name: s.cfg.Name, Session: s.session, Registers: p.group, Documents: p.group, Leases: workerLeases{p.leases},
		DatacenterID: snowflake.Datacenter(s.cfg.DatacenterID), Datacenter: s.cfg.Datacenter, Worker: s.worker(),
		Window: s.cfg.WorkerWindow, Clock: boot, Logger: s.cfg.Logger,
	})
	if err != nil {
		return err
	}
	a.routes.changed = segments.Recheck
	p.endpoints = []endpoint{segments, ids}
	return nil
}

// worker is the configured worker id, nil for any free one.
func (s *Server) worker() *snowflake.Worker {
	if s.cfg.WorkerID < 0 {
		return nil
	}
	w := snowflake.Worker(s.cfg.WorkerID)
	return &w
}

// workerLeases makes quorum.Leases a globalid.Leases.
type workerLeases struct{ *quorum.Leases }

// Attach implements globalid.Leases.
func (l workerLeases) Attach(reg seq.Register, round uint64) globalid.Hold {
	return l.Leases.Attach(reg, round)
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
