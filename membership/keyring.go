//go:build !wasip1

package membership

import (
	"bytes"
	"slices"

	"github.com/hashicorp/memberlist"
)

// keyring is memberlist's. It is read for every packet, beside replace.
type keyring struct{ *memberlist.Keyring }

func newKeyring(list [][]byte) (*keyring, error) {
	ring, err := memberlist.NewKeyring(list, list[0])
	if err != nil {
		return nil, err
	}
	return &keyring{ring}, nil
}

// replace makes the ring hold the keys of the list, all of which have a sound size.
//
// memberlist takes a key out by moving those behind it, while other goroutines may read the ring; taking
// out the last moves nothing. So keys are taken from the end until the old ones are gone,
// and those that are wanted are put back: for that moment, in a change of three keys or more, a packet
// under one of these is lost, which gossip tolerates. The first key always stays.
func (r *keyring) replace(list [][]byte) {
	for _, key := range list {
		_ = r.AddKey(key) // fails for a size that is not sound only
	}
	_ = r.UseKey(list[0]) // fails for a key that is not there only
	wanted := func(key []byte) bool {
		return slices.ContainsFunc(list, func(w []byte) bool { return bytes.Equal(w, key) })
	}
	for {
		have := r.GetKeys()
		if !slices.ContainsFunc(have, func(key []byte) bool { return !wanted(key) }) {
			break
		}
		_ = r.RemoveKey(have[len(have)-1]) // never the first, which is wanted
	}
	for _, key := range list[1:] {
		_ = r.AddKey(key)
	}
}
