//go:build !wasip1

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

// lockTimeout is the time for which Open waits for another process to release the database.
const lockTimeout = time.Second

var (
	metaBucket     = []byte("meta")
	registerBucket = []byte("registers")

	keyIdentity    = []byte("identity")
	keyMembers     = []byte("members")
	keyFloors      = []byte("floors")
	keyIncarnation = []byte("incarnation")
	keyBootCount   = []byte("boot_count")
	keyCommits     = []byte("commits")
	keyLeaseBound  = []byte("lease_bound")
	keyLongest     = []byte("longest_lease")
	keyDistrusted  = []byte("distrusted")
	keySeal        = []byte("seal_key")
	keyRemembered  = []byte("remembered")
	keyJournal     = []byte("journal")
	keyLater       = []byte("later_registers") // how many of seq.LaterRegisters were made: one that is gone is damage
	keyRequired    = []byte("required_protocol")

	metaKeys = [][]byte{keyIdentity, keyMembers, keyFloors, keyIncarnation, keyBootCount, keyCommits, keyLeaseBound, keyLongest, keyDistrusted, keySeal,
		keyRemembered, keyJournal, keyLater, keyRequired, keySum}
)

// DB is an open database, and the journal beside it if it has one. Commit and Log are for one
// goroutine at a time.
type DB struct {
	dir      string
	bolt     *bolt.DB
	sections sections
	sum      sum    // of all records, the sum itself left out
	boots    uint64 // this one included
	beside
}

func boltOptions() *bolt.Options {
	return &bolt.Options{
		Timeout:      lockTimeout,
		FreelistType: bolt.FreelistMapType,
		// Without O_CREATE: only Create makes files.
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			return os.OpenFile(name, flag&^os.O_CREATE, mode)
		},
	}
}

// Open opens the database, checks every record, and counts the boot with a commit of
// its own. cluster, if not empty, is the cluster it must belong to. Errors, each under
// its name: ErrNoDatabase, ErrLocked, ErrCorrupt, ErrFormat, ErrDirectory,
// seq.ErrForeignCluster, and of the journal journal.ErrMissing and journal.ErrDamaged. Nothing is
// written unless all checks passed. loaded, if not nil, says how far the journal is read.
func Open(dir, cluster string, loaded *journal.Progress) (*DB, Meta, map[seq.Register]acceptor.State, error) {
	db, meta, registers, err := openDir(dir, cluster, loaded)
	if err != nil {
		return nil, Meta{}, nil, fmt.Errorf("open database in %s: %w", dir, err)
	}
	return db, meta, registers, nil
}

func openDir(dir, cluster string, loaded *journal.Progress) (*DB, Meta, map[seq.Register]acceptor.State, error) {
	b, err := openBolt(filepath.Join(dir, FileName))
	if err != nil {
		return nil, Meta{}, nil, err
	}
	d := &DB{dir: dir, bolt: b}
	d.beside.loaded = loaded
	meta, registers, err := d.load(cluster)
	if err == nil {
		err = d.beside.open(dir, &meta, registers)
	}
	if err == nil {
		if len(meta.Key) == 0 { // of a database from before there were seals
			meta.Key = NewKey()
		}
		meta.BootCount++
		meta.Commits, err = d.boot(meta)
	}
	if err != nil {
		return nil, Meta{}, nil, errors.Join(err, d.beside.close(), b.Close())
	}
	return d, meta, registers, nil
}

func openBolt(path string) (b *bolt.DB, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoDatabase
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrDirectory, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a file", ErrCorrupt, FileName)
	case info.Size() == 0: // bbolt would start a new database in it
		return nil, fmt.Errorf("%w: %s is empty", ErrCorrupt, FileName)
	}
	defer faultIsDamage(&err)()
	b, err = bolt.Open(path, 0o600, boltOptions())
	switch {
	case err == nil:
		root, err := checkMetaPages(path) // under the lock: nobody is writing them
		if err == nil {
			err = checkPages(path, root)
		}
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		return b, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, ErrLocked
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return nil, fmt.Errorf("%w: %w", ErrDirectory, err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNoDatabase
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) { // the system's trouble, not the file's
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// boot is the first commit of a process; bbolt panics in it if the list of free pages
// makes no sense.
func (d *DB) boot(meta Meta) (commits uint64, err error) {
	defer faultIsDamage(&err)()
	err = d.bolt.Update(func(tx *bolt.Tx) error {
		b := d.bucketOf(tx, metaBucket)
		if err := b.Put(keyBootCount, encodeNumber(keyBootCount, meta.BootCount)); err != nil {
			return err
		}
		if err := b.Put(keySeal, seal(keySeal, bytes.Clone(meta.Key))); err != nil {
			return err
		}
		made, err := madeLater(b.Bucket)
		if err != nil {
			return err
		}
		if later := seq.LaterRegisters(); made < len(later) { // a database from before them
			for _, r := range later[made:] {
				if err := putRegister(d.bucketOf(tx, registerBucket), &d.sections, r, acceptor.State{}); err != nil {
					return err
				}
			}
			if err := putLater(b); err != nil {
				return err
			}
		}
		d.boots = meta.BootCount
		commits, err = finish(tx, b, d.boots)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count the boot: %w", err)
	}
	return commits, nil
}

// madeLater returns the number of later registers that exist.
func madeLater(b *bolt.Bucket) (int, error) {
	record := b.Get(keyLater)
	if record == nil {
		return 0, nil
	}
	n, err := decodeNumber(keyLater, record)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrCorrupt, keyLater, err)
	}
	return int(min(n, uint64(len(seq.LaterRegisters())))), nil
}

// putLater notes that all later registers are there.
func putLater(b bucket) error {
	return b.Put(keyLater, encodeNumber(keyLater, uint64(len(seq.LaterRegisters()))))
}

func countCommit(b bucket) (uint64, error) {
	n, err := decodeNumber(keyCommits, b.Get(keyCommits))
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrCorrupt, keyCommits, err)
	}
	n++
	return n, b.Put(keyCommits, encodeNumber(keyCommits, n))
}

// Commit makes the update durable in one transaction and returns how many there were
// over the life of the disk. After an error the outcome is unknown: exit the process.
func (d *DB) Commit(u Update) (commits uint64, err error) {
	if err := d.beside.extend(d.dir, u.Mapping); err != nil {
		return 0, fmt.Errorf("commit a mapping: %w", err)
	}
	err = d.bolt.Update(func(tx *bolt.Tx) error {
		if err := d.extend(tx, u.Mapping); err != nil {
			return err
		}
		if err := d.putRegisters(tx, u.Changes); err != nil {
			return err
		}
		meta := d.bucketOf(tx, metaBucket)
		if err := putMeta(meta, u); err != nil {
			return err
		}
		if err := d.beside.mark(meta); err != nil {
			return err
		}
		commits, err = finish(tx, meta, d.boots)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("commit %d registers: %w", len(u.Changes), err)
	}
	return commits, nil
}

// extend puts the mapping, if there is one, into the identity, and makes room for its sections.
func (d *DB) extend(tx *bolt.Tx, m *seq.Mapping) error {
	if m == nil {
		return nil
	}
	b := d.bucketOf(tx, metaBucket)
	var id Identity
	if err := decodeJSON(keyIdentity, b.Get(keyIdentity), &id); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, keyIdentity, err)
	}
	id.Mapping = *m
	d.sections.grow(m.Sections())
	return putJSON(b, keyIdentity, id)
}

func (d *DB) putRegisters(tx *bolt.Tx, changes []acceptor.Change) error {
	others := d.bucketOf(tx, registerBucket)
	for _, c := range changes {
		if err := putRegister(others, &d.sections, c.Register, c.State); err != nil {
			return err
		}
	}
	return d.sections.put(d.bucketOf(tx, sectionBucket))
}

// putRegister changes a register where it belongs: sections are on disk after sections.put.
func putRegister(others bucket, all *sections, r seq.Register, st acceptor.State) error {
	if id, ok := r.Section(); ok {
		return all.set(id, st)
	}
	if err := others.Put([]byte(r), encodeRegister([]byte(r), st)); err != nil {
		return fmt.Errorf("put %s: %w", r, err)
	}
	return nil
}

// putBound writes the longest lease since nothing was leased, and keeps the longest ever.
func putBound(b bucket, bound time.Duration) error {
	ever, err := longest(b.Bucket)
	if err != nil {
		return err
	}
	if err := b.Put(keyLongest, encodeNumber(keyLongest, max(ever, uint64(bound)))); err != nil {
		return err
	}
	return b.Put(keyLeaseBound, encodeNumber(keyLeaseBound, uint64(bound)))
}

// longest is the longest lease ever granted, in nanoseconds. Databases of before have
// lease_bound alone.
func longest(b *bolt.Bucket) (uint64, error) {
	key := keyLongest
	record := b.Get(key)
	if record == nil {
		key = keyLeaseBound
		record = b.Get(key)
	}
	v, err := decodeNumber(key, record)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrCorrupt, key, err)
	}
	return v, nil
}

func putMeta(b bucket, u Update) error {
	bound := u.LeaseBound
	if u.NoLeases {
		bound = 0
	}
	if bound > 0 || u.NoLeases {
		if err := putBound(b, bound); err != nil {
			return err
		}
	}
	if u.Members != nil {
		if err := putJSON(b, keyMembers, u.Members); err != nil {
			return err
		}
	}
	if u.Incarnation != nil {
		if err := putJSON(b, keyIncarnation, u.Incarnation); err != nil {
			return err
		}
	}
	if u.Floors != nil {
		if err := putJSON(b, keyFloors, u.Floors); err != nil {
			return err
		}
	}
	if u.Remembered != nil {
		if err := putJSON(b, keyRemembered, u.Remembered); err != nil {
			return err
		}
	}
	if u.Required > 0 {
		if err := putRequired(b, u.Required); err != nil {
			return err
		}
	}
	if u.Distrusted != "" {
		return b.Put(keyDistrusted, seal(keyDistrusted, []byte(u.Distrusted)))
	}
	return nil
}

// putRequired writes the protocol that sessions must speak, and the format that goes with it.
func putRequired(b bucket, required int) error {
	if err := b.Put(keyRequired, encodeNumber(keyRequired, uint64(required))); err != nil {
		return err
	}
	var id Identity
	if err := decodeJSON(keyIdentity, b.Get(keyIdentity), &id); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, keyIdentity, err)
	}
	format := formatOf(required, quorum.Floors{})
	if id.Format >= format {
		return nil
	}
	id.Format = format
	return putJSON(b, keyIdentity, id)
}

func putJSON(b bucket, key []byte, v any) error {
	record, err := encodeJSON(key, v)
	if err != nil {
		return err
	}
	return b.Put(key, record)
}

// Free returns the bytes that the file system has left for this process, without the expected
// growth of the journal.
func (d *DB) Free() (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", d.dir, err)
	}
	free := uint64(st.Bavail) * uint64(st.Bsize)
	return free - min(free, d.grows()), nil
}

// Close lets go of the database. It waits for a Commit in flight.
func (d *DB) Close() error {
	if err := errors.Join(d.beside.close(), d.bolt.Close()); err != nil {
		return fmt.Errorf("close database in %s: %w", d.dir, err)
	}
	return nil
}
