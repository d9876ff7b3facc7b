package workers

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// warnEvery is the time between two warnings of the near end of a layout.
const warnEvery = 24 * time.Hour

// nobody is no session. It asks for the worker ids, so that the ids of this node show as held, too.
const nobody seq.Session = 0

// Show returns the worker ids of a namespace that have a register, by datacenter and worker, and the names
// of the nodes of their sessions.
func (w *Workers) Show(ctx context.Context, ns *namespaces.Namespace) ([]Used, map[seq.Session]string, error) {
	found, err := w.cfg.ReadPrefix(ctx, nobody, prefixOf(ns.Name))
	return survey(ns.Name, found, nobody, w.latest()), w.nodes(), err
}

// watch looks how full the pool of the lease's worker ids is.
func (l *Lease) watch(ctx context.Context) {
	w := l.issuer.w
	found, err := w.cfg.ReadPrefix(ctx, nobody, prefixIn(l.Namespace.Name, l.Datacenter))
	if err != nil {
		return // the stores have other ways to be noticed
	}
	used, own := survey(l.Namespace.Name, found, nobody, w.latest()), w.names.Own(&l.Namespace, l.Datacenter)
	l.issuer.pooled(l.Datacenter, poolOf(among(used, own, w.latest()), own))
}

// pooled keeps how full a pool is, and tells when it gets crowded.
func (i *Issuer) pooled(dc snowflake.Datacenter, p Pool) {
	i.mu.Lock()
	was := i.pool
	i.pool = p
	i.mu.Unlock()
	if p.Crowded() && !was.Crowded() {
		i.w.log.Warn("worker ids run short", "namespace", i.name, "datacenter", dc, "held", p.Held, "pool", p.Size)
	}
}

// warnEnd tells of a layout that runs out within a year, once a day.
func (l *Lease) warnEnd() {
	i, layout := l.issuer, l.Namespace.Layout
	left := layout.Remaining(i.w.cfg.Wall())
	if left > snowflake.ExhaustionWarning {
		return
	}
	clock := i.w.cfg.Clock.Now()
	i.mu.Lock()
	tell := i.warned == 0 || clock-i.warned > warnEvery
	if tell {
		i.warned = max(1, clock)
	}
	i.mu.Unlock()
	if tell {
		i.w.log.Warn("layout runs out", "namespace", i.name, "layout", layout.String(),
			"at", layout.Exhausted(), "days left", int(left.Hours()/24))
	}
}
