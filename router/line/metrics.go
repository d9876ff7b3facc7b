package line

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

// Names of Tallies that are not names of requests.
const (
	Other     = "(other)" // unknown names: there is no end of them
	Malformed = "(malformed)"
	Queued    = "(queued)" // in a transaction, which counts them by name at its end
)

var resultNames = [results]string{"ok", "error", "retry"}

// Tally counts the requests of one name by Result.
type Tally [results]atomic.Uint64

// Tallies are the counts of a dialect by name. They never change once they are made.
type Tallies map[string]*Tally

// NewTallies returns Tallies of the names, and of Other and Malformed.
func NewTallies(names ...string) Tallies {
	t := Tallies{Other: {}, Malformed: {}}
	for _, name := range names {
		t[name] = &Tally{}
	}
	return t
}

// Of returns the Tally of a name, or of Other.
func (t Tallies) Of(name string) *Tally {
	if one := t[name]; one != nil {
		return one
	}
	return t[Other]
}

// Stats are the counts of a Server.
type Stats struct {
	Since           time.Time
	Conns, MaxConns int64  // open connections, and how many there may be
	Opened, Refused uint64 // connections since then
}

// stats count the work of a Server.
type stats struct {
	took, sizes      *telemetry.Histogram
	opened, rejected atomic.Uint64
	open, maxConns   atomic.Int64
	begun            time.Time
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	return Stats{s.stats.begun, s.stats.open.Load(), s.stats.maxConns.Load(), s.stats.opened.Load(), s.stats.rejected.Load()}
}

// Send gives the metrics of the front.
func (s *Server) Send(ch chan<- prometheus.Metric) {
	m, now := s.dialect.Metrics(), s.Stats()
	for name, t := range s.dialect.Tallies() {
		for r := range t {
			m.Requests.Send(ch, float64(t[r].Load()), name, resultNames[r])
		}
	}
	m.Seconds.Histogram(ch, s.stats.took)
	m.Sizes.Histogram(ch, s.stats.sizes)
	m.Conns.Send(ch, float64(now.Conns))
	m.MaxConns.Send(ch, float64(now.MaxConns))
	m.Opened.Send(ch, float64(now.Opened), "served")
	m.Opened.Send(ch, float64(now.Refused), "refused")
}

// Totals returns the number of requests that ended, the number that failed, and the durations of
// the batches in which they were answered.
func (s *Server) Totals() (ended, failed uint64, took telemetry.Buckets) {
	for name, t := range s.dialect.Tallies() {
		if name == Queued {
			continue
		}
		failed += t[Failed].Load() + t[Retry].Load()
		ended += t[OK].Load()
	}
	return ended + failed, failed, s.stats.took.Buckets()
}
