package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/daemon"
	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/netlab"
	"github.com/seqsvr/seqsvr/internal/ui"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// How long a cluster may take to be healthy: a young one has its sections to place.
const (
	evenPatience   = 20 * time.Second
	steadyPatience = 5 * time.Second
)

// drill runs one drill from the start of the cluster to the verdict.
func (o *options) drill(ctx context.Context, d drill, format ui.Format, stdout, stderr io.Writer) error {
	t, network, err := o.target(ctx)
	if err != nil {
		if errors.Is(err, localcluster.ErrConfig) || errors.Is(err, ErrReadyFile) {
			err = daemon.Usage(err)
		}
		return err
	}
	defer t.close()
	if o.keep && t.fresh {
		fmt.Fprintf(stderr, "the cluster's directory stays: %s\n", filepath.Dir(t.nodes[0].Dir))
	}
	if err := errors.Join(d.fits(t.nodes), d.stand(o.node, t.nodes)); err != nil {
		return daemon.Usage(err)
	}
	s := &scene{target: t, node: o.node, pause: o.pause, timeline: newTimeline(), network: network}
	r, err := s.play(ctx, d, o)
	if r == nil {
		return err
	}
	if o.html != "" {
		if page := writePage(o.html, r, s); page != nil {
			return errors.Join(err, page)
		}
	}
	if printed := ui.Print(stdout, format, r, func() *ui.Table { return r.table(stdout) }); printed != nil {
		return errors.Join(err, printed)
	}
	if r.Duplicates > 0 || r.Regressions > 0 || r.Invalid > 0 {
		err = errors.Join(fmt.Errorf("%w: %d duplicates, %d regressions, %d impossible answers", ErrBroken, r.Duplicates, r.Regressions, r.Invalid), err)
	}
	return err
}

// target starts or finds the cluster.
func (o *options) target(ctx context.Context) (*target, *netlab.Network, error) {
	if o.attached() {
		t, err := attach(ctx, o.addr, o.readyFile)
		return t, nil, err
	}
	cfg := o.Config
	var n *netlab.Network
	if o.inside != "" {
		n = o.network(o.inside)
		cfg.Host, cfg.Wrap = n.Host, n.Wrap
	}
	t, err := startOwn(ctx, cfg, o.keep)
	return t, n, err
}

// play puts the cluster under load, breaks it and measures. The report is nil when
// nothing was broken.
func (s *scene) play(ctx context.Context, d drill, o *options) (*report, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	defer s.survey.close()
	defer s.stores.close()
	paths, err := s.paths(ctx, d)
	defer func() {
		for _, p := range paths {
			_ = p.client.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	look, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.load = startLoad(o.load, paths)
	defer s.load.end()
	if err := s.rest(ctx, o.warm); err != nil {
		return nil, err
	}
	if err := s.steady(ctx, s.survey.healthy); err != nil {
		return nil, err
	}
	var follower sync.WaitGroup
	follower.Go(func() { s.survey.follow(look) })

	drilled, stop := context.WithCancel(ctx)
	failed := d.run(drilled, s)
	if failed == nil {
		failed = s.rest(ctx, o.settle)
	}
	stop()
	s.watches.Wait()
	s.load.end()
	account, unknown := s.accounts(ctx, d)
	mended := errors.Join(unknown, s.mend(ctx))
	s.survey.events(context.WithoutCancel(ctx))
	cancel()
	follower.Wait()
	if len(s.faults) == 0 {
		return nil, failed
	}
	r := s.measure(d, o)
	r.Account = account
	return r, errors.Join(failed, mended, account.err())
}

// prepare looks at the cluster, and refuses one that is not healthy.
func (s *scene) prepare(ctx context.Context) error {
	survey, err := newSurvey(s.role(localcluster.RoleAlloc), s.timeline)
	if err != nil {
		return err
	}
	s.survey = survey
	if err := s.steady(ctx, s.even); err != nil {
		survey.close()
		return err
	}
	call, done := context.WithTimeout(ctx, surveyTimeout)
	defer done()
	if s.stores, err = dialStores(call, s.role(localcluster.RoleStore)); err != nil {
		survey.close()
		return fmt.Errorf("%w: %w", ErrUnhealthy, err)
	}
	return nil
}

// steady waits a little until the cluster is as it should be: nodes of a young one may
// not know each other yet, and the membership may be wrong for a moment. The error is
// the last of check.
func (s *scene) steady(ctx context.Context, check func(context.Context) error) error {
	patience := steadyPatience
	if s.fresh {
		patience = evenPatience
	}
	for deadline := time.Now().Add(patience); ; {
		err := check(ctx)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := s.rest(ctx, surveyEvery/4); err != nil {
			return err
		}
	}
}

// even is nil if the cluster is healthy and each of its AllocSvr owns something.
func (s *scene) even(ctx context.Context) error {
	if err := s.survey.healthy(ctx); err != nil {
		if s.fresh && errors.Is(err, errFrozen) {
			// A cluster that starts on a busy machine may look as if it lost nodes.
			_, _ = pb.NewAdminClient(s.survey.conns[s.survey.allocs[0].Name]).Rebalance(ctx, &pb.RebalanceRequest{})
		}
		return err
	}
	t, _, err := s.survey.routes(ctx)
	if err != nil {
		return err
	}
	status, err := s.survey.status(ctx, s.survey.allocs[0].Name)
	if err != nil {
		return err
	}
	s.lease = time.Duration(status.GetLeaseUs()) * time.Microsecond
	if !s.fresh {
		return nil
	}
	for _, n := range s.survey.allocs {
		if i := t.Index(n.Name); i < 0 || len(ownedBy(t, i)) == 0 {
			return fmt.Errorf("%w: %s has no sections yet", ErrUnhealthy, n.Name)
		}
	}
	return nil
}

// paths connects the callers: all straight to the owners, but where a router is to be
// killed half of them by the routers only.
func (s *scene) paths(ctx context.Context, d drill) (paths []path, err error) {
	add := func(name string, cfg client.Config) {
		if err != nil {
			return
		}
		c, failed := client.New(ctx, cfg)
		if failed != nil {
			err = failed
			return
		}
		paths = append(paths, path{name, c})
	}
	add("direct", client.Config{Addrs: s.addrs(localcluster.RoleRouter, localcluster.RoleAlloc)})
	if d.routers > 0 {
		add("by routers", client.Config{Addrs: s.addrs(localcluster.RoleRouter), Indirect: true})
	}
	return paths, err
}

// mend brings a cluster of others back to where it was.
func (s *scene) mend(ctx context.Context) error {
	if s.fresh {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // also when told to end
	var errs []error
	if s.undrain != "" {
		errs = append(errs, s.askDrain(ctx, s.undrain, true))
	}
	for _, name := range s.mends {
		if err := s.start(name); err != nil {
			errs = append(errs, fmt.Errorf("%s stays down: %w", name, err))
		}
	}
	if len(s.mends) > 0 && len(errs) == 0 {
		errs = append(errs, s.served(ctx))
	}
	return errors.Join(errs...)
}

// network is the plan of the namespaces of a cluster of one's own.
func (o *options) network(prefix string) *netlab.Network {
	var names []string
	for _, n := range o.planned() {
		names = append(names, n.Name)
	}
	return netlab.New(prefix, names)
}

// names of namespaces begin so, then comes the process id.
const namespacePrefix = "seqdrill-"

// insideNamespaces makes the network and runs this program again inside its hub. The
// namespaces are removed when that one has ended, however it ended.
func (o *options) insideNamespaces(ctx context.Context, d drill, stdout, stderr io.Writer) error {
	if err := netlab.Available(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own executable: %w", err)
	}
	netlab.Sweep(ctx, namespacePrefix)
	n := o.network(netlab.Prefix(namespacePrefix))
	defer n.Remove()
	if err := n.Build(ctx); err != nil {
		return err
	}
	argv := append([]string{self}, os.Args[1:]...)
	return runInside(ctx, n, append(argv, "--inside", n.NamePrefix()), stdout, stderr)
}
