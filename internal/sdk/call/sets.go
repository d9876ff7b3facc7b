package call

import (
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// Refresh asks for a newer route table of the root Set, and a newer map, in the background, for
// callers that heard of one. It never blocks.
func (c *Caller) Refresh() { c.table.First().Poke() }

// SetsOf says which Set has each key by the map of now, the UIDs first and then the string keys, as indices
// of client.Sets.All. nil: there is one Set, or the space is not known.
func (c *Caller) SetsOf(space string, uids []seq.UID, names []string) []int {
	v := c.table.View()
	if v == nil || v.Alone() {
		return nil
	}
	of, err := v.Mapping.Space(space)
	if err != nil {
		return nil
	}
	out := make([]int, 0, len(uids)+len(names))
	for _, uid := range append(uids[:len(uids):len(uids)], stream.KeysOf(names).Places...) {
		out = append(out, v.Sets.Index(of.SectionOf(uid)))
	}
	return out
}

// LeftOut returns why addresses are not used: a process of another cluster, or of an older life of
// this one, answers there. Each error is a seq.ErrForeignCluster or a seq.ErrStaleEra.
func (c *Caller) LeftOut() map[string]error {
	out := map[string]error{}
	for _, one := range c.table.Servers(nil) {
		if why := one.Other(); why != nil {
			out[one.Addr] = why
		}
	}
	return out
}
