package sim

import (
	"fmt"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
)

// txnMethod is the one method of etcd that is called.
const txnMethod = pb.KV_Txn_FullMethodName

// etcdPrefix is the prefix of all keys.
const etcdPrefix = "/sim"

// etcdWrites are the transactions whose being late matters most, as nameOf has them: those that
// write registers, that make a session, and that take one for dead.
var etcdWrites = []string{"etcd/Prepare", "etcd/Step", "etcd/Release", "etcd/Condemn", "etcd/Enter"}

// callName returns the method of a call. For a call of etcd it returns the purpose instead, so that faults
// can be aimed at it as at a call of a store.
func callName(k *call) string {
	if k.method != txnMethod {
		return k.method
	}
	t, err := readTxn(k.body)
	if err != nil {
		return "etcd/Unknown"
	}
	return "etcd/" + purpose(t)
}

func readTxn(body []byte) (etcdstore.Txn, error) {
	var wire pb.TxnRequest
	if err := proto.Unmarshal(body, &wire); err != nil {
		return etcdstore.Txn{}, err
	}
	return etcdmodel.Read(&wire)
}

// purpose says what a transaction is for.
func purpose(t etcdstore.Txn) string {
	for _, op := range t.Then {
		key := strings.TrimPrefix(op.Key, etcdPrefix)
		switch {
		case op.Kind == etcdstore.Nested:
			return purposeOf(op.Txn)
		case op.Kind == etcdstore.Put && strings.HasPrefix(key, "/s/"):
			if len(t.Then) > 1 && t.Then[1].Kind == etcdstore.Put { // with the node's name
				return "Enter"
			}
			return "Renew"
		case op.Kind == etcdstore.Put && key == "/o":
			return "Observe"
		case op.Kind == etcdstore.Put && key == "/meta":
			return "Poison"
		case op.Kind == etcdstore.Delete && !strings.HasPrefix(key, "/s/"):
			return "Sweep"
		case op.Kind == etcdstore.Delete && len(t.Then) == 1:
			return "Condemn"
		case op.Kind == etcdstore.Delete:
			return "End"
		}
	}
	return "Look"
}

// purposeOf returns the purpose of a transaction that writes one register. An Attach that writes is like a
// Step.
func purposeOf(t *etcdstore.Txn) string {
	if r, err := etcdstore.Show(etcdstore.KeyValue{Key: t.Then[0].Key, Value: t.Then[0].Value}); err == nil {
		switch r.Promised {
		case r.Released:
			return "Release"
		case r.Accepted:
			return "Step"
		}
	}
	return "Prepare"
}

// describeTxn is a transaction, or its answer, in a few words.
func describeTxn(body []byte, request bool) string {
	if !request {
		var wire pb.TxnResponse
		if proto.Unmarshal(body, &wire) != nil {
			return ""
		}
		out := fmt.Sprintf("%v at %d", wire.GetSucceeded(), wire.GetHeader().GetRevision())
		for i, op := range wire.GetResponses() {
			if nested := op.GetResponseTxn(); nested != nil && !nested.GetSucceeded() {
				out += fmt.Sprintf(", item %d not", i)
			}
		}
		return out
	}
	t, err := readTxn(body)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, op := range t.Then {
		if op.Kind == etcdstore.Nested {
			for _, inner := range op.Txn.Then {
				describeOp(&b, inner)
			}
		} else {
			describeOp(&b, op)
		}
	}
	return strings.TrimSpace(b.String())
}

func describeOp(b *strings.Builder, op etcdstore.Op) {
	key := strings.TrimPrefix(op.Key, etcdPrefix+"/")
	switch op.Kind {
	case etcdstore.Put:
		if r, err := etcdstore.Show(etcdstore.KeyValue{Key: op.Key, Value: op.Value}); err == nil && strings.HasPrefix(key, "r/") {
			fmt.Fprintf(b, " %s=%s/%s>%d life %d released %s", key, r.Promised, r.Accepted, r.Max, r.Life, r.Released)
		} else {
			fmt.Fprintf(b, " put %s", key)
		}
	case etcdstore.Delete:
		fmt.Fprintf(b, " delete %s", key)
	default:
		fmt.Fprintf(b, " %s", key)
		if op.End != "" {
			b.WriteByte('*')
		}
	}
}
