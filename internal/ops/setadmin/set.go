package setadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// callPatience bounds one call to a node.
const callPatience = 5 * time.Second

// Conns reaches AllocSvr by their addresses, without waiting for them.
type Conns interface {
	At(addr string) (grpc.ClientConnInterface, error)
}

// ErrSetDown: no AllocSvr of the Set answers, at its addresses in the map and in its route table.
var ErrSetDown = errors.New("no AllocSvr of the Set answers")

// Set is one Set, as a Mover reaches it. Safe for concurrent use.
type Set struct {
	Name  string
	seeds []string
	conns Conns

	mu      sync.Mutex // guards all below
	routes  *seq.RouteTable
	mapping seq.Mapping
}

// NewSet is the Set with AllocSvr at the addresses.
func NewSet(name string, addrs []string, conns Conns) *Set {
	return &Set{Name: name, seeds: slices.Clone(addrs), conns: conns}
}

// addrs are where nodes of the Set are looked for: first those that the newest route table names.
func (s *Set) addrs() []string {
	var out []string
	if t := s.known(); t != nil {
		for _, n := range t.Nodes {
			out = append(out, n.Addr)
		}
	}
	for _, addr := range s.seeds {
		if !slices.Contains(out, addr) {
			out = append(out, addr)
		}
	}
	return slices.DeleteFunc(out, func(addr string) bool { return addr == "" })
}

// at calls one node.
func (s *Set) at(ctx context.Context, addr string, do func(context.Context, grpc.ClientConnInterface) error) error {
	return s.within(ctx, callPatience, addr, do)
}

// within calls one node, and gives it so long.
func (s *Set) within(ctx context.Context, patience time.Duration, addr string, do func(context.Context, grpc.ClientConnInterface) error) error {
	conn, err := s.conns.At(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := do(ctx, conn); err != nil {
		return fmt.Errorf("Set %s at %s: %w", s.Name, addr, err)
	}
	return nil
}

// any calls one node after the other until one answers. ErrSetDown if none does.
func (s *Set) any(ctx context.Context, do func(context.Context, grpc.ClientConnInterface) error) error {
	var errs []error
	for _, addr := range s.addrs() {
		err := s.at(ctx, addr, do)
		if err == nil || answered(err) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("Set %s: %w: %w", s.Name, ErrSetDown, errors.Join(errs...))
}

// answered says whether the error is a refusal that every node of the Set would give.
func answered(err error) bool {
	for _, e := range []error{seq.ErrMoveOver, seq.ErrBadArgument, seq.ErrConflict, seq.ErrUnknownSection, seq.ErrForeignCluster,
		seq.ErrUnauthenticated, seq.ErrForbidden, seq.ErrBadTable, seq.ErrUnsafeChange, seq.ErrDatacenterTaken, seq.ErrProtocol} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// upToDate is seq.ErrProtocol if a node that answers is of a build that keeps none out which
// know no Sets: it would carry a change out that the others refuse.
func (s *Set) upToDate(ctx context.Context) error {
	for _, addr := range s.addrs() {
		err := s.at(ctx, addr, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			reply, err := pb.NewAdminClient(conn).Status(ctx, &pb.StatusRequest{Brief: true})
			if own := max(int(reply.GetProtocol()), version.SetsBefore); err == nil && own < version.Sets {
				return fmt.Errorf("%w: node %q speaks %d, Sets need %d at all nodes: upgrade the node first", seq.ErrProtocol, reply.GetNode(), own, version.Sets)
			}
			return nil
		})
		if errors.Is(err, seq.ErrProtocol) {
			return err
		}
	}
	return nil
}

// known returns the route table that was read last, or nil before the first.
func (s *Set) known() *seq.RouteTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.routes
}

// Mapping reads the spaces that the Set has.
func (s *Set) Mapping(ctx context.Context) (seq.Mapping, error) {
	_, err := s.Table(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mapping, err
}

// Table reads the Set's route table.
func (s *Set) Table(ctx context.Context) (*seq.RouteTable, error) {
	var out *seq.RouteTable
	var mapping seq.Mapping
	err := s.any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		reply, err := pb.NewSequenceClient(conn).Routes(ctx, &pb.RoutesRequest{})
		if err != nil {
			return err
		}
		m, err := rpc.MappingFromProto(reply.GetMapping())
		if err != nil {
			return err
		}
		mapping = m
		if out, err = rpc.RoutesFromProto(reply.GetRoutes(), m); err == nil && out == nil {
			err = fmt.Errorf("%w: it has no table yet", seq.ErrNoRoute)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes, s.mapping = out, mapping
	return out, nil
}

// Record reads what the Set says of all sections, and how many there are.
func (s *Set) Record(ctx context.Context) (r sets.Record, cluster string, sections int, err error) {
	reply, err := s.tell(ctx)
	return rpc.SetRecordFromProto(reply), reply.GetClusterId(), int(reply.GetSections()), err
}

// tell reads what the Set says of itself.
func (s *Set) tell(ctx context.Context) (reply *pb.SetRecordReply, err error) {
	err = s.any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		reply, err = pb.NewSetsClient(conn).Record(ctx, &pb.SetRecordRequest{})
		return err
	})
	return reply, err
}

// join makes the Set's cluster one of the Sets, without sections, and has each node that answers
// serve none from here on. root are addresses of the root in a cluster, keys how it hashes string keys.
func (s *Set) join(ctx context.Context, root []string, cluster string, keys []byte) error {
	if _, err := s.Table(ctx); err != nil { // knows all its nodes
		return err
	}
	return s.all(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewSetsClient(conn).Join(ctx, &pb.JoinSetRequest{Name: s.Name, Root: root, RootClusterId: cluster, Keys: keys})
		return err
	})
}

// all calls each node at once. nil if one of them did it, and none refused; ErrSetDown if none
// answers.
func (s *Set) all(ctx context.Context, do func(context.Context, grpc.ClientConnInterface) error) error {
	addrs := s.addrs()
	errs := make([]error, len(addrs))
	var wg sync.WaitGroup
	for i, addr := range addrs {
		wg.Go(func() { errs[i] = s.at(ctx, addr, do) })
	}
	wg.Wait()
	done := false
	for _, err := range errs {
		if done = done || err == nil; err != nil && answered(err) {
			return err
		}
	}
	if !done {
		return fmt.Errorf("Set %s: %w: %w", s.Name, ErrSetDown, errors.Join(errs...))
	}
	return nil
}

// maxes are the ceilings of sections at the Set's stores.
func (s *Set) maxes(ctx context.Context, ids []seq.SectionID) (map[seq.SectionID]uint64, error) {
	out := make(map[seq.SectionID]uint64, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	err := s.any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		reply, err := pb.NewAdminClient(conn).Leases(ctx, &pb.LeasesRequest{All: true, Sections: plain(ids)})
		for _, l := range reply.GetLeases() {
			out[seq.SectionID(l.GetSection())] = l.GetMax()
		}
		return err
	})
	if err == nil && len(out) < len(ids) {
		err = fmt.Errorf("Set %s: %w: ceilings of %d of %d sections", s.Name, seq.ErrNoQuorum, len(out), len(ids))
	}
	return out, err
}

// step takes a step at some node.
func (s *Set) step(ctx context.Context, step sets.Step, ids []seq.SectionID) error {
	return s.any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return takeStep(ctx, conn, step, ids, nil)
	})
}

// everywhere takes a step at all nodes that answer, so that each lets its callers go on; it fails
// if none does. owners are where the sections are from now on.
func (s *Set) everywhere(ctx context.Context, step sets.Step, ids []seq.SectionID, owners map[seq.SectionID]string) error {
	return s.all(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return takeStep(ctx, conn, step, ids, owners)
	})
}

func takeStep(ctx context.Context, conn grpc.ClientConnInterface, step sets.Step, ids []seq.SectionID, owners map[seq.SectionID]string) error {
	req := &pb.SetStepRequest{Op: pb.SetOp(step.Op), Move: step.Move, To: step.To, Above: rpc.BySection(step.Above), Sections: rpc.RangesToProto(sets.RangesOf(ids)),
		Owners: rpc.BySection(owners)}
	_, err := pb.NewSetsClient(conn).Step(ctx, req)
	return err
}

// each asks the nodes of the Set for sections until none is left, or, after a turn, enough says so
// (nil: never): first each section's owner by the table, then the others in turn. A node is given
// patience to answer, and twice as long in the next turn, up to callPatience. An error that every
// node would give ends it.
func (s *Set) each(ctx context.Context, ids []seq.SectionID, patience time.Duration,
	ask func(ctx context.Context, conn grpc.ClientConnInterface, addr string, ids []seq.SectionID, mu *sync.Mutex) (left []uint32, err error), enough func() bool) error {
	var last error
	for turn := 0; len(ids) > 0 && (enough == nil || !enough()); turn++ {
		t := s.known()
		if t == nil || turn > 0 { // an old table costs a turn, a new one the callers' time
			var err error
			if t, err = s.Table(ctx); err != nil {
				return err
			}
		}
		if turn > 0 {
			patience = min(2*patience, callPatience)
			if err := pause(ctx); err != nil {
				if last != nil {
					err = fmt.Errorf("%w: %w", err, last)
				}
				return fmt.Errorf("%d sections left, no node has them yet: %w", len(ids), err)
			}
		}
		var mu sync.Mutex // guards left, final and last
		var left []seq.SectionID
		var final error
		var wg sync.WaitGroup
		for addr, ids := range s.byOwner(t, ids, turn%(1+len(s.addrs()))) {
			wg.Go(func() {
				var again []uint32
				err := s.within(ctx, patience, addr, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
					again, err = ask(ctx, conn, addr, ids, &mu)
					return err
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					for _, id := range again {
						left = append(left, seq.SectionID(id))
					}
				case answered(err):
					final = err
				default:
					last = err
					left = append(left, ids...)
				}
			})
		}
		wg.Wait()
		if final != nil {
			return final
		}
		slices.Sort(left)
		ids = left
	}
	return nil
}

// byOwner groups sections by where their owner is, by the table; turn picks another node of each
// section's candidates, and then any.
func (s *Set) byOwner(t *seq.RouteTable, ids []seq.SectionID, turn int) map[string][]seq.SectionID {
	out := make(map[string][]seq.SectionID)
	all := s.addrs()
	for _, id := range ids {
		addr := ""
		if turn == 0 {
			if node, ok := t.Owner(id); ok {
				addr = node.Addr
			}
		}
		if addr == "" && len(all) > 0 {
			addr = all[(int(id)+turn)%len(all)]
		}
		out[addr] = append(out[addr], id)
	}
	return out
}
