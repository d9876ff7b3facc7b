package ids

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// askSnowflake calls a method once, of a router or AllocSvr.
func askSnowflake[Q, R any](ctx context.Context, o *ctl.Options, method func(pb.SnowflakeClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	addr, err := o.Seed(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := ctl.Call(ctx, o, addr, pb.NewSnowflakeClient, method, req)
	return reply, known(served(addr, "global IDs", err), seq.ErrUnknownNamespace, "seqctl namespace list", func() ([]string, error) { return namespaces(ctx, o) })
}

// askSegment is askSnowflake for the tags.
func askSegment[Q, R any](ctx context.Context, o *ctl.Options, method func(pb.SegmentClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	addr, err := o.Seed(ctx)
	if err != nil {
		return nil, err
	}
	return segmentAt(ctx, o, addr, method, req)
}

// known adds the existing names to an error about an unknown name.
func known(err, unknown error, list string, names func() ([]string, error)) error {
	if !errors.Is(err, unknown) {
		return err
	}
	all, asked := names()
	if asked != nil {
		return err // what was asked for matters
	}
	_, quoted, _ := strings.Cut(err.Error(), unknown.Error()+": ")
	return fmt.Errorf("%w, %s", err, ctl.Known(strings.Trim(quoted, `"`), all, list))
}

// namespaces returns the names of the namespaces in use.
func namespaces(ctx context.Context, o *ctl.Options) (names []string, err error) {
	reply, err := ctl.Call(ctx, o, o.Addr, pb.NewSnowflakeClient, pb.SnowflakeClient.Namespaces, &pb.SnowflakeNamespacesRequest{})
	for _, n := range reply.GetNamespaces() {
		if n.GetRetiredUnixMs() == 0 {
			names = append(names, n.GetName())
		}
	}
	return names, err
}

// datacenters returns the names of the datacenters that were used.
func datacenters(ctx context.Context, o *ctl.Options) (names []string, err error) {
	reply, err := ctl.Call(ctx, o, o.Addr, pb.NewSnowflakeClient, pb.SnowflakeClient.Namespaces, &pb.SnowflakeNamespacesRequest{})
	for _, dc := range reply.GetDatacenters() {
		if dc.GetName() != "" {
			names = append(names, dc.GetName())
		}
	}
	return names, err
}

// tags returns the names of the tags in use.
func tags(ctx context.Context, o *ctl.Options) (names []string, err error) {
	reply, err := ctl.Call(ctx, o, o.Addr, pb.NewSegmentClient, pb.SegmentClient.List, &pb.SegmentListRequest{})
	for _, t := range reply.GetTags() {
		if t.GetRetiredUnixMs() == 0 {
			names = append(names, t.GetTag())
		}
	}
	return names, err
}

// completer completes such names.
func completer(o *ctl.Options, names func(context.Context, *ctl.Options) ([]string, error)) ctl.Completer {
	return o.Complete(func(ctx context.Context) ([]string, error) {
		if _, err := o.Seed(ctx); err != nil {
			return nil, err
		}
		return names(ctx, o)
	})
}

// segmentAt is askSegment at an address of its own.
func segmentAt[Q, R any](ctx context.Context, o *ctl.Options, addr string, method func(pb.SegmentClient, context.Context, *Q, ...grpc.CallOption) (*R, error), req *Q) (*R, error) {
	reply, err := ctl.Call(ctx, o, addr, pb.NewSegmentClient, method, req)
	return reply, known(served(addr, "segments", err), seq.ErrUnknownTag, "seqctl segment list", func() ([]string, error) { return tags(ctx, o) })
}
