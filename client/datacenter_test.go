package client_test

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestIDsOfADatacenterComeFromItsNodesAlone(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	for i, dc := range []string{"dc-0", "dc-1", "dc-2"} {
		for range 6 {
			had := cluster.Nodes[i].Generated.Load()
			got, err := c.GenerateIn(bounded(t), dc, "", 5)
			if err != nil || got.Len() != 5 || cluster.Nodes[i].Generated.Load() != had+5 {
				t.Fatalf("%s: got %+v, %v", dc, got, err)
			}
		}
	}
	if got, err := c.GenerateIn(bounded(t), "moon", "", 1); !errors.Is(err, seq.ErrUnknownDatacenter) || got.Len() != 0 {
		t.Errorf("a datacenter that there is not: got %+v, %v", got, err)
	}
	if _, err := c.GenerateIn(bounded(t), "dc-0", "moon", 1); !errors.Is(err, seq.ErrUnknownNamespace) {
		t.Errorf("an unknown namespace: got %v", err)
	}
	if _, err := c.GenerateIn(bounded(t), "dc-0", "", 0); !errors.Is(err, seq.ErrBadCount) {
		t.Errorf("a count of 0: got %v", err)
	}
}
