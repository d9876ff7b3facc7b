package ctl

import (
	"context"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// oneSet is a Set with the options to reach it.
type oneSet struct {
	name string // empty if the cluster has no other Sets
	o    *Options
}

// allSets returns the Sets of the cluster at --addr, the root first. Sets that do not answer are among
// them.
func (o *Options) allSets(ctx context.Context) ([]oneSet, error) {
	c, err := o.routes(ctx)
	if err != nil {
		return nil, err
	}
	conns := survey.NewConns(o.Dial()...)
	defer conns.Close()
	c.HearOfSets(ctx, conns)
	if len(c.Sets.Sets) == 0 {
		return []oneSet{{o: o}}, nil
	}
	var all []oneSet
	for _, s := range c.Sets.Sets {
		at := o
		if s.Cluster != c.ID {
			other := *o
			other.Addr, other.Addrs, other.found = "", s.Addrs, false
			at = &other
		}
		all = append(all, oneSet{s.Name, at})
	}
	return all, nil
}
