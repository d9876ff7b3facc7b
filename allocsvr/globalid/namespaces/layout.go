package namespaces

import (
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Names are what the errors of package snowflake are called on the wire.
type Names []struct{ Local, Wire error }

// Reading are those of a caller that looks at an ID, at its parts or at a layout.
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

// Name adds the wire's sentinel to an error. One that has none, and nil, stay as they are.
func (n Names) Name(err error) error {
	for _, p := range n {
		if errors.Is(err, p.Local) {
			return fmt.Errorf("%w: %w", p.Wire, err)
		}
	}
	return err
}

// ParseLayout reads a preset's name or a layout's text: seq.ErrBadLayout.
func ParseLayout(text string) (snowflake.Layout, error) {
	if l, err := snowflake.Preset(text); err == nil {
		return l, nil
	}
	l, err := snowflake.ParseLayout(text)
	return l, Reading.Name(err)
}

// ParseReadable is ParseLayout for looking at IDs only, also at those of 64 bits.
func ParseReadable(text string) (snowflake.Layout, error) {
	if l, err := snowflake.ReadPreset(text); err == nil {
		return l, nil
	}
	l, err := snowflake.ParseReadable(text)
	return l, Reading.Name(err)
}
