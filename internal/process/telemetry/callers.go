package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var answerSeconds = Distribution("answer_seconds", "How long calls and messages of streams took from their arrival until their reply was written, by principal or host; at most 16 are kept apart, the rest is \"other\".", "caller")

const (
	// maxCallers bounds the callers that are kept apart.
	maxCallers   = 16
	otherCallers = "other"
)

// callers has a histogram for each of the maxCallers callers with the most calls, and one for all
// others.
type callers struct {
	mu     sync.Mutex // guards all below
	by     map[string]*callerTook
	others *Histogram
}

type callerTook struct {
	*Histogram
	weight uint64 // falls by one when a call of none of the kept callers comes; 0 gives the place up
}

// place returns the histogram of a caller. If all places are taken, each loses some weight, as in
// rpc.Refused.
func (c *callers) place(caller string) *Histogram {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by, c.others = map[string]*callerTook{}, Durations()
	}
	if of := c.by[caller]; of != nil {
		of.weight++
		return of.Histogram
	}
	if caller == "" {
		return c.others
	}
	if len(c.by) < maxCallers {
		of := &callerTook{Durations(), 1}
		c.by[caller] = of
		return of.Histogram
	}
	for name, kept := range c.by {
		if kept.weight--; kept.weight == 0 {
			delete(c.by, name)
		}
	}
	return c.others
}

// Answered counts how long a reply to a caller took, for gate.ServerConfig.
func (c *Calls) Answered(caller string, took time.Duration) { c.callers.place(caller).Observe(took) }

func (c *callers) send(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, of := range c.by {
		answerSeconds.Histogram(ch, of.Histogram, name)
	}
	if c.others != nil {
		answerSeconds.Histogram(ch, c.others, otherCallers)
	}
}
