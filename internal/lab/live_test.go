package lab

import (
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/history"
)

func TestALiveDrillShowsItsCallsByTheSliceTheyEndedIn(t *testing.T) {
	l, line := NewLive(), newTimeline(nil)
	if v := l.Look(); v.Phase != PhaseStarting || v.Fault != -1 || len(v.Slices) != 0 {
		t.Errorf("before it begins: got %+v", v)
	}
	seen := l.begin(line)
	l.enter(PhaseLoad)
	from := l.clock.Now() - 10*SliceTime
	call := func(start, took time.Duration, err string) {
		seen(history.Call{Start: from + start, End: from + start + took, Err: err})
	}
	call(0, time.Millisecond, "")
	call(SliceTime, 2*SliceTime, "")
	call(3*SliceTime, time.Millisecond, "no quorum")
	line.add(from+2*SliceTime, eventFault, "alloc-1", "kill -9")
	l.enter(PhaseFault)
	v := l.Look()
	if v.Phase != PhaseFault || v.Fault != 2*SliceTime || len(v.Timeline) != 1 || v.Timeline[0].Subject != "alloc-1" {
		t.Errorf("got phase %s, fault after %v, timeline %+v", v.Phase, v.Fault, v.Timeline)
	}
	if v.Total != (Slice{2, 1, 2 * SliceTime}) || v.Took.Total() != 3 {
		t.Errorf("got %+v of all and %d times, want 2 answers and an error", v.Total, v.Took.Total())
	}
	want := []Slice{{1, 0, time.Millisecond}, {}, {}, {1, 1, 2 * SliceTime}}
	if len(v.Slices) != len(want) {
		t.Fatalf("got %d slices: %+v", len(v.Slices), v.Slices)
	}
	for i, s := range v.Slices {
		if s != want[i] {
			t.Errorf("slice %d: got %+v, want %+v", i, s, want[i])
		}
	}
	var nobody *Live
	if nobody.enter(PhaseFault); nobody.begin(line) != nil {
		t.Error("a load tells nobody of its calls")
	}
}

func TestALiveDrillIsBounded(t *testing.T) {
	l := NewLive()
	seen := l.begin(newTimeline(nil))
	seen(history.Call{End: time.Millisecond})
	seen(history.Call{Start: time.Hour, End: 10 * time.Hour})
	if len(l.slices) > mostSlices || l.total.Answers != 2 {
		t.Errorf("%d slices for ten hours, %d answers", len(l.slices), l.total.Answers)
	}
}
