package disk

import (
	"crypto/rand"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// Format is the version of the database's layout. 1 had a record a section. FormatGated is
// the same layout with what builds of before version.Gate do not go by, or would drop: they
// refuse it before they change anything.
const (
	Format      = 2
	FormatGated = 3
)

// formatOf returns the format of a database with that required protocol and those floors.
func formatOf(required int, floors quorum.Floors) int {
	if required >= version.Gate || floors.Section > 0 {
		return FormatGated
	}
	return Format
}

// Identity is fixed by Create, except Mapping, which can gain spaces.
type Identity struct {
	Format  int         `json:"format"`
	Cluster string      `json:"cluster_id"`
	UUID    string      `json:"store_uuid"`
	Name    string      `json:"name"`
	Era     seq.Era     `json:"era"`
	N       int         `json:"n"`
	R       int         `json:"r"`
	W       int         `json:"w"`
	Names   []string    `json:"member_names"` // of all N stores
	Mapping seq.Mapping `json:"mapping"`

	// Learner was made to be filled by a cluster that has its stores already: N, R, W and
	// Names are empty, and it votes only once a member list says so.
	Learner bool `json:"learner,omitempty"`
	// Zone as init was told; serve may know better.
	Zone string `json:"zone,omitempty"`
}

// Members is the member list of the store. Bind sets the first list, and Adopt any later list.
type Members struct {
	Version uint64          `json:"version"` // zero until the store is bound
	List    []quorum.Member `json:"members"`
	// Pending is a first list of which the store does not know that all its members are bound to
	// it. A build of the version before does not know the field, and votes.
	Pending bool `json:"pending,omitempty"`
	R       int  `json:"r,omitempty"` // zero means the value of Identity
	W       int  `json:"w,omitempty"`
	// Filled is the version of the list under which this store was filled as a learner. Zero means never.
	Filled uint64 `json:"filled,omitempty"`
}

// Floors are the floors of the store's era. A restored store sets its floor of worker ids by its
// own clock, at its first start.
type Floors struct {
	quorum.Floors
	// Stamp says how to make the floor of worker ids. If nil, the floor is set, or there is none.
	Stamp *Stamp `json:"stamp,omitempty"`
}

// Stamp makes a floor of worker ids: the store's clock, or Since if that is later, and
// Margin beyond it.
type Stamp struct {
	Margin time.Duration `json:"margin_ns"`
	Since  time.Time     `json:"since"` // it is later than that, whatever a clock says
}

// Made are the floors once the store has looked at its clock. The floor of workers is above
// every mark that a store of the eras before can have taken by now, if the margin is as
// much as those let a mark be ahead of their clocks, and none of them takes more.
func (f Floors) Made(now time.Time) Floors {
	if f.Stamp == nil {
		return f
	}
	if now.Before(f.Stamp.Since) {
		now = f.Stamp.Since
	}
	f.Worker = max(f.Worker, uint64(max(0, now.Add(f.Stamp.Margin).UnixMilli())))
	f.Stamp = nil
	return f
}

// Meta is the state of a store without the registers.
type Meta struct {
	Identity
	Members    Members
	Floors     Floors
	BootCount  uint64         // times opened
	Commits    uint64         // transactions over the life of the disk
	LeaseBound time.Duration  // longest lease granted since nothing was leased
	Longest    time.Duration  // longest lease ever granted; at least LeaseBound
	Distrusted string         // why the store must never vote again, "" if it may
	Key        []byte         // of the store's seals: random, made with the database
	Remembered []quorum.Claim // of fellow stores
	Required   int            // protocol that sessions must speak; zero means any
	// Incarnation is not known before the store is bound. Of a restored store that is not bound
	// it has the cluster alone.
	Incarnation seq.Incarnation
	Journal     *Journal // of the sections of exact spaces; nil without such a space
}

// Journal is what the database knows of the journal beside it: one that is not there, or has
// less, has lost what the store answered for.
type Journal struct {
	ID      uint64 `json:"id"`
	Batches uint64 `json:"batches"` // at the last transaction; from Open on those that there are
}

// Update is one transaction. Zero fields are left as they are.
type Update struct {
	Changes    []acceptor.Change
	LeaseBound time.Duration
	// NoLeases resets the bound to 0, because nothing is leased, and nothing will be leased before a
	// later update raises the bound. LeaseBound is ignored.
	NoLeases bool
	Members  *Members
	// Incarnation goes with Members. It has a record of its own, which a build of the version
	// before leaves as it is. If it is nil, nothing changes.
	Incarnation *seq.Incarnation
	Floors      *Floors
	Distrusted  string
	// Required, if not 0, is the protocol that sessions must speak from now on.
	Required int
	// Mapping replaces the mapping of Identity, which it extends. The Changes have the registers of
	// its new sections.
	Mapping    *seq.Mapping
	Remembered []quorum.Claim // replaces all; nil leaves them. Not worth a transaction of its own
}

// Filling is what the database of a store begins with that is not empty.
type Filling struct {
	Registers  map[seq.Register]acceptor.State // all that its mapping and every store has may be among them
	Copies     map[seq.SectionID]*exact.State  // of sections of exact spaces
	LeaseBound time.Duration                   // the store begins in the grace of a lease of that length
	Floors     Floors
	Origin     seq.ClusterID // of the restored cluster; zero if the cluster is new, or its origin unknown
	Required   int           // protocol that sessions must speak; zero means any

	journal *Journal // that was made
}

// Empty says whether there is nothing to commit.
func (u *Update) Empty() bool {
	return len(u.Changes) == 0 && u.LeaseBound == 0 && !u.NoLeases && u.Members == nil && u.Floors == nil && u.Distrusted == "" && u.Mapping == nil && u.Required == 0
}

// NewKey draws the key of a store's seals: 32 random bytes.
func NewKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // documented never to return an error
	return key
}
