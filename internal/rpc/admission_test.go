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
