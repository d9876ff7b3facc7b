package etcdstore

import (
	"context"
	"sync"
)

// KV is what is needed of etcd. It is safe for concurrent use.
type KV interface {
	// Do runs one transaction, linearizable also where it only reads. After an error
	// the outcome is unknown: it may have happened, or may happen later, more than once.
	// An error wraps ErrNoSpace where etcd said so.
	Do(ctx context.Context, t Txn) (Answer, error)
}

// MaxOps limits the compares, and the operations, of a transaction together with its deepest nested
// transaction. It is the default of etcd's --max-txn-ops.
const MaxOps = 128

// Txn does Then if all of If hold, and Else otherwise. The compares of nested ones are
// decided on the state before the whole; gets see what the operations before them wrote. No
// key is put twice.
type Txn struct {
	If         []Compare
	Then, Else []Op
}

// Compare holds if the key's create or mod revision is Rev, or, with Not, if it is not. A key
// that there is not has 0 for both.
type Compare struct {
	Key     string
	Created bool // else modified
	Not     bool
	Rev     int64
}

// Op is one of: a nested transaction, a put, a delete, a get of a key or of [Key, End).
type Op struct {
	Kind  OpKind
	Key   string
	End   string // of a get: it returns all keys from Key to before End; if empty, Key alone
	Limit int64  // of a get: the most keys; zero means no limit
	Value []byte
	Txn   *Txn
}

// OpKind says what an Op does.
type OpKind uint8

// The kinds of Op.
const (
	Get OpKind = iota
	Put
	Delete
	Nested
)

// Answer is etcd's answer to a transaction. Results has the results of Then or of Else, in order.
type Answer struct {
	Cluster  uint64 // etcd's own id of itself; 0 in nested ones
	Revision int64  // of the whole store after the transaction; 0 in nested ones
	Then     bool
	Results  []Result
}

// Result is what an Op gave.
type Result struct {
	KVs    []KeyValue // of a get, by key
	Nested *Answer
}

// KeyValue is a key as it was read.
type KeyValue struct {
	Key               string
	Value             []byte
	Created, Modified int64
}

func get(key string) Op               { return Op{Kind: Get, Key: key} }
func put(key string, value []byte) Op { return Op{Kind: Put, Key: key, Value: value} }
func remove(key string) Op            { return Op{Kind: Delete, Key: key} }

// all gets the keys that begin with prefix.
func all(prefix string) Op { return Op{Kind: Get, Key: prefix, End: after(prefix)} }

// after is the first key behind all that begin with prefix, which does not end in 0xff.
func after(prefix string) string {
	return prefix[:len(prefix)-1] + string([]byte{prefix[len(prefix)-1] + 1})
}

func modified(key string, rev int64) Compare { return Compare{Key: key, Rev: rev} }
func created(key string, rev int64) Compare {
	return Compare{Key: key, Created: true, Rev: rev}
}
func absent(key string) Compare { return created(key, 0) }

// revisionIn returns the mod revision of the key that a get found, or zero if it found none.
func revisionIn(r Result) int64 {
	if len(r.KVs) == 0 {
		return 0
	}
	return r.KVs[0].Modified
}

// A transaction takes maxItems registers at most, with at most two compares and two operations
// each, and maxBytes: etcd takes 1.5 MiB as shipped (--max-request-bytes).
const (
	maxItems = MaxOps - 2
	maxBytes = 1_400_000
)

// maxParallel bounds the transactions of one request that are under way at a time.
const maxParallel = 16

// inParallel calls f for each of n and returns the first error.
func inParallel(n int, f func(i int) error) error {
	if n == 1 {
		return f(0)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	errs := make([]error, n)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = f(i)
			<-slots
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
