package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/lab/netlab"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// patience bounds every wait for what must happen: a start, an end, a recovery.
const patience = 60 * time.Second

// told is what a run came to: its result, and why it failed.
type told struct {
	*lab.Result
	failed error
}

// tell writes the page, if one is wanted, and prints v.
func (o *options) tell(runs []told, v any, format ui.Format, stdout io.Writer, table func() *ui.Table) error {
	if o.html != "" {
		if err := writePage(o.html, runs...); err != nil {
			return err
		}
	}
	return ui.Print(stdout, format, v, table)
}

// compare runs the drill in one mode after the other, and tells all results at the end.
func compare(ctx context.Context, all []*options, sc lab.Scenario, format ui.Format, stdout, stderr io.Writer) error {
	var runs []told
	results := []*lab.Result{}
	var errs error
	for _, o := range all {
		err := o.drill(ctx, sc, stderr, func(r *lab.Result, failed error) error {
			runs, results = append(runs, told{r, failed}), append(results, r)
			return nil
		})
		if errs = errors.Join(errs, err); ctx.Err() != nil {
			break
		}
	}
	if len(runs) == 0 {
		return errs
	}
	return errors.Join(errs, all[0].tell(runs, results, format, stdout, func() *ui.Table { return modesTable(results) }))
}

// drill runs one drill from the start of the cluster to the verdict. It calls show with the result and why
// the drill failed.
func (o *options) drill(ctx context.Context, sc lab.Scenario, stderr io.Writer, show func(*lab.Result, error) error) error {
	progress := ui.NewProgress(stderr, "drill", 0)
	defer progress.Done()
	progress.Say("the cluster starts")
	c, err := o.cluster(ctx)
	if err != nil {
		if errors.Is(err, localcluster.ErrConfig) || errors.Is(err, lab.ErrReadyFile) || errors.Is(err, lab.ErrEngine) {
			err = daemon.Usage(err)
		}
		return err
	}
	defer c.Close()
	if o.Keep && c.Own != nil {
		defer fmt.Fprintf(stderr, "the cluster's directory stays: %s\n", c.Own.Dir)
	}
	if err := sc.Fits(c.Nodes, c.OnEtcd(), o.Node, o.Set); err != nil {
		return daemon.Usage(err)
	}
	if o.web != "" {
		progress.Done() // the page's address has a line of its own
	}
	stage, err := o.show(ctx, c, sc, stderr)
	if err != nil {
		return err
	}
	defer stage.close()
	if stage != nil {
		progress = ui.NewProgress(stderr, "drill", 0)
		defer progress.Done()
	}
	progress.Say("load before the fault")
	o.Tell = progress.Say
	r, err := lab.Drill(ctx, c, sc, o.DrillConfig)
	progress.Done()
	stage.over(r, err)
	defer stage.stay(ctx, stderr)
	if r == nil {
		return err
	}
	return errors.Join(err, show(r, err))
}

// cluster starts or finds the cluster.
func (o *options) cluster(ctx context.Context) (*lab.Cluster, error) {
	if o.attached() {
		return lab.Attach(ctx, o.addr, o.readyFile, o.Etcd, patience)
	}
	if o.inside != "" {
		o.Network = netlab.New(o.inside, o.nodes())
	}
	return lab.Start(ctx, o.Config)
}

// nodes returns the names of the nodes of a cluster of one's own.
func (o *options) nodes() (names []string) {
	for _, n := range o.Planned() {
		names = append(names, n.Name)
	}
	return names
}

// names of namespaces begin so, then comes the process id.
const namespacePrefix = "seqdrill-"
