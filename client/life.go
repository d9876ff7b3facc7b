package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

const (
	// meetBound is how long the addresses of Config have to say which cluster they are of before
	// a Client serves.
	meetBound = 2 * time.Second
	// meetPause is the time between two questions to an address that has not said it, or that is
	// left out.
	meetPause = 10 * time.Second
)

// byMap stands for the address of a server where the map of Sets told a life.
const byMap = "the map of Sets"

// strange are the refusals of servers of another life of the cluster, or of another cluster. A
// server of a newer life refuses so as well, until the Client has gone over to it.
var strange = []error{seq.ErrForeignCluster, seq.ErrStaleEra}

// held is the life of a Set that a Client holds to, the first that it met. A Client leaves it for a
// later era of the same cluster alone, and never goes back. It is immutable.
type held struct {
	*rpc.Target        // what calls to the servers of the Set say
	addr        string // of the server that told it; empty if none did
}

// answer is what a server said of its cluster.
type answer struct {
	from    *server
	reply   *pb.RoutesReply
	life    seq.Incarnation
	mapping seq.Mapping
	sets    sets.Map
}

// word is what an address of Config said last before the Client served. It counts also while
// the address is silent, because a Client must not take the cluster that is left for its own.
type word struct {
	cluster string
	life    seq.Incarnation
	sets    sets.Map
}

// Incarnation returns the life of the cluster that the Client holds to, of several Sets the life of
// the root. It is not known before the first route table, or if no server told it.
func (c *Client) Incarnation() seq.Incarnation {
	if v := c.table.view.Load(); v != nil {
		return v.root().life
	}
	return seq.Incarnation{}
}

// LeftOut returns why addresses are not used: a process of another cluster, or of an older life of
// this one, answers there. Each error is a seq.ErrForeignCluster or a seq.ErrStaleEra.
func (c *Client) LeftOut() map[string]error {
	out := map[string]error{}
	c.servers.mu.RLock()
	defer c.servers.mu.RUnlock()
	for addr, one := range c.servers.all {
		if why := one.other.Load(); why != nil {
			out[addr] = *why
		}
	}
	return out
}

// ask asks one server for a table of its Set newer than the version, and for a map newer than the
// one at hand.
func (t *table) ask(ctx context.Context, s *server, version uint64) (*answer, error) {
	known := uint64(0)
	if v := t.view.Load(); v != nil {
		known = v.sets.Version
	}
	var reply *pb.RoutesReply
	err := s.try(ctx, 4*t.c.cfg.AttemptTimeout, func(ctx context.Context) (err error) {
		reply, err = s.rpc.Routes(ctx, &pb.RoutesRequest{RouteVersion: version, SetsVersion: known})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fetch routes: %w", err)
	}
	a := &answer{from: s, reply: reply, life: rpc.IncarnationFromProto(reply.GetIncarnation())}
	if a.sets, err = rpc.SetMapFromProto(reply.GetSets()); err == nil {
		a.mapping, err = rpc.MappingFromProto(reply.GetMapping())
	}
	if err != nil {
		return nil, fmt.Errorf("fetch routes from %s: %w", s.addr, err)
	}
	return a, nil
}

// meet asks all addresses of Config which cluster they are of, and takes over what the newest era
// of one cluster says. It reports whether all that were asked are of another cluster, or do not let
// this program in, or whether the addresses are of two clusters.
func (t *table) meet() (refused bool) {
	t.looked.Store(time.Now().UnixNano())
	ctx, cancel := context.WithTimeout(t.c.ctx, meetBound)
	defer cancel()
	all, turn := &t.c.servers, int(t.c.turn.Add(1))
	answers, errs := make([]*answer, len(all.seeds)), make([]error, len(all.seeds))
	var asking sync.WaitGroup
	for i := range all.seeds {
		asking.Go(func() { answers[i], errs[i] = t.ask(ctx, all.seed(turn, i), 0) })
	}
	asking.Wait()
	answers = slices.DeleteFunc(answers, func(a *answer) bool { return a == nil })
	for _, a := range answers {
		a.from.word.Store(&word{a.reply.GetClusterId(), a.life, a.sets})
	}
	if err := t.oneCluster(); err != nil {
		if old := t.fault.Swap(&err); old == nil || (*old).Error() != err.Error() {
			t.c.cfg.Logger.Error("addresses of two clusters", "error", err)
		}
		return true
	}
	refused = true
	failed := func(err error) {
		t.fault.Store(&err)
		refused = refused && anyOf(err, noWay)
	}
	for _, err := range errs {
		if errors.Is(err, seq.ErrNoQuorum) {
			t.home.outage.hear(err)
		}
		if err != nil {
			failed(err)
		}
	}
	slices.SortStableFunc(answers, func(a, b *answer) int { return int(min(max(int64(b.life.Era)-int64(a.life.Era), -1), 1)) })
	for _, a := range answers {
		if err := t.take(a); err != nil {
			failed(err)
		} else {
			refused = false
		}
	}
	return refused
}

// noWay are the errors of servers that never serve this program.
var noWay = []error{seq.ErrForeignCluster, seq.ErrUnauthenticated, seq.ErrForbidden}

// oneCluster returns seq.ErrForeignCluster if addresses of Config are of two clusters: by name, unless
// both are Sets of one map, or by incarnation.
func (t *table) oneCluster() error {
	var words []*word
	var addrs []string
	for _, one := range t.c.servers.seeds {
		if w := one.word.Load(); w != nil {
			words, addrs = append(words, w), append(addrs, one.addr)
		}
	}
	newest := map[string]int{} // by the name of the cluster
	for i, w := range words {
		if t.c.cfg.ClusterID == "" && w.cluster != words[0].cluster && !slices.ContainsFunc(words, func(by *word) bool {
			return listed(by.sets, w.cluster) && listed(by.sets, words[0].cluster)
		}) {
			return fmt.Errorf("%w: %s is of cluster %q and %s of cluster %q: expected addresses of one cluster, or of Sets of one root", seq.ErrForeignCluster, addrs[0], words[0].cluster, addrs[i], w.cluster)
		}
		if best, ok := newest[w.cluster]; !ok || w.life.Known() && (!words[best].life.Known() || words[best].life.Newer(w.life)) {
			newest[w.cluster] = i
		}
	}
	for i, w := range words {
		best := newest[w.cluster]
		if err := words[best].life.Check(w.life); errors.Is(err, seq.ErrForeignCluster) {
			return fmt.Errorf("%s is of cluster %q, incarnation %v, and %s of incarnation %v: %w", addrs[best], w.cluster, words[best].life, addrs[i], w.life, err)
		}
	}
	return nil
}

// keepMeeting asks addresses of Config again that have not said which cluster they are of, or that
// are left out. One of them may be of a newer era.
func (t *table) keepMeeting() {
	for wake.Sleep(t.c.ctx, meetPause) {
		if t.view.Load() == nil {
			continue
		}
		for _, one := range t.c.servers.seeds {
			if one.vouched.Load() == nil || one.other.Load() != nil {
				_ = t.fetch(t.c.ctx, one) // what it found is in the table
			}
		}
	}
}

// take takes over what is new in an answer of a server, or leaves the server out.
func (t *table) take(a *answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.accepts(a)
	if err == nil {
		err = t.adopt(a)
	}
	if err != nil {
		err = fmt.Errorf("fetch routes from %s: %w", a.from.addr, err)
	}
	if anyOf(err, strange) {
		a.from.leaveOut(err)
	}
	return err
}

// leaveOut notes that another cluster, or an older life of this one, answers at the server's address.
func (s *server) leaveOut(why error) {
	if old := s.other.Swap(&why); old == nil || (*old).Error() != why.Error() {
		s.c.cfg.Logger.Warn("server of another cluster or of another era is left out", "addr", s.addr, "error", why)
	}
}

// tells warns once of a server that tells no incarnation though others of its Set do: it is a build of the
// version before, and may be of another life.
func (s *server) tells(life seq.Incarnation) {
	if life.Known() {
		s.mute.Store(false)
	} else if own := s.set().held.Load(); own.Life().Known() && !s.mute.Swap(true) {
		s.c.cfg.Logger.Warn("server does not tell its incarnation, upgrade it", "addr", s.addr, "held", own.Life(), "by", own.addr)
	}
}

// doubt asks a server in the background which life it is of, because it refused the one that this
// Client holds to. The server may be of a newer era.
func (s *server) doubt() {
	if s.c.ctx.Err() != nil || !s.doubted.CompareAndSwap(false, true) {
		return
	}
	s.c.tasks.Go(func() {
		defer s.doubted.Store(false)
		_ = s.c.table.fetch(s.c.ctx, s) // what it found is in the table
		wake.Sleep(s.c.ctx, refreshPause)
	})
}

// strangers reports whether all addresses of Config are left out.
func (s *servers) strangers() bool {
	return !slices.ContainsFunc(s.seeds, func(one *server) bool { return one.other.Load() == nil })
}

// refuses returns seq.ErrForeignCluster or seq.ErrStaleEra if a server is of another life than the
// one that the Client holds to, unless it is of a newer era.
func (s *set) refuses(from *server, life seq.Incarnation) error {
	own := s.held.Load()
	if own.Life().Newer(life) {
		return nil
	}
	if err := own.Life().Check(life); err != nil {
		return fmt.Errorf("%s is of incarnation %v, this client holds to %v by %s: %w", from.addr, life, own.Life(), own.addr, err)
	}
	return nil
}

// hold takes over the life that a server told if it is the first, or newer than the one at hand.
// Replies of servers that told the old one no longer count, and streams to them end, because a
// stream is checked at its start alone. Needs table.mu.
func (s *set) hold(life seq.Incarnation, addr string) (changed bool) {
	own := s.held.Load()
	next := &held{rpc.NewTarget(s.id(), life), addr}
	switch {
	case !life.Known():
		return false
	case !own.Life().Known():
		s.held.Store(next)
		for _, one := range s.c.servers.known(s) {
			one.vouched.CompareAndSwap(own, next)
		}
	case own.Life().Newer(life):
		s.c.cfg.Logger.Warn("the cluster was restored, going over to its new era", "from", own.Life(), "to", life, "addr", addr)
		s.held.Store(next)
		s.routes, s.nodes = nil, nil
		s.version.Store(0)
		for _, one := range s.c.servers.known(s) {
			one.streams.HangUp()
		}
	default:
		return false
	}
	return true
}
