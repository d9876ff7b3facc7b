package ctl

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
)

// A screen has 24 lines. The status of 3 stores, 3 AllocSvr and 2 routers fits, whatever is wrong with
// them. Larger clusters have more rows, and no wider ones.
const (
	screenColumns = 100
	maxShown      = 6 // problems and notes; -o json has all
)

// The widest cells of the tables; with their gaps they make a screen's width.
const (
	nameCells  = 14
	addrCells  = 28
	stateCells = 12
	zoneCells  = 8
)

// columns returns the heads of a table of status; with zones there is one more, and less room for
// addresses.
func columns(zoned bool, heads ...string) (t *ui.Table, addr int, row func(zone string, cells ...any)) {
	if !zoned {
		t = ui.NewTable(heads...)
		return t, addrCells, func(_ string, cells ...any) { t.Row(cells...) }
	}
	t = ui.NewTable(append(heads, "zone")...)
	return t, addrCells - zoneCells - len("   "), func(zone string, cells ...any) { t.Row(append(cells, cut(zone, zoneCells))...) }
}

// zoned reports whether zones are named in a cluster.
func zoned(r survey.Status) bool {
	return slices.ContainsFunc(r.Allocs, func(a survey.Alloc) bool { return a.Zone != "" }) ||
		slices.ContainsFunc(r.Stores, func(st survey.Store) bool { return st.Zone != "" }) ||
		slices.ContainsFunc(r.Routers, func(r survey.Router) bool { return r.Zone != "" })
}

// colorOf says the same as the word, for eyes.
func colorOf(h survey.Health) ui.Color {
	switch h {
	case survey.Healthy:
		return ui.Green
	case survey.Degraded:
		return ui.Yellow
	}
	return ui.Red
}

// printStatus writes the status. Lines fit a screen on a terminal, and are whole elsewhere.
func printStatus(w io.Writer, format ui.Format, r survey.Status) error {
	switch {
	case format != ui.FormatTable:
		return ui.Print(w, format, r, nil)
	case ui.IsTerminal(w):
		return writeStatus(w, r, screenColumns)
	}
	return writeStatus(w, r, math.MaxInt)
}

// writeStatus writes the answer in its first line: healthy, or the worst problem and the command to give first.
func writeStatus(w io.Writer, r survey.Status, columns int) error {
	word := strings.ToUpper(string(r.Health))
	shown := word
	if ui.Colored(w) {
		shown = string(colorOf(r.Health)) + word + "\x1b[0m"
	}
	fmt.Fprintln(w, shown+cut(headline(r, columns), columns-len(word)))
	line := func(text string) { fmt.Fprintln(w, cut(text, columns)) }
	has := ""
	if r.Set != "" {
		has = fmt.Sprintf(" (%d here)", r.Here)
	}
	line(fmt.Sprintf("cluster %s, %d sections%s, %d unowned, routes version %d, lease %s, arbiter %s",
		cut(r.ClusterID, 20), r.Sections, has, r.Unowned, r.RouteVersion, ui.Duration(time.Duration(r.LeaseMS*float64(time.Millisecond))), cmp.Or(cut(r.Arbiter, nameCells), "-")))
	if r.Why != "" {
		line("  " + r.Why)
	}
	listed := append(r.Problems[min(1, len(r.Problems)):], r.Notes...)
	for i, text := range listed {
		if i == maxShown-1 && len(listed) > maxShown {
			line(fmt.Sprintf("  - and %d more: seqctl status -o json", len(listed)-i))
			break
		}
		line("  - " + text)
	}
	for _, one := range r.Sets {
		text := fmt.Sprintf("  Set %s: %d sections, %s", one.Name, one.Sections, one.Health)
		if one.Name == r.Set {
			text += ", of which below (-o json has all)"
		}
		if one.Problem != "" {
			text += ": " + one.Problem
		}
		line(text)
	}
	ofSet := slices.DeleteFunc(slices.Clone(r.Stores), func(st survey.Store) bool { return st.Set != r.Set })
	stores := storeTable(ofSet, zoned(r))
	if r.Engine == survey.EngineEtcd {
		stores = EtcdTable(etcdRows(ofSet))
	}
	allocs := slices.DeleteFunc(slices.Clone(r.Allocs), func(a survey.Alloc) bool { return a.Set != r.Set })
	for _, t := range []*ui.Table{allocTable(allocs, zoned(r)), stores} {
		fmt.Fprintln(w)
		if err := t.Write(w); err != nil {
			return err
		}
	}
	routers, reading := routerList(r.Routers), readingList(r.Reading)
	if routers != "" || reading != "" {
		fmt.Fprintln(w)
	}
	if routers != "" {
		line("routers: " + routers)
	}
	if reading != "" {
		line("reading: " + reading)
	}
	return nil
}

// headline goes on behind the first word. The command is never cut: the problem is.
func headline(r survey.Status, columns int) string {
	if len(r.Problems) == 0 {
		return ""
	}
	room := columns - utf8.RuneCountInString(string(r.Health)+": "+" | first: "+r.First)
	return ": " + cut(r.Problems[0], max(room, 20)) + " | first: " + r.First
}

func allocTable(allocs []survey.Alloc, zoned bool) *ui.Table {
	t, addr, row := columns(zoned, "alloc", "addr", "state", "sections", "uids", "numbers", "takeovers")
	for _, a := range allocs {
		state := State(a.State, a.State != "not ready" && a.State != "no answer")
		if a.State == "draining" || a.State == "drained" {
			state = Pending(a.State)
		}
		row(a.Zone, cut(a.Name, nameCells), cut(a.Addr, addr), state, short(uint64(a.Sections)), short(a.Counters), short(a.Numbers), short(a.Takeovers))
	}
	return t
}

func storeTable(stores []survey.Store, zoned bool) *ui.Table {
	t, addr, row := columns(zoned, "store", "addr", "state", "commits", "grace left", "disk free")
	for _, st := range stores {
		state := State(cut(st.State, stateCells), st.State == "voting")
		if st.NearlyFull && st.State == "voting" {
			state = State("nearly full", false)
		}
		free := ""
		if st.DiskFree > 0 {
			free = survey.Size(st.DiskFree)
		}
		row(st.Zone, cmp.Or(cut(st.Name, nameCells), "-"), cut(st.Addr, addr), state, short(st.Commits), Left(st.GraceMS), free)
	}
	return t
}

func routerList(routers []survey.Router) string {
	all := make([]string, len(routers))
	for i, r := range routers {
		all[i] = cut(r.Name, nameCells) + " " + r.State
		if r.Zone != "" {
			all[i] += " (" + cut(r.Zone, zoneCells) + ")"
		}
	}
	return strings.Join(all, ", ")
}

// readingList tells what the spaces have for readers, the one with the most tickets first. If it is empty, no
// space has anything.
func readingList(spaces []survey.Reading) string {
	spaces = slices.DeleteFunc(slices.Clone(spaces), func(r survey.Reading) bool { return r.Tickets == 0 && r.Expired == 0 && r.Keys == 0 })
	slices.SortStableFunc(spaces, func(a, b survey.Reading) int { return cmp.Compare(b.Tickets, a.Tickets) })
	all := make([]string, len(spaces))
	for i, r := range spaces {
		all[i] = cut(r.Space, nameCells) + " " + short(r.Tickets) + " tickets"
		if r.Tickets > 0 {
			all[i] += ", oldest " + ui.Duration(time.Duration(r.OldestMS)*time.Millisecond)
		}
		all[i] += fmt.Sprintf(", %.3g/s expire, %s keys watched", r.Expired, short(r.Keys))
	}
	return strings.Join(all, "; ")
}

// cut returns the text, or as much of it as fits, with a mark where it was cut.
func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:max(columns-1, 0)]) + "…"
}

// short is a count in at most seven columns.
func short(n uint64) string {
	if n < 1_000_000 {
		return ui.Uint(n)
	}
	v, unit := float64(n)/1e6, 0
	for units := "MGTPE"; v >= 1000 && unit < len(units)-1; unit++ {
		v /= 1000
	}
	return fmt.Sprintf("%.2f%c", v, "MGTPE"[unit])
}
