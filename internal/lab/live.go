package lab

import (
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

// Phase is the phase that a drill has reached.
type Phase string

// The phases, in their order.
const (
	PhaseStarting Phase = "starting" // of the cluster, until the load begins
	PhaseLoad     Phase = "load"     // nothing is broken yet
	PhaseFault    Phase = "fault"
	PhaseSettling Phase = "settling" // all serve again
)

// SliceTime is the length of a slice of a live drill. Only the first mostSlices slices are kept, which are
// ten minutes of load.
const (
	SliceTime  = 250 * time.Millisecond
	mostSlices = 2400
)

// Slice is what ended in one piece of time.
type Slice struct {
	Answers, Errors int
	Longest         time.Duration
}

// Live is a drill as it runs, for those who watch. Make it with NewLive; nil shows
// nothing. Safe for concurrent use.
type Live struct {
	clock clock.Clock
	took  *telemetry.Histogram

	mu       sync.Mutex // guards all below
	phase    Phase
	timeline *timeline     // nil until the drill begins
	from     time.Duration // when the load began; zero before
	total    Slice
	slices   []Slice
}

// NewLive returns the Live of a drill that has yet to begin.
func NewLive() *Live {
	return &Live{clock: clock.Boot(), took: telemetry.Durations(), phase: PhaseStarting}
}

// View is a Live at one moment.
type View struct {
	Phase    Phase
	Since    time.Duration // the load began
	Fault    time.Duration // after that; -1 before the fault
	Total    Slice
	Took     telemetry.Buckets
	Slices   []Slice
	Timeline []Moment // since the fault
}

// begin gives the function that a load is to tell of its calls; nil for none.
func (l *Live) begin(t *timeline) func(history.Call) {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timeline = t
	return l.count
}

func (l *Live) enter(p Phase) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = p
}

// count adds a call to the slice that it ended in.
func (l *Live) count(c history.Call) {
	took := c.End - c.Start
	l.took.Observe(took)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from == 0 {
		l.from = c.Start
	}
	l.total.add(c, took)
	at := int(max(c.End-l.from, 0) / SliceTime)
	if at >= mostSlices {
		return
	}
	for len(l.slices) <= at {
		l.slices = append(l.slices, Slice{})
	}
	l.slices[at].add(c, took)
}

func (s *Slice) add(c history.Call, took time.Duration) {
	if c.Err == "" {
		s.Answers++
	} else {
		s.Errors++
	}
	s.Longest = max(s.Longest, took)
}

// Look tells how far the drill is. The slice of now is left out: it is not over.
func (l *Live) Look() View {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := View{Phase: l.phase, Fault: -1, Total: l.total, Took: l.took.Buckets()}
	if l.from == 0 {
		return v
	}
	now := l.clock.Now()
	v.Since = now - l.from
	v.Slices = append(v.Slices, l.slices[:min(len(l.slices), int(v.Since/SliceTime))]...)
	if began := l.timeline.began(); began > 0 {
		v.Fault, v.Timeline = began-l.from, l.timeline.list()
	}
	return v
}
