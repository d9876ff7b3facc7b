package setcare

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// underWay are the moves between other Sets that have sealed a section, whether the restored map
// knows of them or not: without them nobody could finish them, or take them back. One that has not
// sealed a section never will.
func (s *Settlement) underWay(ctx context.Context, number uint64) ([]sets.Move, error) {
	for {
		sections, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		open, cancel, sound := s.survey(number, sections)
		if sound && len(cancel) == 0 {
			return open, nil
		}
		for name, ids := range cancel {
			// What is sealed meanwhile is seen by the next look.
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
func (s *Settlement) survey(number uint64, sections int) (open []sets.Move, cancel map[string][]seq.SectionID, sound bool) {
	type move struct {
		id       uint64
		from, to string
	}
	sealed := map[move][]seq.SectionID{}
	cancel, sound = map[string][]seq.SectionID{}, true
	for id := range seq.SectionID(sections) {
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
// other serves it.
func (s *Settlement) found(id seq.SectionID) string {
	in := s.m.Sets[0].Name
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
