package sim

import (
	"time"

	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// database is the disk as one process has it open.
type database struct {
	d       *simDisk
	dead    chan struct{} // of the life that opened it
	closing bool          // guarded by d.mu: an orderly stop, which waits for nothing
}

// Commit implements storesvr.Database. A process that ends meanwhile leaves the
// transaction on the disk or not.
func (b *database) Commit(u disk.Update) (uint64, error) {
	d := b.d
	d.w.mu.Lock()
	d.w.faults.point(d.h, nil, "commit")
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
		return 0, fail
	}
	commits := d.apply(u)
	if u.Floors != nil {
		d.w.check.eras.floored(d, u.Floors.Floors)
	}
	if fail != nil {
		d.w.trace.add("%-8s commit failed, all the same written: %v", d.h.name, fail)
		return 0, fail
	}
	d.w.mu.Lock()
	d.w.stats.Commits++
	d.w.faults.point(d.h, nil, "committed")
	d.w.mu.Unlock()
	return commits, nil
}

// apply puts the transaction on the disk and checks I1 to I3 there.
func (d *simDisk) apply(u disk.Update) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range u.Changes {
		was := d.now.registers[c.Register]
		d.w.check.durable(d.h, c.Register, was, c.State)
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
