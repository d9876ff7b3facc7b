package route

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/seq"
)

// Server is an AllocSvr or a router, at an address.
type Server struct {
	Addr string
	Seed bool // of Config.Addrs: kept whatever the table says
	Peer Peer

	t       *Table
	of      atomic.Pointer[Set]   // its Set, as its table or the server itself said last; nil if neither did
	word    atomic.Pointer[word]  // for Config.Addrs, its answer before the Client served; nil if it gave none
	vouched atomic.Pointer[held]  // its life, by its own word or by a table or map; nil if unknown
	other   atomic.Pointer[error] // why the server is left out; nil if it is in use
	doubted atomic.Bool           // it is being asked which life it is of
	mute    atomic.Bool           // a warning was given that the server tells no incarnation
}

// maxServers bounds the connections, so that answers full of addresses cannot make more.
const maxServers = 4096

// servers are the connections, one an address.
type servers struct {
	t     *Table
	seeds []*Server // Config.Addrs, fixed
	first int       // where to begin in seeds: random, so that many clients spread
	order atomic.Pointer[order]

	mu     sync.RWMutex // guards all below
	all    map[string]*Server
	closed bool
}

// open connects to the addresses of Config.
func (s *servers) open(t *Table) error {
	s.t, s.all, s.first = t, map[string]*Server{}, rand.IntN(len(t.cfg.Addrs))
	for _, addr := range t.cfg.Addrs {
		one, err := s.at(addr)
		if err != nil {
			return err
		}
		one.Seed = true
		s.seeds = append(s.seeds, one)
	}
	s.order.Store(&order{far: s.seeds})
	return nil
}

// seed returns an address of Config at a step of a pass over all of them. The addresses in this zone come
// first. Each turn begins with another address.
func (s *servers) seed(turn, step int) *Server {
	o := s.order.Load()
	group, step := o.near, step%len(s.seeds)
	if step >= len(group) {
		group, step = o.far, step-len(group)
	}
	return group[(s.first+turn+step)%len(group)]
}

// perRound returns the number of Config.Addrs that a round asks. An indirect client asks all, because it
// has no other servers. Other clients ask one.
func (s *servers) perRound() int {
	if s.t.cfg.Indirect {
		return len(s.seeds)
	}
	return 1
}

// at finds or makes the connection to addr.
func (s *servers) at(addr string) (*Server, error) {
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
	one = &Server{t: s.t, Addr: addr}
	var err error
	if one.Peer, err = s.t.cfg.Dial(one); err != nil {
		return nil, err
	}
	s.all[addr] = one
	return one, nil
}

// known are all servers of a Set, also those that a NOT_OWNER named.
func (s *servers) known(of *Set) (out []*Server) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, one := range s.all {
		if one.Set() == of {
			out = append(out, one)
		}
	}
	return out
}

// keep closes the connections that are neither used, nor of Config.Addrs, nor perhaps the only
// ones to a Set whose table is not known.
func (s *servers) keep(used map[*Server]bool) {
	var gone []*Server
	s.mu.Lock()
	for addr, one := range s.all {
		of := one.of.Load()
		if !one.Seed && !used[one] && (of == nil || of.version.Load() > 0) {
			delete(s.all, addr)
			gone = append(gone, one)
		}
	}
	s.mu.Unlock()
	for _, one := range gone {
		one.Peer.Close(ErrGone)
	}
}

// close ends all connections, and refuses new ones.
func (s *servers) close() {
	s.mu.Lock()
	s.closed = true
	gone := s.all
	s.all = map[string]*Server{}
	s.mu.Unlock()
	for _, one := range gone {
		one.Peer.Close(ErrClosed)
	}
}

// At finds or makes the connection to addr. of is the Set of the server, or nil if the caller does not know
// it.
func (t *Table) At(addr string, of *Set) (*Server, error) {
	one, err := t.servers.at(addr)
	if err == nil {
		one.of.CompareAndSwap(nil, of)
	}
	return one, err
}

// Servers appends all servers that are known.
func (t *Table) Servers(to []*Server) []*Server {
	t.servers.mu.RLock()
	defer t.servers.mu.RUnlock()
	for _, one := range t.servers.all {
		to = append(to, one)
	}
	return to
}

// Seeds are those at the addresses of Config. They must not be changed.
func (t *Table) Seeds() []*Server { return t.servers.seeds }

// Last returns one of Seeds at a step of a round that ends with them, and whether the round has that step. An
// indirect Client passes over all Seeds in each round. Others ask one of them, and another in the next round.
func (t *Table) Last(turn, round, step int) (s *Server, asks bool) {
	return t.servers.last(turn, round, step), step < t.servers.perRound()
}

// Strangers reports whether all of Seeds are left out.
func (t *Table) Strangers() bool { return t.servers.strangers() }

// Other returns why the server is left out: seq.ErrForeignCluster or seq.ErrStaleEra; nil if it is not.
func (s *Server) Other() error {
	if why := s.other.Load(); why != nil {
		return *why
	}
	return nil
}
