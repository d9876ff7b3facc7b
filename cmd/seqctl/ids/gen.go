package ids

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/otherids"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// maxIDs is the largest count of one Generate.
const maxIDs = 100_000

// agent is the name under which the cluster counts what seqctl takes.
const agent = "seqctl"

// genResult is the output of gen.
type genResult struct {
	Namespace  string   `json:"namespace"`
	Layout     string   `json:"layout"` // preset, or text if it is none
	Datacenter uint64   `json:"datacenter"`
	Worker     uint64   `json:"worker"`
	IDs        []int64  `json:"ids"`
	IDsStr     []string `json:"ids_str"`         // decimal
	Texts      []string `json:"texts,omitempty"` // in the form asked for, unless decimal
}

func genCommand() *cobra.Command {
	o := &ctl.Options{}
	var namespace, form, kind, datacenter string
	var count int64
	var local bool
	cmd := &cobra.Command{
		Use:     "gen",
		Short:   "take new IDs of a namespace, in ascending order; or make UUIDs, ULIDs or ObjectIds",
		Example: "  seqctl snowflake gen\n  seqctl snowflake gen --namespace orders --count 100 --text base58 -o json\n  seqctl snowflake gen --datacenter cn --namespace regional-1\n  seqctl snowflake gen --kind uuid",
		Args:    ctl.RangeArgs(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().StringVar(&namespace, "namespace", "", "name or alias of the `namespace`; empty is default")
	_ = cmd.RegisterFlagCompletionFunc("namespace", completer(o, namespaces)) // it is there
	cmd.Flags().StringVar(&datacenter, "datacenter", "", "`name` of the datacenter that the IDs are to be of (allocsvr --datacenter); empty: any")
	cmd.Flags().Int64Var(&count, "count", 1, fmt.Sprintf("how many IDs, 1 to %d", maxIDs))
	cmd.Flags().StringVar(&kind, "kind", "", "make IDs of another `kind`, without a cluster: uuid (version 7), ulid or objectid; empty: of a namespace")
	_ = cmd.RegisterFlagCompletionFunc("kind", ctl.OneOf(otherids.Kinds()...)) // it is there
	cmd.Flags().BoolVar(&local, "local", false, "make them here, from a worker id that is lent and given back, as client.NewLocal does")
	cmd.Flags().StringVar(&form, "text", snowflake.Decimal.String(), textHelp)
	_ = cmd.RegisterFlagCompletionFunc("text", ctl.OneOf("decimal", "base58", "base62", "zbase32", "hex")) // it is there
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		e, err := parseEncoding(form)
		if err != nil {
			return err
		}
		if count < 1 || count > maxIDs {
			return badCount(count, maxIDs)
		}
		if kind != "" {
			return makeOthers(stdout, format, kind, int(count), local || cmd.Flags().Changed("namespace") || cmd.Flags().Changed("text") || cmd.Flags().Changed("datacenter"))
		}
		if local && datacenter != "" {
			return daemon.Usage(fmt.Errorf("%w: --datacenter with --local: a worker id is lent by whichever AllocSvr answers", seq.ErrBadArgument))
		}
		req := &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: uint32(count), Agent: agent, Datacenter: datacenter}
		var reply *pb.SnowflakeGenerateReply
		switch {
		case local:
			reply, err = genLocally(ctx, o, namespace, int(count))
		case datacenter != "":
			reply, err = genThere(ctx, o, req)
		default:
			reply, err = askSnowflake(ctx, o, pb.SnowflakeClient.Generate, req)
		}
		if err != nil {
			return err
		}
		r, err := newGenResult(reply, e)
		if err != nil {
			return err
		}
		return ui.Print(stdout, format, r, func() *ui.Table { return r.table() })
	})
	return cmd
}

// genThere asks the AllocSvr until one of the datacenter answers.
func genThere(ctx context.Context, o *ctl.Options, req *pb.SnowflakeGenerateRequest) (*pb.SnowflakeGenerateReply, error) {
	c, err := o.Connect(ctx, client.Config{AttemptTimeout: ctl.AttemptTimeout})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, err := pb.NewSnowflakeClient(c.Caller().Any()).Generate(ctx, req)
	err = known(err, seq.ErrUnknownNamespace, "seqctl namespace list", func() ([]string, error) { return namespaces(ctx, o) })
	return reply, known(err, seq.ErrUnknownDatacenter, "seqctl namespace list", func() ([]string, error) { return datacenters(ctx, o) })
}

func newGenResult(reply *pb.SnowflakeGenerateReply, e snowflake.Encoding) (genResult, error) {
	r := genResult{Namespace: reply.GetNamespace(), Layout: reply.GetLayout(), Datacenter: reply.GetDatacenterId(), Worker: reply.GetWorkerId(),
		IDs: []int64{}, IDsStr: []string{}}
	for _, n := range reply.GetIds() {
		id := snowflake.ID(n)
		r.IDs, r.IDsStr = append(r.IDs, int64(id)), append(r.IDsStr, id.String())
		if e == snowflake.Decimal {
			continue
		}
		text, err := e.Format(id)
		if err != nil {
			return genResult{}, refused(err)
		}
		r.Texts = append(r.Texts, text)
	}
	return r, nil
}

func (r genResult) table() *ui.Table {
	texts := r.IDsStr
	if r.Texts != nil {
		texts = r.Texts
	}
	t := ui.NewTable("id", "namespace", "datacenter", "worker")
	for _, text := range texts {
		t.Row(text, r.Namespace, ctl.Digits(r.Datacenter), ctl.Digits(r.Worker))
	}
	return t
}

// othersResult is the output of gen for IDs that are only texts.
type othersResult struct {
	Kind string   `json:"kind"`
	IDs  []string `json:"ids"`
}

// makeOthers makes IDs of another kind. namespaced says that flags of a namespace are given.
func makeOthers(stdout io.Writer, format ui.Format, kind string, count int, namespaced bool) error {
	if namespaced {
		return daemon.Usage(fmt.Errorf("%w: --kind with --local, --namespace, --datacenter or --text: expected it alone", seq.ErrBadArgument))
	}
	made, err := otherids.Make(kind, count, time.Now())
	if err != nil {
		return daemon.Usage(fmt.Errorf("%w: --kind: %w", seq.ErrBadArgument, err))
	}
	return ui.Print(stdout, format, othersResult{kind, made}, func() *ui.Table {
		t := ui.NewTable("id", "kind")
		for _, text := range made {
			t.Row(text, kind)
		}
		return t
	})
}
