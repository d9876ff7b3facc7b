package storecare

import (
	"context"
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
	States     []quorum.RegisterState // by name
}

// Snapshot reads all voters that answer, while they serve. seq.ErrNoQuorum if those are
// fewer than W.
func (c *Care) Snapshot(ctx context.Context) (Snapshot, error) {
	begun := time.Now()
	voters, _, err := c.ask(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	if err := c.dump(ctx, voters); err != nil {
		return Snapshot{}, err
	}
	snap := Snapshot{Cluster: c.name, Era: c.era, List: c.list, Mapping: mappingOf(voters), Begun: begun, LeaseBound: longest(voters),
		States: merge(voters).sorted()}
	// Sections of spaces that were added meanwhile are not of this mapping.
	snap.States = slices.DeleteFunc(snap.States, func(st quorum.RegisterState) bool {
		id, section := st.Register.Section()
		return section && int(id) >= snap.Mapping.Sections()
	})
	for _, s := range voters {
		snap.Sources = append(snap.Sources, s.Name)
		snap.Floors = snap.Floors.Over(s.id.Floors)
	}
	return snap, nil
}
