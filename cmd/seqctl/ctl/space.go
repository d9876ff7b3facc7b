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
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

func spaceCommand() *cobra.Command {
	return Group(&cobra.Command{
		Use:     "space",
		Short:   "show the spaces, add one, and change how their string keys are hashed",
		Example: "  seqctl space list\n  seqctl space add 'room:mode=strict,sections=64' --wait\n  seqctl space rehash user",
	}, spaceListCommand(), spaceAddCommand(), spaceRehashCommand())
}

// spaceRow is one space at one AllocSvr.
type spaceRow struct {
	Space    string   `json:"space"`
	Mode     seq.Mode `json:"mode,omitempty"`
	Sections uint32   `json:"sections,omitempty"`
	Window   string   `json:"window,omitempty"`  // of an exact space: how long it keeps the ids of requests
	Tickets  string   `json:"tickets,omitempty"` // the longest life of a ticket; if empty, the space gives none
	Added    bool     `json:"added,omitempty"`   // since the cluster was initialised
	Node     string   `json:"node"`
	Unheard  bool     `json:"unheard,omitempty"` // the node does not know the space yet
	KeyHash  string   `json:"key_hash"`          // that the node goes by
	Version  uint64   `json:"version"`
	Latest   uint64   `json:"latest"` // by what the stores have: above version, the node is to be restarted
}

// state is what is to be done about it.
func (r *spaceRow) state() any {
	switch {
	case r.Unheard:
		return Pending("not heard of yet")
	case r.Latest != r.Version:
		return Pending(fmt.Sprintf("restart it: %d is in force", r.Latest))
	}
	return "current"
}

func spaceListCommand() *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "show the spaces, and by which hash each AllocSvr counts their string keys",
		Example: "  seqctl space list -o json",
		Args:    ExactArgs(),
	}
	o.AddTo(cmd, askTimeout)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		s, err := takeSurvey(ctx, o, false)
		if err != nil {
			return err
		}
		s.Cluster = newestMapping(ctx, o, s)
		rows := spaceRows(s)
		return ui.Print(stdout, format, rows, func() *ui.Table {
			t := ui.NewTable("space", "mode", "sections", "window", "tickets", "alloc", "key hash", "version", "state")
			for _, r := range rows {
				t.Row(r.Space, string(r.Mode), r.Sections, r.Window, r.Tickets, r.Node, r.KeyHash, Digits(r.Version), r.state())
			}
			return t
		})
	})
	return cmd
}

// newestMapping returns the cluster as an AllocSvr describes it that knows a space that the mapping at hand
// lacks: a router hears of a new space later than they.
func newestMapping(ctx context.Context, o *Options, s *survey.Survey) *survey.Cluster {
	for _, node := range s.Cluster.Table.Nodes {
		for _, k := range s.Replies[node.Name].GetKeyHashes() {
			if _, err := s.Cluster.Mapping.Space(k.GetSpace()); err == nil {
				continue
			}
			if c, err := askRoutes(ctx, o, node.Addr); err == nil {
				return c
			}
			break
		}
	}
	return s.Cluster
}

// spaceRows returns the spaces and their key hashes on each AllocSvr that answers. It has the spaces of the
// mapping, and further spaces that a node knows already.
func spaceRows(s *survey.Survey) []spaceRow {
	rows := []spaceRow{}
	for _, node := range s.Cluster.Table.Nodes {
		reply := s.Replies[node.Name]
		if reply == nil {
			continue
		}
		known := map[string]bool{}
		for _, k := range reply.GetKeyHashes() {
			known[k.GetSpace()] = true
			rows = append(rows, spaceRow{Space: k.GetSpace(), Node: node.Name, KeyHash: k.GetHash(), Version: k.GetVersion(), Latest: k.GetLatest()})
		}
		for _, space := range s.Cluster.Mapping.Spaces {
			if !known[space.Name] && len(known) > 0 { // without any it could not read the stores
				rows = append(rows, spaceRow{Space: space.Name, Node: node.Name, Unheard: true})
			}
		}
	}
	for i := range rows {
		if space, err := s.Cluster.Mapping.Space(rows[i].Space); err == nil {
			r := &rows[i]
			if r.Mode, r.Sections, r.Added = space.Mode, space.Sections, space.Added; space.Window > 0 {
				r.Window = space.Window.String()
			}
			if space.Tickets > 0 {
				r.Tickets = space.Tickets.String()
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b spaceRow) int { return strings.Compare(a.Space, b.Space) })
	return rows
}

// rehashed is the output of space rehash.
type rehashed struct {
	Space   string `json:"space"`
	KeyHash string `json:"key_hash"`
	Version uint64 `json:"version"`
}

func spaceRehashCommand() *cobra.Command {
	o := &Options{}
	hash := ""
	cmd := &cobra.Command{
		Use:   "rehash SPACE",
		Short: "hash the string keys of a space under a new secret; each AllocSvr does from its next start on",
		Long: `rehash changes how the string keys of a space are hashed, at the stores. An AllocSvr goes by it from its
next start on: restart one after the other, and let seqctl space list tell when all have. Nothing is
repeated and nothing goes back, whenever that stops and goes on. A section that moves between two that
hash differently goes on above its ceiling, with a gap for each of its UIDs and keys, as after a crash.
Callers with the SDK of v0.1.0 hash string keys themselves and are refused in the space from then on.`,
		Example: "  seqctl space rehash user\n  seqctl space rehash user --key-hash sha256-64",
		Args:    ExactArgs("SPACE"),

		ValidArgsFunction: o.completeArgs(spaces),
	}
	o.AddTo(cmd, changeTimeout)
	cmd.Flags().StringVar(&hash, "key-hash", string(seq.SecretKeys), "`hash`: "+string(seq.SecretKeys)+" under a new secret, or "+string(seq.SHA256Keys)+", which anybody can repeat")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		if err := seq.KeyHash(hash).Validate(); err != nil {
			return daemon.Usage(err)
		}
		r := rehashed{Space: args[0], KeyHash: cmp.Or(hash, string(seq.SecretKeys))}
		reply, err := onAnyNode(ctx, o, pb.AdminClient.Rehash, &pb.RehashRequest{Space: r.Space, KeyHash: r.KeyHash})
		if err != nil {
			return err
		}
		r.Version = reply.GetVersion()
		return ui.Print(stdout, format, r, func() *ui.Table {
			return ui.NewTable("space", "key hash", "version", "next").Row(r.Space, r.KeyHash, Digits(r.Version), "restart each AllocSvr; seqctl space list")
		})
	})
	return cmd
}
