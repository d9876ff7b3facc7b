package call

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// Errors of this room. package client says what they are to callers.
var (
	ErrUnordered   = errors.New("answer is unordered")
	ErrUnreachable = fmt.Errorf("%w: server did not answer", seq.ErrNoRoute)
	ErrClosed      = route.ErrClosed

	// ErrSplit is an overload that a smaller count may not meet.
	ErrSplit = errors.New("batch refused as a whole")

	// Answers to whether a server has a quorum.
	errNoQuorum = errors.New("no quorum there")
	errSilent   = errors.New("no answer")
)

// lostError is an attempt whose outcome is unknown: the numbers may have been taken.
// The cause stands in the text only: a connection's end often reads as a
// cancellation, which it is not for the caller.
type lostError struct {
	addr  string
	cause error
}

func (e *lostError) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrUnreachable, e.addr, e.cause)
}
func (e *lostError) Unwrap() error { return ErrUnreachable }

// namelessError is an answer that says nothing which this build knows: the server does
// not serve the call, or fails at it. It keeps the status.
type namelessError struct {
	addr   string
	status error
}

func (e *namelessError) Error() string { return fmt.Sprintf("%s: %v", e.addr, e.status) }
func (e *namelessError) Unwrap() error { return e.status }

// ofNode are refusals for a reason of the node that no waiting cures, such as its configuration. The call
// asks another node at once. If every node of a round refuses so, the call ends. A node's other reasons may
// pass: its clock, its lease, its queue, a shortage of worker ids, its shutdown. So the call goes on after
// a pause.
//
// A datacenter that a node does not know may belong to a node that has not made an ID yet.
var ofNode = []error{seq.ErrDatacenterTaken, seq.ErrNodeUnfit, seq.ErrUnknownDatacenter}

// finals are the errors that no retry cures at any server. They include a refusal by the policy of a
// namespace, because that policy replaces a wait. They exclude a foreign cluster and another era: a process
// of another cluster may have got the address, and the owner may be elsewhere.
var finals = []error{
	seq.ErrBadCount, seq.ErrBadBatch, seq.ErrUnknownSpace, seq.ErrUnknownSection, seq.ErrOverflow,
	seq.ErrUnknownRegister, seq.ErrBadRegister,
	seq.ErrBadMapping, seq.ErrBadTable, seq.ErrBadArgument,
	seq.ErrUnknownNamespace, seq.ErrTimeExhausted, seq.ErrTickUsedUp, seq.ErrUnsafeChange,
	seq.ErrConflict, seq.ErrBadID, seq.ErrBadLayout, seq.ErrUnknownTag,
	seq.ErrIDConflict, seq.ErrIDExpired, seq.ErrIDNotKept, seq.ErrSentAhead, seq.ErrNoTickets, seq.ErrTicketEnded,
	seq.ErrJump, seq.ErrNumbersUsedUp, seq.ErrRetired, seq.ErrUnauthenticated, seq.ErrForbidden,
	ErrUnordered, ErrClosed, stream.ErrFull, ErrSplit,
}

// Final says whether the error is returned without a retry.
func Final(err error) bool { return anyOf(err, finals) }

func anyOf(err error, all []error) bool {
	return slices.ContainsFunc(all, func(one error) bool { return errors.Is(err, one) })
}

// timedOut is the end of a call by its context, with the reason why it took so long.
func (t *tries) timedOut(end error) error {
	last := t.last
	if t.quorum != nil {
		last = t.quorum // what came after it were attempts without an answer
	}
	if last == nil {
		return end
	}
	return fmt.Errorf("%w: last attempt: %w", end, last)
}

// Told puts what was asked in front of an error, unless a server on the way has done so.
func Told(what string, err error) error {
	if strings.Contains(err.Error(), what+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}
