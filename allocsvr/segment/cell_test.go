package segment

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// stubHold is a lease that never ends before it is dropped.
type stubHold struct{ dropped bool }

func (h *stubHold) Until() time.Duration   { return time.Hour }
func (h *stubHold) Drop()                  { h.dropped = true }
func (h *stubHold) Ready() <-chan struct{} { return nil }

func epochOf(round uint64) seq.Epoch { return seq.Epoch{Round: round, Session: 1} }

// acquired is a tag that was acquired under the round, with 1 to 1000 confirmed.
func acquired(t *testing.T, c *cell, round uint64) *stubHold {
	t.Helper()
	tk, hold := begun(c), &stubHold{}
	if !tk.expect(epochOf(round)) {
		t.Fatal("called off")
	}
	if ok, err := tk.install(epochOf(round), newBuffers(0, 1000, 0, 0, limits), hold, 1<<62); !ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	return hold
}

func begun(c *cell) attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begin()
}

func TestAConfirmationUnderAnOlderEpochIsPassedOver(t *testing.T) {
	c := newCell(limits, place{tag: limits.Name}, 0)
	hold := acquired(t, c, 1)
	if c.drop(epochOf(2)) || hold.dropped {
		t.Fatal("dropped by the loss of another epoch")
	}
	if !c.drop(epochOf(1)) || !hold.dropped {
		t.Fatal("not dropped")
	}
	acquired(t, c, 2)
	c.confirm(epochOf(1), 5000)
	c.note(epochOf(1), quorum.ErrHeld)
	if c.buffers.confirmed != 1000 || c.trouble != nil {
		t.Errorf("confirmed %d, trouble %v", c.buffers.confirmed, c.trouble)
	}
	c.confirm(epochOf(2), 5000)
	if c.buffers.confirmed != 5000 {
		t.Errorf("confirmed %d, want 5000", c.buffers.confirmed)
	}
}

func TestAnAcquisitionThatWasCalledOffIsNotInstalled(t *testing.T) {
	for name, callOff := range map[string]func(c *cell, tk attempt){
		"epoch lost":           func(c *cell, _ attempt) { c.drop(epochOf(1)) },
		"sealed":               func(c *cell, _ attempt) { c.seal() },
		"canceled":             func(_ *cell, tk attempt) { tk.cancel() },
		"failed, nobody waits": func(_ *cell, tk attempt) { tk.failed(errors.New("silent")) },
		"another began": func(c *cell, tk attempt) {
			tk.cancel()
			begun(c).expect(epochOf(1))
		},
		"another epoch is promised": func(_ *cell, tk attempt) { tk.expect(epochOf(2)) },
	} {
		c := newCell(limits, place{tag: limits.Name}, 0)
		tk := begun(c)
		tk.expect(epochOf(1))
		callOff(c, tk)
		if ok, err := tk.install(epochOf(1), newBuffers(0, 1000, 0, 0, limits), &stubHold{}, 1<<62); ok || err != nil {
			t.Errorf("%s: got %v, %v", name, ok, err)
		}
	}
}
