package stream

import (
	"fmt"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Keys are the keys of one call: UIDs, or string keys.
type Keys struct {
	Places []seq.UID // what decides the sections: the UIDs themselves, or the public hashes of Names
	Names  []string  // nil for UIDs
}

// KeysOf are string keys.
func KeysOf(names []string) Keys {
	k := Keys{make([]seq.UID, len(names)), names}
	for i, name := range names {
		k.Places[i] = seq.HashKey(name)
	}
	return k
}

// Group is what the keys of one call have in common.
type Group struct {
	Space string
	Named bool // they are string keys
}

// GroupOf returns the group of a key.
func GroupOf(key seq.Key) Group {
	_, named := key.Name()
	return Group{key.Space, named}
}

// KeysFrom returns n keys of one group.
func KeysFrom(n int, key func(i int) seq.Key) Keys {
	names, uids, named := make([]string, n), make([]seq.UID, n), false
	for i := range n {
		names[i], named = key(i).Name()
		uids[i] = key(i).UID
	}
	if named {
		return KeysOf(names)
	}
	return Keys{Places: uids}
}

// Alone is a call for one key.
func Alone(key seq.Key) Keys {
	if name, ok := key.Name(); ok {
		return KeysOf([]string{name})
	}
	return Keys{Places: []seq.UID{key.UID}}
}

// At is one of them.
func (k Keys) At(space string, i int) seq.Key {
	if k.Names != nil {
		return seq.StringKey(space, k.Names[i])
	}
	return seq.Key{Space: space, UID: k.Places[i]}
}

// Check returns seq.ErrBadArgument for string keys that cannot be.
func (k Keys) Check() error {
	for i, name := range k.Names {
		if err := seq.CheckKey("key", name); err != nil {
			return fmt.Errorf("index %d: %w", i, err)
		}
	}
	return nil
}

// Batch is the keys at idx as they travel.
func (k Keys) Batch(space *seq.Space, idx []int) *pb.Batch {
	b := &pb.Batch{Space: space.Name}
	if k.Names != nil {
		b.Keys = make([]string, len(idx))
		for j, i := range idx {
			b.Keys[j] = k.Names[i]
		}
		return b
	}
	b.Uids = make([]uint64, len(idx))
	for j, i := range idx {
		b.Uids[j] = uint64(k.Places[i])
	}
	return b
}

// Takes are what a call takes of many keys of one space.
type Takes struct {
	Keys
	Counts []uint32 // if empty, one number each
	// Requests, one a key in an exact space, else nil, are what all attempts repeat.
	Requests []Request
}

// Count returns how many numbers key i is to have.
func (t *Takes) Count(i int) uint32 {
	if len(t.Counts) == 0 {
		return 1
	}
	return t.Counts[i]
}

// Batch is the takes at idx as they travel.
func (t *Takes) Batch(space *seq.Space, idx []int) *pb.Batch {
	b := t.Keys.Batch(space, idx)
	if len(t.Counts) != 0 {
		for _, i := range idx {
			b.Counts = append(b.Counts, t.Counts[i])
		}
	}
	if t.Requests != nil {
		for _, i := range idx {
			b.RequestIds, b.FirstSentMs = append(b.RequestIds, t.Requests[i].ID), append(b.FirstSentMs, t.Requests[i].Sent)
		}
	}
	return b
}
