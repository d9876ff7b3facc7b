package rpc

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// ClusterHeader is the metadata key by which a caller says for which cluster its call
// is. An address may pass from one cluster's process to another's, and a number from
// the wrong cluster may repeat one; so a server that knows its cluster refuses calls
// for another. Calls without the header are served.
const ClusterHeader = "seqsvr-cluster"

// IncarnationHeader is the metadata key by which a caller says which life of the cluster it
// holds to, in the form of seq.Incarnation.String. Two clusters may have one name, and a restore
// begins another life of the same cluster; so a server that knows its own incarnation refuses
// calls for another. A server checks it once a unary call and once a stream. Calls without the
// header are served.
const IncarnationHeader = "seqsvr-incarnation"

// Target is the cluster that calls are for, as they say it in metadata. It is immutable.
type Target struct {
	life   seq.Incarnation
	header map[string]string
}

// NewTarget returns the target of calls for a cluster. An empty name and an incarnation that is
// not known are not said.
func NewTarget(cluster string, life seq.Incarnation) *Target {
	t := &Target{life: life, header: map[string]string{}}
	if cluster != "" {
		t.header[ClusterHeader] = cluster
	}
	if life.Known() {
		t.header[IncarnationHeader] = life.String()
	}
	return t
}

// Life returns the incarnation of the target. If the target is nil, it is not known.
func (t *Target) Life() seq.Incarnation {
	if t == nil {
		return seq.Incarnation{}
	}
	return t.life
}

// SayTarget returns the dial option that sends ClusterHeader and IncarnationHeader with every
// call. If target returns nil, a call says nothing. Routes goes without: its answer says which
// cluster the server is of, and an address of one Set may be asked by a caller of another.
func SayTarget(target func() *Target) grpc.DialOption {
	return grpc.WithPerRPCCredentials(targets(target))
}

type targets func() *Target

// GetRequestMetadata implements credentials.PerRPCCredentials. gRPC does not change the map.
func (target targets) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	call, _ := credentials.RequestInfoFromContext(ctx)
	if call.Method == pb.Sequence_Routes_FullMethodName {
		return nil, nil
	}
	t := target()
	if t == nil {
		return nil, nil
	}
	return t.header, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: the name is no secret.
func (targets) RequireTransportSecurity() bool { return false }

// Addressee tells whether calls are for this server: for its cluster, for the life of that, and from a
// build that is near enough. Safe for concurrent use.
type Addressee struct {
	cluster func() string
	life    lifeCheck
}

// NewAddressee returns the addressee of a server's cluster, empty while it is not known, and of its
// life, likewise. If a function is nil, that is not checked.
func NewAddressee(cluster func() string, life func() seq.Incarnation) *Addressee {
	return &Addressee{cluster: cluster, life: lifeCheck{own: life}}
}

// Check returns seq.ErrProtocol, seq.ErrForeignCluster or seq.ErrStaleEra for a call that is not for
// this server.
func (a *Addressee) Check(ctx context.Context) error {
	if err := ownProtocol().check(ctx); err != nil {
		return err
	}
	if err := checkCluster(ctx, a.cluster); err != nil {
		return err
	}
	return a.life.check(ctx)
}

// checkCluster refuses a call for another cluster; seq.ErrForeignCluster then.
func checkCluster(ctx context.Context, own func() string) error {
	if own == nil {
		return nil
	}
	named := metadata.ValueFromIncomingContext(ctx, ClusterHeader)
	if len(named) == 0 {
		return nil
	}
	if id := own(); id != "" && named[0] != id {
		return fmt.Errorf("%w: the call is for %q, this is %q", seq.ErrForeignCluster, named[0], id)
	}
	return nil
}

// lifeCheck refuses calls for another life of the cluster than the server's own.
type lifeCheck struct {
	own func() seq.Incarnation // if nil, no call is refused
	// last is the own incarnation as calls say it, so that most calls compare two texts.
	last atomic.Pointer[Target]
}

// check returns seq.ErrForeignCluster or seq.ErrStaleEra for a call for another life.
func (c *lifeCheck) check(ctx context.Context) error {
	if c.own == nil {
		return nil
	}
	said := metadata.ValueFromIncomingContext(ctx, IncarnationHeader)
	if len(said) == 0 {
		return nil
	}
	life := c.own()
	if !life.Known() {
		return nil
	}
	own := c.last.Load()
	if own == nil || own.life != life {
		own = NewTarget("", life)
		c.last.Store(own)
	}
	if said[0] == own.header[IncarnationHeader] {
		return nil
	}
	callers, err := seq.ParseIncarnation(said[0])
	if err != nil {
		return fmt.Errorf("%s: %w", IncarnationHeader, err)
	}
	if err := callers.Check(life); err != nil {
		return fmt.Errorf("the call is for incarnation %v, this is %v: %w", callers, life, err)
	}
	return nil
}
