// Package etcdmodel is etcd in memory as internal/etcd/etcdstore uses it: a linearizable store of
// keys with revisions and transactions, and clients whose messages are delayed, doubled, lost
// or come late. It refuses what etcd refuses (too many operations, a key put twice, too large a
// request), so that a test over it does not pass on what a real etcd would not take.
//
// What belongs here: what etcd does, by its source (apply_txn.go, v3rpc/key.go, quota.go). What
// does not: the keys of seqsvr.
package etcdmodel

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/seq"
)

// MaxRequest is the largest request in bytes: etcd's --max-request-bytes as shipped.
const MaxRequest = 3 << 19

// Errors that clients see, beside etcdstore.ErrNoSpace.
var (
	// ErrRejected: a transaction that etcd refuses before it is proposed. It never happens.
	ErrRejected = errors.New("etcd refuses the transaction")
	// ErrLost: no answer. The transaction may have happened, or happens later.
	ErrLost = errors.New("no answer of etcd")
)

type entry struct {
	value             []byte
	created, modified int64
}

// Etcd is one cluster of etcd. It is safe for concurrent use.
type Etcd struct {
	mu      sync.Mutex // guards all below
	cluster uint64
	rev     int64
	keys    map[string]entry
	full    bool
	watch   func(key string, old, now []byte) // nil value: no key
}

// New makes an empty one, at revision 1.
func New(cluster uint64) *Etcd {
	return &Etcd{cluster: cluster, rev: 1, keys: map[string]entry{}}
}

// SetFull raises the alarm NOSPACE, or disarms it: transactions with a put are refused. Reads and
// deletes go on, and so does what nested transactions put: etcd's quota does not count it.
func (e *Etcd) SetFull(full bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.full = full
}

// OnChange has f told of each key that a transaction changed, under the lock. For checks.
func (e *Etcd) OnChange(f func(key string, old, now []byte)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watch = f
}

// Snapshot is the state as etcdctl snapshot save has it.
type Snapshot struct {
	rev  int64
	keys map[string]entry
}

// Save takes a snapshot.
func (e *Etcd) Save() Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	return Snapshot{e.rev, maps.Clone(e.keys)}
}

// Restore puts a snapshot back, under the cluster id that it is given.
func (e *Etcd) Restore(s Snapshot, cluster uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rev, e.keys, e.cluster = s.rev, maps.Clone(s.keys), cluster
}

// Keys are all keys in order.
func (e *Etcd) Keys() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.keys))
}

// Revision returns the revision of the newest change.
func (e *Etcd) Revision() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rev
}

// Apply runs a transaction.
func (e *Etcd) Apply(t etcdstore.Txn) (etcdstore.Answer, error) {
	e.mu.Lock()
	full := e.full && puts(t)
	e.mu.Unlock()
	if full {
		return etcdstore.Answer{}, fmt.Errorf("%w: %w", seq.ErrStoreFull, etcdstore.ErrNoSpace)
	}
	return e.apply(t)
}

// Despite runs a transaction and refuses it all the same: the alarm may come between.
func (e *Etcd) Despite(t etcdstore.Txn) error {
	if _, err := e.apply(t); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", seq.ErrStoreFull, etcdstore.ErrNoSpace)
}

// Full says whether the alarm is raised.
func (e *Etcd) Full() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.full
}

// apply is Apply whether or not etcd is full.
func (e *Etcd) apply(t etcdstore.Txn) (etcdstore.Answer, error) {
	if err := check(t); err != nil {
		return etcdstore.Answer{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &applying{e: e, rev: e.rev + 1}
	out := a.run(t, a.decide(t))
	if a.wrote {
		e.rev++
	}
	out.Cluster, out.Revision = e.cluster, e.rev
	return out, nil
}

// decision is which way a transaction and its nested ones go, decided before any of it is done.
type decision struct {
	then   bool
	nested map[int]decision // by the index of the operation
}

type applying struct {
	e     *Etcd
	rev   int64
	wrote bool
}

func (a *applying) decide(t etcdstore.Txn) decision {
	d := decision{then: true, nested: map[int]decision{}}
	for _, c := range t.If {
		e := a.e.keys[c.Key]
		is := e.modified
		if c.Created {
			is = e.created
		}
		if (is == c.Rev) == c.Not {
			d.then = false
		}
	}
	for i, op := range side(t, d.then) {
		if op.Kind == etcdstore.Nested {
			d.nested[i] = a.decide(*op.Txn)
		}
	}
	return d
}

func side(t etcdstore.Txn, then bool) []etcdstore.Op {
	if then {
		return t.Then
	}
	return t.Else
}

func (a *applying) run(t etcdstore.Txn, d decision) etcdstore.Answer {
	out := etcdstore.Answer{Then: d.then}
	for i, op := range side(t, d.then) {
		var r etcdstore.Result
		switch op.Kind {
		case etcdstore.Nested:
			nested := a.run(*op.Txn, d.nested[i])
			r.Nested = &nested
		case etcdstore.Put:
			a.put(op.Key, op.Value)
		case etcdstore.Delete:
			a.remove(op.Key)
		default:
			r.KVs = a.get(op)
		}
		out.Results = append(out.Results, r)
	}
	return out
}

func (a *applying) put(key string, value []byte) {
	old, had := a.e.keys[key]
	now := entry{value: slices.Clone(value), created: old.created, modified: a.rev}
	if !had {
		now.created = a.rev
	}
	a.e.keys[key], a.wrote = now, true
	a.changed(key, old.value, now.value)
}

func (a *applying) remove(key string) {
	old, had := a.e.keys[key]
	if !had {
		return
	}
	delete(a.e.keys, key)
	a.wrote = true
	a.changed(key, old.value, nil)
}

func (a *applying) changed(key string, old, now []byte) {
	if a.e.watch != nil {
		a.e.watch(key, old, now)
	}
}

func (a *applying) get(op etcdstore.Op) []etcdstore.KeyValue {
	names := []string{op.Key}
	if op.End != "" {
		names = names[:0]
		for key := range a.e.keys {
			if key >= op.Key && key < op.End {
				names = append(names, key)
			}
		}
		slices.Sort(names)
	}
	var out []etcdstore.KeyValue
	for _, key := range names {
		if op.Limit > 0 && int64(len(out)) == op.Limit {
			break
		}
		if e, ok := a.e.keys[key]; ok {
			out = append(out, etcdstore.KeyValue{Key: key, Value: slices.Clone(e.value), Created: e.created, Modified: e.modified})
		}
	}
	return out
}
