package sim

import (
	"errors"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

// database is the disk as one process has it open.
type database struct {
	d       *simDisk
	dead    chan struct{}                 // of the life that opened it
	copies  map[seq.SectionID]*exact.Copy // in memory, ahead of the disk
	journal *journal.Journal              // the real one, which has the copies then; nil in other runs
	closing bool                          // guarded by d.mu: an orderly stop, which waits for nothing
}

// Commit implements storesvr.Database.
func (b *database) Commit(u disk.Update) (commits uint64, err error) {
	err = b.write(func(error) {
		commits = b.d.apply(u)
		if u.Floors != nil {
			b.d.w.check.eras.floored(b.d, u.Floors.Floors)
		}
		if u.Members != nil && !u.Members.Pending {
			b.d.w.check.eras.bound(b.d.h, *u.Members)
		}
	})
	if err != nil {
		return 0, err
	}
	return commits, nil
}

// write does something to the disk after a while. A process that ends meanwhile leaves it
// done or not. apply gets the error that keeps the write from being durable, or nil.
func (b *database) write(apply func(fail error)) error {
	d := b.d
	d.w.mu.Lock()
	d.w.point(d.h, nil, "commit")
	fate := d.w.rng.Uint64()
	latency := d.w.between(d.w.opts.Disk/4, d.w.opts.Disk)
	d.mu.Lock()
	if d.w.opts.still {
		latency = d.w.opts.Disk
	}
	if b.closing {
		latency = 0
	} else if d.slow > 0 {
		latency += d.w.between(0, d.slow)
	}
	fail := d.failNext
	d.failNext = nil
	switch d.fate {
	case "kept":
		fate = 1
	case "lost":
		fate = 0
	}
	d.mu.Unlock()
	d.w.mu.Unlock()

	if latency > 0 {
		timer := time.NewTimer(latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-b.dead:
			fail = errPower
		}
	}
	select {
	case <-b.dead:
		fail = errPower
	default:
	}
	if fail == errNoSpace || fail != nil && fate%2 == 0 {
		d.w.trace.add("%-8s commit failed, nothing written: %v", d.h.name, fail)
		return fail
	}
	apply(fail)
	if fail != nil {
		d.w.trace.add("%-8s commit failed, all the same written: %v", d.h.name, fail)
		return fail
	}
	d.w.mu.Lock()
	d.w.stats.Commits++
	d.w.point(d.h, nil, "committed")
	d.w.mu.Unlock()
	return nil
}

// apply puts the transaction on the disk and checks I1 to I3 there.
func (d *simDisk) apply(u disk.Update) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range u.Changes {
		was := d.now.registers[c.Register]
		d.w.check.durable(d.h, c.Register, was, c.State)
		d.w.check.places.accepted(d.h, c.Register, c.State)
		d.now.registers[c.Register] = c.State
		d.peak(c.Register, c.State.Max)
	}
	m := &d.now.meta
	switch {
	case u.NoLeases:
		m.LeaseBound = 0
	case u.LeaseBound > 0:
		m.LeaseBound, m.Longest = u.LeaseBound, max(m.Longest, u.LeaseBound)
	}
	if u.Members != nil {
		m.Members = *u.Members
		d.w.check.eras.listed(d.h, m.Identity, m.Members)
	}
	if u.Incarnation != nil {
		m.Incarnation = *u.Incarnation
	}
	if u.Required > 0 {
		m.Required = u.Required
	}
	if u.Mapping != nil {
		m.Mapping = *u.Mapping
	}
	if u.Remembered != nil {
		m.Remembered = u.Remembered
	}
	if u.Floors != nil {
		m.Floors = *u.Floors
	}
	if u.Distrusted != "" {
		m.Distrusted = u.Distrusted
	}
	m.Commits++
	return m.Commits
}

// Copy implements storesvr.Database.
func (b *database) Copy(id seq.SectionID) *exact.Copy {
	if b.journal != nil && b.copies[id] != nil {
		return b.journal.Copy(id)
	}
	return b.copies[id]
}

// Log implements storesvr.Database.
func (b *database) Log(entries []exact.Entry) (batches, bytes uint64, err error) {
	b.d.w.mu.Lock()
	b.d.w.point(b.d.h, nil, "log")
	b.d.w.mu.Unlock()
	err = b.write(func(fail error) {
		if b.journal != nil {
			batches = b.engrave(entries, fail)
			return
		}
		batches = b.d.log(entries)
	})
	if err != nil {
		return 0, 0, err
	}
	return batches, uint64(len(entries)), nil
}

// engrave writes a batch by the real journal. If it is not to be made durable, its bytes are where a
// next process reads them.
func (b *database) engrave(entries []exact.Entry, fail error) (batches uint64) {
	d := b.d
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now.files.fail = fail
	if err := b.journal.Write(entries); fail == nil && err != nil {
		d.w.check.broken("X", "%s: %v", d.h.name, err)
	}
	if fail != nil {
		return 0
	}
	for _, e := range entries {
		d.stands(e.Section, b.journal.Copy(e.Section))
	}
	d.now.meta.Journal.Batches = b.journal.Batches()
	return b.journal.Batches()
}

// log puts a batch on the disk, as a journal reads it back.
func (d *simDisk) log(entries []exact.Entry) (batches uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		c := d.now.copies[e.Section]
		if len(e.Whole) > 0 {
			space, err := d.now.meta.Mapping.SpaceOf(e.Section)
			in := exact.NewReader(e.Whole)
			state := in.State(space.Window.Milliseconds())
			if err = errors.Join(err, in.Err()); err != nil {
				d.w.check.broken("X", "%s writes a copy that cannot be read: %v", d.h.name, err)
				continue
			}
			c = exact.Restore(state, space.Window.Milliseconds())
			d.now.copies[e.Section] = c
		} else if err := c.Take(e.Records); err != nil {
			d.w.check.broken("X", "%s writes records that cannot be read back: %v", d.h.name, err)
		}
		d.stands(e.Section, c)
	}
	d.now.meta.Journal.Batches++
	return d.now.meta.Journal.Batches
}

// Free implements storesvr.Database.
func (b *database) Free() (uint64, error) {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.d.full {
		return 0, nil
	}
	return 1 << 40, nil
}

// Close implements storesvr.Database.
func (b *database) Close() error { return nil }
