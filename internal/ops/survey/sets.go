package survey

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
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
	Unowned  uint32 `json:"sections_unowned"`
	Problem  string `json:"problem"` // the worst; empty without problems
}

// HearOfSets asks AllocSvr for a newer map than a router may have, which hears of one when a call
// goes wrong.
func (c *Cluster) HearOfSets(ctx context.Context, conns *Conns) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	told, _ := firstOf(ctx, conns, c.Addrs(), c.ID)
	if told != nil && told.Set != "" && (told.Sets.Version > c.Sets.Version || c.Set == "") {
		c.Set, c.Sets = told.Set, told.Sets
	}
}

// headStart is the time that an address has before the next one is asked, too.
const headStart = 300 * time.Millisecond

// errOtherCluster: an address of a Set belongs to another cluster now.
var errOtherCluster = errors.New("another cluster answers there")

// firstOf returns the cluster as the first of its addresses tells it that answers, or the error of each. A
// node that hangs keeps no other from being asked.
func firstOf(ctx context.Context, conns *Conns, addrs []string, cluster string) (*Cluster, map[string]error) {
	type told struct {
		addr string
		c    *Cluster
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, errs := make(chan told, len(addrs)), map[string]error{}
	for asked := 0; len(errs) < len(addrs); {
		var soon <-chan time.Time
		if asked < len(addrs) {
			addr := addrs[asked]
			asked++
			go func() {
				c, err := Routes(ctx, conns, addr)
				answers <- told{addr, c, err}
			}()
			soon = time.After(headStart)
		}
		select {
		case a := <-answers:
			if a.err == nil && a.c.ID != cluster {
				a.err = fmt.Errorf("%w: %s", errOtherCluster, a.c.ID)
			}
			if a.err == nil {
				return a.c, nil
			}
			errs[a.addr] = a.err
		case <-soon:
		}
	}
	return nil, errs
}

// Whole surveys all Sets of the cluster at once by take, which is Take or Glance. It asks all routers, too, and one
// AllocSvr about the namespaces of snowflake IDs.
func Whole(ctx context.Context, c *Cluster, conns *Conns, patience time.Duration, take func(context.Context, *Cluster, *Conns, time.Duration) *Survey) *Survey {
	var s *Survey
	var own, asking sync.WaitGroup
	own.Go(func() { s = take(ctx, c, conns, patience) })
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.HearOfSets(bound, conns)
	others := make([]*Survey, len(c.Sets.Sets))
	for i, set := range c.Sets.Sets {
		if set.Cluster != c.ID {
			asking.Go(func() { others[i] = c.ofSet(bound, conns, set, patience, take) })
		}
	}
	asking.Wait()
	own.Wait()
	for i := range others {
		if others[i] == nil {
			others[i] = s
		}
	}
	s.sets = others
	asking.Go(func() { s.AskRouters(ctx, conns, patience) })
	if addr := s.Answered(); addr != "" {
		if conn, err := conns.To(addr); err == nil {
			bound, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			s.AskIDs(bound, pb.NewSnowflakeClient(conn), time.Now())
		}
	}
	asking.Wait()
	return s
}

// ofSet surveys another Set. If none of its addresses answers, they stand for its nodes, whose names nobody tells.
func (c *Cluster) ofSet(ctx context.Context, conns *Conns, set sets.Set, patience time.Duration, take func(context.Context, *Cluster, *Conns, time.Duration) *Survey) *Survey {
	told, errs := firstOf(ctx, conns, set.Addrs, set.Cluster)
	if told != nil {
		told.Set, told.Sets = set.Name, c.Sets
		return take(ctx, told, conns, patience)
	}
	s := newSurvey(&Cluster{ID: set.Cluster, Set: set.Name, Sets: c.Sets, Mapping: c.Mapping, Table: &seq.RouteTable{}})
	for _, addr := range set.Addrs {
		s.Cluster.Table.Nodes = append(s.Cluster.Table.Nodes, seq.Node{Name: addr, Addr: addr})
		s.Errs[addr] = errs[addr]
	}
	return s
}

// SetOf returns the survey of the Set that has a section by the map.
func (s *Survey) SetOf(id seq.SectionID) *Survey {
	all := s.Each()
	return all[min(s.Cluster.Sets.Index(id), len(all)-1)]
}

// setRows returns the Sets; none if the cluster is alone.
func (s *Survey) setRows() []Set {
	out := []Set{}
	for _, of := range s.sets {
		one := Set{Name: of.Cluster.Set, Cluster: of.Cluster.ID, Sections: of.Cluster.Here(), Unowned: of.unowned()}
		h, worst := judge(of.ownTroubles())
		if one.Health = h; len(worst) > 0 {
			one.Problem = worst[0].what
		}
		out = append(out, one)
	}
	return out
}

// unowned returns the number of sections without an owner: all of a Set that does not answer.
func (s *Survey) unowned() uint32 {
	if best := s.View(); best != nil {
		return best.GetSectionsUnowned()
	}
	return uint32(s.Cluster.Here())
}

// setTroubles are the troubles of the other Sets, with their names. A Set without sections breaks nothing.
func (s *Survey) setTroubles() (out []trouble) {
	for _, of := range s.sets {
		if of == s {
			continue
		}
		for _, t := range of.ownTroubles() {
			if log := s.View().GetDevLog(); log != "" && of.View() == nil {
				t.inDev(log)
			}
			t.breaks = t.breaks && of.Cluster.Here() > 0
			t.what = fmt.Sprintf("Set %s: %s", of.Cluster.Set, t.what)
			out = append(out, t)
		}
	}
	return out
}

// moveTroubles are moves// moveTroubles are moves between Sets that have been open for long.
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
	other, errs := firstOf(ctx, conns, set.Addrs, set.Cluster)
	if other == nil {
		return nil, fmt.Errorf("section %d is in Set %s: %w: %w", id, set.Name, seq.ErrNoRoute, errors.Join(slices.Collect(maps.Values(errs))...))
	}
	return other, nil
}
