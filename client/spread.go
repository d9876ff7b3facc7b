package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// asker asks one peer for the keys at idx and puts the answers away. It gives the keys
// that failed for themselves, or the error of the whole attempt. Each key is asked for
// by one goroutine at a time.
type asker func(ctx context.Context, p *peer, space *seq.Space, version uint64, idx []int) ([]fault, error)

// fault is the error of idx[k].
type fault struct {
	k   int
	err error
}

// spread asks for all keys at their owners, and again until each has an answer, a
// final error, or ctx ended. The errors are one a key.
func (c *Client) spread(ctx context.Context, spaceName string, uids []seq.UID, ask asker) ([]error, error) {
	if len(uids) == 0 || len(uids) > seq.MaxBatch {
		return nil, fmt.Errorf("%w: %d keys, expected 1 to %d", seq.ErrBadBatch, len(uids), seq.MaxBatch)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
	}
	v, err := c.current(ctx)
	if err != nil {
		return nil, err
	}
	space, err := v.mapping.Space(spaceName)
	if err != nil {
		return nil, err
	}
	s := &spreading{c: c, space: space, uids: uids, ask: ask, begun: v.version()}
	pending := make([]int, len(uids))
	for i := range pending {
		pending[i] = i
	}
	parts, idle := s.owners(v, pending)
	for pending = s.settle(ctx, v, parts, idle); len(pending) > 0; {
		pending = s.pass(ctx, pending)
	}
	return s.errs, nil
}

// spreading is a batch on its way.
type spreading struct {
	c     *Client
	space *seq.Space
	uids  []seq.UID
	ask   asker
	begun uint64    // table version of the first pass
	errs  []error   // one a key; nil until one fails
	ways  []journey // one a key; nil while all keys go to their owners at the first try
}

// part is what one peer is asked in a pass.
type part struct {
	p      *peer
	probe  bool
	idx    []int
	faults []fault
	err    error
}

// way is the journey of a key, which began at the owner.
func (s *spreading) way(i int) *journey {
	if s.ways == nil {
		s.ways = make([]journey, len(s.uids))
		for k := range s.ways {
			s.ways[k].table, s.ways[k].next = s.begun, 1
		}
	}
	return &s.ways[i]
}

func (s *spreading) fail(i int, err error) {
	if s.errs == nil {
		s.errs = make([]error, len(s.uids))
	}
	s.errs[i] = err
}

// owners is the plan of the first pass: the owners alone, found by index, since
// nearly every batch needs no more than that.
func (s *spreading) owners(v *view, pending []int) (parts []*part, idle []int) {
	if p := s.soleOwner(v); p != nil {
		if ok, probe := p.admit(); ok {
			return []*part{{p: p, probe: probe, idx: pending}}, nil
		}
		return nil, pending
	}
	byNode := make([]*part, len(v.nodes))
	refused := make([]bool, len(v.nodes))
	for _, i := range pending {
		n := int(v.routes.Sections[s.space.SectionOf(s.uids[i])].Owner)
		if n < 0 || v.nodes[n] == nil || refused[n] {
			idle = append(idle, i)
			continue
		}
		if byNode[n] == nil {
			ok, probe := v.nodes[n].admit()
			if !ok {
				refused[n] = true
				idle = append(idle, i)
				continue
			}
			byNode[n] = &part{p: v.nodes[n], probe: probe, idx: make([]int, 0, len(pending)/len(v.nodes)+1)}
			parts = append(parts, byNode[n])
		}
		byNode[n].idx = append(byNode[n].idx, i)
	}
	return parts, idle
}

// soleOwner is the owner of all keys; nil if there is no such one.
func (s *spreading) soleOwner(v *view) *peer {
	p := v.owner(s.space.SectionOf(s.uids[0]))
	for i := 1; p != nil && i < len(s.uids); i++ {
		if v.owner(s.space.SectionOf(s.uids[i])) != p {
			return nil
		}
	}
	return p
}

// pass asks each pending key once at most, and gives back those to ask again. It
// pauses only when no key has anywhere left to go in its round.
func (s *spreading) pass(ctx context.Context, pending []int) []int {
	v := s.c.view.Load()
	parts, idle := s.plan(v, pending)
	if len(parts) > 0 {
		return s.settle(ctx, v, parts, idle)
	}
	if idle = s.worthwhile(idle); len(idle) == 0 {
		return nil
	}
	first := s.way(idle[0])
	err := s.c.pause(ctx, first)
	for _, i := range idle {
		w := s.way(i)
		switch {
		case err == nil:
			w.round, w.next, w.hops, w.hint = first.round, 0, 0, ""
		case ctx.Err() != nil:
			s.fail(i, s.c.timedOut(ctx.Err(), w))
		default:
			s.fail(i, err)
		}
	}
	if err != nil {
		return nil
	}
	return idle
}

// worthwhile fails the keys that no further round helps, and gives the others.
func (s *spreading) worthwhile(idle []int) []int {
	return slices.DeleteFunc(idle, func(i int) bool {
		err := s.c.hopeless(s.way(i))
		if err != nil {
			s.fail(i, err)
		}
		return err != nil
	})
}

// settle runs a plan and sorts the outcome: the keys that come back are to be asked
// again.
func (s *spreading) settle(ctx context.Context, v *view, parts []*part, idle []int) []int {
	s.run(ctx, v, parts)
	again := idle
	for _, g := range parts {
		if g.err != nil {
			g.faults = make([]fault, len(g.idx))
			for k := range g.idx {
				g.faults[k] = fault{k, g.err}
			}
		}
		for _, bad := range g.faults {
			i := g.idx[bad.k]
			if end := s.c.fault(ctx, s.way(i), bad.err); end != nil {
				s.fail(i, end)
				continue
			}
			again = append(again, i)
		}
	}
	slices.Sort(again) // one uid's numbers rise with the index
	return again
}

// plan sorts the pending keys by the peer to ask; idle are those whose round is over.
func (s *spreading) plan(v *view, pending []int) (parts []*part, idle []int) {
	type verdict struct{ ok, probe bool }
	known := map[*peer]verdict{}
	byPeer := map[*peer]*part{}
	admit := func(p *peer) (bool, bool) {
		a, seen := known[p]
		if !seen {
			a.ok, a.probe = p.admit()
			known[p] = a
		}
		return a.ok, a.probe
	}
	for _, i := range pending {
		p, probe := s.c.pick(v, s.space.SectionOf(s.uids[i]), s.way(i), admit)
		if p == nil {
			idle = append(idle, i)
			continue
		}
		g := byPeer[p]
		if g == nil {
			g = &part{p: p, probe: probe}
			byPeer[p] = g
			parts = append(parts, g)
		}
		g.idx = append(g.idx, i)
	}
	return parts, idle
}

// run asks all peers at once.
func (s *spreading) run(ctx context.Context, v *view, parts []*part) {
	one := func(g *part) {
		defer g.p.release(g.probe)
		g.faults, g.err = s.ask(ctx, g.p, s.space, v.version(), g.idx)
	}
	if len(parts) == 0 {
		return
	}
	done := make(chan struct{}, len(parts))
	for _, g := range parts[1:] {
		go func() {
			one(g)
			done <- struct{}{}
		}()
	}
	one(parts[0])
	for range parts[1:] {
		<-done
	}
}
