package quorum

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// MemberList is one version of who the stores are. The first is made by Bind; every
// later one is decided by compare-and-swap of seq.MembersRegister under the one before,
// with the version of the document plus 1 as its own, and then told to the stores. So a
// store that has a list proves that it was decided.
//
//	N is the number of voters;  R+W > N;  2W > N
//	Overlap(list, next) == nil for every list and the one after it
type MemberList struct {
	Version uint64   `json:"version"`
	R       int      `json:"r"`
	W       int      `json:"w"`
	Members []Member `json:"members"` // sorted by name; learners included
	// Incarnation is the same in every list of one era. It is not known in a list of a build of
	// the version before.
	Incarnation seq.Incarnation `json:"incarnation,omitzero"`
}

// Voters returns the members that vote, in the order of the list.
func (l MemberList) Voters() []Member {
	return slices.DeleteFunc(slices.Clone(l.Members), func(m Member) bool { return m.Learner })
}

// N returns the number of voters.
func (l MemberList) N() int { return len(l.Voters()) }

// Find returns the member with the uuid.
func (l MemberList) Find(uuid string) (Member, bool) {
	i := slices.IndexFunc(l.Members, func(m Member) bool { return m.UUID == uuid })
	if i < 0 {
		return Member{}, false
	}
	return l.Members[i], true
}

// Learner returns the member that is being filled, if there is one.
func (l MemberList) Learner() (Member, bool) {
	i := slices.IndexFunc(l.Members, func(m Member) bool { return m.Learner })
	if i < 0 {
		return Member{}, false
	}
	return l.Members[i], true
}

// Sort puts the members in the order of the list.
func (l MemberList) Sort() {
	slices.SortFunc(l.Members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID))
	})
}

// Derived returns the incarnation of the stores that this list binds to each other. origin identifies the
// restored cluster that they come from, and is zero otherwise.
func (l MemberList) Derived(origin seq.ClusterID, cluster string, era seq.Era) seq.Incarnation {
	uuids := make([]string, len(l.Members))
	for i, m := range l.Members {
		uuids[i] = m.UUID
	}
	return seq.NewIncarnation(origin, cluster, era, uuids)
}

// Equal reports whether two lists are equal in everything except zones and the incarnation.
func (l MemberList) Equal(o MemberList) bool {
	return l.Version == o.Version && l.R == o.R && l.W == o.W && slices.EqualFunc(l.Members, o.Members, Member.Same)
}

// Same reports whether two members are equal in everything except the zone.
func (m Member) Same(o Member) bool {
	o.Zone = m.Zone
	return m == o
}

// Ref returns the Ref of requests under the list.
func (l MemberList) Ref(cluster string, era seq.Era) Ref {
	return Ref{Cluster: cluster, Era: era, Members: l.Version, MembersHash: MembersHash(l.Members)}
}

// Validate checks the formulas at the type, names and uuids. It returns ErrBadConfig.
func (l MemberList) Validate() error {
	names, uuids := map[string]bool{}, map[string]bool{}
	learners := 0
	for _, m := range l.Members {
		if m.Name == "" || names[m.Name] || m.UUID == "" || uuids[m.UUID] {
			return fmt.Errorf("%w: member %q %q empty or twice", ErrBadConfig, m.Name, m.UUID)
		}
		names[m.Name], uuids[m.UUID] = true, true
		if m.Learner {
			learners++
		}
	}
	if learners > 1 || l.Version == 0 {
		return fmt.Errorf("%w: member list version %d with %d learners", ErrBadConfig, l.Version, learners)
	}
	return Config{N: l.N(), R: l.R, W: l.W}.Validate()
}

// Overlap returns nil if one list may follow the other: every write quorum of each list shares a store with
// every write and read quorum of the other. Otherwise it returns ErrBadConfig.
//
// A quorum of q among n voters has at least q-(n-i) of the i voters that the lists share. Two quorums meet
// if these numbers add up to more than i.
func Overlap(a, b MemberList) error {
	shared := 0
	voters := a.Voters()
	for _, m := range b.Voters() {
		if slices.ContainsFunc(voters, func(o Member) bool { return o.UUID == m.UUID }) {
			shared++
		}
	}
	meet := func(qa, qb int) bool { return qa-(a.N()-shared)+qb-(b.N()-shared) > shared }
	if !meet(a.W, b.W) || !meet(a.W, b.R) || !meet(a.R, b.W) {
		return fmt.Errorf("%w: N/R/W %d/%d/%d to %d/%d/%d with %d stores in both: quorums could miss each other",
			ErrBadConfig, a.N(), a.R, a.W, b.N(), b.R, b.W, shared)
	}
	return nil
}

// MembersHash tells member lists apart by the uuids alone: the first 8 bytes,
// big-endian, of the SHA-256 over the sorted uuids, each after its length. The order
// of the list and the names do not matter. The empty list, which a store has before
// it is bound, gives 0.
func MembersHash(members []Member) uint64 {
	if len(members) == 0 {
		return 0
	}
	uuids := make([]string, len(members))
	for i, m := range members {
		uuids[i] = m.UUID
	}
	slices.Sort(uuids)
	h := sha256.New()
	var size [8]byte
	for _, uuid := range uuids {
		binary.BigEndian.PutUint64(size[:], uint64(len(uuid)))
		h.Write(size[:])
		h.Write([]byte(uuid))
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}
