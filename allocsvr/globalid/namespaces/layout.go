package namespaces

import (
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Names maps errors of package snowflake to errors on the wire.
type Names []struct{ Local, Wire error }

// Reading has the errors for a caller that reads an ID, its parts or a layout.
var Reading = Names{
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

// Name wraps an error with its sentinel for the wire. An error without a sentinel, and nil, stay as they
// are.
func (n Names) Name(err error) error {
	for _, p := range n {
		if errors.Is(err, p.Local) {
			return fmt.Errorf("%w: %w", p.Wire, err)
		}
	}
	return err
}

// ParseLayout parses a preset's name or a layout's text. It returns seq.ErrBadLayout.
func ParseLayout(text string) (snowflake.Layout, error) {
	if l, err := snowflake.Preset(text); err == nil {
		return l, nil
	}
	l, err := snowflake.ParseLayout(text)
	return l, Reading.Name(err)
}

// ParseReadable is ParseLayout for reading IDs only. It accepts layouts of 64 bits, too.
func ParseReadable(text string) (snowflake.Layout, error) {
	if l, err := snowflake.ReadPreset(text); err == nil {
		return l, nil
	}
	l, err := snowflake.ParseReadable(text)
	return l, Reading.Name(err)
}
