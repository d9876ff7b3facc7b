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
	if ps.votes == nil {
		ps.votes = map[vote]map[*host]bool{}
	}
	if ps.votes[v] == nil {
		ps.votes[v] = map[*host]bool{}
	}
	ps.votes[v][h] = true
	if len(ps.votes[v]) >= h.w.ident.W && v.version > ps.records[h.w].version {
		ps.decide(h.w, v.version, st.Payload[8:])
	}
}

// decide takes in a newer record, and checks that at most one Set has each section. Needs ps.mu.
func (ps *places) decide(w *world, version uint64, body []byte) {
	record, err := sets.ParseRecord(body)
	if err != nil {
		ps.w.check.broken("I11", "record %d of %s: %v", version, w.setName(), err)
		return
	}
	ps.records[w] = decided{version, record}
	ps.w.trace.add("%s has as record %d: rest %v, %v", w.setName(), version, record.Rest, record.Runs)
	for id := range seq.SectionID(w.ident.Mapping.Sections()) {
		in := ps.active(id)
		if len(in) > 1 {
			ps.w.check.broken("I11", "section %d is active in %s and in %s", id, in[0].setName(), in[1].setName())
		}
	}
}

// active are the Sets that have a section. A cluster that has not joined is none. Needs ps.mu.
func (ps *places) active(id seq.SectionID) (in []*world) {
	for _, w := range ps.w.sets {
		if d := ps.records[w]; (w.set == 0 || !d.record.IsRoot()) && d.record.Has(id) {
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
	d := ps.records[h.w]
	ps.mu.Unlock()
	if p := d.record.At(id); p.State != sets.Active && p.State != sets.Sealed && !ps.w.opts.Beyond {
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
			ps.w.check.broken("map", "section %d is in Set %d by the map, and active in %d", id, m.Index(id), len(in))
		}
	}
}
