package ctl

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// addedSpace is the output of space add.
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
sections, in each Set if there are several, of which the root has all sections of it. Every AllocSvr hears
of it by itself; with --wait it ends when all have, and serve it. A space is
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
		space, err := parseSpace(args[0])
		if err != nil {
			return err
		}
		all, err := o.allSets(ctx)
		if err != nil {
			return err
		}
		// The root first, which has the sections: the others refuse a space that would begin elsewhere.
		var r *addedSpace
		var keys []byte
		for i, s := range all {
			there, err := addSpace(ctx, s.o, space, keys)
			if err == nil && wait {
				_, err = await(ctx, s.o, cmd.ErrOrStderr(), "space "+space.Name, errNotSettled, there.left)
				there.State = "served"
			}
			switch {
			case err != nil && s.name != "":
				return fmt.Errorf("Set %s: %w; the same add goes on from there", s.name, err)
			case err != nil:
				return err
			case i == 0:
				r, space.First = there, seq.SectionID(there.First)
			}
			if i == 0 && len(all) > 1 {
				if keys, err = keysOf(ctx, s.o); err != nil {
					return err
				}
			}
		}
		return ui.Print(stdout, format, r, func() *ui.Table {
			return ui.NewTable("space", "mode", "sections", "first", "routes version", "state").
				Row(r.Space, string(r.Mode), r.Sections, Digits(r.First), r.RouteVersion, r.State)
		})
	})
	return cmd
}

// parseSpace refuses what cannot be a space.
func parseSpace(form string) (seq.Space, error) {
	space, err := seq.ParseSpace(form)
	if err == nil {
		_, err = seq.NewMapping(space)
	}
	if err != nil {
		return space, daemon.Usage(fmt.Errorf("space %q: %w", form, err))
	}
	return space, nil
}

// addSpace asks one Set to add the space, and does not wait for every AllocSvr. For a Set other than the
// root, keys is the root's document of key hashes.
func addSpace(ctx context.Context, o *Options, space seq.Space, keys []byte) (*addedSpace, error) {
	reply, err := onAnyNode(ctx, o, pb.AdminClient.AddSpace, &pb.AddSpaceRequest{Space: rpc.SpaceToProto(&space), Keys: keys})
	if err != nil {
		return nil, err
	}
	made := rpc.SpaceFromProto(reply.GetSpace())
	return &addedSpace{Space: made.Name, Mode: made.Mode, Sections: made.Sections, First: uint32(made.First), RouteVersion: reply.GetRouteVersion(), State: "asked"}, nil
}

// keysOf returns the key hashes of a Set, so that other Sets can hash in the same way and counters can move
// there.
func keysOf(ctx context.Context, o *Options) ([]byte, error) {
	c, err := o.routes(ctx)
	if err != nil {
		return nil, err
	}
	last := error(seq.ErrNoRoute)
	for _, addr := range c.Addrs() {
		reply, err := Call(ctx, o, addr, pb.NewSetsClient, pb.SetsClient.Keys, &pb.SetKeysRequest{})
		if err == nil {
			return reply.GetKeys(), nil
		}
		last = err
	}
	return nil, last
}

// left returns what is missing until every AllocSvr that answers knows the space and all sections are
// served.
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
