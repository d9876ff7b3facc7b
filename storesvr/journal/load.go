package journal

import (
	"fmt"
	"io"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// turn is what a file holds of its last turn: batches one behind the other from its start.
type turn struct {
	text     []byte
	id       uint64 // of the journal
	number   uint64 // zero if there is none
	first    uint64 // number of the first batch
	last     uint64
	end      int
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
		text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<62))
		if err != nil {
			return fmt.Errorf("read %s: %w", f.Name(), err)
		}
		turns[i], j.length[i] = scan(text), int64(len(text))
		if n := turns[i].number; n != 0 && n%2 != uint64(i) {
			return fmt.Errorf("%w: %s holds turn %d", ErrDamaged, f.Name(), n)
		}
	}
	old, now := turns[0], turns[1]
	if old.number > now.number {
		old, now = now, old
	}
	if err := check(old, now); err != nil {
		return err
	}
	if now.number == 0 || now.id != j.cfg.ID {
		return fmt.Errorf("%w: no batch of journal %016x in its files", ErrDamaged, j.cfg.ID)
	}
	if !now.complete {
		if err := j.replayAll(old); err != nil {
			return err
		}
		if err := j.replay(now, nil); err != nil {
			return err
		}
	} else if err := j.replayAll(now); err != nil {
		return err
	}
	if j.turn, j.number = now.number, now.last; write {
		j.resume(now)
	}
	return nil
}

// replayAll takes in a turn that has a whole copy of each section, and needs none before it:
// what it has of a section before that is left out.
func (j *Journal) replayAll(t turn) error {
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
func scan(text []byte) turn {
	t := turn{text: text}
	for {
		h, _, ok := open(text[t.end:])
		if !ok || t.number != 0 && (h.id != t.id || h.turn != t.number || h.number != t.last+1) {
			return t
		}
		if t.number == 0 {
			t.id, t.number, t.first = h.id, h.turn, h.number
		}
		t.last, t.complete = h.number, h.complete
		t.end += pad(headerSize + int(h.length))
		t.end = min(t.end, len(text))
	}
}

func pad(n int) int { return (n + align - 1) / align * align }

// check says what is missing: nothing may be but the batch that was being written.
func check(old, now turn) error {
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
	for _, t := range []turn{old, now} {
		for at := t.end; at < len(t.text); at += align {
			if h, _, ok := open(t.text[at:]); ok && h.id == now.id && h.number > now.last {
				return fmt.Errorf("%w: batch %d of turn %d is there, and %d is not", ErrDamaged, h.number, h.turn, now.last+1)
			}
		}
	}
	return nil
}

// replay applies the content of a file. early collects the sections of which no whole copy has come
// yet. If early is nil, all whole copies are there.
func (j *Journal) replay(t turn, early map[seq.SectionID]bool) error {
	for at := 0; at < t.end; {
		h, entries, _ := open(t.text[at:])
		in := exact.NewReader(entries)
		for in.Left() > 0 && in.Err() == nil {
			if err := j.entry(in, early); err != nil {
				return fmt.Errorf("%w: batch %d: %w", ErrDamaged, h.number, err)
			}
		}
		if err := in.Err(); err != nil {
			return fmt.Errorf("%w: batch %d: %w", ErrDamaged, h.number, err)
		}
		at += pad(headerSize + int(h.length))
	}
	return nil
}

func (j *Journal) entry(in *exact.Reader, early map[seq.SectionID]bool) error {
	id, n := seq.SectionID(in.Uint()), in.Uint()
	if n == 0 {
		delete(early, id)
		j.copies[id] = exact.Restore(in.State(), j.cfg.Window(id))
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
	j.end, j.due = int64(now.end), j.Sections()
	j.sections = len(j.due)
	j.size = max(j.least(), j.length[j.turn%2])
	j.noteGrowth()
	j.whole = 0
}
