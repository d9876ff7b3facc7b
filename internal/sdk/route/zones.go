package route

import (
	"math"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Pauses between the questions where Config.Addrs are: while some have not said it, and later,
// since another process may be at an address then.
const (
	zonePause = time.Second
	zoneEvery = 30 * time.Second
)

// order holds Config.Addrs: near in Config.Zone, far in other zones. It is immutable.
type order struct{ near, far []*Server }

// last is one of Config.Addrs at a step of a round that ends with them: an indirect client passes
// over all of them in each round, others over one, and another in the next.
func (s *servers) last(turn, round, step int) *Server {
	if s.t.cfg.Indirect {
		return s.seed(turn+round, step)
	}
	return s.seed(turn, round+step)
}

// followZones asks Config.Addrs which zones they are in, again and again. It prefers nothing
// among the AllocSvr: an owner is asked wherever it is.
func (s *servers) followZones() {
	for pause := time.Duration(0); wake.Sleep(s.t.cfg.Context, pause); {
		pause = zoneEvery
		if !s.askZones() {
			pause = zonePause
		}
	}
}

// askZones asks all of Config.Addrs at once, and reports whether all answered. An earlier answer of an
// address holds until the next.
func (s *servers) askZones() bool {
	zones := make([]string, len(s.seeds))
	answered := make([]bool, len(s.seeds))
	var asking sync.WaitGroup
	for i, one := range s.seeds {
		asking.Go(func() {
			reply, err := one.Peer.Routes(s.t.cfg.Context, s.t.cfg.AttemptTimeout, &pb.RoutesRequest{RouteVersion: math.MaxUint64}) // no table
			zones[i], answered[i] = reply.GetZone(), err == nil
		})
	}
	asking.Wait()
	old, next, all := s.order.Load(), &order{}, true
	was := map[*Server]bool{}
	for _, one := range old.near {
		was[one] = true
	}
	for i, one := range s.seeds {
		all = all && answered[i]
		if answered[i] && zones[i] == s.t.cfg.Zone || !answered[i] && was[one] {
			next.near = append(next.near, one)
		} else {
			next.far = append(next.far, one)
		}
	}
	s.order.Store(next)
	return all
}
