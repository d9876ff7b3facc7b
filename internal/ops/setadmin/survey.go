package setadmin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// holders decides which Set has each section. The other Sets refuse the sections of the restored Set, so
// that no known move can bring them there later. The exceptions are rivals: in these Sets the section is in
// limbo too.
func (s *Settlement) holders(ctx context.Context, f sets.Found, ids []seq.SectionID) (rivals map[seq.SectionID][]string, err error) {
	for _, id := range ids {
		f.In[id], f.Ceilings[id] = s.Set, s.m.Ceiling(id)
	}
	rivals = map[seq.SectionID][]string{}
	for _, one := range s.m.Sets {
		if one.Name == s.Set {
			continue
		}
		limbo, err := s.ask(ctx, f, one.Name, s.knownTo(one.Name, ids))
		if err != nil {
			return nil, err
		}
		for _, id := range limbo {
			rivals[id] = append(rivals[id], one.Name)
		}
	}
	for id, names := range rivals {
		if f.In[id] == s.Set {
			f.In[id] = s.choose(id, append(slices.Clone(names), s.Set))
		}
	}
	return rivals, nil
}

// choose returns the Set that gets a section which is in limbo in several restored Sets. It is the Set that
// the map names, else the first Set. Settling another of these Sets gives the same answer.
func (s *Settlement) choose(id seq.SectionID, among []string) string {
	if named := s.m.Sets[s.m.Index(id)].Name; slices.Contains(among, named) {
		return named
	}
	first := slices.IndexFunc(s.m.Sets, func(one sets.Set) bool { return slices.Contains(among, one.Name) })
	return s.m.Sets[first].Name
}

// ask has a Set refuse all sections but those that it has, which are noted as found, and those that
// are in limbo there.
func (s *Settlement) ask(ctx context.Context, f sets.Found, name string, ids []seq.SectionID) (limbo []seq.SectionID, err error) {
	for {
		var open []seq.SectionID
		limbo = nil
		for _, id := range ids {
			switch p := s.records[name].At(id); {
			case f.In[id] != s.Set:
			case p.State == sets.Active, p.State == sets.Sealed && p.To != s.Set: // if it is on its way, then not from here
				f.In[id] = name
			case p.State == sets.Limbo:
				limbo = append(limbo, id)
			default:
				open = append(open, id)
				if p.To != s.Set {
					break
				}
				// It came from there, and may have been served here since.
				ceiling, err := s.ceiling(ctx, name, p.Move, id)
				if err != nil {
					return nil, err
				}
				f.Ceilings[id] = max(f.Ceilings[id], ceiling)
			}
		}
		if len(open) == 0 {
			return limbo, nil
		}
		err := s.all[name].step(ctx, sets.Step{Op: sets.Refuse, Move: f.Number}, open)
		if err == nil || !errors.Is(err, seq.ErrMoveOver) {
			return limbo, err
		}
		was := s.records[name]
		if err := s.read(ctx, name); err != nil {
			return nil, err
		}
		for _, id := range open {
			if p := s.records[name].At(id); p.Move > f.Number || p == was.At(id) && p.Move == f.Number {
				return nil, fmt.Errorf("%w: section %d of Set %s is %v", seq.ErrMoveOver, id, name, p)
			}
		}
	}
}

// ceiling returns the ceiling of a section that its former Set has stopped for a move.
func (s *Settlement) ceiling(ctx context.Context, from string, move uint64, id seq.SectionID) (uint64, error) {
	m := &Mover{From: s.all[from], Move: sets.Move{ID: move}}
	stopped, err := m.stop(ctx, []seq.SectionID{id})
	if err != nil {
		return 0, err
	}
	return stopped[id].GetCeiling(), nil
}

// lost says that no Set has a section, nor is it on its way or in limbo.
func (s *Settlement) lost(id seq.SectionID) bool {
	for _, r := range s.records {
		switch r.At(id).State {
		case sets.Active, sets.Sealed, sets.Limbo:
			if id < r.sections {
				return false
			}
		}
	}
	return true
}

// underWay are the moves between other Sets that have sealed a section, whether the restored map
// knows of them or not: else no coordinator could finish them, or take them back. One that has not
// sealed a section never will.
func (s *Settlement) underWay(ctx context.Context, number uint64) ([]sets.Move, error) {
	for {
		if err := s.look(ctx); err != nil {
			return nil, err
		}
		open, cancel, sound := s.survey(number)
		if sound && len(cancel) == 0 {
			return open, nil
		}
		for name, ids := range cancel {
			// The next look sees the sections that were sealed meanwhile.
			err := s.all[name].step(ctx, sets.Step{Op: sets.Cancel, Move: number}, ids)
			if err != nil && !errors.Is(err, seq.ErrMoveOver) {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retry):
		}
	}
}

// survey finds the moves that have sealed sections, and of all other sections those that a move of
// before the number may still seal. It is not sound if a section was looked at in two Sets before and
// after it moved.
func (s *Settlement) survey(number uint64) (open []sets.Move, cancel map[string][]seq.SectionID, sound bool) {
	type move struct {
		id       uint64
		from, to string
	}
	sealed := map[move][]seq.SectionID{}
	cancel, sound = map[string][]seq.SectionID{}, true
	for id := range s.sections() {
		leaving, in := false, ""
		for _, one := range s.m.Sets[1:] {
			switch p := s.records[one.Name].At(id); p.State {
			case sets.Sealed:
				by := move{p.Move, one.Name, p.To}
				sealed[by], leaving = append(sealed[by], id), true
			case sets.Active:
				sound, in = sound && in == "", one.Name
			}
		}
		if in != "" && !leaving && s.records[in].At(id).Move < number {
			cancel[in] = append(cancel[in], id)
		}
	}
	for by, ids := range sealed {
		open = append(open, sets.Move{ID: by.id, From: by.from, To: by.to, Sections: sets.RangesOf(ids)})
	}
	slices.SortFunc(open, func(x, y sets.Move) int { return cmp.Compare(x.ID, y.ID) })
	return open, cancel, sound
}

// found is the Set whose record has a section; of one on its way the one that it leaves, until the
// other serves it. One that a Set in limbo was found to have is to be settled there.
func (s *Settlement) found(id seq.SectionID) string {
	in := s.m.Sets[0].Name
	if named := s.m.Sets[s.m.Index(id)].Name; s.records[named].At(id).State == sets.Limbo {
		in = named
	}
	for _, one := range s.m.Sets {
		switch p := s.records[one.Name].At(id); p.State {
		case sets.Active:
			return one.Name
		case sets.Sealed:
			in = one.Name
		}
	}
	return in
}
