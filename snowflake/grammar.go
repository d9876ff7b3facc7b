package snowflake

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Times of epochs are accepted with and without seconds.
var epochForms = []string{time.RFC3339, "2006-01-02T15:04Z07:00"}

// ParseLayout reads a layout such as
//
//	time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1288834974657
//
// First the fields with their bits, from the highest bit down, in any order:
// time, worker and sequence are needed, datacenter is optional, machine is
// another word for worker. Then, in any order:
//
//	epoch=     needed: milliseconds since 1970, or a time of RFC 3339
//	unit=      length of a tick, whole milliseconds, default 1ms
//	js53       at most 53 bits, so that JavaScript numbers hold every ID
//	overflow=  wait (default), refuse or borrow
//	rollback=  refuse (default), borrow or wait:<duration>
//
// It returns ErrLayout or ErrPolicy. Spaces around words are ignored.
func ParseLayout(text string) (Layout, error) { return parseUpTo(text, maxBits) }

// ParseReadable reads what ParseLayout does, and layouts of 64 bits, which are ReadOnly.
func ParseReadable(text string) (Layout, error) { return parseUpTo(text, maxBitsReadable) }

func parseUpTo(text string, most int) (Layout, error) {
	l, err := parseLayout(text, most)
	if err != nil {
		return Layout{}, fmt.Errorf("parse layout %q: %w", text, err)
	}
	return l, nil
}

func parseLayout(text string, most int) (Layout, error) {
	fields, options, _ := strings.Cut(text, ";")
	l := Layout{unit: 1}
	if err := l.parseFields(fields); err != nil {
		return Layout{}, err
	}
	seen := map[string]bool{}
	for options != "" {
		var option string
		option, options, _ = strings.Cut(options, ";")
		key, value, hasValue := strings.Cut(option, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if seen[key] {
			return Layout{}, fmt.Errorf("%w: %q twice", ErrLayout, key)
		}
		seen[key] = true
		if hasValue == (key == "js53") {
			return Layout{}, fmt.Errorf("%w: option %q", ErrLayout, option)
		}
		if err := l.parseOption(key, value); err != nil {
			return Layout{}, err
		}
	}
	if !seen["epoch"] {
		return Layout{}, fmt.Errorf("%w: epoch missing", ErrLayout)
	}
	return l, l.finish(most)
}

func (l *Layout) parseFields(text string) error {
	for i, field := range strings.Split(text, ",") {
		name, bits, _ := strings.Cut(field, ":")
		name = strings.TrimSpace(name)
		if name == "machine" {
			name = "worker"
		}
		k := fieldKind(slices.Index(kindNames[kindTime:], name) + int(kindTime))
		if k == kindNone {
			return fmt.Errorf("%w: field %q", ErrLayout, field)
		}
		if l.width[k] != 0 {
			return fmt.Errorf("%w: field %s twice", ErrLayout, name)
		}
		bits = strings.TrimSpace(bits)
		n, err := strconv.ParseUint(bits, 10, 8)
		if err != nil || bits[0] == '0' || n < 1 || n > maxBits {
			return fmt.Errorf("%w: field %q wants 1 to %d bits, without leading zeros", ErrLayout, field, maxBits)
		}
		l.order[i], l.width[k] = k, uint8(n)
	}
	return nil
}

func (l *Layout) parseOption(key, value string) (err error) {
	switch key {
	case "js53":
		l.js53 = true
	case "unit":
		d, err := time.ParseDuration(value)
		if err != nil || d < time.Millisecond || d%time.Millisecond != 0 {
			return fmt.Errorf("%w: unit %q wants whole milliseconds, at least 1ms", ErrLayout, value)
		}
		l.unit = d.Milliseconds()
	case "epoch":
		l.epoch, err = parseEpoch(value)
	case "overflow":
		l.policy.Overflow, err = ParseOverflow(value)
	case "rollback":
		l.policy.Rollback, l.policy.RollbackWait, err = ParseRollback(value)
	default:
		return fmt.Errorf("%w: option %q", ErrLayout, key)
	}
	return err
}

func parseEpoch(value string) (int64, error) {
	if ms, err := strconv.ParseInt(value, 10, 64); err == nil && value == strconv.FormatInt(ms, 10) {
		return ms, nil
	}
	for _, form := range epochForms {
		t, err := time.Parse(form, value)
		if err == nil && t.Nanosecond()%int(time.Millisecond) == 0 {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("%w: epoch %q wants milliseconds since 1970 or a time of RFC 3339 in whole milliseconds", ErrLayout, value)
}

// String returns the canonical text: ParseLayout gives the same layout back, and
// equal layouts have equal texts. Default policies are left out. The zero Layout
// gives "".
func (l Layout) String() string {
	if !l.valid() {
		return ""
	}
	var b strings.Builder
	for i, k := range l.order {
		if k == kindNone {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%d", kindNames[k], l.width[k])
	}
	fmt.Fprintf(&b, ";unit=%s;epoch=%d", l.Unit(), l.epoch)
	if l.js53 {
		b.WriteString(";js53")
	}
	if l.policy.Overflow != OverflowWait {
		fmt.Fprintf(&b, ";overflow=%s", l.policy.Overflow)
	}
	if l.policy.Rollback != RollbackRefuse {
		fmt.Fprintf(&b, ";rollback=%s", l.policy.rollbackText())
	}
	return b.String()
}

// MarshalText returns the canonical text, for JSON and YAML. The zero Layout is
// refused with ErrLayout.
func (l Layout) MarshalText() ([]byte, error) {
	if !l.valid() {
		return nil, fmt.Errorf("marshal layout: %w: zero layout", ErrLayout)
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads what ParseLayout reads.
func (l *Layout) UnmarshalText(text []byte) error {
	parsed, err := ParseLayout(string(text))
	if err != nil {
		return err
	}
	*l = parsed
	return nil
}
