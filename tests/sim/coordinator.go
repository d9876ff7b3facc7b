package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/storesvr/backup"
)

// coordinators make the second cluster join the first as a Set, and then move sections to the other Set and
// back, as seqctl does. Each is a process that knows only what it reads, and may end anywhere.
type coordinators struct {
	part
	over bool // no move begins any more; guarded by world.mu
}

// movers is the number of coordinators.
const movers = 2

// setName is the name of a Set.
func (w *world) setName() string {
	if w.set == 0 {
		return sets.RootName
	}
	return "set-" + w.tag()
}

// nodes are the addresses of the cluster's allocators, as operators write them down.
func (w *world) nodes() (out []string) {
	for _, h := range w.hosts.of(allocHost) {
		if h.twinOf == "" {
			out = append(out, h.name)
		}
	}
	return out
}

// assemble makes the coordinators.
func (cs *coordinators) assemble() {
	for i := range movers {
		cs.w.hosts.add(coordinatorHost, fmt.Sprintf("m%d", i+1), i)
	}
}

// conns are the connections of a life of a host.
type conns struct {
	w    *world
	from *host
	life int
}

// At implements setadmin.Conns.
func (c conns) At(addr string) (grpc.ClientConnInterface, error) {
	return &conn{w: c.w, from: c.from, life: c.life, to: addr}, nil
}

// rootOver is the root Set as that process finds it.
func (cs *coordinators) rootOver(over conns) *setadmin.Root {
	return &setadmin.Root{Set: setadmin.NewSet(sets.RootName, cs.w.root().nodes(), over)}
}

// join has all other clusters join the root's, and waits until none of their nodes serves anything:
// they were no Sets before, and nobody has called them yet.
func (cs *coordinators) join(ctx context.Context) error {
	h := cs.w.hosts.of(coordinatorHost)[0]
	cs.mu.Lock()
	h.boot()
	over := conns{cs.w, h, h.life}
	cs.mu.Unlock()
	for _, w := range cs.w.sets[1:] {
		for {
			_, err := cs.rootOver(over).Add(ctx, setadmin.NewSet(w.setName(), w.nodes(), over), cs.w.root().nodes())
			if err == nil && !w.serves() {
				break
			}
			cs.trace.add("%-8s has not added %s: %v", h.name, w.setName(), err)
			if !cs.sleep(200*time.Millisecond) || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
		}
	}
	cs.w.check.places.joined.Store(true)
	cs.mu.Lock()
	h.halt(true)
	cs.mu.Unlock()
	for _, h := range cs.w.hosts.of(coordinatorHost) {
		cs.start(h)
	}
	return nil
}

// serves says whether a node of the cluster would serve a section.
func (w *world) serves() bool {
	for _, h := range w.hosts.of(allocHost) {
		w.mu.Lock()
		p, up := h.alloc, h.up
		w.mu.Unlock()
		if !up || p == nil {
			continue
		}
		for _, v := range p.node.Sections() {
			if v.Owned && h.clock.real() < v.Until {
				return true
			}
		}
	}
	return false
}

// start starts the process of a coordinator, which goes on until it is killed.
func (cs *coordinators) start(h *host) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if h.up || !cs.w.check.places.joined.Load() || cs.over || cs.life.Err() != nil {
		return
	}
	h.boot()
	ctx, over := h.ctx, conns{cs.w, h, h.life}
	cs.trace.add("%-8s starts, life %d", h.name, h.life)
	cs.work.Go(func() {
		for cs.idle(ctx) {
			try, cancel := context.WithTimeout(ctx, tryTime)
			if err := cs.once(try, over); err != nil {
				cs.trace.add("%-8s has not done: %v", h.name, err)
			}
			cancel()
		}
	})
}

// idle waits before the next move; false when the process has ended.
func (cs *coordinators) idle(ctx context.Context) bool {
	cs.mu.Lock()
	pause := cs.between(50*time.Millisecond, 8*time.Second)
	cs.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// once begins a move, or takes up one that is open, and finishes it or takes it back.
func (cs *coordinators) once(ctx context.Context, over conns) error {
	root := cs.rootOver(over)
	m, err := cs.settle(ctx, root, over)
	if err != nil {
		return err
	}
	cs.mu.Lock()
	fresh, back := len(m.Moves) == 0 || cs.chance(0.3), cs.chance(0.3)
	to, ranges := cs.choice(m)
	cs.mu.Unlock()
	if fresh {
		move, err := root.Begin(ctx, to, ranges)
		switch {
		case errors.Is(err, seq.ErrBadArgument): // another was faster, or there is an open one
			return nil
		case err != nil:
			return err
		}
		cs.did("begin move")
		m.Moves = append(slices.Clone(m.Moves), move)
	}
	cs.mu.Lock()
	move := m.Moves[cs.rng.IntN(len(m.Moves))]
	cs.mu.Unlock()
	return cs.bring(ctx, root, m, move, over, back && !fresh)
}

// settle decides what a Set has that was restored, and reads the map.
func (cs *coordinators) settle(ctx context.Context, root *setadmin.Root, over conns) (sets.Map, error) {
	m, err := root.Map(ctx)
	if err != nil {
		return m, err
	}
	for _, w := range cs.w.sets {
		if !cs.w.check.places.limbo(w) && (w.set > 0 || !m.Restored) {
			continue
		}
		got, err := (&setadmin.Settlement{Root: root, Conns: over, Set: w.setName(), Bump: backup.DefaultBump}).Run(ctx)
		cs.trace.add("%-8s settles %s: %+v: %v", over.from.name, w.setName(), got, err)
		if err != nil {
			return m, err
		}
		cs.did("settle")
	}
	return root.Map(ctx)
}

// choice draws sections that are in one Set by the map, and another Set. Needs w.mu.
func (cs *coordinators) choice(m sets.Map) (to string, ranges []sets.Range) {
	var all []seq.SectionID
	for _, s := range cs.w.ident.Mapping.Spaces {
		for id := s.First; s.Mode != seq.Exact && id < s.First+seq.SectionID(s.Sections); id++ {
			all = append(all, id)
		}
	}
	at, n := cs.rng.IntN(len(all)), 1+cs.rng.IntN(len(all))
	from := m.Index(all[at])
	ids := slices.DeleteFunc(slices.Clone(all[at:min(at+n, len(all))]), func(id seq.SectionID) bool { return m.Index(id) != from })
	other := (from + 1 + cs.rng.IntN(len(m.Sets)-1)) % len(m.Sets)
	return m.Sets[other].Name, sets.RangesOf(ids)
}

// bring finishes a move, or takes it back.
func (cs *coordinators) bring(ctx context.Context, root *setadmin.Root, m sets.Map, move sets.Move, over conns, back bool) error {
	mover, err := root.Mover(m, move, over)
	if err != nil {
		return err
	}
	h := over.from
	mover.Logger = cs.logger(h.name)
	mover.Before = func(step string) error {
		cs.mu.Lock()
		cs.trace.add("%-8s move %d, sections %v: %s", h.name, move.ID, move.Sections, step)
		cs.w.point(h, nil, "move."+step)
		cs.mu.Unlock()
		select { // whoever is killed here has not begun the step
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
		return ctx.Err()
	}
	did := "move"
	if back {
		did, err = "take back move", mover.TakeBack(ctx)
	} else {
		err = mover.Finish(ctx)
	}
	switch {
	case err == nil:
		cs.did(did)
	case anyOf(err, seq.ErrBadArgument, seq.ErrConflict, seq.ErrUnknownSection, seq.ErrForeignCluster, seq.ErrBadTable):
		cs.w.check.broken("move", "%s cannot %s %d: %v", h.name, did, move.ID, err)
	case anyOf(err, setadmin.ErrRefused, setadmin.ErrTakenBack) && !back:
		return cs.bring(ctx, root, m, move, over, true)
	}
	return err
}

func anyOf(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

// did counts something that was carried out.
func (cs *coordinators) did(what string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.stats.Orders[what]++
}

// close has one coordinator bring all open moves to their ends, undisturbed, and checks that the
// map and the records agree then.
func (cs *coordinators) close() {
	h := cs.w.hosts.of(coordinatorHost)[0]
	select {
	case <-cs.w.check.failed:
		return
	default:
	}
	cs.mu.Lock()
	cs.over = true
	for _, h := range cs.w.hosts.of(coordinatorHost) {
		h.halt(false)
	}
	h.boot()
	over := conns{cs.w, h, h.life}
	cs.mu.Unlock()
	ctx, cancel := context.WithTimeout(h.ctx, orderTime)
	defer cancel()
	for last := error(nil); ; {
		root := cs.rootOver(over)
		m, err := cs.settle(ctx, root, over)
		if err == nil && len(m.Moves) == 0 {
			cs.w.check.places.agree(m)
			return
		}
		for _, move := range m.Moves {
			err = errors.Join(err, cs.bring(ctx, root, m, move, over, false))
		}
		if err == nil {
			continue
		}
		cs.trace.add("%-8s has not closed all moves: %v", h.name, err)
		if ctx.Err() == nil {
			last = err
		} else if cs.life.Err() == nil {
			cs.w.check.broken("liveness", "moves are not over %v after healing: %v", orderTime, last)
		}
		if ctx.Err() != nil || !cs.sleep(500*time.Millisecond) {
			return
		}
	}
}
