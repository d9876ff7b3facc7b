package ui

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Color is the ANSI sequence of a cell's colour on a terminal.
type Color string

// The colours, as ANSI sequences. Meaning must never hang on one alone.
const (
	Plain  Color = ""
	Bold   Color = "\x1b[1m"
	Red    Color = "\x1b[31m"
	Green  Color = "\x1b[32m"
	Yellow Color = "\x1b[33m"
)

const reset = "\x1b[0m"

// gap stands between two columns.
const gap = "   "

// Cell is one field of a table with a colour.
type Cell struct {
	Text  string
	Color Color
}

// Table is a table without borders: a header and rows below it, columns as
// wide as their widest field. Build it from one goroutine.
type Table struct {
	header []string
	rows   [][]Cell
	right  []bool // len(right) == len(header); the column holds numbers only
}

// NewTable returns a table with these columns and no rows.
func NewTable(header ...string) *Table {
	t := &Table{header: header, right: make([]bool, len(header))}
	for i := range t.right {
		t.right[i] = true
	}
	return t
}

// Row adds a row and returns the table. A value may be a string, a Cell, a
// bool, a number, a time.Duration (see Duration), a time.Time (RFC 3339 in UTC)
// or anything fmt can print. Whole numbers are grouped as by Int unless their
// type has a String method. A column that holds only numbers and durations is
// aligned to the right; the empty string suits either. Missing values are
// empty; Row panics on more values than columns.
func (t *Table) Row(values ...any) *Table {
	if len(values) > len(t.header) {
		panic(fmt.Sprintf("ui: %d values in a table of %d columns", len(values), len(t.header)))
	}
	row := make([]Cell, len(t.header))
	for i, value := range values {
		cell, numeric := toCell(value)
		row[i] = cell
		if !numeric && cell.Text != "" {
			t.right[i] = false
		}
	}
	t.rows = append(t.rows, row)
	return t
}

func toCell(value any) (cell Cell, numeric bool) {
	switch v := value.(type) {
	case nil:
		return Cell{}, false
	case Cell:
		return Cell{clean(v.Text), v.Color}, false
	case time.Duration:
		return Cell{Text: Duration(v)}, true
	case time.Time:
		return Cell{Text: v.UTC().Format(time.RFC3339)}, false
	case fmt.Stringer, error:
		return Cell{Text: clean(fmt.Sprint(v))}, false
	}
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return Cell{Text: Int(v.Int())}, true
	case v.CanUint():
		return Cell{Text: Uint(v.Uint())}, true
	case v.CanFloat():
		return Cell{Text: fmt.Sprintf("%.4g", v.Float())}, true
	}
	return Cell{Text: clean(fmt.Sprint(value))}, false
}

// clean makes text from elsewhere harmless on a terminal and in a line.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// Write renders the table to w, with colours if Colored says so. A table
// without rows is its header.
func (t *Table) Write(w io.Writer) error {
	_, err := io.WriteString(w, t.render(Colored(w)))
	return err
}

func (t *Table) render(colored bool) string {
	widths := make([]int, len(t.header))
	head := make([]Cell, len(t.header))
	for i, title := range t.header {
		head[i] = Cell{clean(strings.ToUpper(title)), Bold}
		widths[i] = utf8.RuneCountInString(head[i].Text)
	}
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	var out strings.Builder
	t.renderRow(&out, head, widths, colored)
	for _, row := range t.rows {
		t.renderRow(&out, row, widths, colored)
	}
	return out.String()
}

// renderRow keeps the end of the line free of spaces.
func (t *Table) renderRow(out *strings.Builder, row []Cell, widths []int, colored bool) {
	pending := 0 // spaces owed before the next text
	for i, cell := range row {
		if i > 0 {
			pending += len(gap)
		}
		fill := widths[i] - utf8.RuneCountInString(cell.Text)
		if t.right[i] {
			pending += fill
			fill = 0
		}
		if cell.Text != "" {
			out.WriteString(strings.Repeat(" ", pending))
			pending = 0
			out.WriteString(paint(cell, colored))
		}
		pending += fill
	}
	out.WriteByte('\n')
}

func paint(cell Cell, colored bool) string {
	if !colored || cell.Color == Plain {
		return cell.Text
	}
	return string(cell.Color) + cell.Text + reset
}
