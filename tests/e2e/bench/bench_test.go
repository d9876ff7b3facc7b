package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/tests/e2e/bench/report"
)

func env(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestSettingsComeFromTheEnvironment(t *testing.T) {
	s, err := settingsOf(env(nil))
	if err != nil || s.duration != 2*time.Second || s.runs != 5 || !s.wants("redis/none/p1/c64") || s.command() != "make bench" {
		t.Errorf("got %+v and %v, want the defaults", s, err)
	}
	s, err = settingsOf(env(map[string]string{"BENCH_SECONDS": "0.5", "BENCH_RUNS": "1", "BENCH_IDLE": "machine", "BENCH_ONLY": "next/, redis/none/p1/"}))
	if err != nil || s.duration != 500*time.Millisecond || s.runs != 1 || !s.asleep || s.command() != "make bench BENCH_SECONDS=0.5 BENCH_RUNS=1 BENCH_IDLE=machine BENCH_ONLY=next/,redis/none/p1/" {
		t.Errorf("got %+v and %v", s, err)
	}
	for id, want := range map[string]bool{"next/c64": true, "redis/none/p1/c512": true, "redis/none/p16/c512": false, "growth": false} {
		if got := s.wants(id); got != want {
			t.Errorf("wants %s: got %v, want %v", id, got, want)
		}
	}
	if !s.wantsAny("redis/none/") || s.wantsAny("redis/always/") || s.wantsAny("etcd/") {
		t.Error("starts other servers than those that are needed")
	}
	for name, bad := range map[string]string{"BENCH_SECONDS": "0", "BENCH_RUNS": "none", "BENCH_IDLE": "deep"} {
		if _, err := settingsOf(env(map[string]string{name: bad})); !errors.Is(err, errSetting) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: got %v, want %v", name, bad, err, errSetting)
		}
	}
}

func TestEverySubjectOfTheTargetsAndBaselinesIsMeasured(t *testing.T) {
	known := map[string]bool{}
	all := append(ownSubjects(nil), goSubjects(nil)...)
	all = append(all, frontSubjects(nil)...)
	for _, p := range programs {
		all = append(all, clientSubject(p, "", []string{p.id}))
	}
	all = append(all, emptySubjects(nil)...)
	all = append(all, engineSubjects("store", "StoreSvr", "store", nil)...)
	all = append(all, engineSubjects("etcd", "etcd", "store", nil)...)
	all = append(all, etcdSubjects(nil)...)
	all = append(all, postgresSubjects(nil)...)
	for _, persistence := range []string{"none", "everysec", "always"} {
		all = append(all, redisSubjects(nil, persistence)...)
	}
	for _, s := range all {
		if known[s.ID] {
			t.Errorf("two subjects %s", s.ID)
		}
		known[s.ID] = true
	}
	for _, s := range all {
		if s.Baseline != "" && !known[s.Baseline] {
			t.Errorf("%s: no subject %s to compare with", s.ID, s.Baseline)
		}
	}
	for _, id := range report.Wanted() {
		if !known[id] {
			t.Errorf("no subject %s, which a target is about", id)
		}
	}
}

func TestAReportIsWrittenAnewFromWhatARunLeft(t *testing.T) {
	dir := t.TempDir()
	data := report.Data{Runs: 1, Growth: report.Growth{Callers: []report.Step{{Size: 1, Rate: 10, P50: 1, P99: 2}}}}
	if err := save(filepath.Join(dir, "bench.json"), data); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "docs", "benchmarks.md")
	if err := run(t.Context(), []string{"-from", filepath.Join(dir, "bench.json"), "-out", out}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), "benchmarks/callers.svg") {
		t.Errorf("got %v and %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "docs", "benchmarks", "callers.svg")); err != nil {
		t.Error(err)
	}
	if err := run(t.Context(), []string{"-from", filepath.Join(dir, "none.json"), "-out", out}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v for a file that is not there", err)
	}
}

func TestTwoBuildsAreComparedByWhatIsFaster(t *testing.T) {
	rates := func(list ...float64) (out []report.Sample) {
		for _, rate := range list {
			out = append(out, report.Sample{Rate: rate, P50: 1})
		}
		return out
	}
	pairs := []pair{
		{"next/c64", rates(200, 100, 110), rates(100, 100, 100)},
		{"takeover", []report.Sample{{P50: 1000}}, []report.Sample{{P50: 500}}}, // a time: twice as slow
	}
	var out strings.Builder
	if err := compare(&out, "v0", pairs); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"subject here v0 ratio of the rounds: median least most", "next/c64 110/s 100/s 1.100 1.100 1.000 2.000", "takeover 1000/s 2000/s 0.500 0.500 0.500 0.500"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
