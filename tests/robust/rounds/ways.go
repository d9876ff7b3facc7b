package rounds

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/tests/robust/proxy"
)

// wayFaults concern the ways from allocators to stores.
func (s *Site) wayFaults() []lab.Scenario {
	return []lab.Scenario{
		{Name: "delay-between-allocs-and-stores", Run: s.delay},
		{Name: "half-open-connections", Run: s.halfOpen},
		{Name: "break-all-connections", Run: s.breakAll},
		{Name: "one-store-within-reach", Run: s.fewWays},
	}
}

// ways are the proxies from the allocators to the stores.
func (s *Site) ways(allocs, stores []string) (list []*proxy.Proxy) {
	for _, a := range allocs {
		for _, st := range stores {
			list = append(list, s.proxies[pair{a, st}])
		}
	}
	return list
}

// stores are all stores in random order.
func (s *Site) stores(sc *lab.Scene) (list []string) {
	for _, n := range s.Role(store) {
		list = append(list, n.Name)
	}
	sc.Random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// during sets a mode for a while.
func during(ctx context.Context, sc *lab.Scene, ways []*proxy.Proxy, wait time.Duration, m proxy.Mode) {
	for _, p := range ways {
		p.Set(m)
		if m.Refuse {
			p.Break()
		}
	}
	sc.Rest(ctx, wait)
	for _, p := range ways {
		p.Set(proxy.Mode{})
	}
}

func (s *Site) delay(ctx context.Context, sc *lab.Scene) error {
	allocs, err := sc.Victims(ctx, 1+sc.Random.IntN(3), alloc)
	m := proxy.Mode{Delay: sc.Between(time.Millisecond, 150*time.Millisecond), Jitter: sc.Between(0, 200*time.Millisecond)}
	wait := sc.Outage()
	sc.Note("%v, up to %v more, between %v and the stores for %v", m.Delay, m.Jitter, allocs, wait)
	during(ctx, sc, s.ways(allocs, s.stores(sc)), wait, m)
	return err
}

// halfOpen lets connections stay while nothing passes, one way or both.
func (s *Site) halfOpen(ctx context.Context, sc *lab.Scene) error {
	allocs, err := sc.Victims(ctx, 1+sc.Random.IntN(2), alloc)
	stores := s.stores(sc)
	stores = stores[:1+sc.Random.IntN(len(stores))]
	way := sc.Random.IntN(3)
	m, wait := proxy.Mode{StallA: way != 1, StallB: way != 0}, sc.Outage()
	sc.Note("nothing passes from %v to %v (forth %t, back %t) for %v", allocs, stores, m.StallA, m.StallB, wait)
	during(ctx, sc, s.ways(allocs, stores), wait, m)
	return err
}

func (s *Site) breakAll(ctx context.Context, sc *lab.Scene) error {
	times := 1 + sc.Random.IntN(10)
	sc.Note("reset every connection between allocs and stores %d times", times)
	for range times {
		for _, p := range s.proxies {
			p.Break()
		}
		sc.Rest(ctx, sc.Between(0, 300*time.Millisecond))
	}
	return nil
}

// fewWays leaves an allocator one store, which is no quorum.
func (s *Site) fewWays(ctx context.Context, sc *lab.Scene) error {
	allocs, err := sc.Victims(ctx, 1, alloc)
	stores, wait := s.stores(sc), sc.Outage()
	sc.Note("%v reaches %s only for %v", allocs, stores[0], wait)
	during(ctx, sc, s.ways(allocs, stores[1:]), wait, proxy.Mode{Refuse: true})
	return err
}
