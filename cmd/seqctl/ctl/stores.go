package ctl

import (
	"context"
	"fmt"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// StoreAddrs are the gRPC addresses of the stores, as an AllocSvr that the router or
// AllocSvr at --addr leads to knows them.
func StoreAddrs(ctx context.Context, o *Options) ([]string, error) {
	var addrs []string
	err := onAnyNode(ctx, o, func(ctx context.Context, admin pb.AdminClient) error {
		reply, err := admin.Status(ctx, &pb.StatusRequest{})
		for _, s := range reply.GetStores() {
			addrs = append(addrs, s.GetAddr())
		}
		return err
	})
	if err == nil && len(addrs) == 0 {
		err = fmt.Errorf("%w: %s names no stores", seq.ErrNoQuorum, o.Addr)
	}
	return addrs, err
}
