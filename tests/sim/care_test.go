package sim

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/backup"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// TestOperatorsBreakNoPromise is a short look at runs in which stores are replaced, added
// and removed, backed up and restored.
func TestOperatorsBreakNoPromise(t *testing.T) {
	runs := 3
	if testing.Short() {
		runs = 1
	}
	var total Report
	for seed := range uint64(runs) {
		o := OptionsOf(seed + 1)
		o.Care, o.Length = true, 150*time.Second
		r := simulate(t, o)
		report(t, r)
		total.Add(r)
	}
	t.Logf("%v", total)
	if total.Stats.Numbers == 0 || len(total.Stats.Orders) == 0 {
		t.Errorf("a run in which nothing happens proves nothing: %v", total)
	}
}

func TestOperatorsAreDrawnInAShareOfTheRuns(t *testing.T) {
	with := 0
	for seed := range uint64(400) {
		if OptionsOf(seed).Care {
			with++
		}
	}
	if with < 60 || with > 140 {
		t.Errorf("%d of 400 runs have operators, want about one in four", with)
	}
}

// lists are what a store has: s1, s2 and s3 at first.
func listOf(version uint64, w int, names ...string) disk.Members {
	m := disk.Members{Version: version, R: w, W: w}
	for _, name := range names {
		uuid := map[string]string{"s1": "uuid-1", "s2": "uuid-2", "s3": "uuid-3"}[name]
		if uuid == "" {
			uuid = "uuid-" + name
		}
		m.List = append(m.List, quorum.Member{Name: name, UUID: uuid})
	}
	return m
}

func TestForgedStoreOperationsAreJudged(t *testing.T) {
	reg := seq.SectionRegister(0)
	id := disk.Identity{Era: 1}
	made := func(section uint64) backup.Content {
		return backup.Content{Identity: disk.Identity{Era: 2, Name: "s9"}, Filling: disk.Filling{Registers: map[seq.Register]acceptor.State{reg: {Max: section}}}}
	}
	worker := seq.WorkerRegister("sim", 0, 0)
	marked := func(w *world, wrong bool, used uint64) {
		w.opts.StoreClock = wrong
		w.check.eras.used[worker] = used
		w.hosts.named("s1").disk.peak(worker, 10)
		next := w.hosts.named("s4").disk
		next.now.meta.Era = 2
		w.check.eras.floored(next, quorum.Floors{Worker: 9})
	}
	peak := func(w *world, value uint64, names ...string) {
		for _, name := range names {
			w.hosts.named(name).disk.peak(reg, value)
		}
	}
	rows := []struct {
		name  string
		facts func(w *world, h *host)
		want  string // the only kind; may be empty
	}{
		{"a list that overlaps", func(w *world, h *host) { w.check.eras.listed(h, id, listOf(2, 2, "s1", "s2")) }, ""},
		{"a list that does not", func(w *world, h *host) { w.check.eras.listed(h, id, listOf(2, 2, "s1", "s4", "s5")) }, "list"},
		{"a version with two lists", func(w *world, h *host) {
			w.check.eras.listed(h, id, listOf(2, 2, "s1", "s2"))
			w.check.eras.listed(h, id, listOf(2, 2, "s2", "s3"))
		}, "list"},
		{"a version that nobody had", func(w *world, h *host) { w.check.eras.listed(h, id, listOf(3, 2, "s1", "s2", "s3")) }, "list"},
		{"a number that a read of the list may miss", func(w *world, h *host) {
			h.era = 1
			w.check.eras.listed(h, id, listOf(2, 2, "s1", "s2"))
			peak(w, 10, "s1", "s3")
			w.back.kept(h, reg, 10)
			w.check.eras.listed(h, id, listOf(3, 2, "s1", "s2", "s4"))
			w.back.kept(h, reg, 10)
		}, "I5"},
		{"a number that no read of the list misses", func(w *world, h *host) {
			h.era = 1
			w.check.eras.listed(h, id, listOf(2, 2, "s1", "s2"))
			peak(w, 10, "s1")
			w.back.kept(h, reg, 10)
		}, ""},
		{"a restore without a bump", func(w *world, _ *host) {
			peak(w, 10, "s1")
			w.check.eras.raised(made(9), 1)
		}, "I2"},
		{"a restore with one", func(w *world, _ *host) {
			peak(w, 10, "s1")
			w.check.eras.raised(made(10), 1)
		}, ""},
		{"a mark above the floor", func(w *world, _ *host) { marked(w, false, 0) }, "I2"},
		{"a mark that one wrong clock let in", func(w *world, _ *host) { marked(w, true, 9) }, ""},
		{"a mark that IDs were made up to", func(w *world, _ *host) { marked(w, true, 10) }, "I2"},
		{"an era that begins below the one before", func(w *world, h *host) {
			w.check.sections.seen(h, 1, []section.View{owns(epoch(1, 1), true, 0, 5, 20)})
			w.check.eras.newEra(2, quorum.MemberList{}, func(seq.Register) bool { return true })
			w.check.sections.seen(h, 2, []section.View{owns(epoch(1, 2), true, 19, 19, 40)})
		}, "I6"},
		{"an era that begins above", func(w *world, h *host) {
			w.check.sections.seen(h, 1, []section.View{owns(epoch(7, 1), true, 0, 5, 20)})
			w.check.eras.newEra(2, quorum.MemberList{}, func(seq.Register) bool { return true })
			w.check.sections.seen(h, 2, []section.View{owns(epoch(1, 2), true, 20, 20, 40)})
		}, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := judgeAs(t, true, row.facts)
			if row.want == "" && len(got) > 0 || row.want != "" && (len(got) != 1 || !got[row.want]) {
				t.Errorf("broken: %v, want %q", got, row.want)
			}
		})
	}
}
