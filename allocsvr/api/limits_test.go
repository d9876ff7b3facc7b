package api

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/seq"
)

func TestLimitsChangeTogetherOrNotAtAll(t *testing.T) {
	l := NewLimits(0, 0, 0)
	if err := l.Set(gate.MinInWork, 2, 5<<20); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		inWork, waits int
		memory        uint64
	}{{1, 7, 0}, {1 << 20, -1, 0}, {0, maxStreamWaits + 1, 0}, {0, 0, MinUIDMemory - 1}, {0, 0, 1 << 63}} {
		if err := l.Set(bad.inWork, bad.waits, bad.memory); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%+v: got %v, want %v", bad, err, seq.ErrBadArgument)
		}
	}
	if got := l.UIDMemory(); got != 5<<20 {
		t.Errorf("uids may take %d bytes, want %d", got, 5<<20)
	}
	if got := l.inWork.Limit(); got != gate.MinInWork {
		t.Errorf("%d keys may be in work, want %d", got, gate.MinInWork)
	}
	if err := l.streamFull(2); err != nil {
		t.Errorf("two calls of a stream wait: %v", err)
	}
	if err := l.streamFull(3); !errors.Is(err, seq.ErrOverloaded) || l.streamRefused.Load() != 1 {
		t.Errorf("three calls of a stream wait: got %v, %d counted, want %v, counted", err, l.streamRefused.Load(), seq.ErrOverloaded)
	}
	if err := l.Set(0, 0, 0); err != nil || l.inWork.Limit() != DefaultMaxInWork || l.streamFull(DefaultMaxStreamWaits) != nil {
		t.Errorf("0 is not the default again: %v, %d keys", err, l.inWork.Limit())
	}
}
