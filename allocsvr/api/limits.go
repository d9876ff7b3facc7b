package api

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/telemetry"
	"github.com/seqsvr/seqsvr/seq"
)

var mStreamFull = telemetry.Counter("alloc_stream_refused_total", "Calls refused as overloaded because too many of their stream waited.")

// DefaultMaxStreamWaits is how many calls of one stream may wait if nothing else is said.
const DefaultMaxStreamWaits = 1024

// maxStreamWaits bounds what may be said: each waiting call is a goroutine.
const maxStreamWaits = 1 << 20

// Limits bound what callers can make a node keep. They may change while it serves. Safe
// for concurrent use; make it with NewLimits.
type Limits struct {
	inWork        *rpc.Admission
	streamWaits   atomic.Int64
	streamRefused atomic.Uint64
}

// NewLimits bounds the calls in work, in keys, and those of one stream that wait. 0 is the
// default; CheckLimits must have found both well.
func NewLimits(inWork, streamWaits int) *Limits {
	l := &Limits{inWork: rpc.NewAdmission(cmp.Or(inWork, rpc.DefaultMaxInWork))}
	l.streamWaits.Store(int64(cmp.Or(streamWaits, DefaultMaxStreamWaits)))
	return l
}

// Set changes both, or none: seq.ErrBadArgument. Calls that were let in stay.
func (l *Limits) Set(inWork, streamWaits int) error {
	if err := CheckLimits(inWork, streamWaits); err != nil {
		return err
	}
	l.inWork.SetLimit(cmp.Or(inWork, rpc.DefaultMaxInWork))
	l.streamWaits.Store(int64(cmp.Or(streamWaits, DefaultMaxStreamWaits)))
	return nil
}

// Send gives the metrics.
func (l *Limits) Send(ch chan<- prometheus.Metric) {
	telemetry.SendAdmission(ch, l.inWork)
	mStreamFull.Send(ch, float64(l.streamRefused.Load()))
}

// streamFull says whether so many calls of a stream are more than may wait.
func (l *Limits) streamFull(waiting int64) error {
	limit := l.streamWaits.Load()
	if waiting <= limit {
		return nil
	}
	l.streamRefused.Add(1)
	return fmt.Errorf("%w: %d calls of this stream wait", seq.ErrOverloaded, limit)
}

// CheckLimits names the first limit that is not sound: seq.ErrBadArgument.
func CheckLimits(inWork, streamWaits int) error {
	if err := rpc.CheckMaxInWork(inWork); err != nil {
		return err
	}
	if streamWaits < 0 || streamWaits > maxStreamWaits {
		return fmt.Errorf("%w: at most %d waiting calls a stream, expected 0 (%d) or 1 to %d",
			seq.ErrBadArgument, streamWaits, DefaultMaxStreamWaits, maxStreamWaits)
	}
	return nil
}
