package call

import (
	"context"
	"fmt"
	"sync"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/seq"
)

// AskOwners asks for all keys at the owners of their sections, and elsewhere where those give
// no answer. errs are one a key, nil if none failed; err is for the whole call.
func (c *Caller) AskOwners(ctx context.Context, space string, places []seq.UID, ask func(context.Context, *Attempt) ([]Fault, error)) (errs []error, err error) {
	if len(places) == 0 || len(places) > seq.MaxBatch {
		return nil, fmt.Errorf("%w: %d keys, expected 1 to %d", seq.ErrBadBatch, len(places), seq.MaxBatch)
	}
	ctx, cancel, v, err := c.begin(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	v, in, err := c.table.Space(ctx, v, space)
	if err != nil {
		return nil, err
	}
	k := call{c: c, rules: &forKeys, space: in, places: places, ask: ask, start: tries{gen: v.Gen, next: 1}}
	pending := make([]int, len(places))
	for i := range pending {
		pending[i] = i
	}
	if apart := k.apart(v); apart != nil {
		return k.each(ctx, v, apart), nil
	}
	k.begin(ctx, v, pending)
	return k.errs, nil
}

// begin asks the owners of the pending keys first.
func (k *call) begin(ctx context.Context, v *route.View, pending []int) {
	if attempts, idle := k.owners(v, pending); len(attempts) > 0 {
		pending = k.askAll(ctx, attempts, idle)
	}
	k.retry(ctx, pending)
}

// apart is the keys by the Set that has them; nil if one has all.
func (k *call) apart(v *route.View) [][]int {
	if v.Alone() {
		return nil
	}
	of := func(i int) int { return v.Sets.Index(k.sectionOf(i)) }
	first, i := of(0), 1
	for i < len(k.places) && of(i) == first {
		i++
	}
	if i == len(k.places) {
		return nil
	}
	all := make([][]int, len(v.Parts))
	for i := range k.places {
		all[of(i)] = append(all[of(i)], i)
	}
	return all
}

// each makes the call for the keys of each Set by itself, all at the same time, so that keys of one do
// not wait for the attempts of another one, which may hang. It gives the errors, one a key.
func (k *call) each(ctx context.Context, v *route.View, apart [][]int) []error {
	k.errs = make([]error, len(k.places)) // and tries: all that they share is by the key
	_ = k.of(0)
	var asking sync.WaitGroup
	for _, pending := range apart {
		if len(pending) > 0 {
			one := *k
			asking.Go(func() { one.begin(ctx, v, pending) })
		}
	}
	asking.Wait()
	return k.errs
}

// owners is the plan of the first attempts: the owners alone, found by index, since nearly
// every call needs no more than that.
func (k *call) owners(v *route.View, pending []int) (attempts []*Attempt, idle []int) {
	if s := k.soleOwner(v); s != nil {
		ok, probe := peer(s).health.admit()
		if !ok {
			return nil, pending
		}
		a := k.attempt(peer(s), probe, 0)
		a.Idx = pending
		return []*Attempt{a}, nil
	}
	byNode := make([]*Attempt, len(v.Nodes))
	refused := make([]bool, len(v.Nodes))
	for _, i := range pending {
		n := int(v.Place(k.space.SectionOf(k.places[i])).Owner)
		if n < 0 || v.Nodes[n] == nil || refused[n] {
			idle = append(idle, i)
			continue
		}
		if byNode[n] == nil {
			ok, probe := peer(v.Nodes[n]).health.admit()
			if !ok {
				refused[n] = true
				idle = append(idle, i)
				continue
			}
			byNode[n] = k.attempt(peer(v.Nodes[n]), probe, 0)
			byNode[n].Idx = make([]int, 0, len(pending)/len(v.Nodes)+1)
			attempts = append(attempts, byNode[n])
		}
		byNode[n].Idx = append(byNode[n].Idx, i)
	}
	return attempts, idle
}

// soleOwner is the owner of all keys; nil if there is no such one.
func (k *call) soleOwner(v *route.View) *route.Server {
	s := v.Owner(k.space.SectionOf(k.places[0]))
	for _, place := range k.places[1:] {
		if s == nil || v.Owner(k.space.SectionOf(place)) != s {
			return nil
		}
	}
	return s
}

// refresh asks for newer tables of the Sets that gave some keys no answer, since others may have
// their sections, and has it found out whether these Sets can be reached.
func (k *call) refresh(idle []int) {
	v := k.c.table.View()
	if v.Alone() {
		v.Root().Of.Poke()
		return
	}
	k.c.table.WantMap(nil)
	if k.anySet() {
		for _, p := range v.Parts {
			p.Of.Poke()
			careOf(p.Of).suspect()
		}
		return
	}
	var last *route.Set
	for _, i := range idle {
		if in := k.in(v, i, k.of(i)); in != last {
			last = in
			in.Poke()
			careOf(in).suspect()
		}
	}
}
