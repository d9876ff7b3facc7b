package disk

import (
	"crypto/rand"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// Format is the version of the database's layout. 1 had a record a section.
const Format = 2

// Identity is fixed by Create.
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
}

// Members is the member list that the store has: by Bind the first, by Adopt any later.
type Members struct {
	Version uint64          `json:"version"` // 0: not bound
	List    []quorum.Member `json:"members"`
	R       int             `json:"r,omitempty"` // 0: as in the Identity
	W       int             `json:"w,omitempty"`
	// Filled is the version of the list under which this store was filled as a
	// learner; 0: never.
	Filled uint64 `json:"filled,omitempty"`
}

// Meta is all of a store's state but for the registers.
type Meta struct {
	Identity
	Members    Members
	BootCount  uint64         // times opened
	Commits    uint64         // transactions over the life of the disk
	LeaseBound time.Duration  // longest lease ever granted
	Distrusted string         // why the store must never vote again, "" if it may
	Key        []byte         // of the store's seals: random, made with the database
	Remembered []quorum.Claim // of fellow stores
}

// Update is one transaction. Zero fields are left as they are.
type Update struct {
	Changes    []acceptor.Change
	LeaseBound time.Duration
	// NoLeases sets the bound back to 0: nothing is leased, and nothing will be
	// before a later update raises it again. LeaseBound is not looked at.
	NoLeases   bool
	Members    *Members
	Distrusted string
	Remembered []quorum.Claim // replaces all; nil leaves them. Not worth a transaction of its own
}

// Empty says whether there is nothing to commit.
func (u *Update) Empty() bool {
	return len(u.Changes) == 0 && u.LeaseBound == 0 && !u.NoLeases && u.Members == nil && u.Distrusted == ""
}

// NewKey draws the key of a store's seals: 32 random bytes.
func NewKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // documented never to return an error
	return key
}
