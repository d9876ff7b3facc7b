package ids

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// workersResult is the output of workers.
type workersResult struct {
	Namespace string      `json:"namespace"`
	Pool      uint64      `json:"pool"` // worker ids of one datacenter, used or not
	Held      int         `json:"held"` // of those listed, over all datacenters
	Workers   []workerRow `json:"workers"`
	// Allotted holds, at the root, the allotments of the other Sets. Another Set has its own allotments
	// there.
	Allotted []allotmentRow `json:"allotted,omitempty"`
}

type allotmentRow struct {
	Datacenter uint64 `json:"datacenter"`
	First      uint64 `json:"first"`
	Last       uint64 `json:"last"`
	Set        string `json:"set"` // empty if the node that answered does not know its name
	Cluster    string `json:"cluster"`
	Usable     bool   `json:"usable"` // if false, attempts of the root's own nodes are not over yet
}

type workerRow struct {
	Datacenter  uint64 `json:"datacenter"`
	Worker      uint64 `json:"worker"`
	Node        string `json:"node"`             // empty if there is none, or if it is not known
	Session     string `json:"session"`          // empty if no session holds the id
	Client      string `json:"client,omitempty"` // the borrower, if the node that answered lent the id
	Mark        string `json:"mark"`             // no ID of this worker has a later time
	LeaseLeftMS int64  `json:"lease_left_ms"`
	Free        bool   `json:"free"`
}

func workersCommand() *cobra.Command {
	o := &ctl.Options{}
	var namespace string
	cmd := &cobra.Command{
		Use:   "workers",
		Short: "list the worker ids of a namespace that were ever used, and who holds them",
		Args:  ctl.RangeArgs(0, 0),
	}
	o.AddTo(cmd, askTimeout)
	cmd.Flags().StringVar(&namespace, "namespace", "", "name or alias of the `namespace`; empty is default")
	_ = cmd.RegisterFlagCompletionFunc("namespace", completer(o, namespaces)) // it is there
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		req := &pb.SnowflakeWorkersRequest{Namespace: namespace}
		reply, err := askSnowflake(ctx, o, pb.SnowflakeClient.Workers, req)
		if err != nil {
			return err
		}
		r := workersResult{Namespace: reply.GetNamespace(), Pool: reply.GetPool(), Workers: []workerRow{}}
		for _, w := range reply.GetWorkers() {
			row := workerRow{Datacenter: w.GetDatacenterId(), Worker: w.GetWorkerId(), Node: w.GetNode(), Client: w.GetClient(),
				Mark: stamp(int64(w.GetMarkUnixMs())), LeaseLeftMS: w.GetLeaseLeftMs(), Free: w.GetFree()}
			if w.GetSession() != 0 {
				row.Session = seq.Session(w.GetSession()).String()
				r.Held++
			}
			r.Workers = append(r.Workers, row)
		}
		for _, a := range reply.GetAllotted() {
			r.Allotted = append(r.Allotted, allotmentRow{Datacenter: a.GetDatacenterId(), First: a.GetFirst(), Last: a.GetLast(), Set: a.GetSet(), Cluster: a.GetClusterId(), Usable: a.GetUsable()})
		}
		if err := ui.Print(stdout, format, r, func() *ui.Table { return r.table() }); err != nil || format != ui.FormatTable || len(r.Allotted) == 0 {
			return err
		}
		fmt.Fprintln(stdout)
		return r.allotted().Write(stdout)
	})
	return cmd
}

func (r workersResult) allotted() *ui.Table {
	t := ui.NewTable("datacenter", "workers", "allotted to Set", "state")
	for _, a := range r.Allotted {
		state := ctl.State("usable", true)
		if !a.Usable {
			state = ctl.Pending("not yet")
		}
		t.Row(ctl.Digits(a.Datacenter), ctl.Digits(a.First)+"-"+ctl.Digits(a.Last), cmp.Or(a.Set, a.Cluster), state)
	}
	return t
}

func (r workersResult) table() *ui.Table {
	t := ui.NewTable("datacenter", "worker", "of", "state", "node", "session", "lease left", "mark")
	for _, w := range r.Workers {
		state := ctl.State("held", true)
		switch {
		case w.Free:
			state = ui.Cell{Text: "free"}
		case w.Client != "":
			state = ctl.State("lent", true)
		case w.Session == "":
			state = ctl.Pending("not free yet")
		}
		t.Row(ctl.Digits(w.Datacenter), ctl.Digits(w.Worker), ctl.Digits(r.Pool), state, cmp.Or(w.Node, w.Client, "-"), cmp.Or(w.Session, "-"), ctl.Left(w.LeaseLeftMS), w.Mark)
	}
	return t
}
