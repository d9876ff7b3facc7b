package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
)

// Events of a timeline. The first five are the steps of a crash takeover.
const (
	eventFault     = "fault"
	eventSuspected = "suspected"   // the membership counts a node as dead
	eventLeaseEnd  = "lease ended" // at a quorum of stores
	eventTaken     = "taken over"  // a quorum of stores has another session as the holder
	eventTable     = "table"       // a decision that was written to the log of events
	eventAnswer    = "first answer"
	eventLast      = "last waiting call"
	eventMend      = "mended"
	eventMember    = "member"
	eventRefused   = "refused"
	eventCaller    = "new caller"
	eventServing   = "all served"
)

// Moment is one line of the timeline.
type Moment struct {
	MS      float64 `json:"ms"` // after the first fault
	Event   string  `json:"event"`
	Subject string  `json:"subject,omitempty"`
	Detail  string  `json:"detail,omitempty"`

	at time.Duration // on the clock of the history
}

// timeline collects moments from many sides. Safe for concurrent use.
type timeline struct {
	clock  clock.Clock
	offset time.Duration // from the wall clock to the history's: at = unix + offset
	fault  time.Duration // of the first fault; zero before
	tell   func(what string)

	mu      sync.Mutex // guards moments and fault
	moments []Moment
}

func newTimeline(tell func(what string)) *timeline {
	t := &timeline{clock: clock.Boot(), tell: tell}
	t.offset = t.clock.Now() - time.Duration(time.Now().UnixNano())
	return t
}

func (t *timeline) add(at time.Duration, event, subject, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := Moment{Event: event, Subject: subject, Detail: fmt.Sprintf(format, args...), at: at}
	if t.tell != nil {
		t.tell(strings.TrimSpace(event + " " + subject))
	}
	t.moments = append(t.moments, m)
	if event == eventFault && t.fault == 0 {
		t.fault = at
	}
}

func (t *timeline) now(event, subject, format string, args ...any) {
	t.add(t.clock.Now(), event, subject, format, args...)
}

// unix converts a moment of a reply.
func (t *timeline) unix(ms int64) time.Duration { return time.Duration(ms)*time.Millisecond + t.offset }

// began is the moment of the first fault, 0 before it.
func (t *timeline) began() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}

// list is everything since the first fault in its order, each thing once.
func (t *timeline) list() []Moment {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []Moment{}
	for _, m := range t.moments {
		m.MS = float64((m.at - t.fault).Microseconds()) / 1000
		// A time from a table in whole milliseconds may lie before its cause.
		if m.at < t.fault-time.Millisecond {
			continue
		}
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return cmp.Compare(a.at, b.at) })
	return slices.CompactFunc(out, func(later, m Moment) bool {
		return later.Event == m.Event && later.Subject == m.Subject && later.Detail == m.Detail && later.at-m.at < time.Millisecond
	})
}
