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

// DefaultMaxInWork is the default limit on keys in work. It admits 16,000 calls of few keys, or a hundred
// of the largest batches.
const DefaultMaxInWork = 1 << 20

// DefaultMaxStreamWaits is the default limit on the waiting calls of one stream.
const DefaultMaxStreamWaits = 1024

// DefaultUIDMemory is the default limit, in bytes, on the counters of UIDs. It holds 30 million UIDs that
// lie apart, or 100 million that lie together.
const DefaultUIDMemory = 1 << 30

// UIDMemoryShare is the default limit, in percent of the process's memory limit. Exact spaces take half as
// much beside it, and garbage as much again.
const UIDMemoryShare = 30

// MinUIDMemory is the smallest limit on the counters of UIDs. Zero, no limit, is allowed too.
const MinUIDMemory = 1 << 20

// maxStreamWaits is the largest limit on waiting calls, because each of them is a goroutine.
const maxStreamWaits = 1 << 20

// Limits bound the memory that callers can make a node use. They may change while the node serves. Safe for
// concurrent use. Make it with NewLimits.
type Limits struct {
	inWork        *gate.Admission
	streamWaits   atomic.Int64
	streamRefused atomic.Uint64
	uidMemory     atomic.Uint64
}

// NewLimits limits the keys in work, the waiting calls of each stream, and the bytes of the counters of
// UIDs. For the first two, zero means the default. For the third, zero means no limit. CheckLimits must
// have accepted the values.
func NewLimits(inWork, streamWaits int, uidMemory uint64) *Limits {
	l := &Limits{inWork: gate.NewAdmission(cmp.Or(inWork, DefaultMaxInWork))}
	l.streamWaits.Store(int64(cmp.Or(streamWaits, DefaultMaxStreamWaits)))
	l.uidMemory.Store(uidMemory)
	return l
}

// Set changes all limits. If one is not valid, it changes none and returns seq.ErrBadArgument. Admitted
// calls stay.
func (l *Limits) Set(inWork, streamWaits int, uidMemory uint64) error {
	if err := CheckLimits(inWork, streamWaits, uidMemory); err != nil {
		return err
	}
	l.inWork.SetLimit(cmp.Or(inWork, DefaultMaxInWork))
	l.streamWaits.Store(int64(cmp.Or(streamWaits, DefaultMaxStreamWaits)))
	l.uidMemory.Store(uidMemory)
	return nil
}

// UIDMemory returns the most bytes that the counters of UIDs may take. Zero means no limit.
func (l *Limits) UIDMemory() uint64 { return l.uidMemory.Load() }

// Send sends the metrics.
func (l *Limits) Send(ch chan<- prometheus.Metric) {
	telemetry.SendAdmission(ch, l.inWork)
	mStreamFull.Send(ch, float64(l.streamRefused.Load()))
}

// streamFull refuses a call if more calls of its stream wait than may.
func (l *Limits) streamFull(waiting int64) error {
	limit := l.streamWaits.Load()
	if waiting <= limit {
		return nil
	}
	l.streamRefused.Add(1)
	return fmt.Errorf("%w: %d calls of this stream wait", seq.ErrOverloaded, limit)
}

// CheckLimits returns seq.ErrBadArgument, with the first limit that is not valid.
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
