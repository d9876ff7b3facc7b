package etcdmodel

import (
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
)

// check refuses what etcd does, ErrRejected.
func check(t etcdstore.Txn) error {
	if err := count(t, etcdstore.MaxOps); err != nil {
		return err
	}
	if n := size(t); n > MaxRequest {
		return fmt.Errorf("%w: %d bytes, expected at most %d", ErrRejected, n, MaxRequest)
	}
	for _, ops := range [][]etcdstore.Op{t.Then, t.Else} {
		if err := distinct(ops, map[string]bool{}); err != nil {
			return err
		}
	}
	return nil
}

// count is etcd's: nested transactions have what the outer one leaves.
func count(t etcdstore.Txn, left int) error {
	n := max(len(t.If), len(t.Then), len(t.Else))
	if n > left {
		return fmt.Errorf("%w: too many operations: %d, with room for %d", ErrRejected, n, left)
	}
	for _, ops := range [][]etcdstore.Op{t.Then, t.Else} {
		for _, op := range ops {
			if op.Kind != etcdstore.Nested {
				continue
			}
			if err := count(*op.Txn, left-n); err != nil {
				return err
			}
		}
	}
	return nil
}

// distinct refuses two puts, or a put and a delete, of one key; also on the two sides of a nested
// transaction, where etcd lets them be.
func distinct(ops []etcdstore.Op, written map[string]bool) error {
	for _, op := range ops {
		switch op.Kind {
		case etcdstore.Put, etcdstore.Delete:
			if written[op.Key] {
				return fmt.Errorf("%w: duplicate key %q", ErrRejected, op.Key)
			}
			written[op.Key] = true
		case etcdstore.Nested:
			if err := distinct(op.Txn.Then, written); err != nil {
				return err
			}
			if err := distinct(op.Txn.Else, written); err != nil {
				return err
			}
		}
	}
	return nil
}

// size returns about the size of the message.
func size(t etcdstore.Txn) int {
	n := 0
	for _, c := range t.If {
		n += len(c.Key) + 16
	}
	for _, ops := range [][]etcdstore.Op{t.Then, t.Else} {
		for _, op := range ops {
			n += len(op.Key) + len(op.End) + len(op.Value) + 16
			if op.Kind == etcdstore.Nested {
				n += size(*op.Txn)
			}
		}
	}
	return n
}

// puts says whether either side of the transaction itself puts a key.
func puts(t etcdstore.Txn) bool {
	return slices.ContainsFunc(slices.Concat(t.Then, t.Else), func(op etcdstore.Op) bool { return op.Kind == etcdstore.Put })
}
