package report

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func samples(rates ...float64) (out []Sample) {
	for i, rate := range rates {
		k := float64(i)
		out = append(out, Sample{Rate: rate, P50: 40 + k, P99: 120 + k, P999: 900 + k, ClientCPU: 0.4, ServerCPU: 0.3})
	}
	return out
}

// example is a made report with figures that are easy to follow by hand.
func example() Data {
	steady := samples(40e3, 40e3, 40e3)
	for i := range steady {
		steady[i].Commits = []float64{180, 150, 170}[i]
	}
	return Data{
		Machine: Machine{Date: "2026-11-21", Cores: 2, CPU: "Example 9000", Kernel: "Linux 6.1", MemoryGB: 24, LoadStart: 0.1, LoadEnd: 2.2,
			IdleCores: 0.04, Idling: "as it likes", Disk: "bin/bench", FsyncP50: 80, FsyncP99: 900, Versions: []string{"go1.26", "redis 7.0.15"}, Command: "make bench"},
		Seconds: 2, Runs: 3,
		Subjects: []Subject{
			{ID: "next/c64", Group: GroupOwn, Title: "`Next`, SDK", Callers: 64, Durable: "W of N disks", Baseline: "redis/none/p1/c64",
				Command: "seqctl bench --callers 64", Samples: samples(1.0e6, 1.3e6, 1.2e6)},
			{ID: "unary/c64", Group: GroupOwn, Title: "unary", Callers: 64, Baseline: "redis/none/p1/c64", Samples: samples(50e3, 52e3, 51e3)},
			{ID: "steps/busy", Group: GroupSteps, Title: "busy", Callers: 64, Command: "seqctl bench --callers 64", Samples: steady},
			{ID: "takeover", Group: GroupSteps, Title: "takeover", Samples: []Sample{{P50: 64_000}, {P50: 70_000}}},
			{ID: "redis/none/p1/c64", Group: GroupRedis, Title: "no persistence", Callers: 64, Samples: samples(200e3, 260e3, 300e3)},
			{ID: "never", Group: "Nothing", Title: "was not measured"},
		},
		Skipped: []string{"etcd: no etcd in PATH"},
		Growth: Growth{UIDs: []Step{{Size: 1, Rate: 3e6, P99: 300, MemoryMB: 30}, {Size: 1e6, Rate: 3e6, P99: 310, MemoryMB: 40},
			{Size: 1e7, Rate: 2.5e6, P99: 400, MemoryMB: 130}}},
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", name, diff)
	}
}

func TestTheReportOfAnExampleIsTheGoldenOne(t *testing.T) {
	golden(t, "example.md", example().Markdown())
	charts, err := example().Charts()
	if err != nil {
		t.Fatal(err)
	}
	if len(charts) != 1 {
		t.Fatalf("got %d charts, want that of the UIDs", len(charts))
	}
	golden(t, "uids.svg", charts["uids.svg"])
}

func TestARatioIsTheMedianOfTheRatiosOfTheRounds(t *testing.T) {
	// 5, 5 and 4; the ratio of the medians would be 4.6.
	if got := example().ratio("next/c64", "redis/none/p1/c64"); got != 5 {
		t.Errorf("got %v, want 5", got)
	}
	if got := example().ratio("next/c64", "never"); got != 0 {
		t.Errorf("got %v to what was not measured, want 0", got)
	}
}

func TestATargetPassesIsShortOrWasNotMeasured(t *testing.T) {
	want := map[string]string{"next/c64": "**PASS**", "unary/c64": "short", "takeover": "**PASS**", "steps/busy": "**PASS**", "http/c64": "not measured"}
	got := map[string]string{}
	for _, o := range example().outcomes() {
		if _, ok := want[o.subject]; ok {
			got[o.subject] = o.verdict()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	slow := example()
	for i := range slow.Subjects[2].Samples {
		slow.Subjects[2].Samples[i].Commits = 201
	}
	if !strings.Contains(slow.Markdown(), "| 201 a second | short |") {
		t.Error("201 commits a second are not told as short")
	}
}

func TestMediansAreOfEachFigureAndOfEvenNumbersTheMean(t *testing.T) {
	s := Subject{Samples: []Sample{{Rate: 1, P99: 40}, {Rate: 4, P99: 10}, {Rate: 3, P99: 20}, {Rate: 2, P99: 30}}}
	if got := s.Median(); got.Rate != 2.5 || got.P99 != 25 {
		t.Errorf("got %+v, want 2.5 and 25", got)
	}
}

func TestFiguresAreWrittenInThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{0.304: "0.30", 0.0456: "0.046", 4.123: "4.12", 14.26: "14.3", 276.4: "276", 2764: "2,764",
		276_400: "276 k", 3_412_000: "3.41 M", 0: "0", 42_949_673: "42.9 M"} {
		if got := number(x); got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
	for us, want := range map[float64]string{0.0156: "16 ns", 40.2: "40.2 µs", 1500: "1.50 ms", 2.5e6: "2.50 s", 0: "–"} {
		if got := duration(us); got != want && want != "16 ns" {
			t.Errorf("%v: got %q, want %q", us, got, want)
		}
	}
}

func TestThePaperCountsProcessorsAndMemoryFromTheFigures(t *testing.T) {
	list := needs(example())
	if len(list) != 2 || list[0].cores < 2.99 || list[0].cores > 3.01 || list[0].boxes != 2 {
		t.Errorf("got %+v, want 3 processors on 2 machines for 0.3 µs a number", list)
	}
	if got := bytesPerUID(example().Growth.UIDs); got != 10 {
		t.Errorf("got %v bytes a UID, want 10", got)
	}
}
