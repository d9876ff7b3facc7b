package globalid

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func TestANodeWhoseNumbersFitNoNamespaceIsNotReadyAndSaysWhy(t *testing.T) {
	c := newCluster(t)
	numbered := func(dc snowflake.Datacenter) func(*Config) { return func(cfg *Config) { cfg.Node.Datacenter.ID = dc } }
	for _, row := range []struct {
		dc    snowflake.Datacenter
		ready bool
	}{
		{7, true}, {31, true}, {32, false}, // the layouts of the default namespaces have 3 and 5 bits
	} {
		n := c.start(fmt.Sprintf("n%d", row.dc), numbered(row.dc))
		err := n.svc.Load().Ready()
		if row.ready && err != nil || !row.ready && (!errors.Is(err, seq.ErrNodeUnfit) || !strings.Contains(err.Error(), `namespace "default": datacenter id 32, the layout has 0 to 31`)) {
			t.Errorf("datacenter %d: got %v, want ready %t", row.dc, err, row.ready)
		}
	}
	worker := snowflake.Worker(1 << 20)
	if err := c.start("w", func(cfg *Config) { cfg.Node.Worker = &worker }).svc.Load().Ready(); !errors.Is(err, seq.ErrNodeUnfit) {
		t.Errorf("worker id %d: got %v, want %v", worker, err, seq.ErrNodeUnfit)
	}
	n := c.start("later", numbered(40))
	if _, _, err := n.gen("", 1); !errors.Is(err, seq.ErrNodeUnfit) {
		t.Errorf("an id at a node that does not fit: got %v, want %v", err, seq.ErrNodeUnfit)
	}
	c.add(n, "wide", "leaf") // without a datacenter in its ids
	if err := n.svc.Load().Ready(); err != nil {
		t.Errorf("with a namespace that it fits: %v", err)
	}
	n.must("wide", 1)
}

func TestWithoutAQuorumRequestsDoNotWaitOnceTheWindowIsUsedUp(t *testing.T) {
	c := newCluster(t)
	var lost atomic.Bool
	away := fmt.Errorf("%w: missing store-2, store-3", seq.ErrNoQuorum)
	n := c.start("n", func(cfg *Config) {
		cfg.Quorum = func() error {
			if lost.Load() {
				return away
			}
			return nil
		}
	})
	n.must("", 1)
	for _, s := range c.stores {
		s.setFault(failsNotApplied)
	}
	lost.Store(true)
	n.must("", 1) // the window holds
	c.pass(2 * workers.DefaultWindow)
	if _, _, err := n.gen("", 1); !errors.Is(err, away) {
		t.Errorf("beyond the window: got %v, want %v", err, away)
	}
	if _, _, err := n.gen("regional-1", 1); !errors.Is(err, away) {
		t.Errorf("a worker id to be acquired: got %v, want %v", err, away)
	}
	lost.Store(false)
	for _, s := range c.stores {
		s.setFault(works)
	}
	n.must("", 1)
}
