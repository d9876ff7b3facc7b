package disk

import (
	"fmt"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

// DB does not exist on a system where bbolt does not, which is what the simulator of
// tests/sim is built for: it brings disks of its own.
type DB struct{}

// Create is ErrDirectory.
func Create(dir string, _ Identity, _ Filling) error {
	return fmt.Errorf("create database in %s: %w: no databases on this system", dir, ErrDirectory)
}

// Open is ErrDirectory.
func Open(dir, _ string, _ *journal.Progress) (*DB, Meta, map[seq.Register]acceptor.State, error) {
	return nil, Meta{}, nil, fmt.Errorf("open database in %s: %w: no databases on this system", dir, ErrDirectory)
}

// Commit is ErrDirectory.
func (d *DB) Commit(Update) (uint64, error) { return 0, ErrDirectory }

// Log is ErrDirectory.
func (d *DB) Log([]exact.Entry) (batches, bytes uint64, err error) { return 0, 0, ErrDirectory }

// Copy is nil.
func (d *DB) Copy(seq.SectionID) *exact.Copy { return nil }

// Free is ErrDirectory.
func (d *DB) Free() (uint64, error) { return 0, ErrDirectory }

// Close does nothing.
func (d *DB) Close() error { return nil }
