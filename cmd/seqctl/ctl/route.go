package ctl

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/seq"
)

// routeNode is one AllocSvr in route without a UID.
type routeNode struct {
	Name     string `json:"name"`
	Addr     string `json:"addr"`
	Session  string `json:"session"`
	Weight   uint32 `json:"weight"`
	Drained  bool   `json:"drained"`
	Sections int    `json:"sections"`
	Standby  int    `json:"standby"` // sections that it is the first standby of
	Zone     string `json:"zone"`    // may be empty
}

type routesResult struct {
	ClusterID string         `json:"cluster_id"`
	Set       string         `json:"set,omitempty"` // the Set of this table; empty if the cluster has no other Sets
	Version   uint64         `json:"route_version"`
	Frozen    string         `json:"frozen"`
	Spaces    []seq.Space    `json:"spaces"`
	Nodes     []routeNode    `json:"nodes"`
	Pins      map[int]string `json:"pins"`
}

func routeCommand() *cobra.Command {
	o, who := &Options{}, &target{}
	cmd := &cobra.Command{
		Use:     "route [UID]",
		Example: "  seqctl route 42\n  seqctl route --key user:alice -o json\n  seqctl route",
		Short:   "show which AllocSvr a UID goes to, or the route table as a whole",
		Args:    RangeArgs(0, 1),
	}
	o.AddTo(cmd, askTimeout)
	who.addTo(cmd, o)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		all := len(args) == 0 && !cmd.Flags().Changed("key")
		var of survey.CounterID
		if !all {
			var err error
			if of, _, err = who.one(cmd, args, 0); err != nil {
				return err
			}
		}
		c, err := o.routes(ctx)
		if err != nil {
			return err
		}
		conns := survey.NewConns(o.Dial()...)
		defer conns.Close()
		c.HearOfSets(ctx, conns)
		if all {
			return printRoutes(stdout, format, c)
		}
		space, err := c.Mapping.Space(who.space)
		if err != nil {
			return err
		}
		if c, err = c.In(ctx, conns, seq.SectionID(c.Place(space, of).Section)); err != nil {
			return err
		}
		return printRoute(stdout, format, c.Place(space, of))
	})
	return cmd
}

func printRoute(w io.Writer, format ui.Format, r survey.Place) error {
	return ui.Print(w, format, r, func() *ui.Table {
		columns, set := []string{"space", r.Column(), "section", "owner", "addr", "standby", "standby 2", "pinned", "routes version", "zones"}, []any{}
		if r.Set != "" {
			columns, set = append(columns, "set"), append(set, r.Set)
		}
		t := ui.NewTable(columns...)
		standbys := append(append([]string{}, r.Standbys...), "", "")
		return t.Row(append([]any{r.Space, r.CounterID.String(), Digits(uint64(r.Section)), cmp.Or(r.Owner, "-"), r.Addr, standbys[0], standbys[1], r.Pinned, Digits(r.Version), zones(r.Zone, r.Zones)}, set...)...)
	})
}

func printRoutes(w io.Writer, format ui.Format, c *survey.Cluster) error {
	r := routesResult{ClusterID: c.ID, Set: c.Set, Version: c.Table.Version, Frozen: c.Table.Frozen, Spaces: c.Mapping.Spaces, Nodes: []routeNode{}, Pins: map[int]string{}}
	for _, n := range c.Table.Nodes {
		r.Nodes = append(r.Nodes, routeNode{Name: n.Name, Addr: n.Addr, Session: survey.SessionText(uint64(n.Session)), Weight: n.Weight, Drained: n.Drained, Zone: n.Zone})
	}
	for id, p := range c.Table.Sections {
		if _, elsewhere := c.Elsewhere(seq.SectionID(id)); elsewhere {
			continue
		}
		if p.Owner != seq.NoNode {
			r.Nodes[p.Owner].Sections++
		}
		if p.Standby != seq.NoNode {
			r.Nodes[p.Standby].Standby++
		}
	}
	for id, name := range c.Table.Pins {
		r.Pins[int(id)] = name
	}
	return ui.Print(w, format, r, func() *ui.Table {
		t := ui.NewTable("node", "addr", "session", "weight", "drained", "sections", "standby of", "routes version", "zone")
		for _, n := range r.Nodes {
			t.Row(n.Name, n.Addr, n.Session, n.Weight, n.Drained, n.Sections, n.Standby, Digits(r.Version), n.Zone)
		}
		return t
	})
}
