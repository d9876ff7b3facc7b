package setadmin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// Settled is what became of the sections that were in limbo.
type Settled struct {
	Kept  []seq.SectionID            // the Set has them
	Given map[string][]seq.SectionID // by the Set that has them
}

// Settlement decides which Set has the sections that a Set which was restored may have had, and those
// that no Set has. All other Sets are asked, since neither its backup nor, if it is the root, its map
// tells of moves that came after. Others may have been restored as well: of what is in limbo in
// several the Set has it that the map names, or else the first of them.
type Settlement struct {
	Root  *Root
	Conns Conns
	Set   string // that was restored
	// Bump is the distance that sections begin above their highest known number. It must exceed the count
	// of numbers handed out since the backup, and be at least the bump of the restores. If several Sets
	// were restored, the oldest backup counts.
	Bump uint64

	m       sets.Map
	all     map[string]*Set
	records map[string]record
	told    [][]byte // of the other Sets, about global IDs; for a root that was restored
}

// record is what a Set says of itself.
type record struct {
	sets.Record
	sections seq.SectionID // that it knows of: of the others it has never had one
	era      uint64        // rises with each restore
}

// Run settles all sections that are in limbo. Every other Set must answer: ErrSetDown. The root must
// know all of them: ErrSetMissing. It may be repeated, and run twice at once.
func (s *Settlement) Run(ctx context.Context) (Settled, error) {
	out := Settled{Given: map[string][]seq.SectionID{}}
	err := s.look(ctx)
	if err == nil && (s.m.Restored || s.Set == s.m.Sets[0].Name) {
		err = s.missing(ctx)
	}
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
	var open []seq.SectionID
	for id := range own.sections {
		if own.At(id).State == sets.Limbo || s.lost(id) {
			open = append(open, id)
		}
	}
	for len(open) > 0 {
		n := min(batch, len(open))
		if err := s.some(ctx, number, open[:n], &out); err != nil {
			return out, err
		}
		open = open[n:]
	}
	if err := s.rest(ctx, number); err != nil || !s.m.Restored {
		return out, err
	}
	return out, s.whole(ctx, number)
}

// whole records the whole map of a restored root.
func (s *Settlement) whole(ctx context.Context, number uint64) error {
	open, err := s.underWay(ctx, number)
	if err != nil {
		return err
	}
	in := make(map[seq.SectionID]string)
	for id := range s.records[s.m.Sets[0].Name].sections {
		in[id] = s.found(id)
	}
	if s.told, err = s.namespaces(ctx); err != nil {
		return err
	}
	return s.note(ctx, sets.Found{Number: number, In: in, Whole: true, Open: open})
}

// rest has sections that are added from now on be the root's, once the restored Set knows of all that
// any other does: before, they may be in one of these.
func (s *Settlement) rest(ctx context.Context, number uint64) error {
	own := s.records[s.Set]
	if own.Rest.State != sets.Limbo || own.sections < s.sections() {
		return nil
	}
	var all []seq.SectionID
	for id := range own.sections {
		all = append(all, id)
	}
	return s.all[s.Set].step(ctx, sets.Step{Op: sets.Settle, Move: number}, all)
}

// sections returns the largest number of sections that any Set knows of.
func (s *Settlement) sections() (n seq.SectionID) {
	for _, r := range s.records {
		n = max(n, r.sections)
	}
	return n
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

// look reads the map, and then what all Sets say of themselves.
func (s *Settlement) look(ctx context.Context) (err error) {
	if s.m, err = s.Root.Map(ctx); err != nil {
		return err
	}
	if s.m.Restored && len(s.m.Sets) < 2 {
		return fmt.Errorf("%w: its map is that of a backup and names no other Set: seqctl set add each of them again", ErrSetMissing)
	}
	if _, err := s.m.Set(s.Set); err != nil {
		return err
	}
	s.all, s.records = map[string]*Set{}, map[string]record{}
	for i, one := range s.m.Sets {
		s.all[one.Name] = NewSet(one.Name, one.Addrs, s.Conns)
		if i == 0 {
			s.all[one.Name] = s.Root.Set
		}
		if err := s.read(ctx, one.Name); err != nil {
			return err
		}
	}
	return nil
}

// read reads what a Set says of itself.
func (s *Settlement) read(ctx context.Context, name string) error {
	reply, err := s.all[name].tell(ctx)
	if err == nil {
		s.records[name] = record{rpc.SetRecordFromProto(reply), seq.SectionID(reply.GetSections()), reply.GetEra()}
	}
	return err
}

// some settles a batch, and notes it in the map.
func (s *Settlement) some(ctx context.Context, number uint64, ids []seq.SectionID, out *Settled) error {
	f := sets.Found{Number: number, In: map[seq.SectionID]string{}, Ceilings: map[seq.SectionID]uint64{}}
	rivals, err := s.holders(ctx, f, ids)
	if err != nil {
		return err
	}
	given := map[string][]seq.SectionID{}
	var unserved []seq.SectionID
	for _, id := range ids {
		name := f.In[id]
		if name == s.Set || slices.Contains(rivals[id], name) {
			unserved = append(unserved, id)
		}
		if name == s.Set || s.records[s.Set].At(id).State == sets.Limbo {
			given[name] = append(given[name], id)
		}
	}
	if err := s.above(ctx, f, unserved, rivals); err != nil {
		return err
	}
	if err := s.claim(ctx, f, given[s.Set], rivals); err != nil {
		return err
	}
	if err := s.learn(ctx, given, f.Ceilings); err != nil {
		return err
	}
	// The map first: who is behind it finds the section in limbo, and what is in limbo is noted again.
	if err := s.note(ctx, f); err != nil {
		return err
	}
	for name, ids := range given {
		if name == s.Set {
			err = s.keep(ctx, number, ids, f.Ceilings)
			out.Kept = append(out.Kept, ids...)
		} else {
			err = s.all[s.Set].everywhere(ctx, sets.Step{Op: sets.Give, Move: number, To: name, Above: f.Ceilings}, ids, nil)
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

// above decides where sections begin that no Set serves. It takes the highest number in the map, in the
// Sets' records and in the other Sets' registers, and adds the bump. For a section in limbo in several Sets
// it also reads the restored Set's own registers. No later step does that for such a section.
func (s *Settlement) above(ctx context.Context, f sets.Found, ids []seq.SectionID, rivals map[seq.SectionID][]string) error {
	mapping, err := s.all[s.Set].Mapping(ctx)
	if err != nil {
		return err
	}
	for _, one := range s.m.Sets {
		asked := s.knownTo(one.Name, ids)
		if one.Name == s.Set {
			asked = slices.DeleteFunc(asked, func(id seq.SectionID) bool { return len(rivals[id]) == 0 })
		}
		maxes, err := s.all[one.Name].maxes(ctx, asked)
		if err != nil {
			return err
		}
		for _, id := range asked {
			f.Ceilings[id] = max(f.Ceilings[id], maxes[id], s.records[one.Name].At(id).Above)
		}
	}
	for _, id := range ids {
		space, err := mapping.SpaceOf(id)
		if err != nil {
			return err
		}
		if space.Mode == seq.Exact { // it never left the root, and goes on from its log
			f.Ceilings[id] = 0
		} else if f.Ceilings[id] > 0 {
			f.Ceilings[id] = min(f.Ceilings[id]+s.bump(rivals[id]), uint64(seq.MaxSeq))
		}
	}
	return nil
}

// claim has the others note where the restored Set begins with sections, before it does: neither the
// root's disks nor its own may be there for the next settlement. Those in which they are in limbo, too,
// give them away by that.
func (s *Settlement) claim(ctx context.Context, f sets.Found, ids []seq.SectionID, rivals map[seq.SectionID][]string) (err error) {
	for _, one := range s.m.Sets {
		if one.Name == s.Set {
			continue
		}
		var refuse, give []seq.SectionID
		for _, id := range s.knownTo(one.Name, ids) {
			if slices.Contains(rivals[id], one.Name) {
				give = append(give, id)
			} else if f.Ceilings[id] > 0 {
				refuse = append(refuse, id)
			}
		}
		if len(refuse) > 0 {
			err = s.all[one.Name].step(ctx, sets.Step{Op: sets.Refuse, Move: f.Number, Above: f.Ceilings}, refuse)
		}
		if len(give) > 0 && err == nil {
			err = s.all[one.Name].step(ctx, sets.Step{Op: sets.Give, Move: f.Number, To: s.Set, Above: f.Ceilings}, give)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bump is Bump, and of a section that was in limbo in several Sets more: what each restore and each
// settlement of these has skipped since their backups may be known to none of them any more.
func (s *Settlement) bump(rivals []string) uint64 {
	if len(rivals) == 0 {
		return s.Bump
	}
	eras := s.records[s.Set].era
	for _, name := range rivals {
		eras += s.records[name].era
	}
	return min(s.Bump, uint64(seq.MaxSeq)/(2*eras+1)) * (2*eras + 1)
}

// knownTo returns the sections among ids that a Set knows of.
func (s *Settlement) knownTo(name string, ids []seq.SectionID) []seq.SectionID {
	return slices.DeleteFunc(slices.Clone(ids), func(id seq.SectionID) bool { return id >= s.records[name].sections })
}

// keep has the restored Set serve sections, above all that is known of them.
func (s *Settlement) keep(ctx context.Context, number uint64, ids []seq.SectionID, above map[seq.SectionID]uint64) error {
	for _, limbo := range []bool{true, false} {
		some := slices.DeleteFunc(slices.Clone(ids), func(id seq.SectionID) bool { return (s.records[s.Set].At(id).State == sets.Limbo) != limbo })
		err := s.all[s.Set].each(ctx, some, callPatience, func(ctx context.Context, conn grpc.ClientConnInterface, _ string, ids []seq.SectionID, _ *sync.Mutex) ([]uint32, error) {
			req := &pb.OpenSectionsRequest{Move: number, Keep: limbo}
			for _, id := range ids {
				req.Sections = append(req.Sections, &pb.StoppedSection{Section: uint32(id), Ceiling: above[id]})
			}
			reply, err := pb.NewSetsClient(conn).Open(ctx, req)
			return reply.GetLeft(), err
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// note writes into the map what was found.
func (s *Settlement) note(ctx context.Context, f sets.Found) error {
	req := &pb.ChangeSetMapRequest_Settle{Number: f.Number, Ceilings: map[uint32]uint64{}, Seen: map[uint32]uint64{}, Whole: f.Whole, Namespaces: s.told, Moves: rpc.SetMovesToProto(f.Open)}
	for _, id := range slices.Sorted(maps.Keys(f.In)) {
		at := slices.IndexFunc(s.m.Sets, func(one sets.Set) bool { return one.Name == f.In[id] })
		req.Runs = append(req.Runs, &pb.SetRun{Sections: &pb.SectionRange{First: uint32(id), Sections: 1}, Set: uint32(at)})
		if f.Ceilings[id] > 0 {
			req.Ceilings[uint32(id)] = f.Ceilings[id]
		}
		if by := s.m.LastOf(id); by > 0 {
			req.Seen[uint32(id)] = by
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
