package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/lab/load"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// seqctl runs a command line in this process.
func seqctl(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	root := ctl.Root()
	root.AddCommand(Commands()...)
	var out, log bytes.Buffer
	err = ctl.Execute(t.Context(), root, args, &out, &log)
	if log.Len() > 0 {
		t.Errorf("%q wrote on stderr: %q", args, log.String())
	}
	return out.String(), err
}

// quick returns the flags of a run that is only to work. Without a warm-up the first calls
// count, however long they take.
func quick(more ...string) []string {
	return append([]string{"bench", "--warmup", "0s", "--duration", "200ms", "--callers", "8", "--uids", "50", "-o", "json"}, more...)
}

func TestEveryTargetOfTheSDKGetsRisingNumbersFromSeveralAllocs(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	if err := cluster.AddSpace(seq.Space{Name: "inbox", Sections: 12, Tickets: time.Minute, Added: true}); err != nil {
		t.Fatal(err)
	}
	cluster.AddTag(defaultTag)
	for _, test := range []struct {
		target string
		per    uint64 // numbers a call
		more   string
	}{
		{"next", 1, "--dist zipf"}, {"nextn", 7, "--batch 7"}, {"batch", 100, "--dist hot --scatter"}, {"unary", 1, ""}, {"ticket", 1, "--space inbox"},
		{"router", 1, ""}, {"snowflake", 10, "--batch 10"}, {"segment", 3, "--batch 3"}, {"next", 1, "--rate 2000"},
	} {
		t.Run(test.target+" "+test.more, func(t *testing.T) {
			args := quick("--addr", cluster.Addrs()[0], "--target", test.target)
			out, err := seqctl(t, append(args, strings.Fields(test.more)...)...)
			if err != nil {
				t.Fatal(err)
			}
			var r result
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if r.Calls == 0 || r.Numbers != r.Calls*test.per || r.Failed != 0 || r.TotalNumbers < r.Numbers || r.Allocs != 3 {
				t.Errorf("got %+v, want calls of %d numbers without errors", r, test.per)
			}
			if r.Latency.P50 <= 0 || r.Latency.P50 > r.Latency.P999 || r.Latency.P999 > r.Latency.Max {
				t.Errorf("got latencies %+v", r.Latency)
			}
			if test.target != "snowflake" && (r.Rising == nil || r.Rising.Checked == 0 || r.Rising.Violations != 0) {
				t.Errorf("got %+v, want checked calls without a violation", r.Rising)
			}
		})
	}
}

// front is a router's HTTP front with a counter a UID; stuck repeats numbers.
func front(t *testing.T, stuck bool, status int) (addr string) {
	t.Helper()
	var mu sync.Mutex
	counters := map[uint64]uint64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			UID   uint64
			Space string
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/next" || req.Space != "channel" {
			t.Errorf("asked for %s with %+v, %v", r.URL.Path, req, err)
		}
		w.WriteHeader(status)
		mu.Lock()
		defer mu.Unlock()
		if n := counters[req.UID]; !stuck || n == 0 {
			counters[req.UID] = n + 1
		}
		fmt.Fprintf(w, `{"first":%d,"last":%[1]d,"unordered":false}`, counters[req.UID])
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestHTTPIsLoadedAConnectionACaller(t *testing.T) {
	out, err := seqctl(t, quick("--target", "http", "--http", front(t, false, 200), "--space", "channel")...)
	if err != nil {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Calls == 0 || r.Failed != 0 || r.Rising.Checked == 0 {
		t.Errorf("got %s", out)
	}
}

func TestNumbersThatDoNotRiseAreFound(t *testing.T) {
	_, err := seqctl(t, quick("--target", "http", "--http", front(t, true, 200), "--space", "channel",
		"--uids", "1", "--callers", "2", "--duration", "2s")...)
	if !errors.Is(err, errBroken) || errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "got 1 after 1") {
		t.Errorf("got %v, want %v with the numbers", err, errBroken)
	}
}

func TestARunWithoutAnyAnswerFailsAndTellsTheErrors(t *testing.T) {
	out, err := seqctl(t, quick("--target", "http", "--http", front(t, false, 503), "--space", "channel")...)
	if !errors.Is(err, errNothing) || !strings.Contains(err.Error(), "HTTP_503") || !strings.Contains(out, `"HTTP_503"`) {
		t.Errorf("got %v and %s, want %v", err, out, errNothing)
	}
}

func TestErrorsOfTheClusterAreCountedByTheirCode(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	cluster.Behave(false, false, seq.ErrOverflow)
	out, err := seqctl(t, quick("--addr", cluster.Addrs()[0])...)
	if !errors.Is(err, errNothing) || !strings.Contains(out, `"OVERFLOW"`) {
		t.Errorf("got %v and %s, want OVERFLOW", err, out)
	}
}

func TestAWrongCallIsRefusedByName(t *testing.T) {
	for _, test := range []struct {
		line string
		want error
		text string
	}{
		{"bench --callers 0", load.ErrConfig, "0 callers"},
		{"bench --duration 0s", load.ErrConfig, "duration 0s"},
		{"bench --warmup -1s", load.ErrConfig, "warm-up"},
		{"bench --rate -5", load.ErrConfig, "rate -5"},
		{"bench --procs -1", errProcs, "--procs -1"},
		{"bench --uids 0", load.ErrConfig, "0 uids"},
		{"bench --uids 4294967297", load.ErrConfig, "uids"},
		{"bench --dist gauss", load.ErrDist, `"gauss"`},
		{"bench --target all", errTarget, `"all"`},
		{"bench --batch 2", errBatch, "--batch 2"},
		{"bench --target batch --batch 10001", errBatch, "1 to 10000"},
		{"bench --target batch --batch -1", errBatch, "--batch -1"},
		{"bench --target nextn --batch 1048577", errBatch, "1 to 1048576"},
		{"bench --target http --http here", errNoHost, `"here"`},
		{"bench --addr here", nil, "--addr"},
		{"bench --timeout 0s", nil, "--timeout"},
		{"bench -o xml", nil, `"xml"`},
		{"bench now", nil, "seqctl bench"},
		{"check all", nil, "seqctl check"},
		{"check perf --min-rate 0", nil, "--min-rate 0"},
		{"check perf --max-p99 -1s", nil, "--max-p99"},
		{"check perf --callers 0", load.ErrConfig, "0 callers"},
		{"check perf --target http", nil, "--target"},
	} {
		t.Run(test.line, func(t *testing.T) {
			out, err := seqctl(t, strings.Fields(test.line)...)
			if !errors.Is(err, daemon.ErrUsage) || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want a usage error of %v with %q", err, test.want, test.text)
			}
			if out != "" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestNobodyThereIsToldInOneLineWithTheAddress(t *testing.T) {
	for _, line := range []string{"bench --addr 127.0.0.1:1", "bench --target http --http 127.0.0.1:1", "check perf --addr 127.0.0.1:1"} {
		_, err := seqctl(t, strings.Fields(line)...)
		if err == nil || errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "no answer at") ||
			!strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

func TestASpaceThatIsNotThereIsRefusedBeforeTheLoad(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	if _, err := seqctl(t, quick("--addr", cluster.Addrs()[0], "--space", "none")...); !errors.Is(err, seq.ErrUnknownSpace) {
		t.Errorf("got %v, want %v", err, seq.ErrUnknownSpace)
	}
}

func TestCheckPerfSaysPassWithinLimitsAndFailBeyondThem(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	line := func(more ...string) []string {
		return append([]string{"check", "perf", "--addr", cluster.Addrs()[0], "--duration", "200ms", "--warmup", "0s", "--callers", "4", "--uids", "100",
			"--max-p50", "1h", "--max-p99", "1h", "--max-p999", "1h", "--max-full-p99", "1h", "--min-rate", "1"}, more...)
	}
	out, err := seqctl(t, line()...)
	if err != nil || !strings.Contains(out, "\nPASS ") || strings.Contains(out, "FAIL") {
		t.Errorf("got %v and %s, want PASS", err, out)
	}
	out, err = seqctl(t, line("--min-rate", "1e12", "-o", "json")...)
	if !errors.Is(err, errTooSlow) || !strings.Contains(err.Error(), "rate, full load") || strings.Contains(err.Error(), "p99") {
		t.Errorf("got %v, want FAIL for the rate alone", err)
	}
	var v verdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Verdict != "FAIL" || len(v.Checks) != 7 {
		t.Errorf("got %v and %s", err, out)
	}
}

func TestEachLimitOfCheckPerfIsHeld(t *testing.T) {
	good := result{Result: load.Result{Calls: 10, Rate: 100, Latency: load.Latency{P50: 1, P99: 2, P999: 3}}, Rising: &rising{Checked: 10}}
	limit := limits{rate: 100, p50: 1000, p99: 2000, p999: 3000, fullP99: 2000, lightRate: 1}
	if v := judge(limit, good, good); v.Verdict != "PASS" || v.err() != nil {
		t.Fatalf("got %+v, want PASS at the very limits", v)
	}
	for name, change := range map[string]func(light, full *result){
		"p50, light load":           func(l, _ *result) { l.Latency.P50++ },
		"p99, light load":           func(l, _ *result) { l.Latency.P99++ },
		"p99.9, light load":         func(l, _ *result) { l.Latency.P999++ },
		"rate, full load":           func(_, f *result) { f.Rate-- },
		"p99, full load":            func(_, f *result) { f.Latency.P99++ },
		"failed calls":              func(_, f *result) { f.Failed++ },
		"numbers that did not rise": func(l, _ *result) { l.Rising = &rising{Violations: 1} },
	} {
		light, full := good, good
		change(&light, &full)
		if err := judge(limit, light, full).err(); !errors.Is(err, errTooSlow) || !strings.HasSuffix(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	none := result{Result: load.Result{Latency: load.Latency{P50: math.NaN()}}, Rising: &rising{}}
	if v := judge(limit, none, good); v.Verdict != "FAIL" {
		t.Error("a load without an answer passes")
	}
}

func TestBesideItsClusterBenchLeavesHalfOfTheProcessors(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	all := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(all)
	for _, test := range []struct {
		env   string
		flags []string
		want  int
	}{{"", nil, 2}, {"", []string{"--procs", "3"}, 3}, {"4", nil, 4}} {
		t.Setenv("GOMAXPROCS", test.env)
		out, err := seqctl(t, quick(append(test.flags, "--addr", cluster.Addrs()[0])...)...)
		if err != nil {
			t.Fatal(err)
		}
		var r result
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.Procs != test.want {
			t.Errorf("GOMAXPROCS %q, flags %q: got %d processors and %v, want %d", test.env, test.flags, r.Procs, err, test.want)
		}
		if now := runtime.GOMAXPROCS(0); now != 4 {
			t.Errorf("%d processors are left, want the 4 from before", now)
		}
	}
}

func TestATableTellsRateLatencyAndTheCheck(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	out, err := seqctl(t, quick("--addr", cluster.Addrs()[0], "-o", "table")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NUMBERS/S", "P99.9", "next", "errors: none", "numbers rise:", "0 violations"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
