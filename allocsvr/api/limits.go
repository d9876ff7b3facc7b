package api

import (
	"cmp"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/seq"
)

var mStreamFull = telemetry.Counter("alloc_stream_refused_total", "Calls refused as overloaded because too many of their stream waited.")

// DefaultMaxInWork is how many keys may be in work if nothing else is said: 16,000 calls of
// few keys, or a hundred of the largest batches.
const DefaultMaxInWork = 1 << 20

// DefaultMaxStreamWaits is how many calls of one stream may wait if nothing else is said.
const DefaultMaxStreamWaits = 1024

// DefaultUIDMemory is how many bytes the counters of UIDs may take if nothing else is said:
// enough for 30 million UIDs that lie apart, and for 100 million that lie together.
const DefaultUIDMemory = 1 << 30

// MinUIDMemory is the least that may be said, but for 0, which is no bound.
const MinUIDMemory = 1 << 20

// maxStreamWaits bounds what may be said: each waiting call is a goroutine.
const maxStreamWaits = 1 << 20

// Limits bound what callers can make a node keep. They may change while it serves. Safe
// for concurrent use; make it with NewLimits.
type Limits struct {
	inWork        *gate.Admission
	streamWaits   atomic.Int64
	streamRefused atomic.Uint64
	uidMemory     atomic.Uint64
}

// NewLimits bounds the calls in work, in keys, those of one stream that wait, and the bytes
// that the counters of UIDs take. 0 is the default of the first two, and no bound on the
// third; CheckLimits must have found all well.
func NewLimits(inWork, streamWaits int, uidMemory uint64) *Limits {
	l := &Limits{inWork: gate.NewAdmission(cmp.Or(inWork, DefaultMaxInWork))}
	l.streamWaits.Store(int64(cmp.Or(streamWaits, DefaultMaxStreamWaits)))
	l.uidMemory.Store(uidMemory)
	return l
}

// Set changes all, or none: seq.ErrBadArgument. Calls that were let in stay.
func (l *Limits) Set(inWork, streamWaits int, uidMemory uint64) error {
	if err := CheckLimits(inWork, streamWaits, uidMemory); err != nil {
		return err
	}
	l.inWork.SetLimit(cmp.Or(inWork, DefaultMaxInWork))
	l.streamWaits.Store(int64(cmp.Or(streamWaits, DefaultMaxStreamWaits)))
	l.uidMemory.Store(uidMemory)
	return nil
}

// UIDMemory is how many bytes the counters of UIDs may take; 0: any number.
func (l *Limits) UIDMemory() uint64 { return l.uidMemory.Load() }

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
func CheckLimits(inWork, streamWaits int, uidMemory uint64) error {
	if err := gate.CheckMaxInWork(inWork); err != nil {
		return err
	}
	if streamWaits < 0 || streamWaits > maxStreamWaits {
		return fmt.Errorf("%w: at most %d waiting calls a stream, expected 0 (%d) or 1 to %d",
			seq.ErrBadArgument, streamWaits, DefaultMaxStreamWaits, maxStreamWaits)
	}
	if uidMemory > math.MaxInt64 || uidMemory != 0 && uidMemory < MinUIDMemory {
		return fmt.Errorf("%w: %d bytes for the counters of uids, expected 0 (no bound) or at least %d", seq.ErrBadArgument, uidMemory, MinUIDMemory)
	}
	return nil
}
