package storeadmin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Snapshot is everything that was confirmed before it was begun, and some of what was
// confirmed meanwhile.
type Snapshot struct {
	Cluster    string
	Era        seq.Era
	List       quorum.MemberList
	Mapping    seq.Mapping
	Sources    []string // names of the stores that were read, at least W
	Begun      time.Time
	LeaseBound time.Duration
	Floors     quorum.Floors          // of the era
	Required   int                    // protocol of sessions; zero means any
	States     []quorum.RegisterState // by name
}

// Snapshot reads all voters that answer, while they serve. seq.ErrNoQuorum if those are
// fewer than W, or if for Takeovers fewer than W have what one has of an exact section.
func (c *Care) Snapshot(ctx context.Context) (Snapshot, error) {
	begun := time.Now()
	voters, _, err := c.ask(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	if err := c.dump(ctx, voters); err != nil {
		return Snapshot{}, err
	}
	all := merge(voters)
	mapping, err := all.spaces(mappingOf(voters))
	if err != nil {
		return Snapshot{}, err
	}
	if err := c.confirm(ctx, voters, all); err != nil {
		return Snapshot{}, fmt.Errorf("read what W stores have of exact sections: %w", err)
	}
	snap := Snapshot{Cluster: c.name, Era: c.era, List: c.list, Mapping: mapping, Begun: begun, LeaseBound: longest(voters),
		States: all.sorted()}
	// Sections of spaces that were added meanwhile are not of this mapping.
	snap.States = slices.DeleteFunc(snap.States, func(st quorum.RegisterState) bool {
		id, section := st.Register.Section()
		return section && int(id) >= snap.Mapping.Sections()
	})
	for _, s := range voters {
		snap.Sources = append(snap.Sources, s.Name)
		snap.Floors, snap.Required = snap.Floors.Over(s.id.Floors), max(snap.Required, s.id.Required)
	}
	return snap, nil
}

// versionLen is the length of the version at the front of a document's payload.
const versionLen = 8

// spaces returns the mapping for a backup: the stores' mapping, or the decided mapping that no store has
// taken over yet. Every state gets the registers that no store has. They are as good as the registers of a
// store that made them and missed every write.
func (s states) spaces(have seq.Mapping) (seq.Mapping, error) {
	if payload := s[seq.SpacesRegister].Payload; len(payload) > versionLen {
		var decided seq.Mapping
		err := json.Unmarshal(payload[versionLen:], &decided)
		if err == nil {
			err = decided.Validate()
		}
		if err != nil {
			return have, fmt.Errorf("%s: %w: %w", seq.SpacesRegister, seq.ErrBadMapping, err)
		}
		if decided.Extends(have) {
			have = decided
		}
	}
	for id := range seq.SectionID(have.Sections()) {
		if r := seq.SectionRegister(id); s[r].Register == "" {
			s[r] = quorum.RegisterState{Register: r}
		}
	}
	return have, nil
}

// confirm has all have of every exact section a copy whose records W voters have, reading them
// again until it does. A record that fewer have may be dropped by the section's next owner, which
// gives its numbers to another request: a backup with it would give them to both.
func (c *Care) confirm(ctx context.Context, voters []*source, all states) error {
	mapping := mappingOf(voters)
	open := slices.DeleteFunc(all.sorted(), func(st quorum.RegisterState) bool {
		id, ok := st.Register.Section()
		return !ok || !mapping.IsExact(id)
	})
	for begun := time.Now(); ; {
		var err error
		open = slices.DeleteFunc(open, func(st quorum.RegisterState) bool {
			r := st.Register
			have := confirmed(voters, all[r])
			if have < c.list.W {
				all[r] = highest(voters, r)
				have = confirmed(voters, all[r])
			}
			if have < c.list.W {
				err = fmt.Errorf("%w: %s: a takeover is under way, and %d of %d stores have all of it: repeat the command while an AllocSvr runs",
					seq.ErrNoQuorum, r, have, c.list.W)
			}
			return have >= c.list.W
		})
		if err == nil || time.Since(begun) > cmp.Or(c.Takeovers, DefaultTakeovers) {
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
		if err := c.dump(ctx, voters); err != nil {
			return err
		}
	}
}

// highest is what merge gives of one register.
func highest(voters []*source, r seq.Register) quorum.RegisterState {
	st := quorum.RegisterState{Register: r}
	for _, s := range voters {
		st = quorum.Merge(st, s.has[r])
	}
	return st
}

// confirmed returns how many voters have all records of a copy. Such a voter has the copy's last record or
// a later one under its epoch.
func confirmed(voters []*source, st quorum.RegisterState) (have int) {
	for _, s := range voters {
		if now := s.has[st.Register]; now.Accepted == st.Accepted && now.PayloadMax >= st.PayloadMax {
			have++
		}
	}
	return have
}
