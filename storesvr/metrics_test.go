package storesvr

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

func TestLimitsChangeWhileAStoreServes(t *testing.T) {
	s := serve(t, initStore(t, "a"), nil)
	s.bindAlone(t)
	if err := s.Ready(); err != nil {
		t.Fatal(err)
	}
	if s.replica.describe().nearlyFull {
		t.Fatal("nearly full without a limit")
	}
	if err := s.SetLimits(1<<62, 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if d := s.replica.describe(); !d.nearlyFull || d.MaxLease != 3*time.Second {
		t.Errorf("nearly full %v, max lease %v; want true and 3s", d.nearlyFull, d.MaxLease)
	}
	if err := s.SetLimits(0, 2*time.Hour); !errors.Is(err, ErrConfig) {
		t.Errorf("a lease of two hours: got %v, want ErrConfig", err)
	}
	if d := s.replica.describe(); !d.nearlyFull || d.MaxLease != 3*time.Second {
		t.Errorf("a refused change was made: nearly full %v, max lease %v", d.nearlyFull, d.MaxLease)
	}
}

func TestAStoreThatDoesNotVoteIsNotReady(t *testing.T) {
	s := serve(t, initStore(t, "a"), nil)
	if err := s.Ready(); !errors.Is(err, seq.ErrNotVoting) {
		t.Errorf("unbound: got %v, want ErrNotVoting", err)
	}
}
