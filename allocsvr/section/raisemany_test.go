package section

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func TestManyRaisesWaitForOneStepOfEachSection(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, MaxJump: 1000})
	uids, floors := []seq.UID{1, 2, 3, 4, 5, 1}, []uint64{50, 800, 900, ownerStep + 1001, uint64(seq.MaxSeq) + 1, 40}
	type answer struct {
		values []uint64
		faults []Fault
	}
	done := make(chan answer)
	go func() {
		values, faults := o.RaiseAll(t.Context(), o.c.space, seq.PlainAll(uids...), floors, 0)
		done <- answer{values, faults}
	}()
	wanted := func() uint64 {
		o.c.mu.Lock()
		defer o.c.mu.Unlock()
		return o.c.target
	}
	for end := time.Now().Add(20 * time.Second); wanted() < 900; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a step to %d was asked for, and none to 900 until that is done", wanted())
		}
	}
	o.confirming()
	o.step()
	got := <-done
	if diff := cmp.Diff([]uint64{50, 800, 900, 0, 0, 50}, got.values); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	faults := map[int]error{3: seq.ErrJump, 4: seq.ErrOverflow}
	for _, f := range got.faults {
		if !errors.Is(f.Err, faults[f.Index]) {
			t.Errorf("index %d: got %v, want %v", f.Index, f.Err, faults[f.Index])
		}
		delete(faults, f.Index)
	}
	if len(faults) > 0 {
		t.Errorf("no error for %v", faults)
	}
}

// confirming has the stores take every step.
func (o *owned) confirming() {
	o.regs.OnStep = func(item quorum.StepItem) quorum.Outcome {
		return quorum.Outcome{State: quorum.Won, Max: item.Max}
	}
}

func TestARaisedSectionHasNoKeyBelowIt(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "user", Sections: 1, Step: ownerStep, MaxJump: 1000})
	o.must(80) // uid 1
	if _, _, ok := o.c.table.Take(2, 5, ownerStep, 0); !ok {
		t.Fatal("uid 2 takes nothing")
	}
	if base, err := o.RaiseSection(t.Context(), 0, 60); err != nil || base != 60 {
		t.Fatalf("got %d, %v", base, err)
	}
	for uid, want := range map[seq.UID]uint64{1: 80, 2: 60, 3: 60} {
		if now, _ := o.Current(t.Context(), o.c.space, seq.PlainAll(uid)); now[0].Value != want {
			t.Errorf("uid %d: got %+v, want %d", uid, now, want)
		}
	}
	if base, err := o.RaiseSection(t.Context(), 0, 10); err != nil || base != 60 {
		t.Errorf("a lower one: got %d, %v", base, err)
	}
	if _, err := o.RaiseSection(t.Context(), 0, o.confirmed()+1001); !errors.Is(err, seq.ErrJump) {
		t.Errorf("too far: got %v", err)
	}
	o.confirming()
	done := make(chan error)
	go func() {
		_, err := o.RaiseSection(t.Context(), 0, 700)
		done <- err
	}()
	for o.confirmed() < 700 {
		if base := o.c.base(); base > o.confirmed() {
			t.Fatalf("base %d above the ceiling %d", base, o.confirmed())
		}
		o.stepper.Flush(t.Context())
		runtime.Gosched()
	}
	if err := <-done; err != nil || o.c.base() != 700 {
		t.Errorf("above the ceiling: base %d, %v", o.c.base(), err)
	}
}

func TestAPageTellsWhatHoldsForTheOthers(t *testing.T) {
	o := newOwned(t)
	o.must(80)
	if _, err := o.RaiseSection(t.Context(), 0, 20); err != nil {
		t.Fatal(err)
	}
	p, err := o.Page(t.Context(), 0, 0)
	if err != nil || p.Base != 20 || p.Highest != 80 || p.Next != 0 || !cmp.Equal(p.UIDs, []uint64{1}) || !cmp.Equal(p.Values, []uint64{80}) {
		t.Errorf("got %+v, %v", p, err)
	}
}
