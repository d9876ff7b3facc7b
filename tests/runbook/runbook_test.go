package runbook

import (
	"slices"
	"testing"
)

// procedures are run in this order on one site: each finds what the ones before left.
var procedures = []string{"first", "status", "add", "drain", "upgrade", "quorum"}

func TestEveryProcedureOfTheRunbookWorksAsWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes are left out by -short")
	}
	blocks := readBlocks(t, "operations.md")
	for _, b := range blocks {
		if !slices.Contains(procedures, b.procedure) {
			t.Errorf("line %d: the procedure %q is not run by any test", b.line, b.procedure)
		}
	}
	s := newSite(t, "store-1", "store-2", "store-3", "alloc-1", "alloc-2", "alloc-3", "alloc-4", "router-1")
	for _, procedure := range procedures {
		s.follow(blocks, procedure)
		if t.Failed() {
			return
		}
	}
}
