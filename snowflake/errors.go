package snowflake

import "errors"

// Errors of layouts and their text.
var (
	// ErrLayout: the text or the fields of a layout are not valid.
	ErrLayout = errors.New("layout not valid")
	// ErrPolicy: an overflow or rollback policy is not valid.
	ErrPolicy = errors.New("policy not valid")
	// ErrUnknownPreset: no preset layout has that name.
	ErrUnknownPreset = errors.New("no such preset layout")
	// ErrLayoutChange: a layout in use may not be replaced by this one, since
	// IDs already handed out could be repeated. Returned by Layout.Follows.
	ErrLayoutChange = errors.New("layout change could repeat ids")
)

// Errors of single IDs and their parts.
var (
	// ErrFieldRange: a part does not fit its field, an ID has bits above its
	// layout, or a count is out of range.
	ErrFieldRange = errors.New("field out of range")
	// ErrSign: the ID has its sign bit set. No layout makes such IDs.
	ErrSign = errors.New("sign bit set")
	// ErrTimeExhausted: the time lies behind the last tick of the layout. For
	// this layout the condition never ends.
	ErrTimeExhausted = errors.New("time of layout exhausted")
	// ErrBeforeEpoch: the time lies before the layout's epoch.
	ErrBeforeEpoch = errors.New("time before epoch of layout")
)

// Errors of generators. After each of them nothing was handed out beyond what
// the call says it returned, and repeating the call is safe.
var (
	// ErrNoWindow: the tick wanted is above the confirmed ceiling. Worth
	// repeating after Extend.
	ErrNoWindow = errors.New("no confirmed window")
	// ErrOverflow: the sequences of this tick are used up and the policy is to
	// refuse. Worth repeating in the next tick.
	ErrOverflow = errors.New("sequence of tick used up")
	// ErrClockRollback: the clock stands before a time already used and the
	// policy is to refuse, or to wait for less than that. Worth repeating once
	// the clock has caught up.
	ErrClockRollback = errors.New("clock moved back")
	// ErrSealed: Seal was called. For this generator the condition never ends.
	ErrSealed = errors.New("generator sealed")
	// ErrWaitEnded: the caller's context ended while the generator waited for a
	// tick. It wraps the context's error too. Worth repeating.
	ErrWaitEnded = errors.New("wait for tick ended early")
)

// Errors of text forms, returned by Encoding.Parse.
var (
	// ErrTextLength: the text is empty or longer than any ID in that form.
	ErrTextLength = errors.New("text of wrong length")
	// ErrTextAlphabet: the text has a character that is not a digit of the form.
	ErrTextAlphabet = errors.New("character not in alphabet")
	// ErrTextCanonical: the text has leading zero digits, so that it is a second
	// spelling of an ID.
	ErrTextCanonical = errors.New("text with leading zeros")
	// ErrTextOverflow: the number is above 2^63-1, or above 2^64-1 in a layout of 64 bits.
	ErrTextOverflow = errors.New("number above 63 bits")
	// ErrEncoding: no text form has that name or number.
	ErrEncoding = errors.New("no such text form")
)
