package etcdclient

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
)

// request is a transaction as etcd's API has it.
func request(t etcdstore.Txn) *pb.TxnRequest {
	out := &pb.TxnRequest{Success: operations(t.Then), Failure: operations(t.Else)}
	for _, c := range t.If {
		p := &pb.Compare{Key: []byte(c.Key), Result: pb.Compare_EQUAL, Target: pb.Compare_MOD, TargetUnion: &pb.Compare_ModRevision{ModRevision: c.Rev}}
		if c.Not {
			p.Result = pb.Compare_NOT_EQUAL
		}
		if c.Created {
			p.Target, p.TargetUnion = pb.Compare_CREATE, &pb.Compare_CreateRevision{CreateRevision: c.Rev}
		}
		out.Compare = append(out.Compare, p)
	}
	return out
}

func operations(ops []etcdstore.Op) []*pb.RequestOp {
	out := make([]*pb.RequestOp, len(ops))
	for i, op := range ops {
		switch op.Kind {
		case etcdstore.Put:
			out[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(op.Key), Value: op.Value}}}
		case etcdstore.Delete:
			out[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(op.Key)}}}
		case etcdstore.Nested:
			out[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: request(*op.Txn)}}
		default:
			r := &pb.RangeRequest{Key: []byte(op.Key), Limit: op.Limit, Serializable: false}
			if op.End != "" {
				r.RangeEnd = []byte(op.End)
			}
			out[i] = &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}}
		}
	}
	return out
}

// answer reads a reply to the transaction: quorum.ErrBadReply if it does not fit to it.
func answer(t etcdstore.Txn, r *pb.TxnResponse) (etcdstore.Answer, error) {
	out := etcdstore.Answer{Cluster: r.GetHeader().GetClusterId(), Revision: r.GetHeader().GetRevision(), Then: r.GetSucceeded()}
	asked := t.Else
	if out.Then {
		asked = t.Then
	}
	if len(asked) != len(r.GetResponses()) {
		return out, fmt.Errorf("%w: %d results for %d operations", quorum.ErrBadReply, len(r.GetResponses()), len(asked))
	}
	out.Results = make([]etcdstore.Result, len(asked))
	for i, op := range r.GetResponses() {
		switch asked[i].Kind {
		case etcdstore.Get:
			for _, kv := range op.GetResponseRange().GetKvs() {
				out.Results[i].KVs = append(out.Results[i].KVs, etcdstore.KeyValue{Key: string(kv.GetKey()), Value: kv.GetValue(),
					Created: kv.GetCreateRevision(), Modified: kv.GetModRevision()})
			}
		case etcdstore.Nested:
			nested, err := answer(*asked[i].Txn, op.GetResponseTxn())
			if err != nil {
				return out, err
			}
			nested.Cluster, nested.Revision = 0, 0
			out.Results[i].Nested = &nested
		}
	}
	return out, nil
}
