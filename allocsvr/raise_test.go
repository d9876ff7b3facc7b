package allocsvr

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// raised is the log's lines about forced raises.
func (n *node) raised(t *testing.T) (lines []event) {
	t.Helper()
	log, _, err := n.loadEvents(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log {
		if e.Kind == "raise" {
			lines = append(lines, e)
		}
	}
	return lines
}

func TestARaiseBeyondTheLargestJumpIsRefusedAndSparesItsNeighbours(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 10, MaxJump: 1000})
	a := f.start("a", 1, "")
	f.serving(a)
	space, ctx := &f.stores.Mapping.Spaces[0], context.Background()
	f.next(1)
	ceiling := func() uint64 {
		out := a.registers.Probe(ctx, a.session, []seq.Register{seq.SectionRegister(0)})[0]
		return out.Max
	}
	before := ceiling()
	_, err := a.Raise(ctx, space, 7, before+1001, false)
	if !errors.Is(err, seq.ErrJump) {
		t.Fatalf("got %v, want ErrJump", err)
	}
	for _, part := range []string{"uid 7", "section 0", "1000", "force"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if got := ceiling(); got != before {
		t.Errorf("a refused raise moved the ceiling from %d to %d", before, got)
	}
	if lines := a.raised(t); len(lines) > 0 {
		t.Errorf("a refused raise left %v in the log", lines)
	}
	// The jump is that of the ceiling, not of the UID: up to it nobody is harmed.
	if got, err := a.Raise(ctx, space, 7, before+1000, false); err != nil || got != before+1000 {
		t.Errorf("a raise by the largest jump: got %d, %v", got, err)
	}
	if got, err := a.Raise(ctx, space, 8, before+1000, false); err != nil || got != before+1000 {
		t.Errorf("a raise below the ceiling: got %d, %v", got, err)
	}
}

func TestAForcedRaiseGoesFurtherAndStandsInTheLog(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 10, MaxJump: 1000})
	a := f.start("a", 1, "")
	f.serving(a)
	space, ctx := &f.stores.Mapping.Spaces[0], context.Background()
	if _, err := a.Raise(ctx, space, 6, 500, true); err != nil { // would be done without force
		t.Fatal(err)
	}
	if got, err := a.Raise(ctx, space, 7, 1<<40, true); err != nil || got != 1<<40 {
		t.Fatalf("got %d, %v", got, err)
	}
	if got, err := a.Raise(ctx, space, 7, 1<<40, false); err != nil || got != 1<<40 {
		t.Errorf("a repeated one needs no force: got %d, %v", got, err)
	}
	lines := a.raised(t)
	if len(lines) != 1 {
		t.Fatalf("got %d lines in the log, want 1: %v", len(lines), lines)
	}
	if e := lines[0]; e.Subject != "section 0" || e.Node != "a" || !strings.Contains(e.Reason, "uid 7") || !strings.Contains(e.Reason, "to 1099511627776") {
		t.Errorf("got %+v", e)
	}
	if got := f.next(7); got != 1<<40+1 {
		t.Errorf("got %d, want %d", got, 1<<40+1)
	}
}
