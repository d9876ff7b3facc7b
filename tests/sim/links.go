package sim

import "time"

// links is the state of the network between hosts, which faults change: what is cut, slow,
// late or lost.
type links struct {
	part
	cuts     map[link]int                // how many faults cut the direction now
	lags     map[*host]time.Duration     // of what stores say to a host
	late     map[link]time.Duration      // by which what a host asks to be promised reaches a store later, and of what it asks etcd all in etcdWrites
	astray   map[*host]map[string]string // where a host's messages to a name go
	copied   map[*host]map[string]string // likewise, to a copy of a store
	bad      []weather                   // loss, duplication and delay in force
	weathers int                         // ever
}

// link is one direction between two hosts.
type link struct{ from, to string }

// weather is a time of bad network between all hosts.
type weather struct {
	id        int
	loss, dup float64
	slow      time.Duration
}

func (ls *links) cut(from, to *host) bool { return ls.cuts[link{from.name, to.name}] > 0 }

// travel is the time between a server and another host. On a still stage the first
// server is always the fastest. Needs w.mu.
func (ls *links) travel(server *host) time.Duration {
	if ls.opts.still {
		return ls.opts.Latency + time.Duration(server.index)*ls.opts.Latency/10
	}
	return ls.latency()
}

// latency of one message. Needs w.mu.
func (ls *links) latency() time.Duration {
	if ls.opts.still {
		return ls.opts.Latency
	}
	d := ls.opts.Latency/2 + ls.between(0, ls.opts.Latency)
	for _, b := range ls.bad {
		d += ls.between(0, b.slow)
	}
	return d
}

func (ls *links) loss() float64 {
	p := 0.0
	for _, b := range ls.bad {
		p = max(p, b.loss)
	}
	return p
}

func (ls *links) dup() float64 {
	p := 0.0
	for _, b := range ls.bad {
		p = max(p, b.dup)
	}
	return p
}

// sever cuts directions for a while.
func (ls *links) sever(links []link, d time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.w.faults.healed {
		return
	}
	for _, l := range links {
		ls.cuts[l]++
	}
	ls.after(d, ls.locked(func() {
		for _, l := range links {
			if ls.cuts[l]--; ls.cuts[l] <= 0 {
				delete(ls.cuts, l)
			}
		}
	}))
}
