//go:build !wasip1

package disk

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

// beside is the journal of the sections of exact spaces, of a database that has some. The
// database is what says that there is one: a journal that is gone is never taken for an
// empty one.
type beside struct {
	journal atomic.Pointer[journal.Journal] // nil without an exact space
	mapping seq.Mapping
	floor   uint64            // of sections, in this era
	loaded  *journal.Progress // of the journal; may be nil
	id      uint64
}

func newJournalID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to return an error
	return binary.LittleEndian.Uint64(b[:])
}

func (b *beside) config(dir string, id uint64) journal.Config {
	b.id = id
	return journal.Config{Dir: dir, ID: id, Floor: b.floor, Progress: b.loaded, Window: func(section seq.SectionID) int64 {
		if space, err := b.mapping.SpaceOf(section); err == nil {
			return space.Window.Milliseconds()
		}
		return 0
	}}
}

// extend makes the journal if the mapping is the first with an exact space. Its record goes
// with the transaction that puts the mapping.
func (b *beside) extend(dir string, m *seq.Mapping) error {
	if m == nil {
		return nil
	}
	if b.mapping = *m; b.journal.Load() != nil || !m.HasExact() {
		return nil
	}
	cfg := b.config(dir, newJournalID())
	if err := journal.Create(cfg, nil); err != nil {
		return err
	}
	j, err := journal.Open(cfg)
	if err == nil {
		b.journal.Store(j)
	}
	return err
}

// open opens the journal and checks it against the database: the two are written one after
// the other, the database first, so that neither can be far from the other.
func (b *beside) open(dir string, meta *Meta, registers map[seq.Register]acceptor.State) error {
	if b.mapping, b.floor = meta.Mapping, meta.Floors.Section; meta.Journal == nil {
		return nil
	}
	return b.with(journal.Open, dir, meta, registers)
}

// with is open by a way to open a journal.
func (b *beside) with(open func(journal.Config) (*journal.Journal, error), dir string, meta *Meta, registers map[seq.Register]acceptor.State) error {
	j, err := open(b.config(dir, meta.Journal.ID))
	if err != nil {
		return err
	}
	b.journal.Store(j)
	if got, want := j.Batches(), meta.Journal.Batches; got < want {
		return fmt.Errorf("%w: it ends at batch %d, and the database has seen batch %d: it is an old copy", journal.ErrDamaged, got, want)
	}
	meta.Journal.Batches = j.Batches()
	for _, id := range j.Sections() {
		at := j.Copy(id).At()
		promised := registers[seq.SectionRegister(id)].Promised
		switch {
		case !meta.Mapping.IsExact(id):
			return fmt.Errorf("%w: it has section %d, which is of no exact space", journal.ErrDamaged, id)
		case promised.Less(at.Epoch):
			return fmt.Errorf("%w: section %d stands at %v, and the database has promised %v: one of the two is an old copy", journal.ErrDamaged, id, at, promised)
		}
	}
	return nil
}

// inspect reads and checks the journal, and gives sections of exact spaces their copies, as
// quorum.RegisterState has them.
func (b *beside) inspect(dir string, meta *Meta, registers map[seq.Register]acceptor.State) error {
	if b.mapping, b.floor = meta.Mapping, meta.Floors.Section; meta.Journal == nil {
		return nil
	}
	if err := b.with(journal.Inspect, dir, meta, registers); err != nil {
		return err
	}
	for r, st := range registers {
		id, ok := r.Section()
		if !ok || !meta.Mapping.IsExact(id) {
			continue
		}
		whole := b.journal.Load().Copy(id).Borrow()
		if st.Accepted, st.PayloadMax = whole.At().Epoch, whole.At().Index; st.PayloadMax > 0 {
			st.Payload = whole.AppendTo(nil)
		}
		registers[r] = st
	}
	return nil
}

func (b *beside) close() error {
	if j := b.journal.Load(); j != nil {
		return j.Close()
	}
	return nil
}

func (b *beside) grows() uint64 {
	if j := b.journal.Load(); j != nil {
		return j.Grows()
	}
	return 0
}

// mark notes how far the journal has got.
func (b *beside) mark(meta bucket) error {
	if j := b.journal.Load(); j != nil {
		return putJSON(meta, keyJournal, Journal{ID: b.id, Batches: j.Batches()})
	}
	return nil
}

// Copy is the copy of a section of an exact space, which changes with what the store takes
// in, ahead of Log; nil for any other section.
func (b *beside) Copy(id seq.SectionID) *exact.Copy {
	if j := b.journal.Load(); j != nil && b.mapping.IsExact(id) {
		return j.Copy(id)
	}
	return nil
}

// Log makes changes durable that the copies have by now, and returns how many batches there
// were over the life of the disk, and how many bytes it wrote. After an error nothing may be answered any more: exit the
// process.
func (b *beside) Log(entries []exact.Entry) (batches, bytes uint64, err error) {
	j := b.journal.Load()
	before := j.Bytes()
	if err := j.Write(entries); err != nil {
		return 0, 0, err
	}
	return j.Batches(), j.Bytes() - before, nil
}
