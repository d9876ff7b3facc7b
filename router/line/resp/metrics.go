package resp

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

var (
	mCommands = telemetry.Counter("router_resp_commands_total", "Commands of the RESP front; result: ok, error, or retry for those that are worth repeating.", "command", "result")
	mSeconds  = telemetry.Distribution("router_resp_pipeline_seconds", "How long the commands of a connection took that were answered together, up to their replies.")
	mPipeline = telemetry.Distribution("router_resp_pipeline_commands", "How many those were.")
	mConns    = telemetry.Gauge("router_resp_connections", "Connections of the RESP front.")
	mMaxConns = telemetry.Gauge("router_resp_connections_limit", "How many there may be.")
	mOpened   = telemetry.Counter("router_resp_connections_total", "Connections of the RESP front, by what became of them when they came.", "result")
)

// Commands that are none of those known: there is no end of those.
const (
	otherCommands = "(other)"
	malformed     = "(malformed)"
	queued        = "(queued)" // in a transaction; EXEC counts them by name
)

// result is the outcome of a command.
type result int

const (
	succeeded result = iota
	wrong            // and will be again
	retryable
	results
)

var resultNames = [results]string{"ok", "error", "retry"}

// tally counts the commands of one name.
type tally [results]atomic.Uint64

// stats count what a Server did.
type stats struct {
	commands         map[string]*tally // never changed once it is made
	incr             *tally            // the tally of INCR
	took, sizes      *telemetry.Histogram
	opened, rejected atomic.Uint64
	open, maxConns   atomic.Int64 // connections, and how many there may be
	queued           atomic.Int64 // commands and keys in transactions
	begun            time.Time
}

func newStats() *stats {
	s := &stats{commands: map[string]*tally{otherCommands: {}, malformed: {}, queued: {}}, took: telemetry.Durations(), sizes: telemetry.Sizes(), begun: time.Now()}
	for name := range commands {
		s.commands[name] = &tally{}
	}
	s.incr = s.commands["incr"]
	return s
}

// of is where the commands of a name are counted.
func (s *stats) of(name string) *tally {
	if t := s.commands[name]; t != nil {
		return t
	}
	return s.commands[otherCommands]
}

// Send gives the metrics of the front.
func (s *Server) Send(ch chan<- prometheus.Metric) {
	for name, t := range s.stats.commands {
		for r := range t {
			mCommands.Send(ch, float64(t[r].Load()), name, resultNames[r])
		}
	}
	mSeconds.Histogram(ch, s.stats.took)
	mPipeline.Histogram(ch, s.stats.sizes)
	mConns.Send(ch, float64(s.stats.open.Load()))
	mMaxConns.Send(ch, float64(s.stats.maxConns.Load()))
	mOpened.Send(ch, float64(s.stats.opened.Load()), "served")
	mOpened.Send(ch, float64(s.stats.rejected.Load()), "refused")
}

// Totals returns the number of commands that ended, the number that failed, and the durations of
// the batches in which they were answered.
func (s *Server) Totals() (ended, failed uint64, took telemetry.Buckets) {
	for name, t := range s.stats.commands {
		if name == queued {
			continue
		}
		failed += t[wrong].Load() + t[retryable].Load()
		ended += t[succeeded].Load()
	}
	return ended + failed, failed, s.stats.took.Buckets()
}
