package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// turn is what a file holds of its last turn: batches one behind the other from its start.
type turn struct {
	view
	id       uint64 // of the journal
	number   uint64 // zero if there is none
	first    uint64 // number of the first batch
	last     uint64
	end      int64
	complete bool
}

// load reads both files, in the order of their turns. If they are to be written to, what it has
// read is on the disk: the last batch may be one that a process wrote and had not made durable
// when it ended.
func (j *Journal) load(write bool) error {
	var turns [2]turn
	for i, f := range j.files {
		if write {
			if err := f.Sync(); err != nil {
				return fmt.Errorf("sync %s: %w", f.Name(), err)
			}
		}
		var err error
		if turns[i], err = scan(f); err != nil {
			return fmt.Errorf("read %s: %w", f.Name(), err)
		}
		j.length[i] = turns[i].size
		if n := turns[i].number; n != 0 && n%2 != uint64(i) {
			return fmt.Errorf("%w: %s holds turn %d", ErrDamaged, f.Name(), n)
		}
	}
	old, now := turns[0], turns[1]
	if old.number > now.number {
		old, now = now, old
	}
	if err := check(&old, &now); err != nil {
		return err
	}
	if now.number == 0 || now.id != j.cfg.ID {
		return fmt.Errorf("%w: no batch of journal %016x in its files", ErrDamaged, j.cfg.ID)
	}
	j.cfg.Progress.add(now.end, 0)
	if !now.complete {
		j.cfg.Progress.add(old.end, 0)
		if err := j.replayAll(&old); err != nil {
			return err
		}
		if err := j.replay(&now, nil); err != nil {
			return err
		}
	} else if err := j.replayAll(&now); err != nil {
		return err
	}
	if j.turn, j.number = now.number, now.last; write {
		j.resume(now)
	}
	return nil
}

// replayAll takes in a turn that has a whole copy of each section, and needs none before it:
// what it has of a section before that is left out.
func (j *Journal) replayAll(t *turn) error {
	early := map[seq.SectionID]bool{}
	if err := j.replay(t, early); err != nil {
		return err
	}
	for id := range early {
		return fmt.Errorf("%w: turn %d has no whole copy of section %d", ErrDamaged, t.number, id)
	}
	return nil
}

// scan reads the batches from a file's start for as long as one follows the other.
func scan(f File) (t turn, err error) {
	if t.view, err = viewOf(f); err != nil {
		return t, err
	}
	for {
		h, _, ok, err := t.batch(t.end)
		if err != nil || !ok || t.number != 0 && (h.id != t.id || h.turn != t.number || h.number != t.last+1) {
			return t, err
		}
		if t.number == 0 {
			t.id, t.number, t.first = h.id, h.turn, h.number
		}
		t.last, t.complete = h.number, h.complete
		t.end = min(t.end+h.size(), t.size)
	}
}

// size returns the bytes from the beginning of the batch to where the next one may begin.
func (h *header) size() int64 { return (headerSize + int64(h.length) + align - 1) / align * align }

// view reads a file piece by piece: all of it may be several times what the copies take.
type view struct {
	file File
	size int64  // of the file
	at   int64  // where the piece begins
	text []byte // the piece
}

// piece is the least that a view reads, in bytes.
const piece = 1 << 20

// viewOf finds the size of a file by halving.
func viewOf(f File) (view, error) {
	v, past := view{file: f}, int64(1)<<62
	for v.size < past {
		middle := v.size + (past-v.size)/2
		switch n, err := f.ReadAt(make([]byte, 1), middle); {
		case n == 1:
			v.size = middle + 1
		case errors.Is(err, io.EOF):
			past = middle
		default:
			return v, err
		}
	}
	return v, nil
}

// read returns the n bytes of the file from a place on, which it has. They are good until the next call.
func (v *view) read(from int64, n int) ([]byte, error) {
	if from < v.at || from+int64(n) > v.at+int64(len(v.text)) {
		size := int(min(int64(max(n, piece)), v.size-from))
		v.text = slices.Grow(v.text[:0], size)[:size]
		if v.at = from; size > 0 {
			if n, err := v.file.ReadAt(v.text, from); n < size {
				v.text = v.text[:0]
				return nil, err
			}
		}
	}
	return v.text[from-v.at:][:n], nil
}

// batch reads the batch at a place of the file: see open.
func (v *view) batch(from int64) (h header, entries []byte, ok bool, err error) {
	if from+headerSize > v.size {
		return h, nil, false, nil
	}
	b, err := v.read(from, headerSize)
	if err != nil || binary.LittleEndian.Uint32(b) != magic {
		return h, nil, false, err
	}
	length := int64(binary.LittleEndian.Uint32(b[8:]))
	if from+headerSize+length > v.size {
		return h, nil, false, nil
	}
	if b, err = v.read(from, headerSize+int(length)); err != nil {
		return h, nil, false, err
	}
	h, entries, ok = open(b)
	return h, entries, ok, nil
}

// check says what is missing: nothing may be but the batch that was being written.
func check(old, now *turn) error {
	switch {
	case now.number == 0, now.complete && old.number == 0:
	case old.number != 0 && old.id != now.id:
		return fmt.Errorf("%w: its files are of two journals", ErrDamaged)
	case old.number == 0:
		return fmt.Errorf("%w: turn %d is not complete, and the one before is gone", ErrDamaged, now.number)
	case !now.complete && !old.complete:
		return fmt.Errorf("%w: neither turn %d nor turn %d is complete", ErrDamaged, old.number, now.number)
	case !now.complete && (old.number != now.number-1 || old.last+1 != now.first):
		return fmt.Errorf("%w: turn %d ends at batch %d, and turn %d begins at %d", ErrDamaged, old.number, old.last, now.number, now.first)
	}
	for _, t := range []*turn{old, now} {
		for at := t.end; at < t.size; at += align {
			h, _, ok, err := t.batch(at)
			if err != nil {
				return fmt.Errorf("read %s: %w", t.file.Name(), err)
			}
			if ok && h.id == now.id && h.number > now.last {
				return fmt.Errorf("%w: batch %d of turn %d is there, and %d is not", ErrDamaged, h.number, h.turn, now.last+1)
			}
		}
	}
	return nil
}

// replay applies the content of a file. early collects the sections of which no whole copy has come
// yet. If early is nil, all whole copies are there.
func (j *Journal) replay(t *turn, early map[seq.SectionID]bool) error {
	for at := int64(0); at < t.end; {
		h, entries, _, err := t.batch(at)
		if err != nil {
			return fmt.Errorf("read %s: %w", t.file.Name(), err)
		}
		in := exact.NewReader(entries)
		for in.Left() > 0 && in.Err() == nil {
			if err := j.entry(in, early); err != nil {
				return fmt.Errorf("%w: batch %d: %w", ErrDamaged, h.number, err)
			}
		}
		if err := in.Err(); err != nil {
			return fmt.Errorf("%w: batch %d: %w", ErrDamaged, h.number, err)
		}
		at += h.size()
		j.cfg.Progress.add(0, h.size())
	}
	return nil
}

func (j *Journal) entry(in *exact.Reader, early map[seq.SectionID]bool) error {
	id, n := seq.SectionID(in.Uint()), in.Uint()
	if n == 0 {
		delete(early, id)
		j.copies[id] = exact.Restore(in.State(j.cfg.Window(id)), j.cfg.Window(id))
		return in.Err()
	}
	var records []exact.Record
	for ; n > 0 && in.Err() == nil; n-- {
		records = append(records, in.Record())
	}
	if in.Err() != nil {
		return in.Err()
	}
	if early != nil && j.copies[id] == nil && records[0].Index > 1 {
		early[id] = true
		return nil
	}
	return j.Copy(id).Take(records)
}

// resume continues after the last batch. A crash may have left a part of an unanswered batch there.
// If so, resume starts a new turn, which leaves the part behind.
func (j *Journal) resume(now turn) {
	for _, c := range j.copies {
		j.buffer = c.Borrow().AppendTo(j.buffer[:0])
		j.whole += int64(len(j.buffer))
	}
	if now.complete { // the next batch begins a turn
		j.noteGrowth()
		return
	}
	// The file before is needed until all copies are in this one, so this turn goes on.
	j.end, j.due = now.end, j.Sections()
	j.sections = len(j.due)
	j.size = max(j.least(), j.length[j.turn%2])
	j.noteGrowth()
	j.whole = 0
}
