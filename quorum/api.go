package quorum

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Ref is the cluster that a caller believes it talks to. A store of another cluster, era
// or member list refuses with seq.ErrForeignCluster or seq.ErrStaleEra.
type Ref struct {
	Cluster     string
	Era         seq.Era
	Members     uint64 // version of the store member list
	MembersHash uint64 // MembersHash of the members' uuids
}

// Identity is what a store reports about itself.
type Identity struct {
	UUID      string // lives on the disk
	Name      string
	BootCount uint64
	Start     uint64 // random, chosen by the process at its start; zero if the build is of the previous version
	Ref       Ref
	N, R, W   int
	Mapping   seq.Mapping
	Members   []Member
	Pending   bool // bound to Members, and not told that all of them are
	Voting    bool
	State     string        // "voting", or why not
	MaxLease  time.Duration // longest lease that may be asked for
	Grace     time.Duration // left of the grace after a restart
	Commits   uint64

	LeaseBound time.Duration // longest lease ever granted
	ListAge    time.Duration // since the store took its member list over, or since its start
	Floors     Floors        // of the store's era
	Protocol   int           // that the store speaks; zero if its build is older than these numbers
	Required   int           // the protocol that the store requires of sessions; zero if it accepts any
	Addr       string        // sent to peers, host:port; the host may be empty
	Zone       string        // the failure zone of the store; empty if unknown
	// Incarnation is the life of the cluster that the store belongs to. It is not known of a
	// store that is not bound, or that a build of the version before serves.
	Incarnation seq.Incarnation
	Filled      uint64 // version of the list under which it was filled as a learner; zero if it never was

	// Nonce identifies a start of the store whose disk is not yet compared with the claims of the other
	// stores. Zero means that no comparison is pending.
	Nonce      uint64
	Remembered []Claim // of its fellow stores
}

// StateLeftOut begins the state that an AllocSvr shows of a store at whose address another store
// answers, or that refuses the AllocSvr.
const StateLeftOut = "left out: "

// List returns the store's member list. If the store has none, its Version is 0.
func (id Identity) List() MemberList {
	return MemberList{Version: id.Ref.Members, R: id.R, W: id.W, Members: id.Members, Incarnation: id.Incarnation}
}

// Claim is what is remembered of a store's disk: how often the store had started on it and how many
// transactions it had had. Both only grow. If a store's disk has less than a claim with its own seal, the
// disk is an old copy. A claim without the seal means nothing.
type Claim struct {
	Store   string // uuid that it is about
	By      string // uuid of the store that remembers it; empty if it is the session itself
	Boot    uint64
	Commits uint64   // zero if nothing is remembered
	Seal    [16]byte // by a key that the store's disk alone has
	// Start is drawn by the store's process at its start, and StartSeal seals it. Two numbers of one
	// boot show that the disk was copied, and that both copies ran. Zero means that it is not known.
	Start     uint64   `json:",omitzero"`
	StartSeal [16]byte `json:",omitzero"`
}

// Twin reports whether two processes each count the same boot of one store.
func (c Claim) Twin(o Claim) bool {
	return c.Store == o.Store && c.Boot == o.Boot && c.Start != o.Start && c.Start != 0 && o.Start != 0
}

// Less reports whether c is older than o. A claim without commits proves nothing.
func (c Claim) Less(o Claim) bool {
	return o.Commits > 0 && (c.Boot < o.Boot || c.Boot == o.Boot && c.Commits < o.Commits)
}

// Floors bounds the max of registers from below in an era that was restored. No store shows a register of
// the kind with a lower max, whether the backup has the register or not. Floors are zero in an era that was
// not restored.
type Floors struct {
	Tag     uint64 `json:"tag,omitempty"`     // numbers; the same at every store of the era
	Worker  uint64 `json:"worker,omitempty"`  // milliseconds since 1970, by each store's own clock
	Section uint64 `json:"section,omitempty"` // numbers; zero too in an era that an older build restored
}

// Of returns the floor of a register.
func (f Floors) Of(r seq.Register) uint64 {
	switch r.Rules().Floor {
	case seq.SectionFloor:
		return f.Section
	case seq.TagFloor:
		return f.Tag
	case seq.WorkerFloor:
		return f.Worker
	}
	return 0
}

// Over returns the higher of both, kind by kind.
func (f Floors) Over(o Floors) Floors {
	return Floors{Tag: max(f.Tag, o.Tag), Worker: max(f.Worker, o.Worker), Section: max(f.Section, o.Section)}
}

// Member is a store of the member list.
type Member struct {
	UUID    string
	Name    string
	Addr    string `json:",omitempty"` // gRPC, host:port; empty in the first list, which Bind made
	Learner bool   `json:",omitempty"` // being filled: it does not vote
	// Zone is the last known failure zone of the store, or empty. Two lists that differ only in zones are
	// equal. The zone tells operators where a store is that does not answer.
	Zone string `json:",omitempty"`
}

// Verdict is a store's answer on one register.
type Verdict uint8

// The verdicts; the text of Verdict.String is what logs and tools show.
const (
	VerdictNone      Verdict = iota
	VerdictOK                // done and durable (a Read: a Prepare would pass)
	VerdictNack              // a higher epoch was promised
	VerdictHeld              // another session holds a lease or reservation, for Remaining
	VerdictGrace             // after its restart the store lets only the recorded owner in, for Remaining
	VerdictUnknown           // no such register
	VerdictRefused           // the write breaks a rule of the register
	VerdictFull              // disk nearly full
	VerdictElsewhere         // the copy of an exact section stands where the records cannot follow
)

// String is the verdict in one word.
func (v Verdict) String() string {
	names := [...]string{"none", "ok", "nack", "held", "grace", "unknown register", "refused", "full", "elsewhere"}
	if int(v) < len(names) {
		return names[v]
	}
	return "invalid"
}

// Result is the state of a register after a request, and the verdict on the request.
type Result struct {
	Register  seq.Register // only in replies to a Read by prefix
	Verdict   Verdict
	Promised  seq.Epoch
	Accepted  seq.Epoch
	Max       uint64        // Floor <= Max
	Floor     uint64        // of the register's kind in the store's era; also if there is no such register
	Payload   []byte        // of documents, and of a Read with Copies
	Index     uint64        // of a Read with Copies: of the last record, whose epoch is Accepted
	Time      int64         // of a Read with Copies: the store's clock, milliseconds since 1970
	Holder    seq.Session   // with a valid lease, 0 for none
	Remaining time.Duration // of that lease, reservation or grace
	Message   string
	Seal      uint64 // of a promise: LeaseItem.Seal of the release, while nothing was accepted since; zero if there is none
}

// ReadRequest looks at registers without writing. Verdicts say what a Prepare by
// Session would meet.
type ReadRequest struct {
	Ref       Ref
	Session   seq.Session
	Registers []seq.Register
	Prefix    string // instead of Registers: all whose name starts so
	// Copies asks for the whole copies of Registers, which are sections of exact spaces, as
	// payloads.
	Copies bool
	// Preempt asks for the verdicts of a Prepare with Preempt.
	Preempt bool
}

// PrepareItem asks for the promise of {Round, the request's session}.
type PrepareItem struct {
	Register seq.Register
	Round    uint64
	Create   bool // make an on-demand register that does not exist
}

// PrepareRequest is one batch, one commit.
type PrepareRequest struct {
	Ref     Ref
	Session seq.Session
	Secret  seq.Secret // of Session
	Items   []PrepareItem
	// Preempt asks for the promises over living leases and the grace. Items must be sections of strict
	// and exact spaces, because no answer there rests on a lease. A store refuses all other registers.
	Preempt bool
}

// StepItem asks to accept Max, and of a document Payload, under {Round, session}.
type StepItem struct {
	Register seq.Register
	Round    uint64
	Max      uint64
	Payload  []byte
	Log      []byte // of a section of an exact space: an exact.Change, with Max 0
}

// StepRequest is one batch, one commit.
type StepRequest struct {
	Ref     Ref
	Session seq.Session
	Secret  seq.Secret // of Session
	Items   []StepItem
}

// Reply has one result an item of the request, in order.
type Reply struct {
	UUID    string
	Results []Result
	Claim   Claim // after a Prepare or Step: it covers what the reply says is durable
}

// LeaseItem is a register under one of the session's epochs.
type LeaseItem struct {
	Register seq.Register
	Round    uint64
	// Seal, in a ReleaseRequest, is a digest of what the owner hands to its successor, so
	// that no other process can hand it something over; 0 for nothing.
	Seal uint64
}

// RenewRequest extends a session's lease of everything attached at the store. Drop is
// done before Attach, and a Drop under another round than the attached one does nothing
// to it. A lease is never shortened by a request that arrives late.
type RenewRequest struct {
	Ref      Ref
	Session  seq.Session
	Secret   seq.Secret // of Session
	Name     string
	Addr     string
	Lease    time.Duration
	Attach   []LeaseItem
	Drop     []LeaseItem
	Attached uint64 // registers that the session believes attached here after this request
	// Number counts the renewals of the session, over all stores. One that arrives after a
	// later one says what the session believed before it: a store refuses it. 0 is never late.
	Number uint64
	// Seen is what this session and, if they were asked after Nonce came, the fellow
	// stores remember of this store; one with less has an old disk.
	Seen    []Claim
	Nonce   uint64  // of the last RenewReply of this start that had one
	Fellows []Claim // what the session has seen of the other stores, for this one to remember
}

// SessionInfo is one live session at a store.
type SessionInfo struct {
	Session   seq.Session
	Name      string
	Addr      string
	Remaining time.Duration
	Attached  uint32
	Protocol  int // that the session spoke last; zero if unknown
}

// RenewReply grants Lease from the moment the request was received.
type RenewReply struct {
	UUID         string
	BootCount    uint64
	Reset        bool        // count on nothing attached before this request: attach all again
	Lost         []LeaseItem // no longer this session's; sent again until dropped
	Refused      []LeaseItem // of Attach: the epoch is not the promised one
	Sessions     []SessionInfo
	RouteVersion uint64 // max of the routes document at this store
	Commits      uint64 // transactions over the whole life of the disk
	Seal         [16]byte
	Start        uint64 // random, chosen by the store's process at its start; zero if unknown
	StartSeal    [16]byte
	Remembered   []Claim // one for each fellow store, also if it remembers nothing of it
	// Nonce, if not 0, says that nothing was granted: the store has restarted, and its disk
	// is still to be compared with what its fellow stores remember.
	Nonce uint64
	// Full says that the store has no memory for more UIDs and ids of exact spaces.
	Full bool
	// UIDs and ids of exact spaces may still take Left bytes at the store, and Limit bytes in all. If Limit is zero, only Full is known.
	Left, Limit uint64
	// Time is the clock of the store, milliseconds since 1970. Zero means that it is not known.
	Time int64
}

// Claim returns what the store says of its own disk.
func (r RenewReply) Claim() Claim {
	return Claim{Store: r.UUID, Boot: r.BootCount, Commits: r.Commits, Seal: r.Seal, Start: r.Start, StartSeal: r.StartSeal}
}

// ReleaseRequest drops leases of the session.
type ReleaseRequest struct {
	Ref     Ref
	Session seq.Session
	Secret  seq.Secret // of Session
	Items   []LeaseItem
	All     bool        // the session has ended: drop everything, grant it nothing more
	To      seq.Session // reserves the items for this session, for ReserveTime; zero if there is no successor
}

// ReserveTime is the time that a store keeps a released register for its successor.
const ReserveTime = 500 * time.Millisecond

// Store is one replica. All but Read speak for a session and carry its secret:
// seq.ErrNotSession otherwise. Prepare and Step are durable (fsynced) before they answer;
// an error means that the outcome is unknown, and the same request may be repeated
// under the same epoch. Renew and Release touch memory only. All methods are safe
// for concurrent use and end with ctx.
type Store interface {
	Read(ctx context.Context, req ReadRequest) (Reply, error)
	Prepare(ctx context.Context, req PrepareRequest) (Reply, error)
	Step(ctx context.Context, req StepRequest) (Reply, error)
	Renew(ctx context.Context, req RenewRequest) (RenewReply, error)
	Release(ctx context.Context, req ReleaseRequest) (uuid string, err error)
}
