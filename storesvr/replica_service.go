package storesvr

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// Replica is a store without its process: no listener, no gossip, and a database that
// was opened by somebody else. Safe for concurrent use.
type Replica struct{ r *replica }

// NewReplica starts a store on a database with that content, as disk.Open tells it. Of
// the config only MaxLease, NearFull, Logger, Clock and Wall matter.
// acceptor.ErrInvariant for registers that no store wrote.
func NewReplica(cfg Config, db Database, meta disk.Meta, registers map[seq.Register]acceptor.State) (*Replica, error) {
	r, err := newReplica(cfg.withDefaults(), db, meta, registers)
	if err != nil {
		return nil, err
	}
	return &Replica{r}, nil
}

// Register puts the store's service on a server.
func (r *Replica) Register(srv grpc.ServiceRegistrar) {
	pb.RegisterStoreServer(srv, &server{replica: r.r, health: health.NewServer()})
}

// Addressed refuses calls that name another store. It must stand before the service.
func (r *Replica) Addressed() grpc.UnaryServerInterceptor { return addressedTo(r.r.core.identity.UUID) }

// Failed is closed when a commit has failed: the process must end without an answer.
func (r *Replica) Failed() <-chan struct{} { return r.r.writer.failed }

// Close stops the store after the commit in flight, and closes the database. Callers of the service
// must have stopped before.
func (r *Replica) Close() error { return r.r.close() }
