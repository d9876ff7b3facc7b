package lab

import (
	"context"
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
)

// asked counts what comes through to etcd.
type asked int

func (a *asked) Do(context.Context, etcdstore.Txn) (etcdstore.Answer, error) {
	*a++
	return etcdstore.Answer{}, nil
}

func TestADrillOnlyLooksAtEtcd(t *testing.T) {
	var through asked
	kv := onlooker{&through}
	get := etcdstore.Op{Kind: etcdstore.Get, Key: "k"}
	for _, kind := range []etcdstore.OpKind{etcdstore.Put, etcdstore.Delete, etcdstore.Nested} {
		other := etcdstore.Op{Kind: kind, Key: "k"}
		for _, txn := range []etcdstore.Txn{{Then: []etcdstore.Op{get, other}}, {Else: []etcdstore.Op{other}}} {
			if _, err := kv.Do(t.Context(), txn); !errors.Is(err, errOnlooker) || through != 0 {
				t.Errorf("%+v: got %v and %d messages, want %v and none", txn, err, through, errOnlooker)
			}
		}
	}
	if _, err := kv.Do(t.Context(), etcdstore.Txn{Then: []etcdstore.Op{get}}); err != nil || through != 1 {
		t.Errorf("a look: got %v and %d messages, want one", err, through)
	}
}
