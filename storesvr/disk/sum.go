//go:build !wasip1

package disk

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	bolt "go.etcd.io/bbolt"
)

// A disk may lose a write that it has confirmed: the page keeps the content of an earlier
// transaction, with valid checksums. So each transaction leaves a sum over all records and its own
// number. Open compares both with the records.
//
// The sum stands beside the counts of boots and commits. bbolt keeps these three in one page
// always, because a page holds at least what fits into half of it. A build from before there were
// sums changes records without the sum, but counts its boot. Open then recomputes the sum.
var keySum = []byte("checksum")

// sum adds up hashes of records, modulo 2^128, in any order.
type sum struct{ low, high uint64 }

// hashOf is the term of a record.
func hashOf(bucket, key, record []byte) sum {
	h := sha256.New()
	var n [4]byte
	for _, part := range [][]byte{bucket, key} {
		binary.BigEndian.PutUint32(n[:], uint32(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	h.Write(record)
	var out [sha256.Size]byte
	h.Sum(out[:0])
	return sum{low: binary.BigEndian.Uint64(out[:]), high: binary.BigEndian.Uint64(out[8:])}
}

func (s *sum) add(o sum) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, o.low, 0)
	s.high, _ = bits.Add64(s.high, o.high, carry)
}

func (s *sum) remove(o sum) {
	var borrow uint64
	s.low, borrow = bits.Sub64(s.low, o.low, 0)
	s.high, _ = bits.Sub64(s.high, o.high, borrow)
}

// bucket is a bucket whose changes go into the sum.
type bucket struct {
	*bolt.Bucket
	name []byte
	sum  *sum
}

// bucketOf is a bucket of a transaction that changes it; there must be one.
func (d *DB) bucketOf(tx *bolt.Tx, name []byte) bucket {
	return bucket{Bucket: tx.Bucket(name), name: name, sum: &d.sum}
}

// Put replaces a record, in the sum too.
func (b bucket) Put(key, record []byte) error {
	if old := b.Get(key); old != nil {
		b.sum.remove(hashOf(b.name, key, old))
	}
	b.sum.add(hashOf(b.name, key, record))
	return b.Bucket.Put(key, record)
}

// sealed is what a transaction says of itself.
type sealed struct {
	boots, commits, tx uint64
	sum                sum
}

func (s sealed) encode() []byte {
	b := make([]byte, 0, 5*8+checksumSize)
	for _, v := range []uint64{s.boots, s.commits, s.tx, s.sum.high, s.sum.low} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return seal(keySum, b)
}

func decodeSealed(record []byte) (s sealed, err error) {
	b, err := open(keySum, record)
	if err == nil && len(b) != 5*8 {
		err = errLayout
	}
	if err != nil {
		return s, fmt.Errorf("%w: %s: %w", ErrCorrupt, keySum, err)
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return sealed{boots: word(0), commits: word(1), tx: word(2), sum: sum{high: word(3), low: word(4)}}, nil
}

// finish counts the transaction and leaves the sum: the last that a transaction does.
func finish(tx *bolt.Tx, meta bucket, boots uint64) (commits uint64, err error) {
	if commits, err = countCommit(meta); err != nil {
		return 0, err
	}
	s := sealed{boots: boots, commits: commits, tx: uint64(tx.ID()), sum: *meta.sum}
	return commits, meta.Bucket.Put(keySum, s.encode())
}

// sumOf adds up all records.
func sumOf(tx *bolt.Tx) (total sum, err error) {
	err = tx.ForEach(func(name []byte, b *bolt.Bucket) error {
		return b.ForEach(func(key, record []byte) error {
			if string(name) != string(metaBucket) || string(key) != string(keySum) {
				total.add(hashOf(name, key, record))
			}
			return nil
		})
	})
	return total, err
}

// checkSum adds up all records, and compares what the last transaction says of itself with what is
// there: ErrLostWrite.
func checkSum(tx *bolt.Tx) (sum, error) {
	found, err := sumOf(tx)
	b := tx.Bucket(metaBucket)
	record := b.Get(keySum)
	if err != nil || record == nil { // written by a build from before there were sums
		return found, err
	}
	s, err := decodeSealed(record)
	if err != nil {
		return found, err
	}
	boots, err := decodeNumber(keyBootCount, b.Get(keyBootCount))
	commits, failed := decodeNumber(keyCommits, b.Get(keyCommits))
	if err = errors.Join(err, failed); err != nil {
		return found, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	lost := func(what string, args ...any) error {
		return fmt.Errorf("%w: %w: %s", ErrCorrupt, ErrLostWrite, fmt.Sprintf(what, args...))
	}
	switch {
	case s.boots < boots: // such a build was the last to write
		return found, nil
	case s.boots > boots || s.commits != commits:
		return found, lost("boot %d and commit %d, expected %d and %d", boots, commits, s.boots, s.commits)
	case s.tx != uint64(tx.ID()):
		return found, lost("its records are of transaction %d, its root of %d", s.tx, tx.ID())
	case s.sum != found:
		return found, lost("its records do not come to the sum that commit %d left: some are older", s.commits)
	}
	return found, nil
}

// begin leaves the sum of a database that is being made: no boot and no commit is counted.
func (d *DB) begin(tx *bolt.Tx) error {
	return tx.Bucket(metaBucket).Put(keySum, sealed{tx: uint64(tx.ID()), sum: d.sum}.encode())
}
