package setadmin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Root is the root Set, as the one that keeps the map.
type Root struct{ *Set }

// Map reads the map as it is now.
func (r *Root) Map(ctx context.Context) (m sets.Map, err error) {
	err = r.any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		reply, err := pb.NewSetsClient(conn).Map(ctx, &pb.SetMapRequest{Whole: true})
		if err != nil {
			return err
		}
		m, err = wholeMap(reply)
		return err
	})
	return m, err
}

func wholeMap(reply *pb.SetMapReply) (sets.Map, error) {
	m, err := rpc.SetMapFromProto(reply.GetSets())
	if err != nil {
		return m, err
	}
	m.Restored = reply.GetRestored()
	// Of the last ones, if they are back in the root, the message has no runs.
	n := min(len(reply.GetBy()), len(reply.GetCeilings()), seq.MaxSections)
	for len(m.In) < n {
		m.In, m.By, m.Ceilings = append(m.In, 0), append(m.By, 0), append(m.Ceilings, 0)
	}
	copy(m.By, reply.GetBy())
	copy(m.Ceilings, reply.GetCeilings())
	return m, nil
}

func (r *Root) change(ctx context.Context, req *pb.ChangeSetMapRequest) (m sets.Map, move uint64, err error) {
	err = r.any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		reply, err := pb.NewSetsClient(conn).ChangeMap(ctx, req)
		if err != nil {
			return err
		}
		move = reply.GetMove()
		m, err = wholeMap(reply)
		return err
	})
	return m, move, err
}

// Add has a Set join and be in the map. rootAddrs are where its nodes find the root.
func (r *Root) Add(ctx context.Context, s *Set, rootAddrs []string) (sets.Map, error) {
	own, cluster, sections, err := r.Record(ctx)
	if err != nil {
		return sets.Map{}, err
	}
	if !own.IsRoot() {
		return sets.Map{}, fmt.Errorf("%w: Set %s at %v is not the root, ask %v", seq.ErrBadArgument, own.SetName(), r.seeds, own.Root)
	}
	told, err := s.tell(ctx)
	record, other, there := rpc.SetRecordFromProto(told), told.GetClusterId(), int(told.GetSections())
	switch {
	case err != nil:
		return sets.Map{}, err
	case other == cluster:
		return sets.Map{}, fmt.Errorf("%w: at %v is the root itself", seq.ErrBadArgument, s.seeds)
	case there != sections:
		return sets.Map{}, fmt.Errorf("%w: the root has %d sections and Set %s %d, expected the same spaces", seq.ErrBadMapping, sections, s.Name, there)
	}
	if err := joins(ctx, s, record, rootAddrs, cluster); err != nil {
		return sets.Map{}, err
	}
	all := make([]seq.SectionID, sections)
	for i := range all {
		all[i] = seq.SectionID(i)
	}
	if err := alike(ctx, r.Set, s, all); err != nil {
		return sets.Map{}, err
	}
	if err := unused(ctx, s, record); err != nil {
		return sets.Map{}, err
	}
	if err := errors.Join(r.upToDate(ctx), s.upToDate(ctx)); err != nil {
		return sets.Map{}, err
	}
	// The map first: a Set that is in it and has not joined is a line too many, and this may be
	// called again; one that joined another root would be lost.
	m, _, err := r.change(ctx, &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Add{Add: &pb.ChangeSetMapRequest_AddSet{
		Set: &pb.Set{Name: s.Name, ClusterId: other, Addrs: s.seeds, Incarnation: told.GetIncarnation()}, Root: &pb.Set{Name: own.SetName(), Addrs: rootAddrs}, Fresh: record.IsRoot()}}})
	if err != nil {
		return m, err
	}
	var keys []byte
	err = r.any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		reply, err := pb.NewSetsClient(conn).Keys(ctx, &pb.SetKeysRequest{})
		keys = reply.GetKeys()
		return err
	})
	if err != nil {
		return m, err
	}
	return m, s.join(ctx, rootAddrs, cluster, keys)
}

// ErrUsed: a cluster that is to become a Set has handed out numbers. As a Set it has no section at the start, and its
// users would go back to the numbers of the root.
var ErrUsed = fmt.Errorf("%w: the cluster was used", seq.ErrConflict)

// unused is ErrUsed for a cluster that has not joined yet and of which a node has handed out numbers. All nodes of
// its route table must answer.
func unused(ctx context.Context, s *Set, record sets.Record) error {
	if !record.IsRoot() {
		return nil
	}
	routes, err := s.Table(ctx)
	if err != nil {
		return err
	}
	for _, n := range routes.Nodes {
		var used uint64
		err := s.at(ctx, n.Addr, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			reply, err := pb.NewSetsClient(conn).Record(ctx, &pb.SetRecordRequest{})
			used = reply.GetUsed()
			return err
		})
		if err != nil {
			return err
		}
		if used > 0 {
			return fmt.Errorf("%w: at %s a counter stands at %d: expected a cluster that was initialised and never called", ErrUsed, n.Addr, used)
		}
	}
	return nil
}

// joins says whether a cluster may become the Set of a root, before the map says that it is:
// seq.ErrConflict if it is another one already, or a root with Sets of its own.
func joins(ctx context.Context, s *Set, record sets.Record, root []string, cluster string) error {
	if !record.IsRoot() {
		_, _, err := record.Join(s.Name, root, cluster)
		return err
	}
	m, err := (&Root{Set: s}).Map(ctx)
	if err == nil && len(m.Sets) > 0 {
		err = fmt.Errorf("%w: at %v is a root Set with %d Sets", seq.ErrConflict, s.seeds, len(m.Sets))
	}
	return err
}

// alike says whether sections are of the same spaces in two Sets: seq.ErrBadMapping. Each Set has the
// mapping of its own stores, and a space may have been added to one of them alone.
func alike(ctx context.Context, a, b *Set, ids []seq.SectionID) error {
	in, err := a.Mapping(ctx)
	if err != nil {
		return err
	}
	to, err := b.Mapping(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		x, err := in.SpaceOf(id)
		if err != nil {
			return fmt.Errorf("Set %s: %w", a.Name, err)
		}
		y, err := to.SpaceOf(id)
		if err != nil {
			return fmt.Errorf("%w: section %d is of space %q in Set %s, and Set %s has no such section; seqctl space add there", seq.ErrBadMapping, id, x.Name, a.Name, b.Name)
		}
		one, other := *x, *y
		if one.Added, other.Added = false, false; one != other {
			return fmt.Errorf("%w: section %d is of space %+v in Set %s and of %+v in Set %s", seq.ErrBadMapping, id, one, a.Name, other, b.Name)
		}
	}
	return nil
}

// Begin notes a move of sections to a Set.
func (r *Root) Begin(ctx context.Context, to string, ranges []sets.Range) (sets.Move, error) {
	m, id, err := r.change(ctx, &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Begin_{Begin: &pb.ChangeSetMapRequest_Begin{
		To: to, Sections: rpc.RangesToProto(ranges)}}})
	if err != nil {
		return sets.Move{}, err
	}
	move, open := m.Open(id)
	if !open {
		return move, fmt.Errorf("%w: move %d has ended already", seq.ErrMoveOver, id)
	}
	return move, nil
}

func (r *Root) arrive(ctx context.Context, move uint64, stopped map[seq.SectionID]*pb.StoppedSection) error {
	req := &pb.ChangeSetMapRequest_Arrive{Move: move}
	var ids []seq.SectionID
	for id := range stopped {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		req.Sections, req.Ceilings = append(req.Sections, uint32(id)), append(req.Ceilings, stopped[id].GetCeiling())
	}
	_, _, err := r.change(ctx, &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Arrive_{Arrive: req}})
	return err
}

func (r *Root) abort(ctx context.Context, move uint64, ids []seq.SectionID) error {
	_, _, err := r.change(ctx, &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Abort_{Abort: &pb.ChangeSetMapRequest_Abort{
		Move: move, Sections: rpc.RangesToProto(sets.RangesOf(ids))}}})
	return err
}

// Mover returns the Mover of an open move of the map.
func (r *Root) Mover(m sets.Map, move sets.Move, conns Conns) (*Mover, error) {
	out := &Mover{Root: r, Move: move, Logger: slog.New(slog.DiscardHandler)}
	for name, to := range map[string]**Set{move.From: &out.From, move.To: &out.To} {
		s, err := m.Set(name)
		if err != nil {
			return nil, err
		}
		if *to = NewSet(name, s.Addrs, conns); name == m.Sets[0].Name {
			*to = r.Set
		}
	}
	return out, nil
}

// ErrDivided: the Sets do not agree on who has which sections.
var ErrDivided = errors.New("the Sets do not agree")

// Check is nil if no move is open, and each section is active in just the Set that has it by the map;
// else ErrDivided, or ErrSetDown. While sections move it may be either.
func (r *Root) Check(ctx context.Context, conns Conns) error {
	m, err := r.Map(ctx)
	if err != nil {
		return err
	}
	if len(m.Moves) > 0 {
		return fmt.Errorf("%w: moves are open: %v", ErrDivided, m.Moves)
	}
	active := map[seq.SectionID][]string{}
	total := 0
	for i, one := range m.Sets {
		s := r.Set
		if i > 0 {
			s = NewSet(one.Name, one.Addrs, conns)
		}
		record, _, sections, err := s.Record(ctx)
		if err != nil {
			return err
		}
		total = sections
		for id := range seq.SectionID(sections) {
			switch p := record.At(id); p.State {
			case sets.Active:
				active[id] = append(active[id], one.Name)
			case sets.Sealed:
				return fmt.Errorf("%w: section %d of Set %s is %v, which is not open", ErrDivided, id, one.Name, p)
			}
		}
	}
	for id := range seq.SectionID(total) {
		if want := m.Sets[m.Index(id)].Name; !slices.Equal(active[id], []string{want}) {
			return fmt.Errorf("%w: section %d is active in %v, and in %s by the map", ErrDivided, id, active[id], want)
		}
	}
	return nil
}
