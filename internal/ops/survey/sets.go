package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// oldMove is the age from which an open move of sections counts as a trouble.
const oldMove = time.Minute

// Set is one of several Sets, as status lists them.
type Set struct {
	Name     string `json:"name"`
	Cluster  string `json:"cluster_id"`
	Sections int    `json:"sections"` // by the map
	Health   Health `json:"health"`
	Problem  string `json:"problem"` // the worst; empty without problems
}

// HearOfSets asks AllocSvr for a newer map than a router may have, which hears of one when a call
// goes wrong.
func (c *Cluster) HearOfSets(ctx context.Context, conns *Conns) {
	for _, addr := range c.Addrs() {
		ctx, cancel := context.WithTimeout(ctx, Patience)
		told, err := Routes(ctx, conns, addr)
		cancel()
		if err != nil {
			continue
		}
		if told.ID == c.ID && told.Set != "" && (told.Sets.Version > c.Sets.Version || c.Set == "") {
			c.Set, c.Sets = told.Set, told.Sets
		}
		return
	}
}

// AskSets asks all other Sets of the map how they are, at once.
func (s *Survey) AskSets(ctx context.Context, conns *Conns, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.Cluster.HearOfSets(ctx, conns)
	all := s.Cluster.Sets.Sets
	if len(all) == 0 {
		return
	}
	s.sets = make([]Set, len(all))
	var wg sync.WaitGroup
	for i, ranges := range s.Cluster.Sets.Ranges(s.Cluster.Mapping.Sections()) {
		one := &s.sets[i]
		one.Name, one.Cluster, one.Sections = all[i].Name, all[i].Cluster, len(sets.Sections(ranges))
		if one.Name == s.Cluster.Set {
			one.Health, one.Problem = s.word()
			continue
		}
		wg.Go(func() { one.Health, one.Problem = ofSet(ctx, conns, all[i], patience) })
	}
	wg.Wait()
	for _, one := range s.sets {
		if one.Name == s.Cluster.Set || one.Health == Healthy {
			continue
		}
		s.setTroubles = append(s.setTroubles, trouble{setIll, one.Health == Failed && one.Sections > 0, fmt.Sprintf("Set %s with %d sections: %s", one.Name, one.Sections, one.Problem),
			"seqctl set list", "and seqctl status --addr an AllocSvr of that Set; callers of other Sets feel nothing"})
	}
}

// word is the health in one word, and the worst that is wrong.
func (s *Survey) word() (Health, string) {
	h, worst := judge(s.troubles())
	if len(worst) == 0 {
		return h, ""
	}
	return h, worst[0].what
}

// ofSet asks one Set, at the first of its addresses that answers.
func ofSet(ctx context.Context, conns *Conns, set sets.Set, patience time.Duration) (Health, string) {
	var errs []error
	for _, addr := range set.Addrs {
		c, err := Routes(ctx, conns, addr)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case c.ID != set.Cluster:
			return Failed, fmt.Sprintf("cluster %s answers at %s", c.ID, addr)
		}
		c.Sets = sets.Map{} // its moves are told once, of the map
		return Take(ctx, c, conns, patience).word()
	}
	if len(errs) == 0 {
		return Failed, "the map has no address of it"
	}
	return Failed, "no AllocSvr answers: " + LastReason(errors.Join(errs...))
}

// moveTroubles are moves between Sets that have been open for long.
func (s *Survey) moveTroubles(now time.Time) (out []trouble) {
	for _, m := range s.Cluster.Sets.Moves {
		if since := now.Sub(time.UnixMilli(m.Begun)); m.Begun != 0 && since > oldMove {
			out = append(out, trouble{moveOpen, false, fmt.Sprintf("move %d of %d sections from Set %s to %s is open since %s", m.ID, len(sets.Sections(m.Sections)), m.From, m.To, Stamp(m.Begun)),
				fmt.Sprintf("seqctl set move --id %d", m.ID), fmt.Sprintf("or seqctl set abort --id %d; callers of sections that are stopped for it wait", m.ID)})
		}
	}
	return out
}

// Elsewhere returns the Set that has a section by the map, if it is not the Set of the table.
func (c *Cluster) Elsewhere(id seq.SectionID) (sets.Set, bool) {
	if len(c.Sets.Sets) == 0 {
		return sets.Set{}, false
	}
	s := c.Sets.Sets[min(c.Sets.Index(id), len(c.Sets.Sets)-1)]
	return s, s.Name != c.Set
}

// Here are the sections that the Set of the table has by the map.
func (c *Cluster) Here() int {
	i := slices.IndexFunc(c.Sets.Sets, func(s sets.Set) bool { return s.Name == c.Set })
	if i < 0 {
		return c.Mapping.Sections()
	}
	return len(sets.Sections(c.Sets.Ranges(c.Mapping.Sections())[i]))
}

// In is the cluster of the Set that has a section, as one of its nodes tells.
func (c *Cluster) In(ctx context.Context, conns *Conns, id seq.SectionID) (*Cluster, error) {
	set, elsewhere := c.Elsewhere(id)
	if !elsewhere {
		return c, nil
	}
	var errs []error
	for _, addr := range set.Addrs {
		other, err := Routes(ctx, conns, addr)
		if err == nil {
			return other, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("section %d is in Set %s: %w: %w", id, set.Name, seq.ErrNoRoute, errors.Join(errs...))
}
