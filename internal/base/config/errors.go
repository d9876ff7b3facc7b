package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The kinds of a refused configuration. Load returns them wrapped in *Error;
// several at once are joined. None is worth a retry: a setting must be edited.
var (
	// ErrFlag is a command line that cannot be parsed: an unknown flag, or one
	// without its value.
	ErrFlag = errors.New("bad command line")
	// ErrFile is a file that cannot be read or is not one flat YAML mapping.
	ErrFile = errors.New("bad config file")
	// ErrUnknownKey is a key in the file that is no flag of this daemon, or one
	// that only the command line and the environment may set.
	ErrUnknownKey = errors.New("unknown key")
	// ErrDuplicateKey is a key that stands in the file twice.
	ErrDuplicateKey = errors.New("duplicate key")
	// ErrValue is a value that its flag does not take.
	ErrValue = errors.New("bad value")
)

// Error is one thing wrong with a configuration.
type Error struct {
	Kind   error  // one of the sentinels of this package; errors.Is finds it
	Source string // "flag --max-batch", "environment SEQ_MAX_BATCH" or "seq.yaml:3"
	Wrong  string // what was found there
	Want   string // what was expected there; may be empty
}

// Error is "source: kind: what is wrong: expected what".
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %v: %s", e.Source, e.Kind, e.Wrong)
	if e.Want != "" {
		text += ": expected " + e.Want
	}
	return text
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }

// flagError translates an error of pflag's parser.
func flagError(err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		flag := value.GetFlag()
		return valueError("flag --"+flag.Name, flag, value.GetValue())
	}
	var required *pflag.ValueRequiredError
	if errors.As(err, &required) && required.GetFlag() != nil {
		flag := required.GetFlag()
		return &Error{Kind: ErrFlag, Source: "flag --" + flag.Name, Wrong: "no value", Want: expected(flag)}
	}
	return &Error{Kind: ErrFlag, Source: "command line", Wrong: err.Error(), Want: "the flags that --help lists"}
}

func valueError(source string, flag *pflag.Flag, value string) error {
	if _, strict := flag.Value.(interface{ strict() }); strict && slices.ContainsFunc(strings.Split(value, ","), func(item string) bool { return Digits(item) != nil }) {
		return &Error{Kind: ErrValue, Source: source, Wrong: fmt.Sprintf("%q", value), Want: expected(flag) + ", without leading zeros: 010 is 8 to some readers"}
	}
	return &Error{Kind: ErrValue, Source: source, Wrong: fmt.Sprintf("%q", value), Want: expected(flag)}
}

// expected says in words what the flag takes.
func expected(flag *pflag.Flag) string {
	kind := flag.Value.Type()
	element, list := strings.CutSuffix(kind, "Slice")
	if element, isArray := strings.CutSuffix(kind, "Array"); isArray {
		return "a list of " + plural(element)
	}
	if list {
		return "a list of " + plural(element)
	}
	switch {
	case kind == "bool":
		return "true or false"
	case kind == "duration":
		return "a duration with its unit, such as 100ms, 3s or 1h"
	case kind == "string":
		return "a string"
	case strings.HasPrefix(kind, "uint"):
		return "a whole number, 0 or more, that fits " + kind
	case strings.HasPrefix(kind, "int"), kind == "count":
		return "a whole number that fits " + strings.ReplaceAll(kind, "count", "int")
	case strings.HasPrefix(kind, "float"):
		return "a number"
	default:
		return "a value of type " + kind
	}
}

func plural(element string) string {
	switch {
	case strings.HasPrefix(element, "uint"), strings.HasPrefix(element, "int"):
		return "whole numbers"
	case strings.HasPrefix(element, "float"):
		return "numbers"
	case element == "duration":
		return "durations with their unit, such as 100ms or 3s"
	default:
		return element + "s"
	}
}
