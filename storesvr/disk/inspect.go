//go:build !wasip1

package disk

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// Inspect reads and checks the database of a store that does not run, and writes
// nothing. Errors are those of Open.
func Inspect(dir string) (Meta, map[seq.Register]acceptor.State, error) {
	b, err := openBolt(filepath.Join(dir, FileName))
	if err != nil {
		return Meta{}, nil, fmt.Errorf("inspect database in %s: %w", dir, err)
	}
	d := &DB{dir: dir, bolt: b}
	meta, registers, err := d.load("")
	if err = errors.Join(err, b.Close()); err != nil {
		return Meta{}, nil, fmt.Errorf("inspect database in %s: %w", dir, err)
	}
	return meta, registers, nil
}

// put puts the registers where they belong.
func (c Filling) put(others *bolt.Bucket, all *sections) error {
	names := make([]seq.Register, 0, len(c.Registers))
	for r := range c.Registers {
		names = append(names, r)
	}
	slices.Sort(names) // so that blocks of sections are put once
	for _, r := range names {
		st := c.Registers[r]
		if id, section := r.Section(); section {
			if err := all.set(id, st); err != nil {
				return err
			}
			continue
		}
		if err := others.Put([]byte(r), encodeRegister([]byte(r), st)); err != nil {
			return fmt.Errorf("put %s: %w", r, err)
		}
	}
	return nil
}
