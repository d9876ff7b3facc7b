package matrix

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
)

//go:embed matrix.txt
var text string

// Kinds of numbers, and the ways to read them, are the rows of the matrix.
var Kinds = []string{"ordinary", "strict", "unique-only", "exact", "key", "exact-key", "tag", "worker", "number", "ticket", "exact-ticket", "watch"}

// Engines that keep the registers.
var Engines = []string{"stores", "etcd"}

// ErrTable reports a line of matrix.txt that says nothing sound.
var ErrTable = errors.New("bad matrix")

// Event is one column: what happens, and a cell for each kind on each engine.
type Event struct {
	Name, Text string
	cells      map[place]*Cell
}

// place is where a cell stands.
type place struct{ kind, engine string }

// Cell says what holds where a kind of number meets an event.
type Cell struct {
	Tests   []string // that show the promise, or try the refusal; a subtest stands behind a slash
	Refused string   // the error that refuses the event; empty if it is not refused
	Never   string   // why the two cannot meet; empty if they can
	always  bool     // holds in every event
}

// At returns the cell of a kind on an engine, nil if there is none.
func (e *Event) At(kind, engine string) *Cell { return e.cells[place{kind, engine}] }

// Load parses the table. A line "event NAME | TEXT" begins an event, "always" what holds for all
// events that say nothing else of a kind. A line "KINDS [@ENGINE]: CELL" fills in cells; of several
// lines that name a kind, the last one holds, and one for all kinds gives way to each other one.
func Load() ([]*Event, error) {
	var events []*Event
	always := &Event{Name: "always", cells: map[place]*Cell{}}
	now, rest := (*Event)(nil), map[place]*Cell{}
	finish := func() {
		if now == nil || now == always {
			return
		}
		for _, kind := range Kinds {
			for _, engine := range Engines {
				p := place{kind, engine}
				for _, from := range []map[place]*Cell{always.cells, rest} {
					if now.cells[p] == nil && from[p] != nil {
						now.cells[p] = from[p]
					}
				}
			}
		}
		events, rest = append(events, now), map[place]*Cell{}
	}
	for n, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "always":
			now = always
		case strings.HasPrefix(line, "event "):
			finish()
			name, what, ok := strings.Cut(strings.TrimPrefix(line, "event "), " | ")
			if !ok {
				return nil, fmt.Errorf("%w: line %d: expected event NAME | TEXT", ErrTable, n+1)
			}
			now = &Event{Name: name, Text: what, cells: map[place]*Cell{}}
		case now == nil:
			return nil, fmt.Errorf("%w: line %d stands before the first event", ErrTable, n+1)
		default:
			if err := fill(now, rest, line); err != nil {
				return nil, fmt.Errorf("%w: line %d: %w", ErrTable, n+1, err)
			}
		}
	}
	finish()
	return events, nil
}

// fill takes in a line of cells.
func fill(e *Event, rest map[place]*Cell, line string) error {
	head, body, ok := strings.Cut(line, ": ")
	if !ok {
		return errors.New("expected KINDS [@ENGINE]: CELL")
	}
	cell, err := cellOf(body)
	if err != nil {
		return err
	}
	kinds, engines := strings.Fields(head), Engines
	if last := kinds[len(kinds)-1]; strings.HasPrefix(last, "@") {
		kinds, engines = kinds[:len(kinds)-1], []string{last[1:]}
	}
	into := e.cells
	cell.always = e.Name == "always"
	if slices.Equal(kinds, []string{"all"}) {
		kinds, into = Kinds, rest
	}
	for _, kind := range kinds {
		for _, engine := range engines {
			if !slices.Contains(Kinds, kind) || !slices.Contains(Engines, engine) {
				return fmt.Errorf("kind %q on %q, expected one of %q on %q", kind, engine, Kinds, Engines)
			}
			into[place{kind, engine}] = cell
		}
	}
	return nil
}

// cellOf reads "never, REASON", "refused ERROR by TESTS" or TESTS.
func cellOf(body string) (*Cell, error) {
	if reason, ok := strings.CutPrefix(body, "never, "); ok {
		return &Cell{Never: reason}, nil
	}
	c := &Cell{}
	if refused, ok := strings.CutPrefix(body, "refused "); ok {
		if c.Refused, body, ok = strings.Cut(refused, " by "); !ok {
			return nil, errors.New("expected refused ERROR by TEST ...")
		}
	}
	c.Tests = strings.Fields(body)
	return c, nil
}

// Table renders the matrix for docs/guarantees.md: an event a line, an engine a column.
func Table(events []*Event) string {
	var b strings.Builder
	b.WriteString("| event | on StoreSvr | on etcd |\n|---|---|---|\n")
	for _, e := range events {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", e.Text, e.on("stores"), e.on("etcd"))
	}
	return b.String()
}

// on says what most kinds do on an engine, and then which kinds do something else. It leaves out rules that
// hold for a kind in all events.
func (e *Event) on(engine string) string {
	kinds := map[string][]string{}
	var order []string
	for _, kind := range Kinds {
		c := e.At(kind, engine)
		if c == nil || c.always {
			continue
		}
		word := c.word()
		if len(kinds[word]) == 0 {
			order = append(order, word)
		}
		kinds[word] = append(kinds[word], kind)
	}
	if len(order) == 0 {
		return ""
	}
	slices.SortStableFunc(order, func(a, b string) int { return len(kinds[b]) - len(kinds[a]) })
	parts := order[:1]
	for _, word := range order[1:] {
		parts = append(parts, strings.Join(kinds[word], ", ")+": "+word)
	}
	return strings.Join(parts, "; ")
}

// word is a cell in short.
func (c *Cell) word() string {
	switch {
	case c.Never != "":
		return "-"
	case c.Refused != "":
		return "refused"
	}
	return "kept"
}
