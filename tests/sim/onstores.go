package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// onStores are the registers of a run on StoreSvr: real replicas on simulated disks.
type onStores struct{ part }

// assemble implements backend.
func (b *onStores) assemble(m seq.Mapping) {
	w := b.w
	members := memberList(b.opts.Stores, w.tag())
	w.ident = quorum.Identity{N: b.opts.Stores, W: b.opts.W(), R: b.opts.Stores - b.opts.W() + 1, Mapping: m, Members: members, Voting: true,
		MaxLease: 10 * time.Second,
		Ref:      quorum.Ref{Cluster: w.cluster(), Era: 1, Members: 1, MembersHash: quorum.MembersHash(members)}}
	for i, member := range members {
		h := w.hosts.add(storeHost, member.Name, i)
		h.disk = newDisk(w, h)
		bound := &disk.Members{Version: w.ident.Ref.Members, List: members}
		if b.opts.Unbound {
			bound = nil
		}
		h.disk.format(member.UUID, bound)
	}
	if b.opts.Care {
		w.ops.assemble()
	}
}

// begin implements backend.
func (b *onStores) begin() {
	for _, h := range b.w.hosts.of(storeHost) {
		b.start(h)
	}
	if !b.opts.still {
		b.work.Go(b.snapshots)
	}
}

// snapshotEvery is the time between two snapshots of a disk's content.
const snapshotEvery = 7 * time.Second

// snapshots keeps old contents of the disks, for those that are put back.
func (b *onStores) snapshots() {
	for b.sleep(snapshotEvery) {
		for _, h := range b.w.hosts.of(storeHost) {
			h.disk.remember()
		}
	}
}

// launch implements backend.
func (b *onStores) launch(h *host, p *allocProc) {
	if b.opts.Care {
		b.work.Go(func() { b.connect(h, p) })
		return
	}
	w := b.w
	b.mu.Lock()
	stores := w.net.stores(h, p.life, w.ident.Members)
	for i := range stores {
		if !b.opts.still && (w.links.astray[h] != nil || !b.chance(0.7)) { // it did not answer when the process connected
			stores[i].UUID = ""
		}
	}
	b.mu.Unlock()
	wiring := allocsvr.Wiring{Identity: w.ident, Stores: stores}
	if len(w.sets) == 1 && !b.opts.Rehash {
		w.procs.serve(h, p, wiring)
		return
	}
	b.work.Go(func() {
		if b.readFirst(h, p, &wiring) {
			w.procs.serve(h, p, wiring)
		}
	})
}

// readFirst reads what a process has to know of its Set before it serves, by a session of its own,
// for as long as the process is wanted.
func (b *onStores) readFirst(h *host, p *allocProc, w *allocsvr.Wiring) bool {
	for {
		try, done := context.WithTimeout(p.ctx, 5*time.Second)
		err := b.read(try, h, w)
		done()
		switch {
		case err == nil:
			return true
		case p.ctx.Err() != nil:
			close(p.over)
			return false
		}
		b.trace.add("%-8s does not know yet what its Set has: %v", h.name, err)
		select {
		case <-p.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (b *onStores) read(ctx context.Context, h *host, w *allocsvr.Wiring) error {
	b.mu.Lock()
	secret := b.w.procs.newSecret(h)
	b.mu.Unlock()
	id := w.Identity
	g, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, Secret: secret}, w.Stores)
	if err != nil {
		return err
	}
	defer g.Close()
	if w.Keys, err = documents.NewKeys(ctx, g, secret.Session(), id.Mapping).Begin(ctx); err != nil {
		return err
	}
	w.First, err = documents.ReadSets(ctx, g, secret.Session())
	return err
}

// group implements backend.
func (b *onStores) group(_ context.Context, from *host) (*quorum.Group, func(), error) {
	l := b.w.list()
	b.mu.Lock()
	stores := b.w.net.stores(from, from.life, l.Voters())
	b.mu.Unlock()
	cfg := quorum.Config{Ref: l.Ref(b.w.ident.Ref.Cluster, b.w.check.eras.present()), N: l.N(), R: l.R, W: l.W}
	g, err := quorum.NewGroup(cfg, stores)
	if err != nil {
		b.w.check.broken("start", "group of another process: %v", err)
		return nil, nil, err
	}
	return g, g.Close, nil
}

// heal implements backend.
func (b *onStores) heal() {
	b.setClocks()
	for _, h := range b.w.hosts.of(storeHost) {
		h.disk.mu.Lock()
		h.disk.slow, h.disk.full, h.disk.failNext = 0, false, nil
		h.disk.mu.Unlock()
	}
}

// recover implements backend: with changes half done and their operators dead, and again after
// others have finished them.
func (b *onStores) recover(moves func()) {
	if b.opts.Care {
		b.mu.Lock()
		down := slices.ContainsFunc(b.w.ops.pending(), func(o *order) bool { return o.verb == "restore" })
		b.mu.Unlock()
		if down {
			b.w.ops.finish()
		}
	}
	moves()
	if b.opts.Care {
		b.w.ops.finish()
		moves()
	}
}

// nearFull is the room below which stores refuse writes; simulated disks have either
// more than enough or none.
const nearFull = 1 << 20

// start implements backend: once nobody has the store's disk in hand, the process before or
// whoever changes it. Not if the disk is lost.
func (b *onStores) start(h *host) {
	b.mu.Lock()
	up, over := h.up, h.over
	b.mu.Unlock()
	if up {
		return
	}
	b.work.Go(func() {
		if over != nil {
			<-over
		}
		b.open(h, over)
	})
}

// open starts the process if over is still the last to have had the disk in hand.
func (b *onStores) open(h *host, over chan struct{}) {
	b.mu.Lock()
	if h.up || h.lost || b.life.Err() != nil {
		b.mu.Unlock()
		return
	}
	if h.over != over {
		b.mu.Unlock()
		b.start(h)
		return
	}
	h.boot()
	life, dead := h.life, h.dead
	over = h.over
	db, meta, registers, err := h.disk.open(h.fence)
	b.mu.Unlock()
	if err != nil {
		b.w.check.broken("X", "%v", err)
		close(over)
		return
	}
	r, err := storesvr.NewReplica(storesvr.Config{
		MaxLease: allocsvr.MaxLease, NearFull: nearFull, Logger: b.logger(h.name), Clock: h.clock, Wall: h.clock.Wall,
	}, db, meta, registers)
	if errors.Is(err, storesvr.ErrCommit) { // its first, after a restore
		if b.w.procs.lives(h, life) {
			b.w.procs.kill(h, life)
			b.schedule(2*time.Second, func() { b.start(h) })
		}
		close(over)
		return
	}
	if err != nil {
		b.w.check.broken("I1-I3", "%s does not start on its own disk: %v", h.name, err)
		close(over)
		return
	}
	b.mu.Lock()
	if h.life == life {
		r.Register(h)
		h.guard = chain([]grpc.UnaryServerInterceptor{gate.Guard(gate.ServerConfig{Logger: b.logger(h.name)}), r.Addressed()})
	}
	b.trace.add("%-8s starts, life %d, commits %d", h.name, life, meta.Commits)
	b.mu.Unlock()
	defer close(over)
	select {
	case <-r.Failed():
		b.w.procs.kill(h, life)
		b.schedule(2*time.Second, func() { b.start(h) })
	case <-dead:
	}
	db.d.mu.Lock()
	db.closing = true
	db.d.mu.Unlock()
	_ = r.Close() // what it cannot write any more does not matter
}

// setClocks sets the wall clocks of stores right, by the one that is ahead: a store whose clock is
// too far behind takes no records of exact sections, as if it were down.
func (b *onStores) setClocks() {
	stores := b.w.hosts.of(storeHost)
	ahead := stores[0].clock.Wall()
	for _, h := range stores {
		if at := h.clock.Wall(); at.After(ahead) {
			ahead = at
		}
	}
	for _, h := range stores {
		h.clock.jump(ahead.Sub(h.clock.Wall()))
	}
}

// connect is the start of an allocator that finds its stores and follows the list.
func (b *onStores) connect(h *host, p *allocProc) {
	dial, log := b.w.net.through(h, p.life), b.logger(h.name)
	for {
		cluster, wiring, err := b.find(h, p, dial)
		if p.ctx.Err() != nil {
			close(p.over)
			return
		}
		if err == nil {
			p.era = cluster.Identity.Ref.Era
			follow := storeclient.NewFollower(cluster, log, func(list quorum.MemberList, stores []quorum.NamedStore) error {
				return p.node.Reconfigure(list, stores)
			}, dial)
			wiring.Stale, wiring.Tell = follow.Kick, follow.Extend
			follow.OnSpaces(func(ctx context.Context, m seq.Mapping) error { return p.node.Extend(ctx, m) })
			if b.w.procs.serve(h, p, wiring) {
				_ = follow.Run(p.ctx) // it ends with its context only
			}
			return
		}
		b.trace.add("%-8s does not find the stores, or what its Set has: %v", h.name, err)
		select {
		case <-p.ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// find tries once to find the stores, and to read what a process must know of its Set. The members may
// change in between, so each try finds them again.
func (b *onStores) find(h *host, p *allocProc, dial grpc.DialOption) (cluster storeclient.Cluster, wiring allocsvr.Wiring, err error) {
	ctx, done := context.WithTimeout(p.ctx, 5*time.Second)
	defer done()
	// The addresses may come from the former era, and be too few or too many.
	if cluster, err = storeclient.Connect(ctx, b.w.addresses(), dial); err != nil {
		return cluster, wiring, err
	}
	wiring = allocsvr.Wiring{Identity: cluster.Identity, Stores: storeclient.NamedStores(cluster.Stores)}
	if err = cluster.Complete(); err == nil && (len(b.w.sets) > 1 || b.opts.Rehash || b.opts.Late) {
		err = b.read(ctx, h, &wiring)
	}
	if err != nil {
		err = errors.Join(err, cluster.Close())
	}
	return cluster, wiring, err
}

// kept implements backend: what is handed out is at or below what W disks have.
func (b *onStores) kept(h *host, r seq.Register, value uint64) {
	if b.w.opts.Care {
		b.w.check.eras.kept(h, r, value)
		return
	}
	have := 0
	for _, s := range b.w.hosts.of(storeHost) {
		if s.disk.had(r) >= value {
			have++
		}
	}
	if have < b.w.ident.W {
		b.w.check.broken("I5", "%s hands out %d of %s, which is on %d disks, %d needed", h.name, value, r, have, b.w.ident.W)
	}
}
