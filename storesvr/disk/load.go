//go:build !wasip1

package disk

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/internal/version"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// faultIsDamage turns a panic into ErrCorrupt: bbolt panics on pages that make no sense,
// and a file cut short faults where its map ends. The result is to be deferred.
func faultIsDamage(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}
}

// load reads and checks everything.
func (d *DB) load(cluster string) (meta Meta, registers map[seq.Register]acceptor.State, err error) {
	defer faultIsDamage(&err)()
	err = d.bolt.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(metaBucket)
		if b == nil {
			return fmt.Errorf("%w: a bucket is missing", ErrCorrupt)
		}
		if err := loadMeta(b, &meta); err != nil {
			return err
		}
		others, sections := tx.Bucket(registerBucket), tx.Bucket(sectionBucket)
		if others == nil || sections == nil {
			return fmt.Errorf("%w: a bucket is missing", ErrCorrupt)
		}
		if cluster != "" && cluster != meta.Cluster {
			return fmt.Errorf("%w: the database is of %q, expected %q", seq.ErrForeignCluster, meta.Cluster, cluster)
		}
		made, err := madeLater(b)
		if err != nil {
			return err
		}
		registers, err = loadRegisters(others, meta.Mapping, seq.LaterRegisters()[made:])
		if err != nil {
			return err
		}
		return d.sections.load(sections, meta.Mapping.Sections(), registers)
	})
	return meta, registers, err
}

func loadMeta(b *bolt.Bucket, meta *Meta) error {
	damaged := func(key []byte, err error) error {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, key, err)
	}
	if err := decodeJSON(keyIdentity, b.Get(keyIdentity), &meta.Identity); err != nil {
		return damaged(keyIdentity, err)
	}
	if meta.Format != Format && meta.Format != FormatGated {
		return fmt.Errorf("%w: %d, expected %d or %d", ErrFormat, meta.Format, Format, FormatGated)
	}
	if err := meta.Mapping.Validate(); err != nil {
		return damaged(keyIdentity, err)
	}
	for _, part := range []struct {
		key []byte
		to  any
	}{{keyMembers, &meta.Members}, {keyRemembered, &meta.Remembered}, {keyFloors, &meta.Floors}, {keyIncarnation, &meta.Incarnation}} {
		if record := b.Get(part.key); record != nil {
			if err := decodeJSON(part.key, record, part.to); err != nil {
				return damaged(part.key, err)
			}
		}
	}
	if record := b.Get(keyJournal); record != nil || meta.Mapping.HasExact() {
		if err := decodeJSON(keyJournal, record, &meta.Journal); err != nil {
			return damaged(keyJournal, err)
		}
	}
	if record := b.Get(keySeal); record != nil {
		key, err := open(keySeal, record)
		if err != nil {
			return damaged(keySeal, err)
		}
		meta.Key = bytes.Clone(key)
	}
	if record := b.Get(keyDistrusted); record != nil {
		why, err := open(keyDistrusted, record)
		if err != nil {
			return damaged(keyDistrusted, err)
		}
		meta.Distrusted = string(why)
	}
	if record := b.Get(keyRequired); record != nil {
		v, err := decodeNumber(keyRequired, record)
		if err != nil {
			return damaged(keyRequired, err)
		}
		meta.Required = int(v)
	}
	if meta.Required > version.Protocol {
		return fmt.Errorf("%w: the database requires protocol %d, this build speaks %d: start a newer build", seq.ErrProtocol, meta.Required, version.Protocol)
	}
	var bound uint64
	for _, n := range []struct {
		key []byte
		to  *uint64
	}{{keyBootCount, &meta.BootCount}, {keyCommits, &meta.Commits}, {keyLeaseBound, &bound}} {
		v, err := decodeNumber(n.key, b.Get(n.key))
		if err != nil {
			return damaged(n.key, err)
		}
		*n.to = v
	}
	meta.LeaseBound = time.Duration(bound)
	ever, err := longest(b)
	if err != nil {
		return err
	}
	meta.Longest = time.Duration(ever)
	return nil
}

// loadRegisters reads all but the sections. Those still to be made are at zero.
func loadRegisters(b *bolt.Bucket, m seq.Mapping, unmade []seq.Register) (map[seq.Register]acceptor.State, error) {
	registers := make(map[seq.Register]acceptor.State, m.Sections()+len(seq.FixedRegisters()))
	err := b.ForEach(func(key, record []byte) error {
		r := seq.Register(key)
		if err := r.Validate(); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, r, err)
		}
		if _, section := r.Section(); section {
			return fmt.Errorf("%w: %s among the other registers", ErrCorrupt, r)
		}
		st, err := decodeRegister(key, record)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, r, err)
		}
		registers[r] = st
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, r := range seq.FixedRegisters() {
		if _, there := registers[r]; there {
			continue
		}
		if registers[r] = (acceptor.State{}); !slices.Contains(unmade, r) {
			return nil, fmt.Errorf("%w: %s is missing", ErrCorrupt, r)
		}
	}
	return registers, nil
}
