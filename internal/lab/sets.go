package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	ask "github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

const (
	// setAway is the time for which a drill keeps a Set dead. If no AllocSvr of a Set answers, callers get an error
	// after two seconds, and later callers at once.
	setAway = 5 * time.Second
	// toAndFro is the number of moves there and back in a drill. It is large enough that a hundred callers
	// meet one.
	toAndFro = 10
	// drillSections is the default number of sections of the default space in a drill of Sets.
	drillSections = 256
)

// setOf is the Set of a node; routers serve all of them.
func setOf(n localcluster.Node) string { return cmp.Or(n.Set, sets.RootName) }

// setNames are the Sets of the nodes, the root first.
func setNames(nodes []localcluster.Node) (list []string) {
	for _, n := range nodes {
		if n.Role != router && !slices.Contains(list, setOf(n)) {
			list = append(list, setOf(n))
		}
	}
	return list
}

// ofSet are the nodes of a Set.
func ofSet(nodes []localcluster.Node, set string) []localcluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n localcluster.Node) bool { return n.Role == router || setOf(n) != set })
}

// fitsSets is Fits as to Sets.
func (sc Scenario) fitsSets(nodes []localcluster.Node, set string) error {
	all := setNames(nodes)
	switch {
	case len(all) < sc.Sets:
		return fmt.Errorf("%w: %s needs nodes in %d Sets", ErrTooSmall, sc.Name, sc.Sets)
	case set != "" && sc.Sets == 0:
		return fmt.Errorf("%w: %q: %s breaks no Set", sets.ErrUnknownSet, set, sc.Name)
	case set != "" && !slices.Contains(all, set):
		return fmt.Errorf("%w: %q, expected one of %v", sets.ErrUnknownSet, set, all)
	}
	return nil
}

// set is the Set to break: the one asked for, or the last.
func (s *Scene) set() string {
	all := setNames(s.Nodes)
	if s.drill == nil {
		return all[s.Random.IntN(len(all))]
	}
	return cmp.Or(s.drill.Set, all[len(all)-1])
}

// killSet kills all of one Set, and starts it again.
func killSet(ctx context.Context, s *Scene) error {
	set := s.set()
	victims, touched := names(ofSet(s.Nodes, set)), everybody
	if s.drill != nil {
		s.drill.dead = set
		touched = func(uid seq.UID) bool { return s.drill.shares.of(uid) == set }
		s.drill.survey.avoid(names(ofSet(s.Role(alloc), set))[0])
		if err := s.makeIDs(ctx, "each AllocSvr, of every Set, has made global IDs"); err != nil {
			return err
		}
	}
	err := s.hurt(victims, "SIGKILL", touched, s.Kill)
	if err == nil && s.drill != nil {
		err = s.meanwhile(ctx, set)
	}
	s.Rest(ctx, s.away(setAway))
	return errors.Join(err, s.StartAgain(ctx, victims))
}

// makeIDs makes global IDs, of which each AllocSvr that lives makes some.
func (s *Scene) makeIDs(ctx context.Context, what string) error {
	call, cancel := context.WithTimeout(ctx, s.drill.Load.Timeout)
	defer cancel()
	c, err := client.New(call, client.Config{Addrs: s.Addrs(alloc)})
	if err != nil {
		return err
	}
	defer c.Close()
	for range 4 * len(s.Role(alloc)) {
		if _, err := c.NextID(call, ""); err != nil {
			return fmt.Errorf("%w: a global ID: %w", ErrUnexpected, err)
		}
	}
	s.timeline.now(eventCaller, "", "%s", what)
	return nil
}

// meanwhile checks the service without a dead Set. The other Sets must serve new callers, and callers of
// global IDs. If the root is dead, moves must fail with a named error.
func (s *Scene) meanwhile(ctx context.Context, dead string) error {
	call, cancel := context.WithTimeout(ctx, s.drill.Load.Timeout)
	defer cancel()
	begun := s.timeline.clock.Now()
	c, err := client.New(call, client.Config{Addrs: s.Addrs(router, alloc)})
	if err != nil {
		return fmt.Errorf("%w: a new caller: %w", ErrUnexpected, err)
	}
	defer c.Close()
	for _, set := range setNames(s.Nodes) {
		if set == dead {
			continue
		}
		if _, err := c.Next(call, client.Key{UID: s.drill.shares.some(set)}); err != nil {
			return fmt.Errorf("%w: a new caller of Set %s: %w", ErrUnexpected, set, err)
		}
		s.timeline.now(eventCaller, set, "a new caller has its first number after %v", (s.timeline.clock.Now() - begun).Round(100*time.Microsecond))
	}
	if err := s.makeIDs(ctx, "global IDs come from the other Sets"); err != nil || dead != sets.RootName {
		return err
	}
	d := s.division()
	defer d.conns.Close()
	_, move := d.root.Begin(call, setNames(s.Nodes)[1], []sets.Range{{First: 0, Sections: 1}})
	if !errors.Is(move, setadmin.ErrSetDown) {
		return fmt.Errorf("%w: without the root a move began with %v", ErrUnexpected, move)
	}
	s.timeline.now(eventRefused, dead, "no move begins: %v", setadmin.ErrSetDown)
	return nil
}

// moveSet moves sections back and forth between the root and another Set. In a drawn scene it moves some
// sections between any two Sets.
func moveSet(ctx context.Context, s *Scene) error {
	d := s.division()
	defer d.conns.Close()
	all := setNames(s.Nodes)
	if s.drill == nil {
		from := all[s.Random.IntN(len(all))]
		others := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == from })
		return s.part(ctx, d, from, others[s.Random.IntN(len(others))], 1+s.Random.IntN(3))
	}
	other := s.set()
	if other == all[0] {
		other = all[1]
	}
	for range toAndFro {
		for _, way := range [][2]string{{all[0], other}, {other, all[0]}} {
			if err := s.part(ctx, d, way[0], way[1], 2); err != nil {
				return err
			}
		}
	}
	return s.served(ctx)
}

// part moves half of the sections of a Set to another, and back, and so on, so many times.
func (s *Scene) part(ctx context.Context, d *division, from, to string, times int) error {
	var ids []seq.SectionID
	err := s.until(ctx, 10*poll, func(ctx context.Context) (err error) { ids, err = d.movable(ctx, from); return err })
	ids = ids[:(len(ids)+1)/2]
	for range times {
		if err != nil || len(ids) == 0 || ctx.Err() != nil {
			return err
		}
		err = s.hurt([]string{to}, fmt.Sprintf("%d sections come from Set %s", len(ids), from), nobody, func(string) error {
			return s.until(ctx, 10*poll, func(ctx context.Context) error { return d.move(ctx, to, ids) })
		})
		from, to = to, from
	}
	return err
}

// division is the Sets of a cluster, as those who move sections reach them.
type division struct {
	root  *setadmin.Root
	conns *ask.Conns
	watch func(*setadmin.Mover) // may be nil
}

func (s *Scene) division() *division {
	d := s.Cluster.division()
	if s.drill != nil {
		d.watch = s.drill.watchMove
	}
	return d
}

func (c *Cluster) division() *division {
	var addrs []string
	for _, n := range ofSet(c.Role(alloc), sets.RootName) {
		addrs = append(addrs, n.Addr)
	}
	d := &division{conns: ask.NewConns()}
	d.root = &setadmin.Root{Set: setadmin.NewSet(sets.RootName, addrs, d.conns)}
	return d
}

// movable are the sections of a Set that may leave it.
func (d *division) movable(ctx context.Context, set string) (ids []seq.SectionID, err error) {
	m, err := d.root.Map(ctx)
	if err != nil {
		return nil, err
	}
	t, err := d.root.Table(ctx)
	if err != nil {
		return nil, err
	}
	c, err := ask.Routes(ctx, d.conns, t.Nodes[0].Addr)
	if err != nil {
		return nil, err
	}
	for _, space := range c.Mapping.Spaces {
		for id := space.First; id < space.First+seq.SectionID(space.Sections) && space.Mode != seq.Exact; id++ {
			if m.Sets[m.Index(id)].Name == set {
				ids = append(ids, id)
			}
		}
	}
	return ids, nil
}

// move brings sections to a Set, also those that are there or on their way already.
func (d *division) move(ctx context.Context, to string, ids []seq.SectionID) error {
	m, err := d.root.Map(ctx)
	if err == nil && len(m.Moves) > 0 {
		err = d.finish(ctx)
	}
	if err == nil {
		m, err = d.root.Map(ctx)
	}
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(ids), func(id seq.SectionID) bool { return m.Sets[m.Index(id)].Name == to })
	if len(left) > 0 {
		if _, err := d.root.Begin(ctx, to, sets.RangesOf(left)); err != nil {
			return err
		}
	}
	return d.finish(ctx)
}

// finish brings all open moves to their end.
func (d *division) finish(ctx context.Context) error {
	m, err := d.root.Map(ctx)
	if err != nil {
		return err
	}
	for _, open := range m.Moves {
		mover, err := d.root.Mover(m, open, d.conns)
		if err != nil {
			return err
		}
		if d.watch != nil {
			d.watch(mover)
		}
		if err := mover.Finish(ctx); err != nil {
			return err
		}
	}
	return nil
}

// CheckSets returns setadmin.ErrDivided unless the Sets agree on who has which sections, and no move is open. It
// finishes a move that opened late, after its coordinator was killed, and asks again.
func (c *Cluster) CheckSets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	d := c.division()
	defer d.conns.Close()
	for {
		err := d.root.Check(ctx, d.conns)
		if err == nil {
			return nil
		}
		m, unread := d.root.Map(ctx)
		if unread != nil || !c.orphans.all(m.Moves) {
			return err
		}
		if unfinished := d.finish(ctx); unfinished != nil {
			return errors.Join(err, unfinished)
		}
	}
}
