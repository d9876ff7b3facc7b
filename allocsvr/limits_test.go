package allocsvr

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

func TestLimitsChangeTogetherOrNotAtAll(t *testing.T) {
	l := NewLimits(DefaultConfig())
	cfg := DefaultConfig()
	cfg.MaxInWork, cfg.MaxStreamWaits = rpc.MinInWork, 2
	if err := l.set(cfg); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []Config{{MaxInWork: 1, MaxStreamWaits: 7}, {MaxInWork: 1 << 20, MaxStreamWaits: -1}, {MaxStreamWaits: maxStreamWaits + 1}} {
		if err := l.set(bad); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%d and %d: got %v, want %v", bad.MaxInWork, bad.MaxStreamWaits, err, seq.ErrBadArgument)
		}
	}
	if got := l.inWork.Limit(); got != rpc.MinInWork {
		t.Errorf("%d keys may be in work, want %d", got, rpc.MinInWork)
	}
	if err := l.streamFull(2); err != nil {
		t.Errorf("two calls of a stream wait: %v", err)
	}
	if err := l.streamFull(3); !errors.Is(err, seq.ErrOverloaded) || l.streamRefused.Load() != 1 {
		t.Errorf("three calls of a stream wait: got %v, %d counted, want %v, counted", err, l.streamRefused.Load(), seq.ErrOverloaded)
	}
	if err := l.set(Config{}); err != nil || l.inWork.Limit() != rpc.DefaultMaxInWork || l.streamFull(DefaultMaxStreamWaits) != nil {
		t.Errorf("0 is not the default again: %v, %d keys", err, l.inWork.Limit())
	}
}
