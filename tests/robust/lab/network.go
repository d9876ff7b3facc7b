package lab

import (
	"context"
	"errors"
	"time"

	"github.com/seqsvr/seqsvr/internal/localcluster"
	"github.com/seqsvr/seqsvr/internal/netlab"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

var networkFaults = []Fault{
	{Kind: "cut one store off", Needs: needNetwork, Run: cut(netlab.CutBoth, 1, store)},
	{Kind: "cut two stores off", Needs: needNetwork, Run: cut(netlab.CutBoth, 2, store)},
	{Kind: "cut one alloc off", Needs: needNetwork, Run: cut(netlab.CutBoth, 1, alloc)},
	{Kind: "cut two allocs off", Needs: needNetwork, Run: cut(netlab.CutBoth, 2, alloc)},
	{Kind: "one way: an alloc receives nothing", Needs: needNetwork, Run: cut(netlab.CutIn, 1, alloc)},
	{Kind: "one way: an alloc sends nothing", Needs: needNetwork, Run: cut(netlab.CutOut, 1, alloc)},
	{Kind: "one way: a store receives nothing", Needs: needNetwork, Run: cut(netlab.CutIn, 1, store)},
	{Kind: "one way: a store sends nothing", Needs: needNetwork, Run: cut(netlab.CutOut, 1, store)},
	{Kind: "refuse packets to a node", Needs: needNetwork, Run: refuse},
	{Kind: "lose packets of a node", Needs: needNetwork, Run: lose},
	{Kind: "cut two allocs from each other", Needs: needNetwork, Run: part},
}

// wayFaults concern the ways from allocators to stores.
var wayFaults = []Fault{
	{Kind: "delay between allocs and stores", Run: delay},
	{Kind: "half-open connections", Run: halfOpen},
	{Kind: "break all connections", Run: breakAll},
	{Kind: "an alloc reaches one store only", Run: fewWays},
}

// mended breaks the network of the victims for a while.
func (r *round) mended(ctx context.Context, victims []*localcluster.Process, wait time.Duration, do func(name string) error) error {
	ctx = context.WithoutCancel(ctx) // nothing is left half done
	err := each(victims, func(p *localcluster.Process) error { return do(p.Name) })
	r.rest(ctx, wait)
	return errors.Join(err, each(victims, func(p *localcluster.Process) error { return r.network.Mend(ctx, p.Name) }))
}

// outage is mostly a few leases.
func (r *round) outage() time.Duration { return r.between(200*time.Millisecond, 5*r.cfg.Lease) }

func cut(how netlab.Cut, count int, role localcluster.Role) func(context.Context, *round) error {
	return func(ctx context.Context, r *round) error {
		victims, wait := r.take(count, role), r.outage()
		r.note("%v: %s for %v", names(victims), how, wait)
		return r.mended(ctx, victims, wait, func(name string) error { return r.network.Cut(ctx, name, how) })
	}
}

func refuse(ctx context.Context, r *round) error {
	victims, wait := r.take(1, store, alloc, router), r.outage()
	r.note("reject packets to %v for %v", names(victims), wait)
	return r.mended(ctx, victims, wait, func(name string) error { return r.network.Reject(ctx, name) })
}

func lose(ctx context.Context, r *round) error {
	victims, wait, percent := r.take(1+r.random.IntN(3), store, alloc, router), r.outage(), 5+r.random.IntN(45)
	r.note("lose %d %% of the packets of %v for %v", percent, names(victims), wait)
	return r.mended(ctx, victims, wait, func(name string) error { return r.network.Lose(ctx, name, percent) })
}

// part lets two allocators reach everybody but each other.
func part(ctx context.Context, r *round) error {
	both, wait := r.take(2, alloc), r.outage()
	if len(both) < 2 {
		return nil
	}
	r.note("cut %v from each other for %v", names(both), wait)
	return r.mended(ctx, both[:1], wait, func(name string) error { return r.network.Part(ctx, name, both[1].Name) })
}

// ways are the proxies from the allocators to the stores.
func (r *round) ways(allocs, stores []*localcluster.Process) (list []*proxy.Proxy) {
	for _, a := range allocs {
		for _, s := range stores {
			list = append(list, r.proxies[pair{a.Name, s.Name}])
		}
	}
	return list
}

// during sets a mode for a while.
func (r *round) during(ctx context.Context, ways []*proxy.Proxy, wait time.Duration, m proxy.Mode) {
	for _, p := range ways {
		p.Set(m)
	}
	r.rest(ctx, wait)
	for _, p := range ways {
		p.Set(proxy.Mode{})
	}
}

func delay(ctx context.Context, r *round) error {
	allocs := r.take(1+r.random.IntN(3), alloc)
	m := proxy.Mode{Delay: r.between(time.Millisecond, 150*time.Millisecond), Jitter: r.between(0, 200*time.Millisecond)}
	wait := r.outage()
	r.note("%v, up to %v more, between %v and the stores for %v", m.Delay, m.Jitter, names(allocs), wait)
	r.during(ctx, r.ways(allocs, r.Processes(store)), wait, m)
	return nil
}

// halfOpen lets connections stay while nothing passes, one way or both.
func halfOpen(ctx context.Context, r *round) error {
	allocs, stores := r.take(1+r.random.IntN(2), alloc), r.Processes(store)
	r.random.Shuffle(len(stores), func(i, j int) { stores[i], stores[j] = stores[j], stores[i] })
	stores = stores[:1+r.random.IntN(len(stores))]
	way := r.random.IntN(3)
	m, wait := proxy.Mode{StallA: way != 1, StallB: way != 0}, r.outage()
	r.note("nothing passes from %v to %v (forth %t, back %t) for %v", names(allocs), names(stores), m.StallA, m.StallB, wait)
	r.during(ctx, r.ways(allocs, stores), wait, m)
	return nil
}

func breakAll(ctx context.Context, r *round) error {
	times := 1 + r.random.IntN(10)
	r.note("reset every connection between allocs and stores %d times", times)
	for range times {
		for _, p := range r.proxies {
			p.Break()
		}
		r.rest(ctx, r.between(0, 300*time.Millisecond))
	}
	return nil
}

// fewWays leaves an allocator one store, which is no quorum.
func fewWays(ctx context.Context, r *round) error {
	allocs, stores := r.take(1, alloc), r.Processes(store)
	r.random.Shuffle(len(stores), func(i, j int) { stores[i], stores[j] = stores[j], stores[i] })
	wait := r.outage()
	r.note("%v reaches %s only for %v", names(allocs), stores[0].Name, wait)
	ways := r.ways(allocs, stores[1:])
	for _, p := range ways {
		p.Set(proxy.Mode{Refuse: true})
		p.Break()
	}
	r.rest(ctx, wait)
	for _, p := range ways {
		p.Set(proxy.Mode{})
	}
	return nil
}
