//go:build !wasip1

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

// FileName is the database's name in the data directory.
const FileName = "store.db"

// Create makes the data directory if necessary, and in it the database of a new store. All section
// registers and fixed registers are zero, except the registers of Filling. Errors: ErrExists,
// ErrDirectory.
//
// A crash leaves no database, at most files named store.db.init-* and journal-* that nothing reads.
func Create(dir string, id Identity, with Filling) error {
	if err := create(dir, id, with); err != nil {
		return fmt.Errorf("create database in %s: %w", dir, err)
	}
	return nil
}

func create(dir string, id Identity, with Filling) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); err == nil {
		return ErrExists
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	if id.Mapping.HasExact() { // before the database: one that is there has its journal
		with.journal = &Journal{ID: newJournalID(), Batches: 1}
		cfg := (&beside{mapping: id.Mapping}).config(dir, with.journal.ID)
		if err := journal.Create(cfg, with.Copies); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, journal.Remove(cfg))
			}
		}()
	}
	temp, err := os.CreateTemp(dir, FileName+".init-*")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return err
	}
	if err := fill(temp.Name(), id, with); err != nil {
		return err
	}
	if err := syncPath(temp.Name()); err != nil {
		return err
	}
	if err := publish(temp.Name(), path); err != nil {
		return err
	}
	if err := syncPath(dir); err != nil {
		return err
	}
	return syncPath(filepath.Dir(filepath.Clean(dir)))
}

// publish gives the file its final name without ever replacing another: a hard link
// fails if the name is taken. File systems without links get a check and a rename.
func publish(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		if err != nil {
			return ErrExists
		}
		return os.Remove(temp)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ErrExists
	}
	return os.Rename(temp, path)
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func fill(path string, id Identity, with Filling) error {
	db, err := bolt.Open(path, 0o600, boltOptions())
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{metaBucket, registerBucket, sectionBucket} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		made := &DB{bolt: db}
		meta, registers, sections := made.bucketOf(tx, metaBucket), made.bucketOf(tx, registerBucket), made.bucketOf(tx, sectionBucket)
		id.Format = formatOf(with.Required, with.Floors.Floors)
		if err := putJSON(meta, keyIdentity, id); err != nil {
			return err
		}
		for _, key := range [][]byte{keyBootCount, keyCommits, keyLeaseBound} {
			if err := meta.Put(key, encodeNumber(key, 0)); err != nil {
				return err
			}
		}
		if err := meta.Put(keySeal, seal(keySeal, NewKey())); err != nil {
			return err
		}
		if err := putLater(meta); err != nil {
			return err
		}
		all := newSections(id.Mapping.Sections())
		for _, r := range seq.FixedRegisters() {
			if err := putRegister(registers, all, r, acceptor.State{}); err != nil {
				return err
			}
		}
		for _, r := range slices.Sorted(maps.Keys(with.Registers)) { // so that blocks of sections are put once
			if err := putRegister(registers, all, r, with.Registers[r]); err != nil {
				return err
			}
		}
		if err := all.put(sections); err != nil {
			return err
		}
		update := Update{LeaseBound: with.LeaseBound, Required: with.Required}
		if with.Floors != (Floors{}) {
			update.Floors = &with.Floors
		}
		if !with.Origin.IsZero() {
			update.Incarnation = &seq.Incarnation{Cluster: with.Origin, Era: id.Era}
		}
		if with.journal != nil {
			if err := putJSON(meta, keyJournal, with.journal); err != nil {
				return err
			}
		}
		if err := putMeta(meta, update); err != nil {
			return err
		}
		return made.begin(tx)
	})
	return errors.Join(err, db.Close())
}
