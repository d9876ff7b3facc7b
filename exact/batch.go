package exact

import "github.com/seqsvr/seqsvr/seq"

// few is up to how many records are searched one by one, which is faster than to index them.
const few = 24

// batch are the first records of one, as State.check comes to them. The zero batch has none.
type batch struct {
	records []Record
	lasts   map[seq.UID]uint64 // nil while they are few
	ids     map[request]struct{}
}

// add has it be those records: one more than it was.
func (b *batch) add(records []Record) {
	b.records = records
	switch {
	case b.lasts != nil:
		b.index(&records[len(records)-1])
	case len(records) > few:
		b.lasts, b.ids = map[seq.UID]uint64{}, map[request]struct{}{}
		for i := range records {
			b.index(&records[i])
		}
	}
}

func (b *batch) index(r *Record) {
	if last, ok := r.last(); ok {
		b.lasts[r.UID] = last
	}
	if r.Kind == Take && r.ID != "" {
		b.ids[request{r.UID, r.ID}] = struct{}{}
	}
}

// last is the last number that they give a UID.
func (b *batch) last(uid seq.UID) (uint64, bool) {
	if b.lasts != nil {
		last, ok := b.lasts[uid]
		return last, ok
	}
	for i := len(b.records) - 1; i >= 0; i-- {
		if r := &b.records[i]; r.UID == uid {
			if last, ok := r.last(); ok {
				return last, true
			}
		}
	}
	return 0, false
}

// taken says whether one of them takes numbers for a request.
func (b *batch) taken(uid seq.UID, id string) bool {
	if b.lasts != nil {
		_, ok := b.ids[request{uid, id}]
		return ok
	}
	for i := range b.records {
		if r := &b.records[i]; r.UID == uid && r.Kind == Take && r.ID == id {
			return true
		}
	}
	return false
}
