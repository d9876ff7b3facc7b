package allocsvr

import (
	"cmp"
	"fmt"
	"sync/atomic"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// DefaultMaxStreamWaits is Config.MaxStreamWaits if nothing else is said.
const DefaultMaxStreamWaits = 1024

// maxStreamWaits bounds Config.MaxStreamWaits: each is a goroutine.
const maxStreamWaits = 1 << 20

// Limits bound what callers can make a node keep. They may change while it serves. Safe
// for concurrent use; make it with NewLimits.
type Limits struct {
	inWork        *rpc.Admission
	streamWaits   atomic.Int64
	streamRefused atomic.Uint64
}

// NewLimits takes them from a Config that Validate has found well.
func NewLimits(cfg Config) *Limits {
	l := &Limits{inWork: rpc.NewAdmission(cmp.Or(cfg.MaxInWork, rpc.DefaultMaxInWork))}
	l.streamWaits.Store(int64(cmp.Or(cfg.MaxStreamWaits, DefaultMaxStreamWaits)))
	return l
}

// set takes over what cfg says: seq.ErrBadArgument, and nothing is changed.
func (l *Limits) set(cfg Config) error {
	if err := cfg.checkLimits(); err != nil {
		return err
	}
	l.inWork.SetLimit(cmp.Or(cfg.MaxInWork, rpc.DefaultMaxInWork))
	l.streamWaits.Store(int64(cmp.Or(cfg.MaxStreamWaits, DefaultMaxStreamWaits)))
	return nil
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

// checkLimits names the first limit that is not sound.
func (c Config) checkLimits() error {
	if err := rpc.CheckMaxInWork(c.MaxInWork); err != nil {
		return err
	}
	if c.MaxStreamWaits < 0 || c.MaxStreamWaits > maxStreamWaits {
		return fmt.Errorf("%w: at most %d waiting calls a stream, expected 0 (%d) or 1 to %d",
			seq.ErrBadArgument, c.MaxStreamWaits, DefaultMaxStreamWaits, maxStreamWaits)
	}
	return nil
}

// SetLimits takes MaxInWork and MaxStreamWaits of cfg while the server runs, and nothing
// else of it: seq.ErrBadArgument, and nothing is changed. Calls that were let in stay.
func (s *Server) SetLimits(cfg Config) error { return s.limits.set(cfg) }
