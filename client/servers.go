package client

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// maxServers bounds the connections, so that answers full of addresses cannot make more.
const maxServers = 4096

// servers are the connections, one an address.
type servers struct {
	c     *Client
	seeds []*server // Config.Addrs, fixed
	first int       // where to begin in seeds: random, so that many clients spread
	order atomic.Pointer[order]

	mu     sync.RWMutex // guards all below
	all    map[string]*server
	closed bool
}

// open connects to the addresses of Config.
func (s *servers) open(c *Client) error {
	s.c, s.all, s.first = c, map[string]*server{}, rand.IntN(len(c.cfg.Addrs))
	for _, addr := range c.cfg.Addrs {
		one, err := s.at(addr)
		if err != nil {
			return err
		}
		one.seed = true
		s.seeds = append(s.seeds, one)
	}
	s.order.Store(&order{far: s.seeds})
	return nil
}

// seed is one of Config.Addrs at a step of a pass over them all, those of this zone first. Each
// turn begins with another one.
func (s *servers) seed(turn, step int) *server {
	o := s.order.Load()
	group, step := o.near, step%len(s.seeds)
	if step >= len(group) {
		group, step = o.far, step-len(group)
	}
	return group[(s.first+turn+step)%len(group)]
}

// perRound is how many of Config.Addrs a round asks: they are all there is to an indirect
// client, and one is enough for others.
func (s *servers) perRound() int {
	if s.c.cfg.Indirect {
		return len(s.seeds)
	}
	return 1
}

// at finds or makes the connection to addr.
func (s *servers) at(addr string) (*server, error) {
	s.mu.RLock()
	one, closed := s.all[addr], s.closed
	s.mu.RUnlock()
	if closed {
		return nil, ErrClosed
	}
	if one != nil {
		return one, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.all[addr]; one != nil {
		return one, nil
	}
	if s.closed {
		return nil, ErrClosed
	}
	if len(s.all) >= maxServers {
		return nil, fmt.Errorf("%w: %d servers known, %s is one too many", seq.ErrOverloaded, len(s.all), addr)
	}
	one = &server{c: s.c, addr: addr}
	opts := append([]grpc.DialOption{rpc.SayTarget(one.target)}, s.c.cfg.DialOptions...)
	conn, err := rpc.Dial(addr, opts...)
	if err != nil {
		return nil, err
	}
	one.open(conn)
	s.all[addr] = one
	return one, nil
}

// known are all servers of a Set, also those that a NOT_OWNER named.
func (s *servers) known(of *set) (out []*server) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, one := range s.all {
		if one.set() == of {
			out = append(out, one)
		}
	}
	return out
}

// keep closes the connections that are neither used, nor of Config.Addrs, nor perhaps the only
// ones to a Set whose table is not known.
func (s *servers) keep(used map[*server]bool) {
	var gone []*server
	s.mu.Lock()
	for addr, one := range s.all {
		of := one.of.Load()
		if !one.seed && !used[one] && (of == nil || of.version.Load() > 0) {
			delete(s.all, addr)
			gone = append(gone, one)
		}
	}
	s.mu.Unlock()
	for _, one := range gone {
		one.close(&lostError{one.addr, errServerGone})
	}
}

// sweepEvery is the longest time between two passes of sweepLoop.
const sweepEvery = DefaultAttemptTimeout / 4

// sweepLoop gives up attempts on streams that take too long, and asks whether servers are back that calls
// for IDs go by. One ticker for all calls costs less than a timer for each.
func (s *servers) sweepLoop() {
	tick := time.NewTicker(min(max(s.c.cfg.AttemptTimeout/4, time.Millisecond), sweepEvery))
	defer tick.Stop()
	var all []*server
	for {
		select {
		case <-s.c.ctx.Done():
			return
		case now := <-tick.C:
			all = all[:0]
			s.mu.RLock()
			for _, one := range s.all {
				all = append(all, one)
			}
			s.mu.RUnlock()
			for _, one := range all {
				one.seek(now)
				one.streams.Sweep(now)
			}
		}
	}
}

// close ends all connections, and refuses new ones.
func (s *servers) close() {
	s.mu.Lock()
	s.closed = true
	gone := s.all
	s.all = map[string]*server{}
	s.mu.Unlock()
	for _, one := range gone {
		one.close(ErrClosed)
	}
}
