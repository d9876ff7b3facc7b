package globalid

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Config has the settings of the ID service of one node, for its worker ids and the namespaces.
type Config struct {
	workers.Config
	Documents documents.Stores
	// Namespaces are recorded by Run, unless they are recorded already. Until then they replace the
	// defaults of the same name or alias. Their Version is ignored.
	Namespaces []namespaces.Namespace
	// Caller returns the caller of a call, whose share of the worker ids for clients is limited. If nil,
	// shares are not limited.
	Caller func(context.Context) workers.Caller
	// Audit records the IDs that are handed out. If nil, they are not recorded.
	Audit *audit.Log
	// Root is the Set that changes the namespaces and gives worker ids to this Set. If nil, the cluster has
	// no other Sets.
	Root namespaces.Root
	// Cluster is the id of this cluster. Regions are nodes of other regions' clusters, which must make
	// other IDs. If there are no Regions, no cluster is queried.
	Cluster string
	Life    seq.Incarnation // of this cluster
	Regions []Region
}

// Service is one node's endpoint. Safe for concurrent use.
type Service struct {
	cfg     Config
	life    context.Context // ends with Release or Run
	end     context.CancelFunc
	names   *namespaces.Catalog
	workers *workers.Workers
	agents  agents
	abroad  *abroad
}

// New makes an endpoint that holds nothing yet. seq.ErrBadArgument, seq.ErrBadLayout.
// Run must run for it to hand out IDs for longer than a window.
func New(cfg Config) (*Service, error) {
	var err error
	if cfg.Config, err = cfg.WithDefaults(); err != nil {
		return nil, fmt.Errorf("snowflake endpoint: %w", err)
	}
	if cfg.Caller == nil {
		cfg.Caller = func(context.Context) workers.Caller { return workers.Caller{} }
	}
	if cfg.Root == nil {
		cfg.Root = namespaces.Alone{}
	}
	s := &Service{cfg: cfg}
	s.abroad = newAbroad(s, cfg.Regions)
	s.life, s.end = context.WithCancel(context.Background())
	s.names, err = namespaces.New(namespaces.Config{
		Life: s.life, Documents: cfg.Documents, Session: cfg.Holder.Session, Node: cfg.Node, Configured: cfg.Namespaces,
		First: s.abroad.first, Root: cfg.Root, OnNew: func(v *namespaces.View) { s.workers.Adopt(v) }, Wall: cfg.Wall, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("snowflake endpoint: %w", err)
	}
	s.workers = workers.New(cfg.Config, s.names)
	return s, nil
}

// Register puts the service on a gRPC server.
func (s *Service) Register(srv grpc.ServiceRegistrar) { pb.RegisterSnowflakeServer(srv, server{s: s}) }

// Run records the configured namespaces, extends windows ahead of need and follows
// changes of the namespaces until ctx ends or the node's datacenter turns out to be
// another's, seq.ErrDatacenterTaken, also in another region if this cluster has not used it yet, or a configured namespace to be recorded so that the
// same IDs would mean something else, seq.ErrUnsafeChange.
// Nothing is handed out after it has returned; worker ids are not released, Release
// does that.
func (s *Service) Run(ctx context.Context) error {
	defer s.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)() // Release ends it as well
	if err := s.abroad.begin(ctx); err != nil {
		return fmt.Errorf("snowflake endpoint: %w", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.workers.Run(ctx) })
	wg.Go(func() { s.abroad.run(ctx) })
	defer cancel()
	if err := s.names.Follow(ctx, s.workers.Review); err != nil {
		return fmt.Errorf("snowflake endpoint: %w", err)
	}
	return nil
}

// stop ends all background work and refuses later requests. The stores keep the registers of the node's
// worker ids.
func (s *Service) stop() {
	s.workers.Stop()
	s.end()
}

// Release ends the endpoint for a clean leave: no ID is handed out any more, requests
// get seq.ErrShuttingDown, and the worker ids are given back to the stores so that
// no node waits for the lease to end. Call it before the session is ended, once. An
// error says that the stores did not hear of it; then the leases run out.
func (s *Service) Release(ctx context.Context) error {
	s.stop()
	return s.workers.Release(ctx)
}

// Allot, at the root, gives worker ids to another Set. It returns the Set's worker ids and the namespaces.
// The argument others holds the clusters of all Sets except the root.
//
// For a request without a namespace, any Set only returns these. A restored root settles by such requests.
// If the other Set was restored as well, it also returns until when windows of worker ids that it has
// forgotten may be in use. Allot returns the errors of Generate, and may be retried.
func (s *Service) Allot(ctx context.Context, cluster string, others []string, wish namespaces.AllotmentRequest) ([]byte, error) {
	kept := uint64(0)
	if wish.Namespace != "" {
		if err := s.cfg.Root.Elsewhere(); err != nil {
			return nil, err
		}
		if err := s.workers.Allot(ctx, cluster, others, wish); err != nil {
			return nil, fmt.Errorf("allot worker ids: %w", err)
		}
	} else if s.cfg.Root.Elsewhere() != nil {
		var err error
		if kept, err = s.workers.Kept(ctx); err != nil {
			return nil, fmt.Errorf("tell the worker ids: %w", err)
		}
	}
	return s.names.Told(ctx, cluster, kept)
}

// Join has the cluster use the worker ids alone that the root Set allots. seq.ErrUnsafeChange if it has
// made IDs before. Safe to retry.
func (s *Service) Join(ctx context.Context) error { return s.names.Join(ctx) }

// Gave reports, at the root, whether a cluster has worker ids that were allotted. It returns the errors of
// Generate.
func (s *Service) Gave(ctx context.Context, cluster string) (bool, error) {
	return s.names.Gave(ctx, cluster)
}

// Settle adds, at a restored root, the other Sets' reports of the namespaces and of their worker ids. It
// returns the errors of namespaces.Catalog.Settle, and may be retried.
func (s *Service) Settle(ctx context.Context, told [][]byte) error { return s.names.Settle(ctx, told) }

// Refresh reads the namespaces at the stores again, and this node uses them when it returns.
func (s *Service) Refresh(ctx context.Context) error {
	_, err := s.names.Read(ctx)
	return err
}

// Lost must be called when a store says that a register is another session's, for
// registers of kind seq.KindWorker; others do no harm. It does not block.
func (s *Service) Lost(reg seq.Register, round uint64) { s.workers.Lost(reg, round) }

// Ready returns nil if this node's configuration lets it hand out IDs in some known namespace. Otherwise it
// returns seq.ErrNodeUnfit, with the reason of each namespace.
func (s *Service) Ready() error { return s.names.Known().Ready(s.cfg.Node) }
