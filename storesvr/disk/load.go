//go:build !wasip1

package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/internal/base/version"
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

// load reads and checks everything. A record with a right checksum that this build cannot read is of a
// newer build, unless it stands where a write was lost.
func (d *DB) load(cluster string) (meta Meta, registers map[seq.Register]acceptor.State, err error) {
	defer faultIsDamage(&err)()
	err = d.bolt.View(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{metaBucket, registerBucket, sectionBucket} {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("%w: a bucket is missing", ErrCorrupt)
			}
		}
		if err := checkFormat(tx.Bucket(metaBucket)); err != nil {
			return err
		}
		registers, err = d.loadRecords(tx, &meta, cluster)
		if err != nil && !errors.Is(err, ErrNewer) {
			return err
		}
		var lost error
		if d.sum, lost = checkSum(tx); lost != nil {
			return lost
		}
		return err
	})
	return meta, registers, err
}

func (d *DB) loadRecords(tx *bolt.Tx, meta *Meta, cluster string) (map[seq.Register]acceptor.State, error) {
	if err := checkNames(tx); err != nil {
		return nil, err
	}
	b := tx.Bucket(metaBucket)
	if err := loadMeta(b, meta); err != nil {
		return nil, err
	}
	if cluster != "" && cluster != meta.Cluster {
		return nil, fmt.Errorf("%w: the database is of %q, expected %q", seq.ErrForeignCluster, meta.Cluster, cluster)
	}
	made, err := madeLater(b)
	if err != nil {
		return nil, err
	}
	registers, err := loadRegisters(tx.Bucket(registerBucket), meta.Mapping, seq.LaterRegisters()[made:])
	if err != nil {
		return nil, err
	}
	return registers, d.sections.load(tx.Bucket(sectionBucket), meta.Mapping.Sections(), registers)
}

// checkNames is ErrNewer for a bucket, or a record beside the registers, that this build does not know.
func checkNames(tx *bolt.Tx) error {
	known := func(all [][]byte, name []byte) bool {
		return slices.ContainsFunc(all, func(k []byte) bool { return bytes.Equal(k, name) })
	}
	err := tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
		if !known([][]byte{metaBucket, registerBucket, sectionBucket}, name) {
			return newer("bucket %q", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(metaBucket).ForEach(func(key, record []byte) error {
		if known(metaKeys, key) {
			return nil
		}
		if _, err := open(key, record); err != nil { // its name is what is damaged
			return fmt.Errorf("%w: %q: %w", ErrCorrupt, key, err)
		}
		return newer("record %q", key)
	})
}

// checkFormat is ErrNewer or seq.ErrProtocol for a database that a newer build has made its own: before
// anything of it is taken for damage.
func checkFormat(b *bolt.Bucket) error {
	var id struct {
		Format int `json:"format"`
	}
	if value, err := open(keyIdentity, b.Get(keyIdentity)); err == nil {
		if json.Unmarshal(value, &id) == nil && id.Format > FormatGated {
			return fmt.Errorf("%w: %w: %d, expected %d or %d", ErrNewer, ErrFormat, id.Format, Format, FormatGated)
		}
	}
	record := b.Get(keyRequired)
	if record == nil {
		return nil
	}
	required, err := decodeNumber(keyRequired, record)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, keyRequired, err)
	case required > version.Protocol:
		return fmt.Errorf("%w: the database requires protocol %d, this build speaks %d: start a newer build", seq.ErrProtocol, required, version.Protocol)
	}
	return nil
}

func loadMeta(b *bolt.Bucket, meta *Meta) error {
	damaged := func(key []byte, err error) error {
		if errors.Is(err, ErrNewer) {
			return err
		}
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
		st, err := decodeRegister(key, record)
		switch {
		case err == nil && !r.Kind().Known():
			return newer("kind of register %q", key)
		case errors.Is(err, ErrNewer):
			return err
		}
		if err := errors.Join(err, r.Validate()); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, r, err)
		}
		if _, section := r.Section(); section {
			return fmt.Errorf("%w: %s among the other registers", ErrCorrupt, r)
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
