package runbook

import (
	"slices"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// procedures are run in this order on one site: each finds what the ones before left.
var procedures = []string{"first", "status", "reload", "add", "drain", "upgrade", "quorum", "stores", "replace", "grow", "backup", "restore", "gossip"}

// accidents are what a procedure is for, and happen before it.
var accidents = map[string]func(*site){
	"replace": func(s *site) { s.loseDisk("store-3") },
	"restore": func(s *site) {
		for name, m := range s.machines {
			for unit := range m.running {
				if unit == "seqsvr-allocsvr" {
					s.stop(m, unit)
				}
			}
			if strings.HasPrefix(name, "store-") {
				s.loseDisk(name)
			}
		}
	},
}

func TestMain(m *testing.M) { harness.Main(m) }

func TestEveryProcedureOfTheRunbookWorksAsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	blocks := readBlocks(t)
	for _, b := range blocks {
		if !slices.Contains(procedures, b.procedure) {
			t.Errorf("%s: the procedure %q is not run by any test", b.where, b.procedure)
		}
	}
	s := newSite(t, "store-1", "store-2", "store-3", "store-4", "store-5", "store-6", "alloc-1", "alloc-2", "alloc-3", "alloc-4", "router-1")
	for _, procedure := range procedures {
		if happen := accidents[procedure]; happen != nil {
			happen(s)
		}
		s.follow(blocks, procedure)
		if t.Failed() {
			return
		}
	}
}
