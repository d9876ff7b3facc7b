package storeadmin

import (
	"errors"
	"fmt"
)

// Errors of this package. It also wraps errors of seq and quorum.
var (
	// ErrAlive: the store to be replaced serves. Stop it first, or give a reason.
	ErrAlive = errors.New("the store is alive and votes")
	// ErrUnderWay: another change is half done. Finish it, or abort it.
	ErrUnderWay = errors.New("another change is under way")
	// ErrNoMember: no member of that name or uuid.
	ErrNoMember = errors.New("no such store in the member list")
	// ErrNotNew: the store to be added has been a member, or belongs elsewhere; its disk
	// must be made by storesvr init --learner.
	ErrNotNew = errors.New("the new store is not new")
	// ErrNothing: there is no change that could be aborted.
	ErrNothing = errors.New("no change is under way")
	// ErrTooFew: the change would leave too few stores.
	ErrTooFew = errors.New("too few stores")
	// ErrAddress: a member's address is not known, because it does not answer.
	ErrAddress = errors.New("address of a store is not known")
)

// addressError says which store a call to did not end well.
type addressError struct {
	addr  string
	cause error
}

func (e *addressError) Error() string { return fmt.Sprintf("the new store at %s: %v", e.addr, e.cause) }
func (e *addressError) Unwrap() error { return e.cause }

// At is the store's address, for messages that name what did not answer.
func (e *addressError) At() string { return e.addr }
