package sim

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/tests/kit/etcdmodel"
)

// An etcd is put back once in a run at most.

// mostAhead bounds how far beyond its true time a machine makes IDs in a run whose etcd is put
// back: what bounds the worker ids of the new era is the operator's clock.
const mostAhead = 30 * time.Minute

// injectRollback puts a snapshot back. With an even Arg as the runbook says: every process is
// stopped, and not started before there is a new era. With an odd one below the running cluster,
// as what a new etcd cluster has, which its processes find out; the operator comes later.
func injectRollback(w *world, f Fault) {
	b, orderly := w.back.(*onEtcd), int(f.Arg)%2 == 0
	w.mu.Lock()
	defer w.mu.Unlock()
	m := b.members
	for _, h := range w.hosts.of(allocHost) {
		if h.clock.furthest() > mostAhead {
			return
		}
	}
	if len(m.old) == 0 || m.made > 0 {
		return
	}
	b.rolled, b.closed = true, orderly
	for _, h := range w.hosts.all {
		if h.kind == storeHost || h.kind == allocHost && orderly {
			h.halt(false)
			w.after(time.Second, func() { w.procs.start(h) })
		}
	}
	id := uint64(firstCluster)
	if !orderly {
		id++
	}
	b.ledger.putBack()
	m.putBack(m.old[int(f.Arg)/2%len(m.old)], id)
	w.net.severed = w.stats.Messages
	w.work.Go(b.newEra)
}

// putBack restarts the members with a snapshot. Transactions under way are lost. Needs w.mu.
func (m *members) putBack(s etcdmodel.Snapshot, id uint64) {
	m.etcd.Restore(s, id)
	m.made++
	m.waiting, m.old = nil, nil
	m.leader = nil
	m.elect()
}

// newEra is what the operator does who restored the etcd, however often it takes.
func (b *onEtcd) newEra() {
	b.mu.Lock()
	wait := b.between(time.Second, 20*time.Second)
	b.mu.Unlock()
	for era := b.w.check.eras.present() + 1; b.sleep(wait); era++ {
		ctx, cancel := context.WithTimeout(b.life, 2*time.Minute)
		err := b.raise(ctx, era)
		cancel()
		if err == nil {
			b.beginEra(era)
			return
		}
		b.trace.add("the operator has made no era %d: %v", era, err)
		wait = 2 * time.Second
	}
}

// raise is seqctl store restore --etcd.
func (b *onEtcd) raise(ctx context.Context, era seq.Era) error {
	from := b.w.hosts.of(callerHost)[0]
	client, err := b.dial(from, from.life)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	order := etcdstore.NewEra{Prefix: etcdPrefix, Cluster: b.w.cluster(), Era: era}
	return order.Raise(ctx, client, func(c etcdstore.Contents) (etcdstore.Beginning, error) {
		m := backup.Manifest{Cluster: c.Cluster, Era: c.OldestOf, Mapping: c.Mapping, Floors: c.Floors}
		for _, s := range c.Sessions {
			m.LeaseBound = max(m.LeaseBound, s.Lease)
		}
		with, err := backup.Restore{Cluster: b.w.cluster(), Era: era, Bump: backup.DefaultBump, WorkerMargin: backup.DefaultWorkerMargin}.Filling(m, c.States)
		if err != nil {
			return etcdstore.Beginning{}, err
		}
		out := etcdstore.Beginning{Mapping: c.Mapping, Floors: with.Floors.Made(calendar.Add(b.now())).Floors, LeaseBound: with.LeaseBound}
		for r, st := range with.Registers {
			out.States = append(out.States, st.Of(r))
		}
		b.raised(era, out)
		return out, nil
	})
}

// raised checks that the era begins above all that etcd ever had (I2 over eras).
func (b *onEtcd) raised(era seq.Era, with etcdstore.Beginning) {
	begins := map[seq.Register]uint64{}
	for _, st := range with.States {
		begins[st.Register] = st.Max
	}
	b.ledger.mu.Lock()
	defer b.ledger.mu.Unlock()
	for r, had := range b.ledger.highest {
		at, known := begins[r]
		switch rules := r.Rules(); {
		case rules.Holds == seq.Mark, rules.Restored == seq.Raise && !known:
			at = with.Floors.Of(r)
		case rules.Restored != seq.Raise:
			continue
		}
		if at < had {
			b.w.check.broken("I2", "era %d begins with %s at %d, which had %d", era, r, at, had)
			return
		}
	}
}

// beginEra has the allocators go over to the era, also those that nobody has stopped.
func (b *onEtcd) beginEra(era seq.Era) {
	b.w.check.eras.newEra(era, quorum.MemberList{}, func(seq.Register) bool { return true })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trace.add("the operator has made era %d", era)
	b.stats.Orders["new era"]++
	b.closed, b.rolled = false, false
	for _, h := range b.w.hosts.of(allocHost) {
		life := h.life
		b.after(b.between(0, 10*time.Second), func() {
			b.w.procs.kill(h, life)
			b.w.procs.start(h)
		})
	}
}
