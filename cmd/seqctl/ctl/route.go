package ctl

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/ui"
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
}

type routesResult struct {
	ClusterID string         `json:"cluster_id"`
	Version   uint64         `json:"route_version"`
	Frozen    string         `json:"frozen"`
	Spaces    []seq.Space    `json:"spaces"`
	Nodes     []routeNode    `json:"nodes"`
	Pins      map[int]string `json:"pins"`
}

// routeResult is route UID.
type routeResult struct {
	Space    string   `json:"space"`
	UID      uint64   `json:"uid"`
	Key      string   `json:"key,omitempty"`
	Section  uint32   `json:"section"`
	Owner    string   `json:"owner"` // empty: none
	Addr     string   `json:"addr"`
	Standbys []string `json:"standbys"`
	Pinned   bool     `json:"pinned"`
	Version  uint64   `json:"route_version"`
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
	who.addTo(cmd)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		all := len(args) == 0 && !cmd.Flags().Changed("key")
		var uid seq.UID
		if !all {
			var err error
			if uid, _, err = who.uid(cmd, args, 0); err != nil {
				return err
			}
		}
		c, err := askRoutes(ctx, o, o.Addr)
		if err != nil {
			return err
		}
		if all {
			return printRoutes(stdout, format, c)
		}
		space, err := c.mapping.Space(who.space)
		if err != nil {
			return err
		}
		return printRoute(stdout, format, c.route(space, uid, who.key))
	})
	return cmd
}

func (c *cluster) route(space *seq.Space, uid seq.UID, key string) routeResult {
	id := space.SectionOf(uid)
	r := routeResult{Space: space.Name, UID: uint64(uid), Key: key, Section: uint32(id), Standbys: []string{}, Version: c.table.Version}
	if owner, ok := c.table.Owner(id); ok {
		r.Owner, r.Addr = owner.Name, owner.Addr
	}
	p := c.table.Sections[id]
	for _, i := range []int16{p.Standby, p.Standby2} {
		if i != seq.NoNode {
			r.Standbys = append(r.Standbys, c.table.Nodes[i].Name)
		}
	}
	_, r.Pinned = c.table.Pins[id]
	return r
}

func printRoute(w io.Writer, format ui.Format, r routeResult) error {
	return ui.Print(w, format, r, func() *ui.Table {
		t := ui.NewTable("space", "uid", "section", "owner", "addr", "standby", "standby 2", "pinned", "routes version")
		standbys := append(append([]string{}, r.Standbys...), "", "")
		return t.Row(r.Space, text(r.UID), text(uint64(r.Section)), cmp.Or(r.Owner, "-"), r.Addr, standbys[0], standbys[1], r.Pinned, text(r.Version))
	})
}

func printRoutes(w io.Writer, format ui.Format, c *cluster) error {
	r := routesResult{ClusterID: c.id, Version: c.table.Version, Frozen: c.table.Frozen, Spaces: c.mapping.Spaces, Nodes: []routeNode{}, Pins: map[int]string{}}
	for _, n := range c.table.Nodes {
		r.Nodes = append(r.Nodes, routeNode{Name: n.Name, Addr: n.Addr, Session: sessionText(uint64(n.Session)), Weight: n.Weight, Drained: n.Drained})
	}
	for _, p := range c.table.Sections {
		if p.Owner != seq.NoNode {
			r.Nodes[p.Owner].Sections++
		}
		if p.Standby != seq.NoNode {
			r.Nodes[p.Standby].Standby++
		}
	}
	for id, name := range c.table.Pins {
		r.Pins[int(id)] = name
	}
	return ui.Print(w, format, r, func() *ui.Table {
		t := ui.NewTable("node", "addr", "session", "weight", "drained", "sections", "standby of", "routes version")
		for _, n := range r.Nodes {
			t.Row(n.Name, n.Addr, n.Session, n.Weight, n.Drained, n.Sections, n.Standby, text(r.Version))
		}
		return t
	})
}
