package ctl

import (
	"context"

	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// oneSet is a Set, and how it is asked.
type oneSet struct {
	name string // empty: the cluster is alone
	o    *Options
}

// allSets are those of the cluster at --addr, the root first, also those that do not answer.
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
