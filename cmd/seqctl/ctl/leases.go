package ctl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// leaseRow is one section in leases.
type leaseRow struct {
	Section     uint32   `json:"section"`
	Node        string   `json:"node"` // effective owner, by the stores
	Session     string   `json:"session"`
	Round       uint64   `json:"round"`
	Max         uint64   `json:"max"`           // persisted max_seq
	LeaseLeftMS int64    `json:"lease_left_ms"` // -1: no valid lease
	Desired     string   `json:"desired"`       // owner by the route table
	Standbys    []string `json:"standbys"`
	Zone        string   `json:"zone"`          // of node
	Zones       []string `json:"standby_zones"` // one a standby
	Set         string   `json:"set,omitempty"` // that has the section by the map, if it is another one; then the rest is of before
}

func leasesCommand() *cobra.Command {
	o := &Options{}
	var node string
	cmd := &cobra.Command{
		Use:     "leases [SECTION...]",
		Example: "  seqctl leases\n  seqctl leases 17 18 -o json\n  seqctl leases --node alloc-2",
		Short:   "list who really owns each section, by the stores, and for how much longer",
		Args: func(_ *cobra.Command, args []string) error {
			_, err := parseSections(args)
			return err
		},
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().StringVar(&node, "node", "", "only those of this `node`; empty: all")
	_ = cmd.RegisterFlagCompletionFunc("node", o.completeArgs(nodes)) // it is there
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		sections, err := parseSections(args)
		if err != nil {
			return err
		}
		reply, err := onAnyNode(ctx, o, pb.AdminClient.Leases, &pb.LeasesRequest{All: true, Sections: sections})
		if err != nil {
			return err
		}
		c, err := o.routes(ctx)
		if err != nil {
			return err
		}
		if err := checkNode(c, node); err != nil {
			return err
		}
		conns := survey.NewConns(o.Dial()...)
		defer conns.Close()
		c.HearOfSets(ctx, conns)
		rows := []leaseRow{}
		for _, l := range reply.GetLeases() {
			if node != "" && node != l.GetNode() {
				continue
			}
			row := leaseRow{l.GetSection(), l.GetNode(), survey.SessionText(l.GetSession()), l.GetRound(), l.GetMax(), l.GetLeaseLeftMs(),
				l.GetDesired(), append([]string{}, l.GetStandbys()...), l.GetZone(), append([]string{}, l.GetStandbyZones()...), ""}
			if set, elsewhere := c.Elsewhere(seq.SectionID(l.GetSection())); elsewhere {
				row.Set = set.Name
			}
			rows = append(rows, row)
		}
		return ui.Print(stdout, format, rows, func() *ui.Table { return leasesTable(rows) })
	})
	return cmd
}

// checkNode refuses a node that the route table does not have, "" apart: seq.ErrUnknownNode.
// One that left it may hold leases all the same, which leases without --node shows.
func checkNode(c *survey.Cluster, node string) error {
	if node == "" || slices.Contains(nodeNames(c), node) {
		return nil
	}
	return nameNodes(c, fmt.Errorf("%w: %q", seq.ErrUnknownNode, node))
}

func parseSections(args []string) ([]uint32, error) {
	var out []uint32
	for _, arg := range args {
		id, err := parseSection(arg)
		if err != nil {
			return nil, err
		}
		out = append(out, uint32(id))
	}
	return out, nil
}

// zones returns the zones of an owner and its standbys, in their order. It returns "" if no zone is known.
func zones(owner string, standbys []string) string {
	all := append([]string{owner}, standbys...)
	known := false
	for i, zone := range all {
		known = known || zone != ""
		all[i] = cmp.Or(zone, "-")
	}
	if !known {
		return ""
	}
	return strings.Join(all, " ")
}

func leasesTable(rows []leaseRow) *ui.Table {
	t := ui.NewTable("section", "node", "session", "round", "max", "lease left", "desired", "standbys", "zones")
	for _, r := range rows {
		if r.Set != "" { // what this Set has of it is of before it moved
			t.Row(Digits(r.Section), "in Set "+r.Set, "", "", "", "", "", "", "")
			continue
		}
		owner := State(cmp.Or(r.Node, "-"), true)
		if r.LeaseLeftMS < 0 || r.Node != r.Desired {
			owner = Pending(owner.Text)
		}
		t.Row(Digits(r.Section), owner, r.Session, Digits(r.Round), Digits(r.Max), Left(r.LeaseLeftMS), r.Desired, strings.Join(r.Standbys, " "), zones(r.Zone, r.Zones))
	}
	return t
}
