package globalid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/regions"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// regionsEvery is the time between two queries of other regions' clusters.
	regionsEvery = time.Minute
	// regionsPatience bounds the wait for them. A region that is away stops nothing.
	regionsPatience = 2 * time.Second
	// regionsFresh bounds the age of the answers when a datacenter is first used.
	regionsFresh = 5 * time.Second
)

// Region is a node of a cluster of another region, which makes IDs of its own.
type Region struct {
	Addr string
	Ask  func(context.Context) (*pb.SnowflakeNamespacesReply, error)
}

// abroad compares this cluster with the clusters of other regions. It refuses a node whose datacenter would
// be in conflict and was not used in this cluster so far. If the datacenter was used, nodes go on and
// report the conflict, because no other region may stop them. Safe for concurrent use.
type abroad struct {
	s   *Service
	all []Region

	mu     sync.Mutex                 // guards all below; not held during queries
	heard  map[string]regions.Cluster // the last of each address
	silent map[string]bool            // by queried address, whether it did not answer the last time
	asked  time.Time                  // when all were last queried; zero before the first query
	found  []regions.Conflict         // at the last comparison
}

func newAbroad(s *Service, all []Region) *abroad {
	return &abroad{s: s, all: all, heard: map[string]regions.Cluster{}, silent: map[string]bool{}}
}

// begin is first at the start of the node: seq.ErrDatacenterTaken if it must not start. Stores
// that do not answer in time are no reason: they are asked again before anything is recorded.
func (a *abroad) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*regionsPatience)
	defer cancel()
	if err := a.first(ctx, a.s.cfg.Node.Datacenter); errors.Is(err, seq.ErrDatacenterTaken) {
		return err
	}
	return nil
}

// run looks now and then until ctx ends.
func (a *abroad) run(ctx context.Context) {
	if len(a.all) == 0 {
		return
	}
	idle := wake.New() // never raised
	for wait := time.Duration(0); idle.Wait(ctx, wait); wait = regionsEvery {
		a.look(ctx)
	}
}

// look asks the other regions, and compares.
func (a *abroad) look(ctx context.Context) {
	a.ask(ctx)
	if v, err := a.s.names.Load(ctx); err == nil {
		a.compare(v)
	}
}

// first returns an error against the first use of a datacenter. The error is seq.ErrDatacenterTaken, or the
// stores'. It returns nil if the datacenter was used before, or if no other region answers.
func (a *abroad) first(ctx context.Context, dc namespaces.Datacenter) error {
	if len(a.all) == 0 {
		return nil
	}
	v, err := a.s.names.Load(ctx)
	if err != nil || v.Bound(dc.ID) {
		return err
	}
	a.mu.Lock()
	stale := a.asked.IsZero() || a.s.cfg.Wall().Sub(a.asked).Abs() > regionsFresh
	a.mu.Unlock()
	if stale {
		a.ask(ctx)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.meets(v, dc) {
		// Earlier conflicts do not stop a node with another datacenter id, because that is the cure.
		if c.HasDatacenter && c.Datacenter.ID == dc.ID || !c.HasDatacenter && unused(v) {
			return fmt.Errorf("%w: %s: expected a --datacenter-id that no other region has", seq.ErrDatacenterTaken, c)
		}
	}
	return nil
}

// unused says that the cluster has made no IDs at all.
func unused(v *namespaces.View) bool { return len(v.Datacenters) == 0 }

// ask asks all at once.
func (a *abroad) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, regionsPatience)
	defer cancel()
	var asking sync.WaitGroup
	for _, r := range a.all {
		asking.Go(func() {
			reply, err := r.Ask(ctx)
			var c regions.Cluster
			if err == nil {
				c, err = regions.Of(reply, r.Addr)
			}
			a.hear(r.Addr, c, err)
		})
	}
	asking.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = a.s.cfg.Wall()
}

// hear records the answer of an address. An address that does not answer keeps its last answer.
func (a *abroad) hear(addr string, c regions.Cluster, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	log, was := a.s.cfg.Logger, a.silent[addr]
	if own := (regions.Cluster{ID: a.s.cfg.Cluster, Life: a.s.cfg.Life}); err == nil && c.Is(own) {
		err = fmt.Errorf("%w: it is of this cluster, %q", seq.ErrBadArgument, c.ID)
	}
	a.silent[addr] = err != nil
	switch {
	case err != nil && !was:
		log.Warn("another region does not tell which IDs it makes; nothing waits for it", "addr", addr, "error", err)
	case err == nil && was:
		log.Info("another region tells which IDs it makes again", "addr", addr, "cluster", c.ID)
	}
	if err == nil {
		a.heard[addr] = c
	}
}

// meets is in what this cluster meets others, if it uses a datacenter. The caller holds mu.
func (a *abroad) meets(v *namespaces.View, dc namespaces.Datacenter) (found []regions.Conflict) {
	own := a.own(v, dc)
	done := []regions.Cluster{own}
	for _, r := range a.all {
		if there, ok := a.heard[r.Addr]; ok && !slices.ContainsFunc(done, there.Is) {
			done = append(done, there) // once, of all its nodes
			found = append(found, own.Conflicts(there)...)
		}
	}
	return found
}

// compare notes, and logs, in what this cluster meets others.
func (a *abroad) compare(v *namespaces.View) {
	a.mu.Lock()
	defer a.mu.Unlock()
	had := len(a.found)
	a.found = a.meets(v, a.s.cfg.Node.Datacenter)
	for _, c := range a.found {
		a.s.cfg.Logger.Error("IDs can repeat those of another region", "conflict", c.String(), "cluster", c.Cluster, "other", c.Other, "namespace", c.Namespace)
	}
	if had > 0 && len(a.found) == 0 {
		a.s.cfg.Logger.Info("IDs are apart from those of all other regions again")
	}
}

// own returns the Cluster of this cluster, with the datacenter added if the cluster has not used it.
func (a *abroad) own(v *namespaces.View, dc namespaces.Datacenter) regions.Cluster {
	c := regions.Cluster{ID: a.s.cfg.Cluster, Life: a.s.cfg.Life}
	for _, ns := range v.All {
		if ns.Retired == 0 {
			c.Namespaces = append(c.Namespaces, regions.Namespace{Name: ns.Name, Alias: ns.Alias, Layout: ns.Layout, Recorded: ns.Version > 0 || unused(v)})
		}
	}
	all := v.Datacenters
	if !v.Bound(dc.ID) {
		all = append(slices.Clone(all), dc)
	}
	for _, one := range all {
		c.Datacenters = append(c.Datacenters, regions.Datacenter{ID: one.ID, Name: one.Name})
	}
	return c
}

// conflicts returns the conflicts of the last comparison, as text.
func (a *abroad) conflicts() (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.found {
		all = append(all, c.String())
	}
	return all
}

// send sends the metrics.
func (a *abroad) send(ch chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heard := 0
	for _, r := range a.all {
		if silent, asked := a.silent[r.Addr]; asked && !silent {
			heard++
		}
	}
	mConflicts.Send(ch, float64(len(a.found)))
	mRegions.Send(ch, float64(len(a.all)), "all")
	mRegions.Send(ch, float64(heard), "heard")
}
