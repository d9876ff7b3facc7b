package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

const (
	// meetBound bounds how long a new Client waits until the addresses of Config say which cluster they are
	// of.
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

// Strange reports whether an error is one of them.
func Strange(err error) bool { return anyOf(err, strange) }

func anyOf(err error, all []error) bool {
	return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
}

// held is the life of a Set that a Client holds to, the first that it met. A Client leaves it for a
// later era of the same cluster alone, and never goes back. It is immutable.
type held struct {
	*rpc.Target        // what calls to the servers of the Set say
	addr        string // of the server that told it; empty if none did
}

// answer is what a server said of its cluster.
type answer struct {
	from    *Server
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

// ask asks one server for a table of its Set newer than the version, and for a map newer than the
// one at hand.
func (t *Table) ask(ctx context.Context, s *Server, version uint64) (*answer, error) {
	known := uint64(0)
	if v := t.view.Load(); v != nil {
		known = v.Sets.Version
	}
	reply, err := s.Peer.Routes(ctx, 4*t.cfg.AttemptTimeout, &pb.RoutesRequest{RouteVersion: version, SetsVersion: known})
	if err != nil {
		return nil, fmt.Errorf("fetch routes: %w", err)
	}
	a := &answer{from: s, reply: reply, life: rpc.IncarnationFromProto(reply.GetIncarnation())}
	if a.sets, err = rpc.SetMapFromProto(reply.GetSets()); err == nil {
		a.mapping, err = rpc.MappingFromProto(reply.GetMapping())
	}
	if err != nil {
		return nil, fmt.Errorf("fetch routes from %s: %w", s.Addr, err)
	}
	return a, nil
}

// meet asks all addresses of Config which cluster they are of, and takes over what the newest era
// of one cluster says. It reports whether all that were asked are of another cluster, or do not let
// this program in, or whether the addresses are of two clusters.
func (t *Table) meet() (refused bool) {
	t.looked.Store(time.Now().UnixNano())
	ctx, cancel := context.WithTimeout(t.cfg.Context, meetBound)
	defer cancel()
	all, turn := &t.servers, t.Turn()
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
			t.cfg.Logger.Error("addresses of two clusters", "error", err)
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
			t.home.Care.Hear(err)
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
func (t *Table) oneCluster() error {
	var words []*word
	var addrs []string
	for _, one := range t.servers.seeds {
		if w := one.word.Load(); w != nil {
			words, addrs = append(words, w), append(addrs, one.Addr)
		}
	}
	newest := map[string]int{} // by the name of the cluster
	for i, w := range words {
		if t.cfg.ClusterID == "" && w.cluster != words[0].cluster && !slices.ContainsFunc(words, func(by *word) bool {
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
func (t *Table) keepMeeting() {
	for wake.Sleep(t.cfg.Context, meetPause) {
		if t.view.Load() == nil {
			continue
		}
		for _, one := range t.servers.seeds {
			if one.vouched.Load() == nil || one.other.Load() != nil {
				_ = t.fetch(t.cfg.Context, one) // what it found is in the table
			}
		}
	}
}

// take takes over what is new in an answer of a server, or leaves the server out.
func (t *Table) take(a *answer) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.accepts(a)
	if err == nil {
		err = t.adopt(a)
	}
	if err != nil {
		err = fmt.Errorf("fetch routes from %s: %w", a.from.Addr, err)
	}
	if Strange(err) {
		a.from.leaveOut(err)
	}
	return err
}

// leaveOut notes that another cluster, or an older life of this one, answers at the server's address.
// Needs t.mu.
func (s *Server) leaveOut(why error) {
	if old := s.other.Load(); old == nil || (*old).Error() != why.Error() {
		s.t.cfg.Logger.Warn("server of another cluster or of another era is left out", "addr", s.Addr, "error", why)
	}
	s.other.Store(&why)
}

// tells warns once of a server that tells no incarnation though others of its Set do: it is a build of the
// version before, and may be of another life.
func (s *Server) tells(life seq.Incarnation) {
	if life.Known() {
		s.mute.Store(false)
	} else if own := s.Set().held.Load(); own.Life().Known() && !s.mute.Swap(true) {
		s.t.cfg.Logger.Warn("server does not tell its incarnation, upgrade it", "addr", s.Addr, "held", own.Life(), "by", own.addr)
	}
}

// Doubt asks a server in the background which life it is of, because it refused the one that this
// Client holds to. The server may be of a newer era.
func (s *Server) Doubt() {
	if s.t.cfg.Context.Err() != nil || !s.doubted.CompareAndSwap(false, true) {
		return
	}
	s.t.cfg.Go(func() {
		defer s.doubted.Store(false)
		_ = s.t.fetch(s.t.cfg.Context, s) // what it found is in the table
		wake.Sleep(s.t.cfg.Context, refreshPause)
	})
}

// strangers reports whether all addresses of Config are left out.
func (s *servers) strangers() bool {
	return !slices.ContainsFunc(s.seeds, func(one *Server) bool { return one.other.Load() == nil })
}

// Refuses returns seq.ErrForeignCluster or seq.ErrStaleEra if a server is of another life than the
// one that the Client holds to, unless it is of a newer era.
func (s *Set) Refuses(from *Server, life seq.Incarnation) error {
	own := s.held.Load()
	if own.Life().Newer(life) {
		return nil
	}
	if err := own.Life().Check(life); err != nil {
		return fmt.Errorf("%s is of incarnation %v, this client holds to %v by %s: %w", from.Addr, life, own.Life(), own.addr, err)
	}
	return nil
}

// hold takes over the life that a server told if it is the first, or newer than the one at hand.
// Replies of servers that told the old one no longer count, and streams to them end, because a
// stream is checked at its start alone. Needs Table.mu.
func (s *Set) hold(life seq.Incarnation, addr string) (changed bool) {
	own := s.held.Load()
	next := &held{rpc.NewTarget(s.ID(), life), addr}
	switch {
	case !life.Known():
		return false
	case !own.Life().Known():
		s.held.Store(next)
		for _, one := range s.t.servers.known(s) {
			one.vouched.CompareAndSwap(own, next)
		}
	case own.Life().Newer(life):
		s.t.cfg.Logger.Warn("the cluster was restored, going over to its new era", "from", own.Life(), "to", life, "addr", addr)
		s.held.Store(next)
		s.routes, s.nodes = nil, nil
		s.version.Store(0)
		for _, one := range s.t.servers.known(s) {
			one.Peer.HangUp()
		}
	default:
		return false
	}
	return true
}
