package registers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/memstore"
	"github.com/seqsvr/seqsvr/tests/registers"
)

// maxLease is the longest lease that the stores of these tests grant.
const maxLease = 10 * time.Second

func mapping(t *testing.T) seq.Mapping {
	t.Helper()
	m, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: 4}, seq.Space{Name: "group", Sections: 2, Step: 10},
		seq.Space{Name: "order", Sections: 2, Mode: seq.Exact})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStoresInMemoryKeepThePromisesOfRegisters(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprintf("N=%d", n), func(t *testing.T) {
			registers.Run(t, func(t *testing.T) registers.Harness { return inMemory(t, n) })
		})
	}
}

func inMemory(t *testing.T, n int) registers.Harness {
	c := clock.NewManual(time.Hour)
	cluster := memstore.New(n, mapping(t), c, maxLease)
	h := registers.Harness{Ref: cluster.Ref, R: n/2 + 1, W: n/2 + 1, Mapping: cluster.Mapping, MaxLease: maxLease,
		Advance: func(d time.Duration) { c.Advance(d) }}
	for i, named := range cluster.Named() {
		store := cluster.Stores[i]
		h.Replicas = append(h.Replicas, registers.Replica{Name: named.Name, UUID: named.UUID, Store: store,
			Kill: func() { store.SetDown(true) }, Restart: store.Restart})
	}
	return h
}
