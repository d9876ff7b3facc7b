package etcdclient

import (
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
)

func TestEveryRangeIsLinearizable(t *testing.T) {
	r := request(etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Get, Key: "a"}, {Kind: etcdstore.Get, Key: "a", End: "b", Limit: 3}}})
	for i, op := range r.GetSuccess() {
		if got := op.GetRequestRange(); got == nil || got.GetSerializable() {
			t.Errorf("operation %d is %v, want a linearizable range", i, op)
		}
	}
}

func TestAReplyThatDoesNotFitIsNone(t *testing.T) {
	txn := etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Nested, Txn: &etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Put, Key: "a"}}}}}}
	for name, r := range map[string]*pb.TxnResponse{
		"no results":        {Succeeded: true},
		"an empty one":      {Succeeded: true, Responses: []*pb.ResponseOp{{}}},
		"of the other side": {Responses: []*pb.ResponseOp{{}}},
	} {
		if a, err := answer(txn, r); !errors.Is(err, quorum.ErrBadReply) && name != "an empty one" {
			t.Errorf("%s: got %+v, %v, want %v", name, a, err, quorum.ErrBadReply)
		} else if name == "an empty one" && (err != nil || a.Results[0].Nested.Then) {
			t.Errorf("%s: got %+v, %v, want the else side without results", name, a, err)
		}
	}
}

func TestVersionsAreComparedByNumber(t *testing.T) {
	for version, old := range map[string]bool{
		"3.4.23": true, "3.5.9": true, "3.5.22": true, "3.5.23": false, "3.5.100": false, "3.6.0": true, "3.6.4": true, "3.6.5": false,
		"3.7.0": false, "4.0.0": false, "3.6.5-rc.0": false, "": true, "x": true,
	} {
		if got := tooOld(version, Requirement{}); got != old {
			t.Errorf("version %q is too old: %v, want %v", version, got, old)
		}
	}
}
