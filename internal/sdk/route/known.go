package route

import "github.com/seqsvr/seqsvr/seq"

// Refresh asks for a newer route table of the root Set, and a newer map, in the background, for
// callers that heard of one. It never blocks.
func (t *Table) Refresh() { t.First().Poke() }

// SetsOf returns the index of each key's Set in the map, for the UIDs first and then for the string
// keys. It returns nil if v is nil, if there is one Set, or if the space is unknown.
func (v *View) SetsOf(space string, uids []seq.UID, names []string) []int {
	if v == nil || v.Alone() {
		return nil
	}
	of, err := v.Mapping.Space(space)
	if err != nil {
		return nil
	}
	out := make([]int, 0, len(uids)+len(names))
	for _, uid := range uids {
		out = append(out, v.Sets.Index(of.SectionOf(uid)))
	}
	for _, name := range names {
		out = append(out, v.Sets.Index(of.SectionOf(seq.HashKey(name))))
	}
	return out
}

// LeftOut returns why addresses are not used: a process of another cluster, or of an older life of
// this one, answers there. Each error is a seq.ErrForeignCluster or a seq.ErrStaleEra.
func (t *Table) LeftOut() map[string]error {
	out := map[string]error{}
	for _, one := range t.Servers(nil) {
		if why := one.Other(); why != nil {
			out[one.Addr] = why
		}
	}
	return out
}

// Routes is the route table that calls go by; nil before the first. Of several Sets it
// is the root's, and nil as long as that is not known. It must not be changed.
func (t *Table) Routes() *seq.RouteTable {
	if v := t.View(); v != nil {
		return v.Root().Routes
	}
	return nil
}

// Mapping returns the cluster's mapping, which all Sets share. ok is false before the first route table.
func (t *Table) Mapping() (m seq.Mapping, ok bool) {
	if v := t.View(); v != nil {
		return v.Mapping, true
	}
	return seq.Mapping{}, false
}

// ClusterID is the cluster's id, of several Sets the root's; "" before the first route table if
// Config had none.
func (t *Table) ClusterID() string {
	switch v := t.View(); {
	case v == nil:
		return t.cfg.ClusterID
	case len(v.Sets.Sets) > 0:
		return v.Sets.Sets[0].Cluster
	default:
		return v.Root().Of.ID()
	}
}

// Incarnation returns the life of the cluster that the Client holds to, of several Sets the life of
// the root. It is not known before the first route table, or if no server told it.
func (t *Table) Incarnation() seq.Incarnation {
	if v := t.View(); v != nil {
		return v.Root().Life
	}
	return seq.Incarnation{}
}
