package ids

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// maxIDs is the largest count of one Generate.
const maxIDs = 100_000

// agent is the name under which the cluster counts what seqctl takes.
const agent = "seqctl"

// genResult is what gen prints.
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
	var namespace, form string
	var count int64
	cmd := &cobra.Command{
		Use:     "gen",
		Short:   "take new IDs of a namespace, in ascending order",
		Example: "  seqctl snowflake gen\n  seqctl snowflake gen --namespace orders --count 100 --text base58 -o json",
		Args:    ctl.RangeArgs(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().StringVar(&namespace, "namespace", "", "name or alias of the `namespace`; empty is default")
	cmd.Flags().Int64Var(&count, "count", 1, fmt.Sprintf("how many IDs, 1 to %d", maxIDs))
	cmd.Flags().StringVar(&form, "text", snowflake.Decimal.String(), textHelp)
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		e, err := parseEncoding(form)
		if err != nil {
			return err
		}
		if count < 1 || count > maxIDs {
			return badCount(count, maxIDs)
		}
		req := &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: uint32(count), Agent: agent}
		reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.Generate, req)
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
		t.Row(text, r.Namespace, digits(r.Datacenter), digits(r.Worker))
	}
	return t
}
