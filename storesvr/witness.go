package storesvr

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// leastWait is how long a store that finds too few fellows waits at least before it votes:
// a session that has seen it newer renews five times a lease.
const leastWait = time.Second

// comparison is whether this start's disk is known to be no older copy. A copy that was
// put back has lost promises, so a store votes only after enough of its fellows were asked
// what they remember of it, or after one grace, when no lease that it ever granted is left
// and every session that is alive and has seen more has had the time to say so.
type comparison struct {
	nonce  uint64              // of this start; never 0
	before uint64              // commits before it
	ends   time.Duration       // the wait for fellows
	heard  map[string]struct{} // uuids of the fellows that were asked
	done   bool
}

func newComparison(meta disk.Meta, now time.Duration) comparison {
	return comparison{
		nonce: max(1, rand.Uint64()), before: meta.Commits - 1,
		ends: now + acceptor.GraceOf(max(meta.Longest, leastWait)), heard: map[string]struct{}{},
	}
}

// sealOf is the store's own seal of how far its disk has got.
func sealOf(key []byte, uuid string, boot, commits uint64) (seal [16]byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(uuid), boot), commits))
	copy(seal[:], mac.Sum(nil))
	return seal
}

// claim is what others may remember of this disk: nothing before it was compared. An older
// copy has started more often, so its word would take the place of what they are asked for.
// The caller holds mu.
func (r *replica) claim() quorum.Claim {
	if r.comparing() {
		return quorum.Claim{Store: r.identity.UUID, Boot: r.boots}
	}
	return quorum.Claim{Store: r.identity.UUID, Boot: r.boots, Commits: r.commits, Seal: sealOf(r.key, r.identity.UUID, r.boots, r.commits)}
}

// sealed is claim for those that do not hold mu.
func (r *replica) sealed() quorum.Claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.claim()
}

// older says why a claim shows that this disk is an older copy; nil if it does not. What
// does not carry the store's own seal shows nothing. The caller holds mu.
func (r *replica) older(c quorum.Claim) error {
	if c.Store != r.identity.UUID || !hmac.Equal(c.Seal[:], sealOfClaim(r.key, c)) {
		return nil
	}
	has := r.commits
	if c.Boot < r.boots {
		has = r.compared.before
	}
	if c.Boot <= r.boots && c.Commits <= has {
		return nil
	}
	by := "a session"
	if c.By != "" {
		by = "store " + c.By
	}
	return fmt.Errorf("%s remembers %d commits in start %d of this disk, it has %d in start %d", by, c.Commits, c.Boot, has, r.boots)
}

func sealOfClaim(key []byte, c quorum.Claim) []byte {
	seal := sealOf(key, c.Store, c.Boot, c.Commits)
	return seal[:]
}

// compare holds the disk against what is remembered of it. nonce is of the start for which
// fellow stores were asked: what they said before may be older than the disk that was. An
// error says that the disk is old. The caller holds mu.
func (r *replica) compare(nonce uint64, claims []quorum.Claim) error {
	for _, c := range claims {
		if err := r.older(c); err != nil {
			return err
		}
		sound := c.Commits == 0 || hmac.Equal(c.Seal[:], sealOfClaim(r.key, c))
		if !r.compared.done && c.By != "" && c.Store == r.identity.UUID && sound && nonce == r.compared.nonce {
			r.compared.heard[c.By] = struct{}{}
		}
	}
	return nil
}

// comparing says whether the disk is still to be compared. The caller holds mu.
//
// N-W+1 fellows are enough: of the stores that had anything confirmed together with this
// one, at least one is among them.
func (r *replica) comparing() bool {
	c := &r.compared
	if c.done {
		return false
	}
	n, _, w := r.quorums()
	heard := 0
	for _, m := range listOf(r.members).Voters() {
		if _, ok := c.heard[m.UUID]; ok && m.UUID != r.identity.UUID {
			heard++
		}
	}
	c.done = heard > n-w || r.clock.Now() >= c.ends
	if c.done {
		c.heard = nil
	}
	return !c.done
}

// remember keeps what a session has seen of the fellow stores. It is on disk with the next
// commit. The caller holds mu.
func (r *replica) remember(claims []quorum.Claim) {
	for _, c := range claims {
		_, member := listOf(r.members).Find(c.Store)
		if member && c.Store != r.identity.UUID && r.remembered[c.Store].Less(c) {
			c.By = ""
			r.remembered[c.Store], r.unsaved = c, true
		}
	}
}

// recollection is what this store remembers of each of its fellows. The caller holds mu.
func (r *replica) recollection() []quorum.Claim {
	var out []quorum.Claim
	for _, m := range r.members.List {
		if m.UUID != r.identity.UUID {
			c := r.remembered[m.UUID]
			c.Store, c.By = m.UUID, r.identity.UUID
			out = append(out, c)
		}
	}
	return out
}

// unsavedClaims are to go with a commit; nil if all are on disk. The caller holds mu.
func (r *replica) unsavedClaims() []quorum.Claim {
	if !r.unsaved {
		return nil
	}
	r.unsaved = false
	return slices.Collect(maps.Values(r.remembered))
}

// vouch takes in what fellow stores remember of this one, so that it may vote before its
// wait is over. An old disk is recorded as such. nonce is of the start that they were
// asked for. Errors: seq.ErrForeignCluster, seq.ErrNotVoting for an old disk.
func (r *replica) vouch(cluster string, nonce uint64, claims []quorum.Claim) error {
	return r.recorded(r.hear(cluster, nonce, claims))
}

func (r *replica) hear(cluster string, nonce uint64, claims []quorum.Claim) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.sameCluster(cluster, r.identity.Era); err != nil || r.distrusted != "" {
		return err
	}
	if old := r.compare(nonce, claims); old != nil {
		return r.distrust(old)
	}
	return nil
}
