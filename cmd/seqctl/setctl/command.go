package setctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/sets"
)

// Defaults of --timeout, and how long one Set is waited for by verbs that ask all of them.
const (
	askTimeout    = 10 * time.Second
	changeTimeout = 30 * time.Second
	moveTimeout   = 2 * time.Minute
	setPatience   = 3 * time.Second
)

// Command is `seqctl set`.
func Command() *cobra.Command {
	return ctl.Group(&cobra.Command{
		Use:   "set",
		Short: "divide sections among several clusters: add, list, show, move, abort, settle",
		Long: `A Set is a whole cluster, with stores and AllocSvr of its own, that has some of the sections; if it
breaks, callers of other sections feel nothing. The first cluster is the root Set, which keeps the map of
who has what. --addr may lead to any of the Sets: the verbs find the root by it.`,
	}, addCommand(), listCommand(), showCommand(), moveCommand(), abortCommand(), settleCommand())
}

// options are the flags of every verb here.
type options struct{ ctl.Options }

// division is the Sets as a verb sees them.
type division struct {
	conns    *survey.Conns
	root     *setadmin.Root
	addrs    []string // of the root's AllocSvr
	record   sets.Record
	cluster  string // of the root
	sections int
	sets     sets.Map
}

// with runs do with the Sets that --addr leads to.
func (o *options) with(ctx context.Context, do func(d *division) error) error {
	seed, err := o.Seed(ctx)
	if err != nil {
		return err
	}
	d := &division{conns: survey.NewConns(o.Dial()...)}
	defer d.conns.Close()
	c, err := survey.Routes(ctx, d.conns, seed)
	if err != nil {
		return err
	}
	if err := d.find(ctx, c.Addrs()); err != nil {
		return err
	}
	if d.sets, err = d.root.Map(ctx); err != nil {
		return err
	}
	return do(d)
}

// errNotRoot: where a Set says that the root is, there is another Set.
var errNotRoot = errors.New("not the root Set")

// find finds the root by AllocSvr of any Set.
func (d *division) find(ctx context.Context, addrs []string) error {
	asked := setadmin.NewSet("", addrs, d.conns)
	record, _, _, err := asked.Record(ctx)
	if err != nil {
		return err
	}
	if !record.IsRoot() {
		addrs = record.Root
	}
	d.root = &setadmin.Root{Set: setadmin.NewSet(sets.RootName, addrs, d.conns)}
	if d.record, d.cluster, d.sections, err = d.root.Record(ctx); err != nil {
		return err
	}
	if !d.record.IsRoot() {
		return fmt.Errorf("%w: at %v, where Set %s looks for it, is Set %s", errNotRoot, addrs, record.SetName(), d.record.SetName())
	}
	t, err := d.root.Table(ctx)
	if err != nil {
		return err
	}
	for _, n := range t.Nodes {
		d.addrs = append(d.addrs, n.Addr)
	}
	return nil
}

// all returns the Sets, or the cluster itself if it is alone.
func (d *division) all() []sets.Set {
	if len(d.sets.Sets) > 0 {
		return d.sets.Sets
	}
	return []sets.Set{{Name: d.record.SetName(), Cluster: d.cluster, Addrs: d.addrs}}
}

// set is one of them, to be asked. sets.ErrUnknownSet.
func (d *division) set(name string) (*setadmin.Set, error) {
	var names []string
	for i, s := range d.all() {
		switch {
		case s.Name == name && i == 0:
			return d.root.Set, nil
		case s.Name == name:
			return setadmin.NewSet(name, s.Addrs, d.conns), nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("%w: %q, %s", sets.ErrUnknownSet, name, ctl.Known(name, names, "seqctl set list"))
}

// ranges returns the sections that each Set has by the map.
func (d *division) ranges() [][]sets.Range {
	return d.sets.Ranges(d.sections)
}

// count returns the number of sections in ranges.
func count(ranges []sets.Range) (n int) {
	for _, r := range ranges {
		n += int(r.Sections)
	}
	return n
}
