package quorum

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// Errors of this package. It also wraps errors of seq (seq.ErrNoQuorum, seq.ErrUnknownRegister,
// seq.ErrStoreFull, seq.ErrConflict) and the errors that the stores return.
var (
	// ErrNack: a store promised a higher epoch. The lower epoch can write nothing more. Continue with a
	// Prepare of a higher round.
	ErrNack = errors.New("higher epoch promised")
	// ErrHeld: another session holds a lease or reservation, or stores are in
	// their grace. Retry after Outcome.Remaining.
	ErrHeld = errors.New("held by another session")
	// ErrElsewhere: the copies of an exact section stand elsewhere. Send a whole copy.
	ErrElsewhere = errors.New("copies stand elsewhere")
	// ErrRefused: the write breaks a rule of the register. Do not retry.
	ErrRefused = errors.New("refused by the stores")
	// ErrUnknownOutcome: a document may or may not have been changed, and what
	// can be read now does not tell. Load it and look before changing it again.
	ErrUnknownOutcome = fmt.Errorf("document: %w", seq.ErrChangeUnknown)
	// ErrBadDocument: the payload of a document register is not a document.
	ErrBadDocument = errors.New("bad document payload")
	// ErrBadReply: a store's reply does not fit to its request. It counts as no reply.
	ErrBadReply = errors.New("bad reply")
	// ErrIdentity: a store answers as another store, or as one that has been
	// counted. It counts as no reply. An operator must look at the addresses.
	ErrIdentity = errors.New("store is not who it should be")
	// ErrBadConfig: a configuration that cannot be safe. Do not retry.
	ErrBadConfig = errors.New("bad quorum configuration")
	// ErrZones: one zone has so many stores that its loss stops all writes. Do not retry: put
	// stores into other zones, or say that any zones will do.
	ErrZones = errors.New("stores are not spread over zones")
	// ErrClosed: the group was closed.
	ErrClosed = errors.New("group closed")
)

// itemError is the error of one item of a batch. Its text is put together only
// when it is read, since a lost quorum makes one for each of thousands.
type itemError struct {
	op       string
	register seq.Register
	reasons  []error // may be shared between the items of a batch
	detail   string
}

func (e *itemError) Error() string {
	var b strings.Builder
	b.WriteString(e.op + " " + e.register.String())
	for i, r := range e.reasons {
		b.WriteString([]string{": ", "; "}[min(i, 1)] + r.Error())
	}
	if e.detail != "" {
		b.WriteString(" (" + e.detail + ")")
	}
	return b.String()
}

func (e *itemError) Unwrap() []error { return e.reasons }
