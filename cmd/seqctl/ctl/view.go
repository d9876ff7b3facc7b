package ctl

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// Verdict is the head of a status: whether all is well, and else what to do.
type Verdict struct {
	Healthy  bool     `json:"healthy"`
	Problems []string `json:"problems"` // each with what to do
	Notes    []string `json:"notes"`    // what passes by itself
}

// Print prints the verdict in one word, its subject, the problems and the notes.
func (v Verdict) Print(w io.Writer, about string, args ...any) {
	word := "HEALTHY"
	if !v.Healthy {
		word = "NOT HEALTHY"
	}
	fmt.Fprintf(w, word+"   "+about+"\n", args...)
	for _, p := range v.Problems {
		fmt.Fprintf(w, "  - %s\n", p)
	}
	for _, n := range v.Notes {
		fmt.Fprintf(w, "  %s\n", n)
	}
	fmt.Fprintln(w)
}

// State returns a cell for the state of a thing: green if good, else red.
func State(text string, good bool) ui.Cell {
	if good {
		return ui.Cell{Text: text, Color: ui.Green}
	}
	return ui.Cell{Text: text, Color: ui.Red}
}

// Pending returns a cell for a state that passes or that an operator wanted.
func Pending(text string) ui.Cell { return ui.Cell{Text: text, Color: ui.Yellow} }

// Bad returns a cell for a number that should be zero.
func Bad(n uint64) ui.Cell { return State(ui.Uint(n), n == 0) }

// Digits returns a whole number without groups, as another verb takes it.
func Digits[T ~uint32 | ~uint64](n T) string { return strconv.FormatUint(uint64(n), 10) }

// Left returns a cell for the milliseconds that are left of something, empty if none are.
func Left[T ~int64 | ~uint64](ms T) any {
	if ms <= 0 {
		return ""
	}
	return time.Duration(ms) * time.Millisecond
}

// EtcdRow is one member of etcd in a table.
type EtcdRow struct {
	Name, Addr, Version string
	State               ui.Cell
	Silent              bool // it tells nothing but its state
	Revision            any
	Size, InUse, Quota  uint64 // bytes; zero means the member does not tell its quota
}

// EtcdTable shows members of etcd.
func EtcdTable(members []EtcdRow) *ui.Table {
	t := ui.NewTable("etcd", "addr", "state", "version", "revision", "database", "in use", "quota")
	for _, m := range members {
		quota := "not told"
		if m.Quota > 0 {
			quota = survey.Size(m.Quota)
		}
		if m.Silent {
			t.Row(m.Name, m.Addr, m.State)
			continue
		}
		t.Row(m.Name, m.Addr, m.State, m.Version, m.Revision, survey.Size(m.Size), survey.Size(m.InUse), quota)
	}
	return t
}

// etcdRows returns the members that stand in a status in place of stores.
func etcdRows(stores []survey.Store) (rows []EtcdRow) {
	for _, st := range stores {
		m, row := st.Etcd, EtcdRow{Name: cut(st.Name, nameCells), Addr: cut(st.Addr, addrCells)}
		if row.Silent = m == nil || st.State == "unreachable"; !row.Silent {
			row.Version, row.Revision, row.Size, row.InUse, row.Quota = m.Version, short(st.Commits), m.Size, m.InUse, m.Quota
		}
		switch {
		case row.Silent:
			row.State = State(cut(st.State, stateCells), false)
		case len(m.Alarms) > 0:
			row.State = State(cut(strings.Join(m.Alarms, ","), stateCells), false)
		case m.Restored != "":
			row.State = State("put back", false)
		case st.State != "voting":
			row.State = State(cut(st.State, stateCells), false)
		case st.NearlyFull:
			row.State = State("nearly full", false)
		case m.Leader:
			row.State = State("leads", true)
		default:
			row.State = State("follows", true)
		}
		rows = append(rows, row)
	}
	return rows
}
