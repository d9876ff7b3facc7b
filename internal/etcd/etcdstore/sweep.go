package etcdstore

import (
	"context"
	"errors"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// sweep removes the leftovers of past sessions: the marks of ended sessions, and the names whose latest
// session is gone.
//
// A mark keeps its session from being made by a message that was under way when the session ended. A name
// shows two processes that make sessions of it at the same time each other. No clock bounds how long a
// message may be under way. But each message that makes a session compares the revision of the key swept.
// So sweep writes that key first, and an earlier message makes no session any more, whenever it comes. Only
// then it removes the marks and names that were there when the key was written. It keeps a mark or name
// that was written again since.
//
// Without the mark a process may not learn of its end, if a parent or an operator ended its session and the
// process goes on. It makes the session again, under a new life for which no register is kept, and receives
// a reset, as after a silence.
func (b *beats) sweep(ctx context.Context) error {
	keys := b.cluster.keys
	list := []Op{all(keys.marks()), all(keys.names()), all(keys.sessions())}
	a, err := b.cluster.do(ctx, Txn{Then: list})
	if err != nil {
		return err
	}
	if old, err := b.leftOver(a.Results); err != nil || len(old) == 0 {
		return err
	}
	a, err = b.cluster.do(ctx, Txn{If: []Compare{b.cluster.unmoved()}, Else: []Op{get(keys.meta())},
		Then: append([]Op{put(keys.swept(), seal(keys.swept(), nil))}, list...)})
	if err != nil {
		return err
	}
	if !a.Then {
		return errors.Join(b.cluster.remeta(ctx, a), errRace)
	}
	old, err := b.leftOver(a.Results[1:])
	if err != nil {
		return err
	}
	for part := range slices.Chunk(old, maxItems) {
		t := Txn{If: []Compare{b.cluster.unmoved()}}
		for _, kv := range part {
			t.Then = append(t.Then, Op{Kind: Nested, Txn: &Txn{If: []Compare{modified(kv.Key, kv.Modified)}, Then: []Op{remove(kv.Key)}}})
		}
		if err := mustThen(b.cluster.do(ctx, t)); err != nil {
			return err
		}
	}
	return nil
}

// leftOver are the keys that a sweep removes, of all marks, names and sessions.
func (b *beats) leftOver(lists []Result) ([]KeyValue, error) {
	lives := make(map[seq.Session]bool, len(lists[2].KVs))
	for _, kv := range lists[2].KVs {
		id, err := b.cluster.keys.sessionOf(kv.Key)
		if err != nil {
			return nil, err
		}
		lives[id] = true
	}
	old := slices.Clone(lists[0].KVs)
	for _, kv := range lists[1].KVs {
		var of former
		if err := decode(kv, &of); err != nil {
			return nil, err
		}
		if !lives[of.Session] {
			old = append(old, kv)
		}
	}
	return old, nil
}
