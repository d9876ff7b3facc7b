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

// leastWait is the shortest wait before a store votes that finds too few fellow stores. A session
// that has seen the disk newer renews five times a lease.
const leastWait = time.Second

// witness says whether the disk of this start is known to be no older copy, and what this
// store remembers of the disks of its fellows. A copy that was put back has lost promises, so
// a store votes only after enough of its fellows were asked what they remember of it, or
// after one grace, when no lease that it ever granted is left and every session that is alive
// and has seen more has had the time to say so. It has no lock and no clock: core guards it.
type witness struct {
	members    *members
	key        []byte // of this disk's seals
	boots      uint64
	database   uint64 // its transactions, as committed
	journal    uint64 // its batches, as committed
	distrusted string // why the disk is known to be an older copy

	nonce     uint64              // of this start; never 0
	startSeal [16]byte            // of nonce and boots
	before    uint64              // commits before it
	ends      time.Duration       // the wait for fellows
	heard     map[string]struct{} // uuids of the fellows that were asked
	done      bool                // compared

	remembered map[string]quorum.Claim // newest of each fellow store, by uuid
	unsaved    bool                    // some of remembered is not on disk
	// others are claims that came beside the newest of a fellow store, of another process on a copy
	// of its disk: of the same boot, or of an earlier boot and yet later.
	others map[string]quorum.Claim
}

func newWitness(meta disk.Meta, m *members, now time.Duration) witness {
	w := witness{
		members: m, key: meta.Key, boots: meta.BootCount, database: meta.Commits, distrusted: meta.Distrusted,
		nonce: max(1, rand.Uint64()),
		ends:  now + acceptor.GraceOf(max(meta.Longest, leastWait)), heard: map[string]struct{}{},
		remembered: map[string]quorum.Claim{}, others: map[string]quorum.Claim{},
	}
	for _, c := range meta.Remembered {
		w.remembered[c.Store] = c
	}
	w.startSeal = startSealOf(w.key, quorum.Claim{Store: m.self.UUID, Boot: w.boots, Start: w.nonce})
	if meta.Journal != nil {
		w.journal = meta.Journal.Batches
	}
	w.before = w.commits() - 1 // the start itself is one
	return w
}

// commits returns the commits of the database and of the journal together, because an old copy of
// either has fewer.
func (w *witness) commits() uint64 { return w.database + w.journal }

// committed notes the counts of both. Zero means that nothing was written to it.
func (w *witness) committed(database, journal uint64) {
	w.database, w.journal = max(w.database, database), max(w.journal, journal)
}

// sealOf is the store's own seal of how far its disk has got.
func sealOf(key []byte, c quorum.Claim) (seal [16]byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte(c.Store), c.Boot), c.Commits))
	copy(seal[:], mac.Sum(nil))
	return seal
}

// startSealOf is the store's own seal of the process that counts a boot.
func startSealOf(key []byte, c quorum.Claim) [16]byte {
	return sealOf(key, quorum.Claim{Store: "start " + c.Store, Boot: c.Boot, Commits: c.Start})
}

// sealed says whether the claim carries the seal of this disk.
func (w *witness) sealed(c quorum.Claim) bool {
	want := sealOf(w.key, c)
	return hmac.Equal(c.Seal[:], want[:])
}

// claim is what others may remember of this disk: nothing before it was compared. An older
// copy has started more often, so its word would take the place of what they are asked for.
func (w *witness) claim(now time.Duration) quorum.Claim {
	c := quorum.Claim{Store: w.members.self.UUID, Boot: w.boots}
	if !w.comparing(now) {
		c.Commits = w.commits()
		c.Seal, c.Start = sealOf(w.key, c), w.nonce
		c.StartSeal = w.startSeal
	}
	return c
}

// older says why a claim shows that this disk is an older copy; nil if it does not. What
// does not carry the store's own seal shows nothing.
func (w *witness) older(c quorum.Claim) error {
	if c.Store != w.members.self.UUID || !w.sealed(c) {
		return nil
	}
	has := w.commits()
	if c.Boot < w.boots {
		has = w.before
	}
	by := "a session"
	if c.By != "" {
		by = "store " + c.By
	}
	if own := (quorum.Claim{Store: c.Store, Boot: w.boots, Start: w.nonce}); own.Twin(c) && c.StartSeal == startSealOf(w.key, c) {
		return fmt.Errorf("%s remembers another process in start %d of this disk: the disk was copied, and both copies ran", by, c.Boot)
	}
	if c.Boot <= w.boots && c.Commits <= has {
		return nil
	}
	return fmt.Errorf("%s remembers %d commits in start %d of this disk, it has %d in start %d", by, c.Commits, c.Boot, has, w.boots)
}

// compare compares the disk with the claims about it. nonce identifies the start for which fellow
// stores were asked, because an earlier answer may be older than the disk was. An error says that
// the disk is old.
func (w *witness) compare(nonce uint64, claims []quorum.Claim) error {
	for _, c := range claims {
		if err := w.older(c); err != nil {
			return err
		}
		sound := c.Commits == 0 || w.sealed(c)
		if !w.done && c.By != "" && c.Store == w.members.self.UUID && sound && nonce == w.nonce {
			w.heard[c.By] = struct{}{}
		}
	}
	return nil
}

// comparing says whether the disk is still to be compared.
//
// N-W+1 fellows are enough: of the stores that had anything confirmed together with this
// one, at least one is among them.
func (w *witness) comparing(now time.Duration) bool {
	if w.done {
		return false
	}
	n, _, needed := w.members.quorums()
	heard := 0
	for _, m := range listOf(w.members.Members).Voters() {
		if _, ok := w.heard[m.UUID]; ok && m.UUID != w.members.self.UUID {
			heard++
		}
	}
	w.done = heard > n-needed || now >= w.ends
	if w.done {
		w.heard = nil
	}
	return !w.done
}

// remember keeps what a session has seen of the fellow stores. It is on disk with the next
// commit.
func (w *witness) remember(claims []quorum.Claim) {
	for _, c := range claims {
		_, member := listOf(w.members.Members).Find(c.Store)
		if !member || c.Store == w.members.self.UUID || c.Commits == 0 {
			continue
		}
		was := w.remembered[c.Store]
		c.By, was.By = "", ""
		other := w.others[c.Store]
		switch {
		case was.Twin(c) && was.Less(c):
			w.others[c.Store] = was
		case was.Twin(c), c.Boot < was.Boot && !was.Twin(other) && other.Less(c):
			w.others[c.Store] = c
		}
		if was.Boot < c.Boot { // started again
			delete(w.others, c.Store)
		}
		if was.Less(c) {
			w.remembered[c.Store], w.unsaved = c, true
		}
	}
}

// recollection is what this store remembers of each of its fellows.
func (w *witness) recollection() []quorum.Claim {
	var out []quorum.Claim
	for _, m := range w.members.List {
		if m.UUID != w.members.self.UUID {
			c := w.remembered[m.UUID]
			c.Store, c.By = m.UUID, w.members.self.UUID
			out = append(out, c)
			if other, there := w.others[m.UUID]; there {
				other.By = c.By
				out = append(out, other)
			}
		}
	}
	return out
}

// unsavedClaims are to go with a commit; nil if all are on disk.
func (w *witness) unsavedClaims() []quorum.Claim {
	if !w.unsaved {
		return nil
	}
	w.unsaved = false
	return slices.Collect(maps.Values(w.remembered))
}

// about sets the fields of a reply that describe this store's disk and the disks of its fellows.
func (w *witness) about(reply quorum.RenewReply, now time.Duration) quorum.RenewReply {
	c := w.claim(now)
	reply.UUID, reply.BootCount, reply.Commits, reply.Seal, reply.Remembered = c.Store, c.Boot, c.Commits, c.Seal, w.recollection()
	reply.Start, reply.StartSeal = c.Start, c.StartSeal
	return reply
}
