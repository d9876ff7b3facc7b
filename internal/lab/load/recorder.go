package load

import (
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of the histograms: 64 ns to ten minutes, to three digits. A value outside is counted at the bound.
const (
	leastNS = 100
	mostNS  = int64(10 * time.Minute)
	digits  = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(leastNS, mostNS, digits) }

// page is the number of latencies that a caller keeps before it hands them to a histogram. A page costs one
// lock, and a caller keeps a few cache lines instead of a histogram.
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

// Recorder takes latencies of all callers. Safe for concurrent use by a Sheet each.
type Recorder struct{ shards []shard }

// NewRecorder is a Recorder that has none.
func NewRecorder() *Recorder {
	r := &Recorder{shards: make([]shard, runtime.GOMAXPROCS(0))}
	for i := range r.shards {
		r.shards[i].histogram, r.shards[i].errors = newHistogram(), map[string]uint64{}
	}
	return r
}

// Sheet is what one caller has not handed in yet. For one goroutine.
type Sheet struct {
	to      *shard
	n       int
	calls   uint64
	numbers uint64
	ns      *[page]int64 // not on the stack, which is to stay small with many callers
}

// Sheet is a new one for a caller, which hands it in at the end.
func (r *Recorder) Sheet(caller int) Sheet {
	return Sheet{to: &r.shards[caller%len(r.shards)], ns: new([page]int64)}
}

// count notes a call that succeeded, took the time that it needed.
func (s *Sheet) count(numbers int) {
	s.calls++
	s.numbers += uint64(numbers)
}

// Took notes how long a call took.
func (s *Sheet) Took(ns int64) {
	s.ns[s.n] = ns
	s.n++
	if s.n == page {
		s.Hand()
	}
}

// Hand gives all to the histogram.
func (s *Sheet) Hand() {
	s.to.mu.Lock()
	for _, ns := range s.ns[:s.n] {
		_ = s.to.histogram.RecordValue(min(max(ns, 0), mostNS)) // inside of the bounds
	}
	s.to.calls += s.calls
	s.to.numbers += s.numbers
	s.to.mu.Unlock()
	s.n, s.calls, s.numbers = 0, 0, 0
}

func (s *Sheet) fail(code string) {
	s.to.mu.Lock()
	s.to.failed++
	s.to.errors[code]++
	s.to.mu.Unlock()
}

// Result merges what was handed in.
func (r *Recorder) Result(took time.Duration) Result {
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
