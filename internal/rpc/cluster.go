package rpc

import (
	"context"
	"fmt"

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

// SayCluster is the dial option that sends ClusterHeader with every call, once id
// knows the cluster and so is not empty. Routes goes without: its answer says which cluster the
// server is of, and an address of one Set may be asked by a caller who knows the id of another.
func SayCluster(id func() string) grpc.DialOption {
	return grpc.WithPerRPCCredentials(clusterName(id))
}

type clusterName func() string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (id clusterName) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	call, _ := credentials.RequestInfoFromContext(ctx)
	if name := id(); name != "" && call.Method != pb.Sequence_Routes_FullMethodName {
		return map[string]string{ClusterHeader: name}, nil
	}
	return nil, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: the name is no secret.
func (clusterName) RequireTransportSecurity() bool { return false }

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
