package sim

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Report adds runs up.
type Report struct {
	Runs       int
	Wall       time.Duration // set by whoever measures it
	Virtual    time.Duration
	Requests   int
	Errors     int
	Violations int
	Stats      Stats
}

// Add takes a run in.
func (r *Report) Add(one Result) {
	r.Runs++
	r.Virtual += one.Virtual
	r.Requests += one.Requests
	r.Errors += one.Errors
	r.Violations += len(one.Violations)
	s, o := &r.Stats, one.Stats
	s.Events += o.Events
	s.Messages += o.Messages
	s.Lost += o.Lost
	s.Duplicated += o.Duplicated
	s.Commits += o.Commits
	s.Takeovers += o.Takeovers
	s.Preempted += o.Preempted
	s.Handoffs += o.Handoffs
	s.Steps += o.Steps
	s.Folded += o.Folded
	s.Torn += o.Torn
	s.Numbers += o.Numbers
	s.IDs += o.IDs
	s.Lent += o.Lent
	if s.Faults == nil {
		s.Faults = map[string]int{}
	}
	for verb, n := range o.Faults {
		s.Faults[verb] += n
	}
	if s.Orders == nil {
		s.Orders = map[string]int{}
	}
	for verb, n := range o.Orders {
		s.Orders[verb] += n
	}
}

// String is the report in a few lines.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %.1f virtual hours", r.Runs, r.Virtual.Hours())
	if r.Wall > 0 {
		fmt.Fprintf(&b, " in %v (%.0f virtual hours an hour)", r.Wall.Round(time.Second), r.Virtual.Hours()/r.Wall.Hours())
	}
	faults := 0
	var kinds []string
	for _, verb := range slices.Sorted(maps.Keys(r.Stats.Faults)) {
		faults += r.Stats.Faults[verb]
		kinds = append(kinds, fmt.Sprintf("%s %d", verb, r.Stats.Faults[verb]))
	}
	s := r.Stats
	fmt.Fprintf(&b, "\n%d faults: %s\n", faults, strings.Join(kinds, ", "))
	fmt.Fprintf(&b, "%d messages, %d lost and %d duplicated by bad weather; %d commits, %d steps\n", s.Messages, s.Lost, s.Duplicated, s.Commits, s.Steps)
	fmt.Fprintf(&b, "%d takeovers, %d sections preempted, %d hand-overs; %d calls (%d failed), %d numbers and %d IDs checked, and %d IDs of windows\n",
		s.Takeovers, s.Preempted, s.Handoffs, r.Requests, r.Errors, s.Numbers, s.IDs, s.Lent)
	var done []string
	for _, verb := range slices.Sorted(maps.Keys(s.Orders)) {
		done = append(done, fmt.Sprintf("%s %d", verb, s.Orders[verb]))
	}
	fmt.Fprintf(&b, "operators carried out: %s\n", cmp.Or(strings.Join(done, ", "), "nothing"))
	fmt.Fprintf(&b, "%d violations\n", r.Violations)
	return b.String()
}

// Kept is a seed that once broke something.
type Kept struct {
	Seed   uint64
	Engine Engine
}

// KeptSeeds reads the kept seeds of a file: one a line, after the engine if it is not StoreEngine, with a
// comment after #.
func KeptSeeds(file string) ([]Kept, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []Kept
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		kept := Kept{Engine: StoreEngine}
		for _, e := range []Engine{EtcdEngine, SetsEngine} {
			if seed, is := strings.CutPrefix(text, string(e)+" "); is {
				text, kept.Engine = strings.TrimSpace(seed), e
			}
		}
		if kept.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, kept)
	}
	return out, lines.Err()
}

// String is the seed as KeptSeeds reads it.
func (k Kept) String() string {
	if k.Engine != StoreEngine {
		return fmt.Sprintf("%s %d", k.Engine, k.Seed)
	}
	return strconv.FormatUint(k.Seed, 10)
}
