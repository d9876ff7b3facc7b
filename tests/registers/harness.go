package registers

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// Harness is a new cluster of an engine, with every register of its mapping at zero
// and no lease ever granted.
type Harness struct {
	Ref      quorum.Ref
	R, W     int         // N is the number of Replicas
	Mapping  seq.Mapping // at least 4 sections, the first ones of no exact space
	Replicas []Replica
	MaxLease time.Duration // longest lease that may be asked for, at least a second

	// PromiseFirst is true for an engine that takes a step only under exactly the promised epoch. A single
	// store may do so, because no step there can come before its promise. Rows about steps without a
	// promise are then skipped, and all others prepare before they step.
	PromiseFirst bool

	// Advance moves the clock of all replicas forward. Nil where the clock of the
	// engine cannot be moved: rows about the end of a lease are then skipped.
	Advance func(d time.Duration)
}

// Replica is one store of the cluster.
type Replica struct {
	Name  string
	UUID  string
	Store quorum.Store // stays the same over Restart

	// Kill ends the replica like kill -9, as far as the engine can: calls fail until
	// Restart, which starts it again on the same disk and returns when it answers. Nil
	// where the engine cannot: rows about crashes are then skipped.
	Kill    func()
	Restart func()
}

// row is one promise. Its name is a sentence about it.
type row struct {
	name  string
	check func(*bench)
}

// Run checks the engine, each row on a cluster of its own from start, which registers
// what ends the cluster with t.Cleanup.
func Run(t *testing.T, start func(t *testing.T) Harness) {
	for _, rows := range [][]row{ballotRows, documentRows, leaseRows, releaseRows, identityRows, quorumRows, exactRows} {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				h := start(t)
				for i := range h.Replicas {
					h.Replicas[i].Store = sessiontest.Signed(h.Replicas[i].Store)
				}
				r.check(&bench{T: t, Harness: h, store: h.Replicas[0].Store})
			})
		}
	}
}

// needRestart skips the row if the engine cannot be killed.
func (b *bench) needRestart() {
	b.Helper()
	for _, r := range b.Replicas {
		if r.Kill == nil || r.Restart == nil {
			b.Skip("the replicas of this engine cannot be killed and started again")
		}
	}
}

// needBareSteps skips the row if the engine takes no step without a promise.
func (b *bench) needBareSteps() {
	b.Helper()
	if b.PromiseFirst {
		b.Skip("this engine takes a step only under the promised epoch")
	}
}

// needClock skips the row if the engine's clock cannot be moved.
func (b *bench) needClock() {
	b.Helper()
	if b.Advance == nil {
		b.Skip("the clock of this engine cannot be moved")
	}
}

// registers is the cluster as allocsvr sees it.
func (b *bench) registers() (ownership.Registers, arbiter.Documents) {
	b.Helper()
	var stores []quorum.NamedStore
	for _, r := range b.Replicas {
		stores = append(stores, quorum.NamedStore{Name: r.Name, UUID: r.UUID, Store: r.Store})
	}
	// One round waits as long as a test does: a slow machine is no lost quorum.
	cfg := quorum.Config{Ref: b.Ref, N: len(stores), R: b.R, W: b.W, Timeout: patience}
	group, err := quorum.NewGroup(cfg, stores)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(group.Close)
	return group, group
}
