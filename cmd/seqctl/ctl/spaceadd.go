package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/survey"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// addedSpace is what space add prints.
type addedSpace struct {
	Space        string   `json:"space"`
	Mode         seq.Mode `json:"mode"`
	Sections     uint32   `json:"sections"`
	First        uint32   `json:"first"` // of its sections
	RouteVersion uint64   `json:"route_version"`
	State        string   `json:"state"` // asked, or with --wait served
}

func spaceAddCommand() *cobra.Command {
	o, wait := &Options{}, false
	cmd := &cobra.Command{
		Use:   "add SPACE",
		Short: "add a space to the cluster while it runs",
		Long: `add has the stores decide that there is one more space, and ends when enough of them have made its
sections. Every AllocSvr hears of it by itself; with --wait it ends when all have, and serve it. A space is
written as storesvr init takes it: ` + seq.SpaceForm + `.
Nothing of it can be changed later, nor can it be taken away. Whatever became of an add that failed or
was cut off, the same add goes on from there; one of the same name with other settings is refused. First
upgrade every store, AllocSvr, router and program with the SDK: v0.1.0 takes no route table with more
sections.`,
		Example: "  seqctl space add 'room:mode=strict,sections=64' --wait\n  seqctl space add 'orders:mode=exact,window=10m' --wait\n  seqctl space list",
		Args:    ExactArgs("SPACE"),
	}
	o.AddTo(cmd, changeTimeout)
	waitFlag(cmd, o, &wait, "every AllocSvr has heard of the space and all sections are served")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, args []string, stdout io.Writer) error {
		r, err := addSpace(ctx, o, args[0])
		if err != nil {
			return err
		}
		if wait {
			_, err := await(ctx, o, cmd.ErrOrStderr(), "space "+r.Space, errNotSettled, r.left)
			if err != nil {
				return err
			}
			r.State = "served"
		}
		return ui.Print(stdout, format, r, func() *ui.Table {
			return ui.NewTable("space", "mode", "sections", "first", "routes version", "state").
				Row(r.Space, string(r.Mode), r.Sections, text(r.First), r.RouteVersion, r.State)
		})
	})
	return cmd
}

// addSpace asks, and does not wait for every AllocSvr. What cannot be a space is refused here.
func addSpace(ctx context.Context, o *Options, form string) (*addedSpace, error) {
	space, err := seq.ParseSpace(form)
	if err == nil {
		_, err = seq.NewMapping(space)
	}
	if err != nil {
		return nil, daemon.Usage(fmt.Errorf("space %q: %w", form, err))
	}
	reply, err := onAnyNode(ctx, o, pb.AdminClient.AddSpace, &pb.AddSpaceRequest{Space: rpc.SpaceToProto(&space)})
	if err != nil {
		return nil, err
	}
	made := rpc.SpaceFromProto(reply.GetSpace())
	return &addedSpace{Space: made.Name, Mode: made.Mode, Sections: made.Sections, First: uint32(made.First), RouteVersion: reply.GetRouteVersion(), State: "asked"}, nil
}

// left says what is left until every AllocSvr that answers knows the space, and all is served.
func (r *addedSpace) left(s *survey.Survey) (what string, done bool, err error) {
	for _, node := range s.Cluster.Table.Nodes {
		reply := s.Replies[node.Name]
		if reply == nil {
			continue // it is away, and hears of the space when it comes back
		}
		if !slices.ContainsFunc(reply.GetKeyHashes(), func(k *pb.KeyHash) bool { return k.GetSpace() == r.Space }) {
			return node.Name + " has not heard of it yet", false, nil
		}
	}
	return settled(s, r.RouteVersion)
}
