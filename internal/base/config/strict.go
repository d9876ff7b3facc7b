package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// ErrLeadingZero is a number such as 010, which is 8 to one reader and 10 to another.
var ErrLeadingZero = errors.New("leading zero, expected digits without one")

// Digits returns ErrLeadingZero for a whole number that begins with a zero and has more
// digits. It says nothing of texts that are no number.
func Digits(text string) error {
	digits := strings.TrimLeft(strings.TrimSpace(text), "+-")
	if len(digits) > 1 && digits[0] == '0' && strings.Trim(digits, "0123456789_") == "" {
		return ErrLeadingZero
	}
	return nil
}

// Strict has the flags that are whole numbers, or lists of them, refuse what Digits refuses.
func Strict(fs *pflag.FlagSet) {
	fs.VisitAll(func(flag *pflag.Flag) {
		kind := strings.TrimPrefix(flag.Value.Type(), "u")
		if _, done := flag.Value.(interface{ strict() }); done || !strings.HasPrefix(kind, "int") {
			return
		}
		if list, isList := flag.Value.(pflag.SliceValue); isList {
			flag.Value = plainList{plain{flag.Value}, list}
		} else {
			flag.Value = plain{flag.Value}
		}
	})
}

// plain is a whole number without leading zeros.
type plain struct{ pflag.Value }

func (plain) strict() {}

// Set implements pflag.Value.
func (p plain) Set(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		if err := Digits(item); err != nil {
			return err
		}
	}
	return p.Value.Set(text)
}

// plainList is a list of such numbers.
type plainList struct {
	plain
	pflag.SliceValue
}

// Replace implements pflag.SliceValue.
func (p plainList) Replace(items []string) error {
	for _, item := range items {
		if err := Digits(item); err != nil {
			return err
		}
	}
	return p.SliceValue.Replace(items)
}

// DigitsInYAML returns the line of the first value of one of the keys that Digits refuses,
// and its text; 0 if there is none.
func DigitsInYAML(node *yaml.Node, keys ...string) (line int, text string) {
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && slices.Contains(keys, node.Content[i-1].Value) && Digits(child.Value) != nil {
			return child.Line, child.Value
		}
		if line, text = DigitsInYAML(child, keys...); line > 0 {
			return line, text
		}
	}
	return 0, ""
}
