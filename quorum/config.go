package quorum

import (
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// MaxStores is the largest N. It sizes the arrays of the serving path; more
// stores than that only make every write slower.
const MaxStores = 9

// DefaultTimeout bounds one round where Config.Timeout is 0.
const DefaultTimeout = 2 * time.Second

// NamedStore is a store and what is known of it beforehand. A reply under
// another uuid than UUID does not count.
type NamedStore struct {
	Name  string // for errors and logs; unique
	UUID  string // "" if not known yet
	Store Store
}

// Config says which stores a Group speaks to and how many of them decide.
type Config struct {
	Ref     Ref
	N       int           // stores, 1 to MaxStores
	R       int           // stores that a read needs: R + W > N
	W       int           // stores that a write needs: 2W > N
	Timeout time.Duration // of one round; 0 is DefaultTimeout
	Secret  seq.Secret    // of the session that writes through the group

	// OnStale is called when a store refused a request for its era or member list, which may be newer. It
	// must start the search for the newer list, which ends in Reconfigure. Several goroutines may call it
	// at once, and it must not block. It may be nil.
	OnStale func()
	// OnClaim is called with the Claim in each store's reply to Prepare and Step. It must not block. If
	// nil, claims are dropped.
	OnClaim func(Claim)
}

// Validate checks the formulas at the fields. It returns ErrBadConfig.
func (c Config) Validate() error {
	switch {
	case c.N < 1 || c.N > MaxStores:
		return fmt.Errorf("%w: N = %d, expected 1 to %d", ErrBadConfig, c.N, MaxStores)
	case c.R < 1 || c.R > c.N || c.W < 1 || c.W > c.N:
		return fmt.Errorf("%w: R = %d and W = %d, expected 1 to N = %d", ErrBadConfig, c.R, c.W, c.N)
	case 2*c.W <= c.N:
		return fmt.Errorf("%w: W = %d of N = %d, two writes could miss each other", ErrBadConfig, c.W, c.N)
	case c.R+c.W <= c.N:
		return fmt.Errorf("%w: R = %d and W = %d of N = %d, a read could miss a write", ErrBadConfig, c.R, c.W, c.N)
	case c.Timeout < 0:
		return fmt.Errorf("%w: timeout %s", ErrBadConfig, c.Timeout)
	}
	return nil
}

// checkStores tells whether the stores can be told apart and are n.
func checkStores(stores []NamedStore, n int) error {
	if len(stores) != n {
		return fmt.Errorf("%w: %d stores, expected N = %d", ErrBadConfig, len(stores), n)
	}
	names, uuids := map[string]bool{}, map[string]bool{}
	for i, s := range stores {
		switch {
		case s.Store == nil:
			return fmt.Errorf("%w: store %d (%q) is nil", ErrBadConfig, i, s.Name)
		case s.Name == "" || names[s.Name]:
			return fmt.Errorf("%w: store name %q empty or twice", ErrBadConfig, s.Name)
		case s.UUID != "" && uuids[s.UUID]:
			return fmt.Errorf("%w: store uuid %q twice", ErrBadConfig, s.UUID)
		}
		names[s.Name], uuids[s.UUID] = true, true
	}
	return nil
}

// checkUUID says whether store i of stores may answer as uuid.
func checkUUID(stores []NamedStore, i int, uuid string) error {
	switch want := stores[i].UUID; {
	case uuid == "":
		return fmt.Errorf("%w: reply without a uuid", ErrIdentity)
	case want != "" && want != uuid:
		return fmt.Errorf("%w: answers as %q, expected %q", ErrIdentity, uuid, want)
	}
	for j := range stores {
		if j != i && stores[j].UUID == uuid {
			return fmt.Errorf("%w: answers as %q, which is store %s", ErrIdentity, uuid, stores[j].Name)
		}
	}
	return nil
}

// State is what a round came to for one item.
type State uint8

const (
	// Unknown: too many stores were silent. A write may have happened, now or
	// later, at any number of stores.
	Unknown State = iota
	// Won: W distinct stores said OK.
	Won
	// Refused: W can no longer be had, or a Step met a higher epoch. Fewer than
	// W stores may all the same have written it.
	Refused
)

// String is the state in one word.
func (s State) String() string {
	names := [...]string{"unknown", "won", "refused"}
	if int(s) < len(names) {
		return names[s]
	}
	return "invalid"
}

// Outcome combines the stores' answers for one item.
type Outcome struct {
	State     State
	Acks      int           // distinct stores that said OK
	Max       uint64        // highest over all that said OK
	Floor     uint64        // highest over all that said OK: what Max is at least, whatever was handed out
	Accepted  seq.Epoch     // highest over all that said OK
	Promised  seq.Epoch     // highest over all that said anything
	Payload   []byte        // of Accepted; do not modify
	Index     uint64        // of Copies: of the last record, whose epoch is Accepted
	Time      int64         // of Copies: the lowest clock of those that said OK, milliseconds since 1970
	Elsewhere bool          // a store that was heard said VerdictElsewhere
	Seal      uint64        // of a Prepare: the seal of the last owner's release, from the store with the highest Accepted; zero if there is none
	Holder    seq.Session   // the session whose lease lasts longest, 0 for none
	Remaining time.Duration // until W of the stores that answered could admit a Prepare; zero if at once or unknown
	Err       error         // nil exactly if State is Won
}
