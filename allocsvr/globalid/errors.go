package globalid

import (
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// ErrBadDirectory: the document of namespaces cannot be read: damaged, or written by
// a newer version. Nothing is generated until it can; an operator must act.
var ErrBadDirectory = errors.New("document of namespaces not readable")

// errTaken: a worker id is not to be had after all. It does not leave this package.
var errTaken = errors.New("worker id is in use")

// names are what the errors of package snowflake are called on the wire. An error
// with none keeps its own.
type names []struct{ local, wire error }

// issuing: while IDs are handed out.
var issuing = names{
	{snowflake.ErrTimeExhausted, seq.ErrTimeExhausted},
	{snowflake.ErrClockRollback, seq.ErrClockRollback},
	{snowflake.ErrBeforeEpoch, seq.ErrClockOff},
	{snowflake.ErrOverflow, seq.ErrTickUsedUp},
}

// reading: while somebody's ID, parts or layout are looked at.
var reading = names{
	{snowflake.ErrTimeExhausted, seq.ErrTimeExhausted},
	{snowflake.ErrLayout, seq.ErrBadLayout},
	{snowflake.ErrPolicy, seq.ErrBadLayout},
	{snowflake.ErrUnknownPreset, seq.ErrBadLayout},
	{snowflake.ErrLayoutChange, seq.ErrUnsafeChange},
	{snowflake.ErrEncoding, seq.ErrBadArgument},
	{snowflake.ErrSign, seq.ErrBadID},
	{snowflake.ErrFieldRange, seq.ErrBadID},
	{snowflake.ErrBeforeEpoch, seq.ErrBadID},
	{snowflake.ErrTextLength, seq.ErrBadID},
	{snowflake.ErrTextAlphabet, seq.ErrBadID},
	{snowflake.ErrTextCanonical, seq.ErrBadID},
	{snowflake.ErrTextOverflow, seq.ErrBadID},
}

// name adds the wire's sentinel to an error.
func (n names) name(err error) error {
	for _, p := range n {
		if errors.Is(err, p.local) {
			return fmt.Errorf("%w: %w", p.wire, err)
		}
	}
	return err
}
