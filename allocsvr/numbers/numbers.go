// Package numbers formats business numbers. A template such as INV-{date:20060102}-{seq:6} may count from 1
// again each day, month or year of a time zone.
//
// It guarantees that two different pairs of a period and a count have different texts, within a century for
// years of two digits. A template that starts again each day must contain the day, and every part of a text
// has a fixed width. The guarantee holds over all changes that Follows allows, whatever zone or clock chose
// the period.
//
// What belongs here: templates, periods, which template may follow which. What does not: counting, which
// package segment does, under a register for each period.
package numbers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // machines without zones have these

	"github.com/seqsvr/seqsvr/seq"
)

// The periods after which a count starts again.
const (
	Never   = "never"
	Daily   = "daily"
	Monthly = "monthly"
	Yearly  = "yearly"
)

// Bounds of a template.
const (
	MaxTemplate = 128 // bytes
	maxDigits   = 15  // of the count: 10^15-1 < 2^53
)

// Format is a template with what goes with it, as it is recorded. The zero one makes no
// numbers.
type Format struct {
	Template string `json:"template"`
	Reset    string `json:"reset"` // never, daily, monthly or yearly
	Zone     string `json:"zone"`  // of the IANA database: UTC, Europe/Berlin
}

// Over applies f to an existing format. An empty field of f keeps the old value, or gets its default.
func (f Format) Over(old Format) Format {
	for _, part := range []struct {
		now       *string
		was, none string
	}{{&f.Template, old.Template, ""}, {&f.Reset, old.Reset, Never}, {&f.Zone, old.Zone, "UTC"}} {
		if *part.now == "" {
			*part.now = part.was
		}
		if *part.now == "" && f.Template != "" {
			*part.now = part.none
		}
	}
	return f
}

// part is one of a text: a literal, an element of the date, or the count.
type part struct {
	literal, date string
	digits        int
}

// Template is a Format that was checked. Safe for concurrent use.
type Template struct {
	parts []part
	reset string
	zone  *time.Location
	last  uint64
}

// Parse checks a format. seq.ErrBadArgument.
func (f Format) Parse() (*Template, error) {
	t := &Template{reset: f.Reset}
	err := t.parse(f.Template)
	if err == nil && !slices.Contains([]string{Never, Daily, Monthly, Yearly}, f.Reset) {
		err = fmt.Errorf("reset %q, expected never, daily, monthly or yearly", f.Reset)
	}
	if err == nil {
		err = t.saysItsPeriod()
	}
	if err == nil {
		if f.Zone == "" || f.Zone == "Local" { // which would be each machine's own
			err = fmt.Errorf("zone %q, expected a name as UTC or Europe/Berlin", f.Zone)
		} else if t.zone, err = time.LoadLocation(f.Zone); err != nil {
			err = fmt.Errorf("zone %q: %w", f.Zone, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: template %.*q: %w", seq.ErrBadArgument, MaxTemplate, f.Template, err)
	}
	return t, nil
}

func (t *Template) parse(text string) error {
	if text == "" || len(text) > MaxTemplate {
		return fmt.Errorf("%d bytes, expected 1 to %d", len(text), MaxTemplate)
	}
	for text != "" {
		literal, rest, open := strings.Cut(text, "{")
		if i := strings.IndexFunc(literal, func(r rune) bool { return r < ' ' || r > '~' || r == '}' }); i >= 0 {
			return fmt.Errorf("%q outside of braces, expected printable ASCII", literal[i:])
		}
		t.add(part{literal: literal})
		if !open {
			break
		}
		field, after, closed := strings.Cut(rest, "}")
		if !closed {
			return fmt.Errorf("{%s has no }", rest)
		}
		if err := t.field(field); err != nil {
			return err
		}
		text = after
	}
	if t.last == 0 {
		return fmt.Errorf("no {seq:DIGITS}, expected one")
	}
	return nil
}

func (t *Template) add(p part) {
	if p != (part{}) {
		t.parts = append(t.parts, p)
	}
}

func (t *Template) field(text string) error {
	name, value, _ := strings.Cut(text, ":")
	switch name {
	case "seq":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxDigits {
			return fmt.Errorf("{%s}: expected {seq:DIGITS} of 1 to %d digits", text, maxDigits)
		}
		if t.last != 0 {
			return fmt.Errorf("{%s}: a second count, expected one", text)
		}
		t.last = 1
		for range n {
			t.last *= 10
		}
		t.last--
		t.add(part{digits: n})
		return nil
	case "date":
		return t.date(value)
	}
	return fmt.Errorf("{%s}: expected {date:LAYOUT} or {seq:DIGITS}", text)
}

// elements are the allowed parts of dates, in the layout of Go's package time. Each has a fixed width,
// because 2026111 would not tell the month.
var elements = []string{"2006", "002", "01", "02", "06", "15", "04", "05"}

func (t *Template) date(layout string) error {
	if layout == "" {
		return fmt.Errorf("{date:}: no layout, expected one as 20060102")
	}
	for rest := layout; rest != ""; {
		if i := slices.IndexFunc(elements, func(e string) bool { return strings.HasPrefix(rest, e) }); i >= 0 {
			t.add(part{date: elements[i]})
			rest = rest[len(elements[i]):]
			continue
		}
		if !strings.ContainsRune("-_./: T", rune(rest[0])) {
			return fmt.Errorf("{date:%s}: %q, expected 2006 or 06 (year), 01 (month), 02 (day), 002 (day of the year), 15 04 05 (time), or - _ . / : T between", layout, rest)
		}
		t.add(part{literal: rest[:1]})
		rest = rest[1:]
	}
	return nil
}

// saysItsPeriod is an error if texts of two periods could be the same.
func (t *Template) saysItsPeriod() error {
	has := func(element ...string) bool {
		return slices.ContainsFunc(t.parts, func(p part) bool { return p.date != "" && slices.Contains(element, p.date) })
	}
	missing := ""
	switch {
	case t.reset == Never:
	case !has("2006", "06"):
		missing = "year (2006)"
	case t.reset != Yearly && !has("01", "002"):
		missing = "month (01)"
	case t.reset == Daily && !has("02", "002"):
		missing = "day (02)"
	}
	if missing != "" {
		return fmt.Errorf("it begins anew %s and does not say the %s in a {date:}: numbers would repeat", t.reset, missing)
	}
	return nil
}

// Last returns the largest count that the template has digits for.
func (t *Template) Last() uint64 { return t.last }

// Period names the period of a moment: 20261123, 202611, 2026 or ever.
func (t *Template) Period(at time.Time) string {
	at = at.In(t.zone)
	switch t.reset {
	case Daily:
		return at.Format("20060102")
	case Monthly:
		return at.Format("200601")
	case Yearly:
		return at.Format("2006")
	}
	return "ever"
}

// Text returns the number of a count, 1 to Last, at a moment.
func (t *Template) Text(at time.Time, count uint64) string {
	at = at.In(t.zone)
	var b []byte
	for _, p := range t.parts {
		switch {
		case p.digits > 0:
			b = fmt.Appendf(b, "%0*d", p.digits, count)
		case p.date != "":
			b = at.AppendFormat(b, p.date)
		default:
			b = append(b, p.literal...)
		}
	}
	return string(b)
}

// Follows tells whether f may replace old, whose numbers are in use: the zone may change, and
// the count may get more digits, so that texts are longer than all before; everything else
// could repeat one. seq.ErrUnsafeChange, seq.ErrBadArgument.
func (f Format) Follows(old Format) error {
	now, err := f.Parse()
	if err != nil {
		return err
	}
	was, err := old.Parse()
	if err != nil {
		return err
	}
	same := now.reset == was.reset && len(now.parts) == len(was.parts)
	for i := 0; same && i < len(now.parts); i++ {
		a, b := now.parts[i], was.parts[i]
		same = a.literal == b.literal && a.date == b.date && (a.digits > 0) == (b.digits > 0) && a.digits >= b.digits
	}
	if !same {
		return fmt.Errorf("%w: template %q, %s, in place of %q, %s: a number could come twice; expected more digits, another zone, or another tag",
			seq.ErrUnsafeChange, f.Template, f.Reset, old.Template, old.Reset)
	}
	return nil
}
