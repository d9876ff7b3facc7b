package sim

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fault is one entry of a schedule. It happens At, or at the first time that Point is
// passed at Host after At: the faults that find most come right after a promise, an ack,
// a hand-over or a seal.
//
// Its text is
//
//	12.5s [commit@s2] kill a1 for 3s
type Fault struct {
	At    time.Duration
	Point string // if empty, the fault comes at once
	Where string // host of the point; "*" for any
	Verb  string
	Host  string
	Peer  string        // cut, part
	For   time.Duration // how long it lasts
	Arg   float64       // rate, share of loss, seconds of a jump, which copy
}

// String is the text that ParseFault reads.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.At.String())
	if f.Point != "" {
		fmt.Fprintf(&b, " [%s@%s]", f.Point, f.Where)
	}
	fmt.Fprintf(&b, " %s %s", f.Verb, cmp.Or(f.Host, "-"))
	if f.Peer != "" {
		b.WriteString(" " + f.Peer)
	}
	if f.Arg != 0 {
		b.WriteString(" by " + strconv.FormatFloat(f.Arg, 'g', -1, 64))
	}
	if f.For != 0 {
		b.WriteString(" for " + f.For.String())
	}
	return b.String()
}

// ParseFault reads the text of one fault.
func ParseFault(line string) (Fault, error) {
	var f Fault
	words := strings.Fields(line)
	bad := func(why string) (Fault, error) { return Fault{}, fmt.Errorf("fault %q: %s", line, why) }
	if len(words) < 3 {
		return bad("expected: time [point@host] verb host ...")
	}
	var err error
	if f.At, err = time.ParseDuration(words[0]); err != nil {
		return bad(err.Error())
	}
	words = words[1:]
	if strings.HasPrefix(words[0], "[") {
		point, where, ok := strings.Cut(strings.Trim(words[0], "[]"), "@")
		if !ok || len(words) < 3 {
			return bad("expected [point@host] verb host")
		}
		f.Point, f.Where, words = point, where, words[1:]
	}
	f.Verb, f.Host = words[0], words[1]
	if verbs[f.Verb] == nil {
		return bad("no such verb")
	}
	if f.Host == "-" {
		f.Host = ""
	}
	for words = words[2:]; len(words) > 0; {
		switch {
		case words[0] == "for" && len(words) > 1:
			if f.For, err = time.ParseDuration(words[1]); err != nil {
				return bad(err.Error())
			}
			words = words[2:]
		case words[0] == "by" && len(words) > 1:
			if f.Arg, err = strconv.ParseFloat(words[1], 64); err != nil {
				return bad(err.Error())
			}
			words = words[2:]
		default:
			f.Peer, words = words[0], words[1:]
		}
	}
	return f, nil
}

// ParseSchedule reads one fault a line; empty lines and those that begin with # are
// passed over.
func ParseSchedule(text string) ([]Fault, error) {
	var out []Fault
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f, err := ParseFault(line)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}
