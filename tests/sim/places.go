package sim

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// places checks which Set has a section (I11), by the records that the stores of each Set have
// decided on.
type places struct {
	w      *world      // the root's
	joined atomic.Bool // the clusters are Sets, and nobody has called another than the root before

	mu      sync.Mutex // guards all below
	records map[*world]decided
	votes   map[vote]map[*host]bool // who ever accepted it
	newest  map[*world]decided      // that any store accepted
}

// decided is the newest version of a document that a quorum has accepted.
type decided struct {
	version uint64
	record  sets.Record
}

// vote is one version of a Set's record under one epoch.
type vote struct {
	of      *world
	epoch   seq.Epoch
	version uint64
}

// accepted takes in what a register on a store's disk has become.
func (ps *places) accepted(h *host, r seq.Register, st acceptor.State) {
	if r != seq.RecordRegister || len(ps.w.sets) == 1 || len(st.Payload) < 8 {
		return
	}
	v := vote{h.w, st.Accepted, binary.BigEndian.Uint64(st.Payload)}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.votes[v] == nil {
		ps.votes[v] = map[*host]bool{}
	}
	ps.votes[v][h] = true
	if v.version > ps.newest[h.w].version {
		ps.newest[h.w] = ps.parse(h.w, v.version, st.Payload[8:])
	}
	if ps.enough(v) && v.version > ps.records[h.w].version {
		ps.decide(h.w, ps.parse(h.w, v.version, st.Payload[8:]))
	}
}

// enough says whether a quorum of the stores that there are now has accepted it. Needs ps.mu.
func (ps *places) enough(v vote) bool {
	w := v.of
	if !w.opts.Care {
		return len(ps.votes[v]) >= w.ident.W
	}
	list, have := w.list(), 0
	for _, m := range list.Voters() {
		if h := w.hosts.named(m.Name); ps.votes[v][h] {
			have++
		}
	}
	return have >= list.W
}

func (ps *places) parse(w *world, version uint64, body []byte) decided {
	record, err := sets.ParseRecord(body)
	if err != nil {
		ps.w.check.broken("I11", "record %d of %s: %v", version, w.setName(), err)
	}
	return decided{version, record}
}

// newEra takes in what the stores of a restored Set begin with.
func (ps *places) newEra(w *world, st acceptor.State) {
	if len(ps.w.sets) == 1 {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.records, w)
	delete(ps.newest, w)
	if len(st.Payload) >= 8 {
		ps.newest[w] = ps.parse(w, binary.BigEndian.Uint64(st.Payload), st.Payload[8:])
		ps.decide(w, ps.newest[w])
	}
}

// limbo says whether a Set was restored and is not settled.
func (ps *places) limbo(w *world) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for id := range seq.SectionID(w.ident.Mapping.Sections()) {
		if ps.records[w].record.At(id).State == sets.Limbo {
			return true
		}
	}
	return false
}

// decide takes in a newer record, and checks that at most one Set has each section. Needs ps.mu.
func (ps *places) decide(w *world, d decided) {
	ps.records[w] = d
	ps.w.trace.add("%s has as record %d: rest %v, %v", w.setName(), d.version, d.record.Rest, d.record.Runs)
	for id := range seq.SectionID(w.ident.Mapping.Sections()) {
		in := ps.active(id)
		if len(in) > 1 {
			ps.w.check.broken("I11", "section %d is active in %s and in %s", id, in[0].setName(), in[1].setName())
		}
	}
}

// active are the Sets that have a section. A cluster that has not joined is none. Where the list of
// stores changes, what only some of them have may be decided as well: such a record has to have it,
// too. Needs ps.mu.
func (ps *places) active(id seq.SectionID) (in []*world) {
	for _, w := range ps.w.sets {
		d := ps.records[w].record
		if (w.set == 0 || !d.IsRoot()) && d.Has(id) && (!w.opts.Care || ps.newest[w].record.Has(id)) {
			in = append(in, w)
		}
	}
	return in
}

// serves checks that a node which would serve a section is of a Set that has it, or has not
// stopped it yet.
func (ps *places) serves(h *host, id seq.SectionID) {
	if !ps.joined.Load() {
		return
	}
	ps.mu.Lock()
	p, newer := ps.records[h.w].record.At(id), ps.newest[h.w].record.At(id)
	ps.mu.Unlock()
	may := func(p sets.Place) bool { return p.State == sets.Active || p.State == sets.Sealed }
	if !may(p) && !(h.w.opts.Care && may(newer)) && !ps.w.opts.Beyond {
		ps.w.check.broken("I11", "%s would serve section %d, which is %v in %s", h.name, id, p, h.w.setName())
	}
}

// agree checks that each section is in the one Set that the map names, when no move is open.
func (ps *places) agree(m sets.Map) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for id := range seq.SectionID(ps.w.ident.Mapping.Sections()) {
		in := ps.active(id)
		if len(in) != 1 || in[0].set != m.Index(id) {
			ps.w.check.broken("map", "section %d is in Set %d by the map %d, and active in %d Sets", id, m.Index(id), m.Version, len(in))
		}
	}
}
