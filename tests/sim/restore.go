package sim

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
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

// backup saves what the stores have. All that was handed out before, in the era in which it was
// begun, must be in it.
func (op *operators) backup(ctx context.Context, h *host, c *storeadmin.Care, begun seq.Era, handed map[seq.Register]uint64) error {
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
	if era := op.w.check.eras.present(); snap.Era == era && (len(op.w.sets) == 1 || era == begun) { // else all of this is of the past
		for r, v := range handed {
			got, known := has[r]
			if r.Rules().Holds == seq.Mark || !known && r.OnDemand() { // what was before the era is below
				got = max(got, snap.Floors.Of(r))
			}
			if got < v {
				op.w.check.broken("backup", "%s has %s at %d, and %d was handed out before it was begun", h.name, r, got, v)
			}
		}
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if ctx.Err() == nil {
		op.backups = append(op.backups, saved{snap.Era, file.Bytes()})
	}
	return ctx.Err()
}

// chosen is the backup that an order goes by: always the same one. It may be of an era
// before, and have been restored already. Needs w.mu.
func (op *operators) chosen(o *order) *saved {
	if o.from != nil {
		return o.from
	}
	if len(op.backups) == 0 {
		return nil
	}
	o.from = &op.backups[max(0, len(op.backups)-1-o.copy)]
	return o.from
}

// restore makes stores of a new era from a backup, after W disks were lost, as the runbook
// says: stop everything, make every store, start everything.
func (op *operators) restore(ctx context.Context, h *host, o *order, say func(string)) error {
	op.mu.Lock()
	from := op.chosen(o)
	for len(o.made) < op.opts.Stores {
		fresh := op.w.hosts.fresh()
		if fresh == nil {
			op.mu.Unlock()
			return fmt.Errorf("no machine left for %s", o)
		}
		o.made = append(o.made, fresh)
	}
	made, era := o.made, op.w.check.eras.present()+1
	op.mu.Unlock()
	say("stop every process")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	op.stopEra()
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
		r := backup.Restore{DataDir: s.name, Name: s.name, Names: names, Cluster: op.w.ident.Ref.Cluster, Era: era,
			Bump: backup.DefaultBump, WorkerMargin: backup.DefaultWorkerMargin}
		made, err := r.Content(m, states)
		if err != nil {
			return err
		}
		made.Identity.UUID = "uuid-" + s.name
		op.w.check.eras.raised(made, from.era)
		op.mu.Lock()
		c := content{meta: disk.Meta{Identity: made.Identity, LeaseBound: made.LeaseBound, Longest: made.LeaseBound, Floors: made.Floors}, registers: made.Registers}
		c.blank()
		for id, state := range made.Copies {
			space, err := made.Identity.Mapping.SpaceOf(id)
			if err != nil {
				op.mu.Unlock()
				return err
			}
			c.copies[id] = exact.Restore(state.Clone(), space.Window.Milliseconds())
		}
		s.disk.install(c)
		s.lost = false
		op.mu.Unlock()
	}
	say("start everything")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	op.beginEra(era, made, o)
	return nil
}

// stopEra ends the processes of the era, except some that the operators forgot.
func (op *operators) stopEra() {
	for _, h := range op.w.hosts.all {
		op.mu.Lock()
		missed := !op.opts.still && h.kind == allocHost && op.chance(0.3) || !op.opts.still && h.kind == storeHost && op.chance(0.5)
		op.mu.Unlock()
		if !missed && (h.kind == allocHost || h.kind == storeHost) {
			op.w.procs.kill(h, 0)
		}
	}
}

// beginEra starts the stores of the new era and the allocators. Two operators may come
// here; the era begins once.
func (op *operators) beginEra(era seq.Era, made []*host, o *order) {
	id := made[0].disk.meta().Identity
	list := quorum.MemberList{Version: 1, R: id.R, W: id.W}
	for _, s := range made {
		list.Members = append(list.Members, quorum.Member{Name: s.name, UUID: s.disk.meta().UUID})
	}
	list.Sort()
	op.mu.Lock()
	if o.done || op.w.check.eras.present() >= era {
		op.mu.Unlock()
		return
	}
	op.w.check.eras.newEra(era, list, made[0].disk.knows)
	op.w.check.places.newEra(op.w, made[0].disk.state(seq.RecordRegister))
	op.mu.Unlock()
	for _, s := range made {
		op.w.back.start(s)
	}
	for _, h := range op.w.hosts.of(allocHost) {
		op.mu.Lock()
		wait := time.Duration(0)
		if h.up && h.era != 0 { // nobody has stopped it: a while later somebody does
			wait = op.between(0, 25*time.Second)
		}
		life := h.life
		op.mu.Unlock()
		op.later(wait, func() {
			op.w.procs.kill(h, life)
			op.w.procs.start(h)
		})
	}
}

// floors are the highest of the stores of the era that is in force.
func (op *operators) floors(era seq.Era) (f quorum.Floors) {
	for _, h := range op.w.hosts.all {
		if h.kind == storeHost && h.disk.meta().Era == era {
			f = f.Over(h.disk.meta().Floors.Floors)
		}
	}
	return f
}
