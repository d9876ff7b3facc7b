package load

import (
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the histograms: 64 ns to ten minutes, to three digits. What lies outside
// is counted at the bound.
const (
	leastNS = 100
	mostNS  = int64(10 * time.Minute)
	digits  = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(leastNS, mostNS, digits) }

// page is how many latencies a caller keeps before it hands them to a histogram: one
// lock for so many, and a few cache lines a caller rather than a histogram.
const page = 64

// shard is one histogram of several callers.
type shard struct {
	mu        sync.Mutex // guards the rest
	histogram *hdrhistogram.Histogram
	calls     uint64
	numbers   uint64
	failed    uint64
	errors    map[string]uint64
	_         [64]byte // the next shard's lock lies in another cache line
}

// recorder takes latencies of all callers.
type recorder struct{ shards []shard }

func newRecorder() *recorder {
	r := &recorder{shards: make([]shard, runtime.GOMAXPROCS(0))}
	for i := range r.shards {
		r.shards[i].histogram, r.shards[i].errors = newHistogram(), map[string]uint64{}
	}
	return r
}

// sheet is what one caller has not handed in yet. For one goroutine.
type sheet struct {
	to      *shard
	n       int
	calls   uint64
	numbers uint64
	ns      *[page]int64 // beside the stack, of which a call of a crowd is to find little
}

func (r *recorder) sheet(caller int) sheet {
	return sheet{to: &r.shards[caller%len(r.shards)], ns: new([page]int64)}
}

// count notes a call that succeeded, took the time that it needed.
func (s *sheet) count(numbers int) {
	s.calls++
	s.numbers += uint64(numbers)
}

func (s *sheet) took(ns int64) {
	s.ns[s.n] = ns
	s.n++
	if s.n == page {
		s.hand()
	}
}

// hand gives all to the histogram.
func (s *sheet) hand() {
	s.to.mu.Lock()
	for _, ns := range s.ns[:s.n] {
		_ = s.to.histogram.RecordValue(min(max(ns, 0), mostNS)) // inside of the bounds
	}
	s.to.calls += s.calls
	s.to.numbers += s.numbers
	s.to.mu.Unlock()
	s.n, s.calls, s.numbers = 0, 0, 0
}

func (s *sheet) fail(code string) {
	s.to.mu.Lock()
	s.to.failed++
	s.to.errors[code]++
	s.to.mu.Unlock()
}

// result merges the histograms.
func (r *recorder) result(took time.Duration) Result {
	out := Result{Seconds: took.Seconds(), Errors: map[string]uint64{}}
	all := newHistogram()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		all.Merge(s.histogram)
		out.Calls += s.calls
		out.Numbers += s.numbers
		out.Failed += s.failed
		for code, n := range s.errors {
			out.Errors[code] += n
		}
		s.mu.Unlock()
	}
	out.Timed, out.Latency = uint64(all.TotalCount()), latencyOf(all)
	if out.Seconds > 0 {
		out.Rate = float64(out.Numbers) / out.Seconds
		out.CallRate = float64(out.Calls) / out.Seconds
	}
	return out
}
