package etcdmodel

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
)

// Member is a member of etcd as gRPC has it: Do decides when a transaction is done, and whether
// it is answered.
type Member struct {
	pb.UnimplementedKVServer
	Do func(ctx context.Context, t etcdstore.Txn) (etcdstore.Answer, error)
}

// Txn implements pb.KVServer.
func (m *Member) Txn(ctx context.Context, req *pb.TxnRequest) (*pb.TxnResponse, error) {
	t, err := Read(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	a, err := m.Do(ctx, t)
	switch {
	case errors.Is(err, etcdstore.ErrNoSpace):
		return nil, status.Error(codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded")
	case err != nil:
		return nil, err
	}
	return reply(t, a), nil
}

// Read is a transaction as internal/etcd/etcdclient sends it: ErrRejected for any other.
func Read(req *pb.TxnRequest) (t etcdstore.Txn, err error) {
	for _, c := range req.GetCompare() {
		one := etcdstore.Compare{Key: string(c.GetKey()), Not: c.GetResult() == pb.Compare_NOT_EQUAL, Created: c.GetTarget() == pb.Compare_CREATE}
		if one.Rev = c.GetModRevision(); one.Created {
			one.Rev = c.GetCreateRevision()
		}
		if !one.Not && c.GetResult() != pb.Compare_EQUAL || !one.Created && c.GetTarget() != pb.Compare_MOD {
			return t, fmt.Errorf("%w: compare %v", ErrRejected, c)
		}
		t.If = append(t.If, one)
	}
	if t.Then, err = operations(req.GetSuccess()); err == nil {
		t.Else, err = operations(req.GetFailure())
	}
	return t, err
}

func operations(ops []*pb.RequestOp) (out []etcdstore.Op, err error) {
	for _, op := range ops {
		var one etcdstore.Op
		switch r := op.GetRequest().(type) {
		case *pb.RequestOp_RequestPut:
			one = etcdstore.Op{Kind: etcdstore.Put, Key: string(r.RequestPut.GetKey()), Value: r.RequestPut.GetValue()}
		case *pb.RequestOp_RequestDeleteRange:
			one = etcdstore.Op{Kind: etcdstore.Delete, Key: string(r.RequestDeleteRange.GetKey())}
		case *pb.RequestOp_RequestTxn:
			nested, err := Read(r.RequestTxn)
			if err != nil {
				return nil, err
			}
			one = etcdstore.Op{Kind: etcdstore.Nested, Txn: &nested}
		case *pb.RequestOp_RequestRange:
			g := r.RequestRange
			if g.GetSerializable() {
				return nil, fmt.Errorf("%w: a serializable read of %q", ErrRejected, g.GetKey())
			}
			one = etcdstore.Op{Kind: etcdstore.Get, Key: string(g.GetKey()), End: string(g.GetRangeEnd()), Limit: g.GetLimit()}
		default:
			return nil, fmt.Errorf("%w: operation %v", ErrRejected, op)
		}
		out = append(out, one)
	}
	return out, nil
}

// reply is the answer to a transaction as etcd sends it: the header of nested ones is empty.
func reply(t etcdstore.Txn, a etcdstore.Answer) *pb.TxnResponse {
	out := &pb.TxnResponse{Succeeded: a.Then, Header: &pb.ResponseHeader{ClusterId: a.Cluster, Revision: a.Revision}}
	for i, op := range side(t, a.Then) {
		r := a.Results[i]
		one := &pb.ResponseOp{}
		switch op.Kind {
		case etcdstore.Put:
			one.Response = &pb.ResponseOp_ResponsePut{ResponsePut: &pb.PutResponse{}}
		case etcdstore.Delete:
			one.Response = &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: &pb.DeleteRangeResponse{}}
		case etcdstore.Nested:
			one.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: reply(*op.Txn, *r.Nested)}
		default:
			got := &pb.RangeResponse{Count: int64(len(r.KVs))}
			for _, kv := range r.KVs {
				got.Kvs = append(got.Kvs, &mvccpb.KeyValue{Key: []byte(kv.Key), Value: kv.Value, CreateRevision: kv.Created, ModRevision: kv.Modified})
			}
			one.Response = &pb.ResponseOp_ResponseRange{ResponseRange: got}
		}
		out.Responses = append(out.Responses, one)
	}
	return out
}
