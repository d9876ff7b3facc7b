package setcare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Settled is what became of the sections that were in limbo.
type Settled struct {
	Kept  []seq.SectionID            // the Set has them
	Given map[string][]seq.SectionID // by the Set that has them
}

// Settlement decides which Set has the sections that a Set which was restored may have had. All
// other Sets are asked, since neither its backup nor, if it is the root, its map tells of moves
// that came after.
type Settlement struct {
	Root  *Root
	Conns Conns
	Set   string // that was restored
	// Bump is by how much sections begin above what is known of them: more than was handed out
	// since the backup.
	Bump uint64

	m       sets.Map
	all     map[string]*Set
	records map[string]sets.Record
	told    [][]byte // of the other Sets, about global IDs; for a root that was restored
}

// Run settles all sections that are in limbo. Every other Set must answer: ErrSetDown. It may be
// repeated, and run twice at once.
func (s *Settlement) Run(ctx context.Context) (Settled, error) {
	out := Settled{Given: map[string][]seq.SectionID{}}
	sections, err := s.look(ctx)
	if err != nil {
		return out, err
	}
	last := s.m.Last
	for _, r := range s.records {
		last = max(last, r.Last())
	}
	number, err := s.Root.number(ctx, last)
	if err != nil {
		return out, err
	}
	own := s.records[s.Set]
	var limbo []seq.SectionID
	for id := range seq.SectionID(sections) {
		if own.At(id).State == sets.Limbo {
			limbo = append(limbo, id)
		}
	}
	for len(limbo) > 0 {
		n := min(batch, len(limbo))
		if err := s.some(ctx, number, limbo[:n], &out); err != nil {
			return out, err
		}
		limbo = limbo[n:]
	}
	if !s.m.Restored {
		return out, nil
	}
	open, err := s.underWay(ctx, number)
	if err != nil {
		return out, err
	}
	in := make(map[seq.SectionID]string, sections)
	for id := range seq.SectionID(sections) {
		in[id] = s.found(id)
	}
	if s.told, err = s.namespaces(ctx); err != nil {
		return out, err
	}
	return out, s.note(ctx, number, in, nil, true, open)
}

// namespaces are what the other Sets know of global IDs, and which worker ids they have: a root that
// was restored has forgotten what it gave them since.
func (s *Settlement) namespaces(ctx context.Context) (told [][]byte, err error) {
	for _, one := range s.m.Sets[1:] {
		err := s.all[one.Name].any(ctx, func(ctx context.Context, conn grpc.ClientConnInterface) error {
			reply, err := pb.NewSetsClient(conn).Allot(ctx, &pb.AllotRequest{ClusterId: one.Cluster})
			if err == nil {
				told = append(told, reply.GetNamespaces())
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return told, nil
}

// look reads the map and the records of all Sets.
func (s *Settlement) look(ctx context.Context) (sections int, err error) {
	if s.m, err = s.Root.Map(ctx); err != nil {
		return 0, err
	}
	if _, err := s.m.Set(s.Set); err != nil {
		return 0, err
	}
	s.all, s.records = map[string]*Set{}, map[string]sets.Record{}
	for i, one := range s.m.Sets {
		s.all[one.Name] = NewSet(one.Name, one.Addrs, s.Conns)
		if i == 0 {
			s.all[one.Name] = s.Root.Set
		}
		if s.records[one.Name], _, sections, err = s.all[one.Name].Record(ctx); err != nil {
			return 0, err
		}
	}
	return sections, nil
}

// some settles a batch, and notes it in the map.
func (s *Settlement) some(ctx context.Context, number uint64, ids []seq.SectionID, out *Settled) error {
	ceilings := map[seq.SectionID]uint64{}
	in, err := s.holders(ctx, number, ids, ceilings)
	if err != nil {
		return err
	}
	given := map[string][]seq.SectionID{}
	for _, id := range ids {
		given[in[id]] = append(given[in[id]], id)
	}
	if err := s.above(ctx, number, given[s.Set], ceilings); err != nil {
		return err
	}
	if err := s.learn(ctx, given, ceilings); err != nil {
		return err
	}
	// The map first: who is behind it finds the section in limbo, and what is in limbo is noted again.
	if err := s.note(ctx, number, in, ceilings, false, nil); err != nil {
		return err
	}
	for name, ids := range given {
		if name == s.Set {
			err = s.keep(ctx, number, ids, ceilings)
			out.Kept = append(out.Kept, ids...)
		} else {
			give := sets.Step{Op: sets.Give, Move: number, To: name, Above: highest(ids, ceilings)}
			err = s.all[s.Set].everywhere(ctx, give, ids, nil)
			out.Given[name] = append(out.Given[name], ids...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// learn reads how far the sections that others have went there. The restored Set notes it, and the
// map: they have forgotten what they knew of it, and may be all that is left when the other one is
// restored next.
func (s *Settlement) learn(ctx context.Context, given map[string][]seq.SectionID, ceilings map[seq.SectionID]uint64) error {
	for name, ids := range given {
		if name == s.Set {
			continue
		}
		maxes, err := s.all[name].maxes(ctx, ids)
		if err != nil {
			return err
		}
		for id, ceiling := range maxes {
			ceilings[id] = max(ceilings[id], ceiling)
		}
	}
	return nil
}

func highest(ids []seq.SectionID, ceilings map[seq.SectionID]uint64) (out uint64) {
	for _, id := range ids {
		out = max(out, ceilings[id])
	}
	return out
}

// above decides where the restored Set begins with sections that all others have refused: above all
// that the map, the others' records and their registers know of it, by the bump. The others note that
// before it begins: neither the root's disks nor its own may be there for the next settlement.
func (s *Settlement) above(ctx context.Context, number uint64, ids []seq.SectionID, ceilings map[seq.SectionID]uint64) error {
	mapping, err := s.Root.Mapping(ctx)
	if err != nil {
		return err
	}
	var known []seq.SectionID // of which something is known
	for _, one := range s.m.Sets {
		if one.Name == s.Set {
			continue
		}
		maxes, err := s.all[one.Name].maxes(ctx, ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			ceilings[id] = max(ceilings[id], maxes[id], s.records[one.Name].At(id).Above)
		}
	}
	for _, id := range ids {
		space, err := mapping.SpaceOf(id)
		if err != nil {
			return err
		}
		if space.Mode == seq.Exact { // it never left the root, and goes on from its log
			ceilings[id] = 0
		}
		if ceilings[id] > 0 {
			ceilings[id] = min(ceilings[id]+s.Bump, uint64(seq.MaxSeq))
			known = append(known, id)
		}
	}
	if len(known) == 0 {
		return nil
	}
	refuse := sets.Step{Op: sets.Refuse, Move: number, Above: highest(known, ceilings)}
	for _, one := range s.m.Sets {
		if one.Name == s.Set {
			continue
		}
		if err := s.all[one.Name].step(ctx, refuse, known); err != nil {
			return err
		}
	}
	return nil
}

// keep has the restored Set serve sections, above all that is known of them.
func (s *Settlement) keep(ctx context.Context, number uint64, ids []seq.SectionID, above map[seq.SectionID]uint64) error {
	return s.all[s.Set].each(ctx, ids, callPatience, func(ctx context.Context, conn grpc.ClientConnInterface, _ string, ids []seq.SectionID, _ *sync.Mutex) ([]uint32, error) {
		req := &pb.OpenSectionsRequest{Move: number, Keep: true}
		for _, id := range ids {
			req.Sections = append(req.Sections, &pb.StoppedSection{Section: uint32(id), Ceiling: above[id]})
		}
		reply, err := pb.NewSetsClient(conn).Open(ctx, req)
		return reply.GetLeft(), err
	}, nil)
}

// holders decide which Set has each section. Of those that are the restored one's, no other can
// come to have them by a move that is known to anybody: each has refused all of them.
func (s *Settlement) holders(ctx context.Context, number uint64, ids []seq.SectionID, ceilings map[seq.SectionID]uint64) (map[seq.SectionID]string, error) {
	in := make(map[seq.SectionID]string, len(ids))
	for _, id := range ids {
		if in[id] = s.Set; int(id) < len(s.m.Ceilings) {
			ceilings[id] = s.m.Ceilings[id]
		}
	}
	for _, one := range s.m.Sets {
		if one.Name == s.Set {
			continue
		}
		for {
			var open []seq.SectionID
			for _, id := range ids {
				switch p := s.records[one.Name].At(id); {
				case in[id] != s.Set:
				case p.State == sets.Active, p.State == sets.Sealed && p.To != s.Set: // if it is on its way, then not from here
					in[id] = one.Name
				case p.State == sets.Limbo:
					return nil, fmt.Errorf("%w: Set %s was restored, too, and no Set knows where section %d was", sets.ErrMapRestored, one.Name, id)
				default:
					open = append(open, id)
					if p.To != s.Set {
						break
					}
					// It came from there, and may have been served here since.
					ceiling, err := s.ceiling(ctx, one.Name, p.Move, id)
					if err != nil {
						return nil, err
					}
					ceilings[id] = max(ceilings[id], ceiling)
				}
			}
			if len(open) == 0 {
				break
			}
			err := s.all[one.Name].step(ctx, sets.Step{Op: sets.Refuse, Move: number}, open)
			if err == nil {
				break
			}
			was := s.records[one.Name]
			if !errors.Is(err, seq.ErrMoveOver) {
				return nil, err
			}
			if s.records[one.Name], _, _, err = s.all[one.Name].Record(ctx); err != nil {
				return nil, err
			}
			for _, id := range open {
				if p := s.records[one.Name].At(id); p.Move > number || p == was.At(id) && p.Move == number {
					return nil, fmt.Errorf("%w: section %d of Set %s is %v", seq.ErrMoveOver, id, one.Name, p)
				}
			}
		}
	}
	return in, nil
}

// ceiling is that of a section which its former Set has stopped for a move.
func (s *Settlement) ceiling(ctx context.Context, from string, move uint64, id seq.SectionID) (uint64, error) {
	m := &Mover{From: s.all[from], Move: sets.Move{ID: move}}
	stopped, err := m.stop(ctx, []seq.SectionID{id})
	if err != nil {
		return 0, err
	}
	return stopped[id].GetCeiling(), nil
}

// note writes into the map what was found; whole: all of it, and open all moves under way.
func (s *Settlement) note(ctx context.Context, number uint64, in map[seq.SectionID]string, ceilings map[seq.SectionID]uint64, whole bool, open []sets.Move) error {
	req := &pb.ChangeSetMapRequest_Settle{Number: number, Ceilings: map[uint32]uint64{}, Whole: whole, Namespaces: s.told, Moves: rpc.SetMovesToProto(open)}
	for _, id := range slices.Sorted(maps.Keys(in)) {
		at := slices.IndexFunc(s.m.Sets, func(one sets.Set) bool { return one.Name == in[id] })
		req.Runs = append(req.Runs, &pb.SetRun{Sections: &pb.SectionRange{First: uint32(id), Sections: 1}, Set: uint32(at)})
		if ceilings[id] > 0 {
			req.Ceilings[uint32(id)] = ceilings[id]
		}
	}
	_, _, err := s.Root.change(ctx, &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Settle_{Settle: req}})
	return err
}

// number takes a number above all that are known.
func (r *Root) number(ctx context.Context, least uint64) (uint64, error) {
	_, id, err := r.change(ctx, &pb.ChangeSetMapRequest{Change: &pb.ChangeSetMapRequest_Number_{Number: &pb.ChangeSetMapRequest_Number{Least: least}}})
	return id, err
}
