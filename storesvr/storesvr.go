package storesvr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

// Store is a running StoreSvr.
type Store struct {
	cfg     Config
	replica *replica
	listen  net.Listener
	server  *gate.Server
	gossip  *gossip
	calls   telemetry.Calls
	leave   context.CancelFunc // ends the streams

	once     sync.Once // Close
	closeErr error     // of Close
}

// New opens the database and the listener. It does not answer before Run. Errors: ErrConfig, the
// errors of disk.Open, and the system's error for the address.
func New(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("start store: %w", err)
	}
	cfg = cfg.withDefaults()
	cfg.TLS.CountRefused(cfg.Refused)
	creds, err := cfg.TLS.ServerCreds(rpc.RequireClients)
	if err != nil {
		return nil, fmt.Errorf("start store: %w", err)
	}
	// The address comes first: opening the database counts a start on the disk, and a
	// store that cannot listen is to leave it as it was.
	lis, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("start store: listen for gRPC (--listen): %w", err)
	}
	loaded := &journal.Progress{}
	defer tellLoading(cfg.Logger, loaded, loadingEvery)()
	db, meta, registers, err := disk.Open(cfg.DataDir, cfg.ClusterID, loaded)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start store: %w%s", err, advice(err)), lis.Close())
	}
	r, err := newReplica(cfg, db, meta, registers)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start store %s: %w", meta.Name, err), db.Close(), lis.Close())
	}
	s := &Store{cfg: cfg, replica: r, listen: lis}
	leaving, leave := context.WithCancel(context.Background())
	s.leave = leave
	s.server = newServer(cfg, &server{replica: r, addr: s.advertise(), guard: cfg.Guard, refused: cfg.Refused,
		known: func() []membership.Member { return s.gossip.members() }, leaving: leaving.Done(), count: s.calls.Count,
	}, creds, append(cfg.Traces.ServerOptions(), s.calls.Options()...)...)
	if s.gossip, err = startGossip(cfg, s.advertise(), len(cfg.TLS.Exposed(s.Addr())) > 0, r.core); err != nil {
		return nil, errors.Join(fmt.Errorf("start store %s: %w", meta.Name, err), s.Close())
	}
	cfg.TLS.WarnExposed(cfg.Logger, s.Addr())
	cfg.Logger.Info("store opened", "store", meta.Name, "uuid", meta.UUID, "cluster", meta.Cluster, "addr", s.Addr(),
		"boot", meta.BootCount, "registers", len(registers), "state", r.describe().State)
	return s, nil
}

// loadingEvery is the time between two lines of a store that loads.
const loadingEvery = 2 * time.Second

// tellLoading logs how far a store has loaded, until the result is called. A store that is quick says nothing.
func tellLoading(log *slog.Logger, loaded *journal.Progress, every time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var task sync.WaitGroup
	begun := time.Now()
	task.Go(func() {
		for wake.Sleep(ctx, every) {
			log.Info("store loads", "journal_percent", int(100*loaded.Share()), "since", time.Since(begun).Round(time.Second))
		}
	})
	return func() {
		cancel()
		task.Wait()
	}
}

// advice says what to do about a database that cannot be served.
func advice(err error) string {
	const replace = "make a new disk by storesvr init --learner --join ADDRESSES, start it, and run seqctl store replace --dead NAME --new ADDRESS"
	switch {
	case errors.Is(err, disk.ErrNoDatabase):
		return " (a store that was a member before has lost its disk: " + replace + ")"
	case errors.Is(err, journal.ErrMissing):
		return " (a store never begins a second journal: what it answered for is gone with the first; never put an old copy back: " + replace + ")"
	case errors.Is(err, disk.ErrNewer), errors.Is(err, seq.ErrProtocol):
		return " (the disk is sound and has all that it answered for: make no new one)"
	case errors.Is(err, disk.ErrCorrupt), errors.Is(err, disk.ErrFormat), errors.Is(err, journal.ErrDamaged):
		return " (never put an old copy back: " + replace + ")"
	case errors.Is(err, seq.ErrForeignCluster):
		return " (check the data directory and the cluster id; nothing was changed)"
	}
	return ""
}

// Addr is the gRPC address listened on, host:port.
func (s *Store) Addr() string { return s.listen.Addr().String() }

// GossipAddr is the address of the membership view, host:port, empty without one.
func (s *Store) GossipAddr() string { return s.gossip.addr() }

func (s *Store) advertise() string {
	if s.cfg.Advertise != "" {
		return s.cfg.Advertise
	}
	return s.Addr()
}

// SetLimits changes what may be changed while the store serves: the bytes free below
// which writes are refused (0: never), and the longest lease granted from now on, above
// 0 and at most an hour. ErrConfig, and nothing is changed. A shorter lease does not
// end those that were granted.
func (s *Store) SetLimits(nearFull uint64, maxLease time.Duration) error {
	cfg := s.cfg
	cfg.NearFull, cfg.MaxLease = nearFull, maxLease
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("change limits: %w", err)
	}
	s.replica.writer.nearFull.Store(nearFull)
	c := s.replica.core
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxLease = maxLease
	c.acceptor.SetMaxLease(maxLease)
	return nil
}

// Run answers until ctx ends, and returns nil then, or ErrCommit as soon as a commit has
// failed: exit the process. Either way the store is closed afterwards. Run works once.
func (s *Store) Run(ctx context.Context) error {
	ran := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.replica.writer.failed:
			s.server.Stop() // cuts connections: an answer could rest on what is not on disk
		case <-ran:
		}
	})
	defer context.AfterFunc(ctx, s.leave)()
	err := gate.Serve(ctx, s.server, s.listen)
	close(ran)
	watch.Wait()
	closeErr := s.Close()
	if failure := s.replica.core.failure(); failure != nil {
		return fmt.Errorf("run store %s: %w", s.replica.core.identity.Name, failure)
	}
	return errors.Join(err, closeErr)
}

// Close stops answering at once, ends Run, and closes the database after the commit in
// flight. Requests that wait have an unknown outcome. It may be called at any time, and
// again.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.leave()
		s.server.Stop()
		_ = s.listen.Close() // closed already if Run served on it
		s.closeErr = errors.Join(s.gossip.close(), s.replica.close())
	})
	return s.closeErr
}
