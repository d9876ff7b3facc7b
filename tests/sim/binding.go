package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// binding is the beginning of a run whose stores were just made: several processes bind them at the
// same time, while calls and answers are lost and processes die. Some stores were made twice under
// one name, and each process reaches one of the two. The run goes on with the stores that are bound.
//
// It has a generator of its own, so that the rest of a run draws what it draws without it.
type binding struct {
	*onStores
	rng     *rand.Rand
	stores  [][]*host  // by name: a store, and the second one that was made under its name
	views   [][]int    // of each binder: which of the stores it reaches, by name
	addrs   [][]string // of each binder, in an order of its own
	binders []*host
}

// Binders of a run, and how long faults get in their way.
const (
	mostBinders  = 3
	leastBinding = 2 * time.Second
	mostBinding  = 8 * time.Second
)

// bind binds the stores of a fresh cluster. It returns false if they do not get bound.
func (b *onStores) bind() bool {
	rng := rand.New(rand.NewPCG(b.opts.Seed, 0xb17d))
	bd := &binding{onStores: b, rng: rng}
	b.mu.Lock()
	chance := b.rng
	b.rng = rand.New(rand.NewPCG(b.opts.Seed, 0xb17e)) // of the network and the disks meanwhile
	b.mu.Unlock()
	defer b.locked(func() { b.rng = chance })()
	bd.prepare()
	stop, ended := bd.disturb(), bd.connect()
	b.sleep(leastBinding + time.Duration(rng.Int64N(int64(mostBinding-leastBinding))))
	stop()
	ended()
	bd.heal()
	ended = bd.connect()
	bound := bd.await()
	ended()
	if bound != nil {
		bd.adopt(bound)
	}
	return bound != nil
}

// prepare makes the stores and the machines of the binders.
func (b *binding) prepare() {
	b.mu.Lock()
	defer b.mu.Unlock()
	uuid := func() string { return fmt.Sprintf("uuid-%08x", b.rng.Uint32()) }
	names := slices.Clone(b.w.hosts.of(storeHost)[:b.opts.Stores])
	for i, h := range names {
		h.disk.format(uuid(), nil)
		made := []*host{h}
		if i > 0 && b.rng.IntN(3) > 0 { // one store at least is in all views
			twice := b.w.hosts.add(binderHost, h.name+"'", i)
			twice.disk = newDisk(b.w, twice)
			twice.disk.format(uuid(), nil)
			twice.disk.now.meta.Name = h.name
			made = append(made, twice)
			b.stats.Faults["madetwice"]++
		}
		b.stores = append(b.stores, made)
	}
	for i := range 2 + b.rng.IntN(mostBinders-1) {
		binder := b.w.hosts.add(binderHost, fmt.Sprintf("b%d", i+1), i)
		var view []int
		for _, made := range b.stores {
			which := b.rng.IntN(len(made))
			if i < 2 { // these two differ wherever they can
				which = i % len(made)
			}
			view = append(view, which)
		}
		addrs := b.w.memberNames()
		b.rng.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
		b.binders, b.views, b.addrs = append(b.binders, binder), append(b.views, view), append(b.addrs, addrs)
		b.look(binder, view)
	}
}

// look has a binder reach the stores of a view. Needs w.mu.
func (b *binding) look(binder *host, view []int) {
	to := map[string]string{}
	for i, which := range view {
		if at := b.stores[i][which]; which > 0 {
			to[b.stores[i][0].name] = at.name
		}
	}
	b.w.links.astray[binder] = to
}

// all are the stores, also those that were made twice.
func (b *binding) all() []*host { return slices.Concat(b.stores...) }

// disturb starts the stores and gets in the way of whatever they are asked until stop is called.
func (b *binding) disturb() (stop func()) {
	for _, h := range b.all() {
		b.start(h)
	}
	b.mu.Lock()
	b.w.links.bad = []weather{{loss: 0.3 * b.rng.Float64(), dup: 0.3 * b.rng.Float64(), slow: time.Duration(1e9 * b.rng.Float64() * b.rng.Float64())}}
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(b.life)
	rng := rand.New(rand.NewPCG(b.rng.Uint64(), 1))
	done := make(chan struct{})
	b.work.Go(func() {
		defer close(done)
		for pause(ctx, time.Duration(rng.Int64N(int64(1500*time.Millisecond)))) {
			h := append(b.all(), b.binders...)[rng.IntN(len(b.all())+len(b.binders))]
			b.w.procs.kill(h, 0)
			if h.disk != nil {
				b.later(time.Duration(rng.Int64N(int64(time.Second))), func() { b.start(h) })
			}
		}
	})
	return func() {
		cancel()
		<-done
	}
}

// pause sleeps, and returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// connect has each binder connect to its stores, time and again, as daemons that are restarted,
// until ended is called.
func (b *binding) connect() (ended func()) {
	ctx, cancel := context.WithCancel(b.life)
	var done []chan struct{}
	for _, h := range b.binders {
		rng := rand.New(rand.NewPCG(b.rng.Uint64(), 2))
		over := make(chan struct{})
		done = append(done, over)
		b.work.Go(func() {
			defer close(over)
			for pause(ctx, time.Duration(rng.Int64N(int64(300*time.Millisecond)))) {
				b.once(ctx, h)
			}
		})
	}
	return func() {
		cancel()
		for _, over := range done {
			<-over
		}
		for _, h := range b.binders {
			b.w.procs.kill(h, 0)
		}
	}
}

// once plays one life of a binder, which dies with its host.
func (b *binding) once(ctx context.Context, h *host) {
	b.mu.Lock()
	if !h.up {
		h.boot()
	}
	life, dies := h.life, h.ctx
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	defer context.AfterFunc(dies, cancel)()
	found, err := storeclient.Connect(ctx, b.addrs[h.index], b.w.net.through(h, life))
	b.trace.add("%-8s connects to new stores: %v", h.name, err)
	if err == nil {
		_ = found.Close()
	}
}

// memberNames are the addresses of the stores that a run begins with.
func (w *world) memberNames() (out []string) {
	for _, m := range w.ident.Members {
		out = append(out, m.Name)
	}
	return out
}

// onTheWay bounds the time for which a message of the faulty time is under way.
const onTheWay = 5 * time.Second

// heal ends the faults, and has all binders reach the same stores: the view that has bound the store
// of the highest uuid. Stores are bound in that order, so no store of that view is bound to another.
func (b *binding) heal() {
	b.mu.Lock()
	b.w.links.bad = nil
	b.mu.Unlock()
	for _, h := range b.all() {
		b.start(h)
	}
	b.sleep(onTheWay)
	b.mu.Lock()
	defer b.mu.Unlock()
	best, highest := 0, ""
	for i, view := range b.views {
		for k, which := range view {
			m := b.stores[k][which].disk.meta()
			if m.UUID > highest && m.Members.Version > 0 && b.same(view, m.Members.List) {
				best, highest = i, m.UUID
			}
		}
	}
	for _, h := range b.binders {
		b.look(h, b.views[best])
	}
	b.views = [][]int{b.views[best]}
}

// same reports whether the list has the stores of the view.
func (b *binding) same(view []int, list []quorum.Member) bool {
	return !slices.ContainsFunc(list, func(m quorum.Member) bool {
		i := slices.IndexFunc(b.stores, func(made []*host) bool { return made[0].name == m.Name })
		return b.stores[i][view[i]].disk.meta().UUID != m.UUID
	})
}

// await waits until all stores of the view are bound to each other, and returns their machines.
func (b *binding) await() []*host {
	var chosen []*host
	for i, which := range b.views[0] {
		chosen = append(chosen, b.stores[i][which])
	}
	for deadline := b.now() + patience; b.now() < deadline; {
		if !slices.ContainsFunc(chosen, func(h *host) bool { return !h.disk.complete() }) {
			return chosen
		}
		if !b.sleep(50 * time.Millisecond) {
			return nil
		}
	}
	var have []string
	for _, h := range b.all() {
		m := h.disk.meta()
		have = append(have, fmt.Sprintf("%s %s: %+v", h.name, m.UUID, m.Members))
	}
	b.w.check.broken("liveness", "new stores are not bound %v after healing: %q", patience, have)
	return nil
}

// adopt has the run go on with the stores that are bound, each at the address of its name.
func (b *binding) adopt(bound []*host) {
	second := 0
	for i, from := range bound {
		first := b.stores[i][0]
		for _, h := range b.stores[i] {
			if h != from || h != first {
				b.w.procs.kill(h, 0)
			}
		}
		if from == first {
			continue
		}
		second++
		for _, h := range b.stores[i] {
			b.mu.Lock()
			over := h.over
			b.mu.Unlock()
			if over != nil {
				<-over // the process has let go of the disk
			}
		}
		from.disk.mu.Lock()
		has := from.disk.now.clone()
		from.disk.mu.Unlock()
		first.disk.mu.Lock()
		first.disk.now = has
		first.disk.mu.Unlock()
		b.w.check.eras.home(has.meta.UUID, first)
		b.start(first)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.binders {
		delete(b.w.links.astray, h)
	}
	for _, h := range b.w.hosts.of(storeHost) {
		h.disk.forget()
	}
	id := &b.w.ident
	id.Members = bound[0].disk.meta().Members.List
	id.Ref.MembersHash = quorum.MembersHash(id.Members)
	b.stats.Orders["bind"]++
	if second > 0 {
		b.stats.Orders["bind to a second store"] += second
	}
	b.trace.add("new stores are bound: %v", id.Members)
}

// complete reports whether the store knows that all members of its list are bound.
func (d *simDisk) complete() bool {
	m := d.meta().Members
	return m.Version > 0 && !m.Pending
}

// bound checks that all members of a first list are bound to it, once a store votes with it or has it
// as complete.
func (es *eras) bound(h *host, m disk.Members) {
	if m.Version != 1 {
		return
	}
	for _, member := range m.List {
		at := es.at(member.UUID)
		if at == nil || at == h || at.disk.distrusted() || at.disk.meta().UUID != member.UUID { // that disk is gone
			continue
		}
		if has := at.disk.meta().Members; has.Version == 0 || has.Version == 1 && quorum.MembersHash(has.List) != quorum.MembersHash(m.List) {
			es.w.check.broken("bind", "%s goes by %v, and %s is bound to %v", h.name, m.List, at.name, has.List)
		}
	}
}
