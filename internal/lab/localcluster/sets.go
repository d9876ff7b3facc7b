package localcluster

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// furtherSets returns the number of Sets beside the first one.
func (c Config) furtherSets() int { return max(0, c.Sets-1) }

// setName is what a further Set is called, and its directory.
func setName(i int) string { return fmt.Sprintf("set-%d", i+2) }

// ofSet returns the Config of a further Set: a whole cluster without routers.
func (c Config) ofSet(i int) Config {
	c.Sets, c.set = 0, setName(i)
	c.Dir = filepath.Join(c.Dir, c.set)
	if c.ClusterID != "" {
		c.ClusterID += "-" + c.set
	}
	c.Listen, c.HTTP, c.RESP, c.Console = "", "", "", ""
	if c.Etcd.Given() {
		c.Etcd.Prefix = strings.TrimRight(c.Etcd.Prefix, "/") + "-" + c.set
	}
	return c
}

// openOthers opens the layouts of further Sets. ErrConfig if there were more of them.
func (l *Layout) openOthers(cfg Config) error {
	if cfg.set != "" {
		return nil
	}
	if gone := filepath.Join(l.Dir, setName(cfg.furtherSets())); exists(filepath.Join(gone, stateFile)) {
		return fmt.Errorf("%w: %s is of more than %d Sets, which have sections: expected as many as before", ErrConfig, gone, max(1, cfg.Sets))
	}
	for i := range cfg.furtherSets() {
		of := cfg.ofSet(i)
		of.root = l
		other, err := Open(of)
		if err != nil {
			return fmt.Errorf("Set %s: %w", setName(i), err)
		}
		l.Others = append(l.Others, other)
	}
	return l.Secured.trust(l)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// AllNodes returns the nodes of all Sets, beginning with the first Set.
func (l *Layout) AllNodes() []Node {
	out := slices.Clone(l.Nodes)
	for _, other := range l.Others {
		out = append(out, other.Nodes...)
	}
	return out
}

// AllocsOfAllSets are the gRPC addresses that routers begin with.
func (l *Layout) AllocsOfAllSets() []string {
	out := l.Addrs(RoleAlloc)
	for _, other := range l.Others {
		out = append(out, other.Addrs(RoleAlloc)...)
	}
	return out
}

// buildAll makes the processes of all Sets.
func (c *Cluster) buildAll(cfg Config) error {
	if err := c.build(cfg); err != nil {
		return err
	}
	for i, other := range c.Others {
		further := &Cluster{Layout: other}
		if err := further.build(cfg.ofSet(i)); err != nil {
			return fmt.Errorf("Set %s: %w", other.Set, err)
		}
		c.processes = append(c.processes, further.processes...)
	}
	return nil
}

// JoinSets adds the further Sets to the map of the first, finishes moves that are open, and moves
// to each Set that is new an even share of the sections of each space that is not exact. All Sets
// must serve. It does nothing where all has been done.
func (l *Layout) JoinSets(ctx context.Context) error {
	if len(l.Others) == 0 {
		return nil
	}
	dial, err := l.Secured.dial(RoleAlloc)
	if err != nil {
		return err
	}
	conns := survey.NewConns(dial...)
	defer conns.Close()
	j := joining{l: l, conns: conns, root: &setadmin.Root{Set: setadmin.NewSet(sets.RootName, l.Addrs(RoleAlloc), conns)}}
	for _, other := range l.Others {
		addrs := other.Addrs(RoleAlloc) // they may be others than at the last start
		if _, err := j.root.Add(ctx, setadmin.NewSet(other.Set, addrs, conns), l.Addrs(RoleAlloc)); err != nil {
			return fmt.Errorf("add Set %s: %w", other.Set, err)
		}
	}
	all, err := j.root.Map(ctx)
	if err != nil {
		return err
	}
	for _, open := range all.Moves {
		if err := j.finish(ctx, open); err != nil {
			return err
		}
	}
	for i, other := range l.Others {
		if other.state.Shared {
			continue
		}
		if err := j.share(ctx, other.Set, i+1); err != nil {
			return fmt.Errorf("move sections to Set %s: %w", other.Set, err)
		}
		other.state.Shared = true
		if err := other.save(); err != nil {
			return err
		}
	}
	return nil
}

// joining is JoinSets under way.
type joining struct {
	l     *Layout
	conns *survey.Conns
	root  *setadmin.Root
}

func (j *joining) finish(ctx context.Context, move sets.Move) error {
	all, err := j.root.Map(ctx)
	if err != nil {
		return err
	}
	m, err := j.root.Mover(all, move, j.conns)
	if err != nil {
		return err
	}
	m.Logger = slog.New(slog.DiscardHandler)
	return m.Finish(ctx)
}

// share moves to the Set of that index the sections that are its even share, from wherever they are.
func (j *joining) share(ctx context.Context, name string, at int) error {
	c, err := survey.Routes(ctx, j.conns, j.l.Addrs(RoleAlloc)[0])
	if err != nil {
		return err
	}
	all, err := j.root.Map(ctx)
	if err != nil {
		return err
	}
	of := len(j.l.Others) + 1
	from := map[int][]seq.SectionID{} // by the Set that has them
	for _, space := range c.Mapping.Spaces {
		if space.Mode == seq.Exact {
			continue
		}
		for i := int(space.Sections) * at / of; i < int(space.Sections)*(at+1)/of; i++ {
			id := space.First + seq.SectionID(i)
			from[all.Index(id)] = append(from[all.Index(id)], id)
		}
	}
	delete(from, at) // they are there since a start that was cut off
	for _, ids := range from {
		move, err := j.root.Begin(ctx, name, sets.RangesOf(ids))
		if err == nil {
			err = j.finish(ctx, move)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
