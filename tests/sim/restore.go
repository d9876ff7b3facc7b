package sim

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/storecare"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// saved is a backup file, out of reach of all faults.
type saved struct {
	era  seq.Era
	file []byte
}

// backup saves what the stores have. All that was handed out before must be in it.
func (w *world) backup(ctx context.Context, h *host, c *storecare.Care, handed map[seq.Register]uint64) error {
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	m := backup.Manifest{Cluster: snap.Cluster, Era: snap.Era, Members: snap.List, Mapping: snap.Mapping, Sources: snap.Sources,
		Floors: snap.Floors, Taken: h.clock.Wall().UTC(), LeaseBound: snap.LeaseBound}
	var file bytes.Buffer
	if err := backup.Write(&file, m, snap.States); err != nil {
		return err
	}
	has := map[seq.Register]uint64{}
	for _, st := range snap.States {
		has[st.Register] = st.Max
	}
	if snap.Era == w.check.present() { // else all of this is of the past
		for r, v := range handed {
			got, known := has[r]
			if r.Kind() == seq.KindWorker || !known && r.OnDemand() { // what was before the era is below
				got = max(got, snap.Floors.Of(r))
			}
			if got < v {
				w.check.broken("backup", "%s has %s at %d, and %d was handed out before it was begun", h.name, r, got, v)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil {
		w.backups = append(w.backups, saved{snap.Era, file.Bytes()})
	}
	return ctx.Err()
}

// chosen is the backup that an order goes by: always the same one. It may be of an era
// before, and have been restored already. Needs w.mu.
func (w *world) chosen(o *order) *saved {
	if o.from != nil {
		return o.from
	}
	if len(w.backups) == 0 {
		return nil
	}
	o.from = &w.backups[max(0, len(w.backups)-1-o.copy)]
	return o.from
}

// restore makes stores of a new era from a backup, after W disks were lost, as the runbook
// says: stop everything, make every store, start everything.
func (w *world) restore(ctx context.Context, h *host, o *order, say func(string)) error {
	w.mu.Lock()
	from := w.chosen(o)
	for len(o.made) < w.opts.Stores {
		fresh := w.fresh()
		if fresh == nil {
			w.mu.Unlock()
			return fmt.Errorf("no machine left for %s", o)
		}
		o.made = append(o.made, fresh)
	}
	made, era := o.made, w.check.present()+1
	w.mu.Unlock()
	say("stop every process")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.stopEra()
	m, states, err := backup.Read(bytes.NewReader(from.file))
	if err != nil {
		return err
	}
	names := make([]string, len(made))
	for i, s := range made {
		names[i] = s.name
	}
	for _, s := range made {
		say("make " + s.name)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !s.lost { // it is there already: disk.ErrExists
			continue
		}
		r := backup.Restore{DataDir: s.name, Name: s.name, Names: names, Cluster: w.ident.Ref.Cluster, Era: era,
			Bump: backup.DefaultBump, WorkerMargin: backup.DefaultWorkerMargin}
		made, err := r.Content(m, states)
		if err != nil {
			return err
		}
		made.Identity.UUID = "uuid-" + s.name
		w.check.raised(made, from.era)
		w.mu.Lock()
		s.disk.install(content{meta: disk.Meta{Identity: made.Identity, LeaseBound: made.LeaseBound, Longest: made.LeaseBound, Floors: made.Floors}, registers: made.Registers})
		s.lost = false
		w.mu.Unlock()
	}
	say("start everything")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w.beginEra(era, made, o)
	return nil
}

// stopEra ends the processes of the era, but for some that nobody thought of.
func (w *world) stopEra() {
	for _, h := range w.hosts {
		w.mu.Lock()
		missed := !w.opts.still && h.kind == allocHost && w.chance(0.3) || !w.opts.still && h.kind == storeHost && w.chance(0.5)
		w.mu.Unlock()
		if !missed && (h.kind == allocHost || h.kind == storeHost) {
			w.kill(h, 0)
		}
	}
}

// beginEra starts the stores of the new era and the allocators. Two operators may come
// here; the era begins once.
func (w *world) beginEra(era seq.Era, made []*host, o *order) {
	id := made[0].disk.identity()
	list := quorum.MemberList{Version: 1, R: id.R, W: id.W}
	for _, s := range made {
		list.Members = append(list.Members, quorum.Member{Name: s.name, UUID: s.disk.identity().UUID})
	}
	list.Sort()
	w.mu.Lock()
	if o.done || w.check.present() >= era {
		w.mu.Unlock()
		return
	}
	w.check.newEra(era, list, made[0].disk.knows)
	w.mu.Unlock()
	for _, s := range made {
		w.startStore(s)
	}
	for _, h := range w.of(allocHost) {
		w.mu.Lock()
		wait := time.Duration(0)
		if h.up && h.era != 0 { // nobody has stopped it: a while later somebody does
			wait = w.between(0, 25*time.Second)
		}
		life := h.life
		w.mu.Unlock()
		w.later(wait, func() {
			w.kill(h, life)
			w.startHost(h)
		})
	}
}

// raised checks that a new store begins above all that any store of the eras before ever
// had of what the backup knows (I2 over eras).
func (c *checker) raised(made backup.Content, before seq.Era) {
	for r, st := range made.Registers {
		if k := r.Kind(); k != seq.KindSection && k != seq.KindTag {
			continue
		}
		for _, h := range c.w.of(storeHost) {
			if id := h.disk.identity(); id.Era < made.Identity.Era && h.disk.had(r) > st.Max {
				c.broken("I2", "%s of era %d begins with %s at %d, %s had %d in era %d", made.Identity.Name, made.Identity.Era, r, st.Max, h.name, h.disk.had(r), before)
				return
			}
		}
	}
}

// floored checks that the floors of a restored store are above all that any store of the
// eras before ever had of what is made on demand: of every worker id, and of the tags that
// the backup does not know.
func (c *checker) floored(made *simDisk, floors quorum.Floors) {
	id := made.identity()
	for _, h := range c.w.of(storeHost) {
		if h.disk.identity().Era >= id.Era {
			continue
		}
		for r, had := range h.disk.peaked() {
			if r.OnDemand() && had > floors.Of(r) && (r.Kind() == seq.KindWorker || !made.knows(r)) {
				c.broken("I2", "%s of era %d has %s at %d at least, %s had %d", id.Name, id.Era, r, floors.Of(r), h.name, had)
				return
			}
		}
	}
}

// floors are the highest of the stores of the era that is in force.
func (w *world) floors(era seq.Era) (f quorum.Floors) {
	for _, h := range w.hosts {
		if h.kind == storeHost && h.disk.identity().Era == era {
			f = f.Over(h.disk.floors())
		}
	}
	return f
}

// knows says whether the register is on the disk.
func (d *simDisk) knows(r seq.Register) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, there := d.now.registers[r]
	return there
}

// floors are what the store has of them.
func (d *simDisk) floors() quorum.Floors {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.meta.Floors.Floors
}

// identity is whose disk it is.
func (d *simDisk) identity() disk.Identity {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.meta.Identity
}

// bound says whether the disk has a member list.
func (d *simDisk) bound() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now.meta.Members.Version > 0
}
