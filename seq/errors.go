package seq

import (
	"errors"
	"fmt"
)

// Errors that more than one tier returns. internal/wire/rpc carries them over the wire
// both ways, so errors.Is works on the caller's side too. "Retry" says what a
// caller may do; a retried Next can only skip numbers, never repeat them.
var (
	// ErrBadCount: a count of 0 or above MaxCount. Do not retry.
	ErrBadCount = errors.New("bad count")
	// ErrBadBatch: no key, or more than MaxBatch keys, or counts that do not match them. Do not retry.
	ErrBadBatch = errors.New("bad batch")
	// ErrUnknownSpace: the cluster has no such space. Do not retry.
	ErrUnknownSpace = errors.New("unknown space")
	// ErrUnknownTag: no segment tag of that name; an operator adds tags. Do not retry.
	ErrUnknownTag = errors.New("unknown tag")
	// ErrUnknownSection: a section outside of the mapping. Do not retry.
	ErrUnknownSection = errors.New("unknown section")
	// ErrOverflow: the sequence would pass MaxSeq. Do not retry.
	ErrOverflow = errors.New("sequence would pass 2^53-1")
	// ErrNumbersUsedUp: the template of a tag has no digits left in this period. Retry in the
	// next one; more digits may be given at any time.
	ErrNumbersUsedUp = errors.New("numbers of the period used up")
	// ErrJump: a raise would move a section's ceiling by more than its space's largest jump, or by more
	// than 16 such jumps within an hour. The error says from where to where, or when to come again. Force
	// overrides it. Do not retry at once.
	ErrJump = errors.New("raise too far")
	// ErrIDConflict: the request id was used for another count. The error is an *IDConflict with its
	// numbers. Nothing was taken. Do not retry.
	ErrIDConflict = errors.New("request id was used for another count")
	// ErrIDExpired: the request was first sent longer ago than its space keeps ids. It may have
	// got numbers; it gets no others. Do not retry.
	ErrIDExpired = errors.New("request id has expired")
	// ErrOutcomeUnknown: a take of an exact space may have got numbers, or may still get them.
	// Retry with its id.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrChangeUnknown: a change of the catalogues, spaces, stores or Sets may have been made, or may still
	// be made. Look at what is recorded, then repeat the change.
	ErrChangeUnknown = errors.New("outcome of the change unknown: look, then repeat it")
	// ErrMoveOver: a section has been through this move between Sets, or through a later one, so
	// that the step cannot be taken any more. Look at what became of it; do not retry.
	ErrMoveOver = errors.New("the section has been through this move of Sets")
	// ErrIDNotKept: a request id in a space that keeps none. Do not retry.
	ErrIDNotKept = errors.New("request ids are kept by spaces of mode=exact only")
	// ErrSentAhead: the request says that it was first sent later than now, by more than clocks
	// may be apart. Set the caller's clock; do not retry.
	ErrSentAhead = errors.New("first sent too far beyond the clock")
	// ErrRetired: the namespace or tag was retired and hands out nothing; the error says
	// when. An operator can undo it. Do not retry.
	ErrRetired = errors.New("retired")
	// ErrNotOwner: this AllocSvr does not own the section; the error names the node that may. Retry there.
	ErrNotOwner = errors.New("not the owner of the section")
	// ErrNoLease: the owner's lease has ended and could not be renewed. Retry later or at a standby.
	ErrNoLease = errors.New("lease ended")
	// ErrNoQuorum: fewer than W stores answered. Retry later.
	ErrNoQuorum = errors.New("no quorum of stores")
	// ErrOverloaded: a bounded queue is full. Retry later, slower.
	ErrOverloaded = errors.New("overloaded")
	// ErrUIDMemory: the node's memory for counters is used up by UIDs that are in use, so
	// one without a counter gets none. It is also an ErrOverloaded. Retry later.
	ErrUIDMemory = fmt.Errorf("%w: no memory for another uid", ErrOverloaded)
	// ErrExactMemory: the stores or the owner have no memory for another UID or request id of an exact
	// space. The error names the space, what is full, and its bytes. UIDs and ids that are known go on. It
	// is also an ErrOverloaded. Retry later: ids expire.
	ErrExactMemory = fmt.Errorf("%w: no memory for another uid or request id of an exact space", ErrOverloaded)
	// ErrTickets: too many tickets are open, of the key or at the node. It is also an ErrOverloaded. End
	// tickets with Done, and retry.
	ErrTickets = fmt.Errorf("%w: too many open tickets", ErrOverloaded)
	// ErrWatches: too many keys are watched, by the watcher or at the node. It is also an ErrOverloaded. Watch
	// fewer keys, or use several watches.
	ErrWatches = fmt.Errorf("%w: too many watched keys", ErrOverloaded)
	// ErrNoTickets: the space gives no tickets and has no marks. Do not retry.
	ErrNoTickets = errors.New("tickets and marks are of spaces with tickets= only")
	// ErrTicketEnded: the ticket is not open any more, or not of that key and caller. If its time ended it,
	// readers may have passed its numbers. Do not retry.
	ErrTicketEnded = errors.New("ticket is not open")
	// ErrShuttingDown: the process is leaving. Retry elsewhere.
	ErrShuttingDown = errors.New("shutting down")
	// ErrNoRoute: no route table yet, or no live node for the section. Retry later.
	ErrNoRoute = errors.New("no route to an owner")

	// ErrForeignCluster: the peer or database belongs to another cluster. An operator must act.
	ErrForeignCluster = errors.New("foreign cluster")
	// ErrProtocol: the two builds speak protocol versions that do not fit. Upgrade the one
	// that is named; do not retry.
	ErrProtocol = errors.New("protocol versions do not fit")
	// ErrStaleEra: the peer is of another era or member list. An operator must act.
	ErrStaleEra = errors.New("stale era or member list")
	// ErrUnknownRegister: a register that init never made. Missing is never zero.
	ErrUnknownRegister = errors.New("unknown register")
	// ErrStoreFull: the store's disk is nearly full; it refuses writes and keeps leases. Retry later.
	ErrStoreFull = errors.New("store nearly full")
	// ErrNotVoting: the store answers no votes (old or damaged disk, learner). Use the other stores.
	ErrNotVoting = errors.New("store does not vote")

	// ErrUnknownNode: no AllocSvr of that name. Do not retry.
	ErrUnknownNode = errors.New("unknown node")
	// ErrNodeUnfit: the node is dead or drained and cannot be given sections, or its
	// configuration does not fit what is asked of it. Retry at another node.
	ErrNodeUnfit = errors.New("node unfit")
	// ErrNotSession: the request speaks for a session and does not carry its secret, or comes from
	// another node than the session's. Do not retry.
	ErrNotSession = errors.New("not the caller's session")
	// ErrSessionEnded: the session was ended at the stores, in order or by an operator or
	// parent that took its process for dead. The process begins a new one; retry elsewhere.
	ErrSessionEnded = errors.New("session was ended")
	// ErrNameTaken: a live AllocSvr of that name exists.
	ErrNameTaken = errors.New("node name taken")
	// ErrBadLease: a lease outside of what the stores allow.
	ErrBadLease = errors.New("bad lease duration")
	// ErrConflict: a document was changed by another writer. Read it again and retry.
	ErrConflict = errors.New("document changed meanwhile")

	// ErrBadRegister: a register name that is not well-formed.
	ErrBadRegister = errors.New("bad register name")
	// ErrBadMapping: a section mapping that is not sound.
	ErrBadMapping = errors.New("bad mapping")
	// ErrBadTable: a route table that is not sound.
	ErrBadTable = errors.New("bad route table")
	// ErrBadArgument: another argument that is not valid; the text says which.
	ErrBadArgument = errors.New("bad argument")

	// ErrUnknownNamespace: no snowflake namespace of that name or alias. Do not retry.
	ErrUnknownNamespace = errors.New("unknown namespace")
	// ErrWorkersExhausted: every worker id of the namespace and datacenter is held; the
	// error names by whom. Retry at a node that has one, or later.
	ErrWorkersExhausted = errors.New("worker ids exhausted")
	// ErrWorkersKept: after a restore no worker id is given out before all windows from
	// before it have ended; the error says when. Retry then: it goes on by itself.
	ErrWorkersKept = errors.New("worker ids are kept back after a restore")
	// ErrUnsafeChange: a change of a namespace after which ids could be repeated. Do not retry.
	ErrUnsafeChange = errors.New("change could repeat ids")
	// ErrDatacenterTaken: the datacenter id was first used under another name. An operator
	// must act; other nodes may do.
	ErrDatacenterTaken = errors.New("datacenter id belongs to another name")
	// ErrUnknownDatacenter: no AllocSvr ever had a datacenter of that name, or the namespace's
	// layout has no such field. Do not retry.
	ErrUnknownDatacenter = errors.New("unknown datacenter")
	// ErrTickUsedUp: the IDs of the tick are used up, and the namespace's policy is to
	// refuse. It is also an ErrOverloaded. Retry in a later tick.
	ErrTickUsedUp = fmt.Errorf("%w: ids of the tick used up", ErrOverloaded)
	// ErrClockOff: the node's wall clock is too far from the stores'. Retry elsewhere.
	ErrClockOff = errors.New("clock far from the stores'")
	// ErrClockRollback: the node's wall clock moved back and the namespace's policy is
	// not to go on. Retry elsewhere, or once it has caught up.
	ErrClockRollback = errors.New("clock moved back")
	// ErrTimeExhausted: the layout has no time left. Do not retry.
	ErrTimeExhausted = errors.New("time of layout exhausted")
	// ErrBadID: an id that is negative, out of its layout, or not in its alphabet. Do not retry.
	ErrBadID = errors.New("bad id")
	// ErrUnauthenticated: the call does not prove who makes it. It has no certificate with a role and no
	// token, or the token is unknown. Do not retry.
	ErrUnauthenticated = errors.New("not authenticated")
	// ErrForbidden: the principal of the call may not make it. Do not retry.
	ErrForbidden = errors.New("not allowed")
	// ErrQuota: the principal's rate for that space is used up; the error says when to come
	// again. It is also an ErrOverloaded. Nothing was taken; retry then.
	ErrQuota = fmt.Errorf("%w: quota used up", ErrOverloaded)
	// ErrBadLayout: a text that is neither a layout nor a preset's name. Do not retry.
	ErrBadLayout = errors.New("bad layout")
)

// IDConflict is an ErrIDConflict with the numbers that the id has got.
type IDConflict struct {
	First Seq
	Count uint32
	Asked uint32 // 0 where that is not known
}

// Error names the numbers, for callers that read only the text.
func (e *IDConflict) Error() string {
	text := fmt.Sprintf("%v: it has got %d from %d", ErrIDConflict, e.Count, e.First)
	if e.Asked > 0 {
		text += fmt.Sprintf(", and %d are asked for", e.Asked)
	}
	return text
}

// Unwrap returns ErrIDConflict.
func (e *IDConflict) Unwrap() error { return ErrIDConflict }
