package rpc

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

func TestAdmissionLetsInWhatFitsAndRefusesTheRest(t *testing.T) {
	a := NewAdmission(2*CallCost + 10)
	if err := a.Enter(10); err != nil {
		t.Fatal(err)
	}
	if err := a.Enter(1); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("one key too many: got %v, want %v", err, seq.ErrOverloaded)
	}
	if err := a.Enter(0); err != nil {
		t.Errorf("the rest of the room: %v; a refusal must take none", err)
	}
	a.Leave(10)
	if err := a.Enter(10); err != nil {
		t.Errorf("after a call left: %v", err)
	}
	a.Leave(10)
	a.Leave(0)
	if n := a.InWork(); n != 0 {
		t.Errorf("%d in work after all have left", n)
	}
}

func TestALowerLimitHoldsOnceEnoughHaveLeft(t *testing.T) {
	a := NewAdmission(4 * CallCost)
	for range 4 {
		if err := a.Enter(0); err != nil {
			t.Fatal(err)
		}
	}
	a.SetLimit(2 * CallCost)
	for range 3 {
		if err := a.Enter(0); !errors.Is(err, seq.ErrOverloaded) {
			t.Fatalf("with %d in work of %d: got %v, want %v", a.InWork(), a.Limit(), err, seq.ErrOverloaded)
		}
		a.Leave(0)
	}
	if err := a.Enter(0); err != nil {
		t.Errorf("with one in work: %v", err)
	}
	a.SetLimit(3 * CallCost)
	if err := a.Enter(0); err != nil {
		t.Errorf("with a limit that was raised: %v", err)
	}
	if got, want := a.Refused(), uint64(3); got != want {
		t.Errorf("%d refused, want %d", got, want)
	}
	if a.InWork() != 3*CallCost || a.Limit() != 3*CallCost {
		t.Errorf("%d in work of %d, want both to be %d", a.InWork(), a.Limit(), 3*CallCost)
	}
}

func TestALimitBelowTheLargestBatchIsRefused(t *testing.T) {
	for keys, sound := range map[int]bool{0: true, MinInWork: true, DefaultMaxInWork: true, MinInWork - 1: false, 1: false, -1: false} {
		if err := CheckMaxInWork(keys); (err == nil) != sound || err != nil && !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%d keys: got %v, want it taken: %v", keys, err, sound)
		}
	}
}
