package allocsvr

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/internal/process/telemetry"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// raised returns the log's lines about forced raises.
func (n *node) raised(t *testing.T) (lines []arbiter.Event) {
	t.Helper()
	log, err := n.routes.Events(context.Background())
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
		out := a.holder.Look(ctx, seq.SectionRegister(0))
		return out.Max
	}
	before := ceiling()
	_, err := a.Raise(ctx, space, seq.Plain(7), before+1001, section.Reach{})
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
	// The bound holds for the jump of the ceiling, not of the UID. A raise up to the bound harms no other
	// UID.
	if got, err := a.Raise(ctx, space, seq.Plain(7), before+1000, section.Reach{}); err != nil || got != before+1000 {
		t.Errorf("a raise by the largest jump: got %d, %v", got, err)
	}
	if got, err := a.Raise(ctx, space, seq.Plain(8), before+1000, section.Reach{}); err != nil || got != before+1000 {
		t.Errorf("a raise below the ceiling: got %d, %v", got, err)
	}
}

func TestARaiseWithinADistanceIsMeasuredFromTheNumberOfTheUID(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 1000})
	a := f.start("a", 1, "")
	f.serving(a)
	space, ctx := &f.stores.Mapping.Spaces[0], context.Background()
	f.next(7) // its number is 1
	for _, one := range []struct {
		floor, within uint64
		far           bool
	}{
		{12, 10, true}, {11, 10, false}, {11, 10, false}, {22, 10, true}, {21, 10, false}, {1, 10, false}, {500, 0, false}, {501, 1, false},
	} {
		_, err := a.Raise(ctx, space, seq.Plain(7), one.floor, section.Reach{Within: one.within})
		if one.far != errors.Is(err, seq.ErrForbidden) || !one.far && err != nil {
			t.Errorf("to %d within %d: got %v", one.floor, one.within, err)
		}
	}
	if got := f.next(7); got != 502 {
		t.Errorf("after the raises: got %d, want 502", got)
	}
}

func TestAForcedRaiseGoesFurtherAndStandsInTheLog(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 10, MaxJump: 1000})
	a := f.start("a", 1, "")
	f.serving(a)
	space, ctx := &f.stores.Mapping.Spaces[0], context.Background()
	if _, err := a.Raise(ctx, space, seq.Plain(6), 500, section.Reach{Force: true}); err != nil { // would be done without force
		t.Fatal(err)
	}
	if got, err := a.Raise(ctx, space, seq.Plain(7), 1<<40, section.Reach{Force: true}); err != nil || got != 1<<40 {
		t.Fatalf("got %d, %v", got, err)
	}
	if got, err := a.Raise(ctx, space, seq.Plain(7), 1<<40, section.Reach{}); err != nil || got != 1<<40 {
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

// status returns the node's status for operators, without members and stores.
func (n *node) status(t *testing.T) *pb.StatusReply {
	t.Helper()
	reply, err := n.admin().Status(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// gauges returns the values of a node's metric by all its labels.
func (n *node) gauges(t *testing.T, name string) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(telemetry.Func(n.Table.Send))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if f.GetName() == name {
				out[strings.Join(labels, " ")] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

func TestASpentSectionIsNamedAndAfterACrashHandsOutNothing(t *testing.T) {
	f := newFleet(t, seq.Space{Name: "user", Sections: 1, Step: 10})
	a := f.start("a", 1, "")
	f.serving(a)
	space, ctx := &f.stores.Mapping.Spaces[0], context.Background()
	f.next(1)
	if reply := a.status(t); reply.SectionsNearEnd != 0 || len(reply.Ending) != 0 {
		t.Errorf("a healthy cluster has %v near the end", reply.Ending)
	}
	if _, err := a.Raise(ctx, space, seq.Plain(7), uint64(seq.MaxSeq), section.Reach{Force: true}); err != nil {
		t.Fatal(err)
	}
	f.next(1) // from memory
	reply := a.status(t)
	if reply.SectionsSpent != 1 || len(reply.Ending) != 1 || !reply.Ending[0].Spent || !reply.Ending[0].Owned || reply.Ending[0].Base != 0 {
		t.Errorf("got %d spent, %v", reply.SectionsSpent, reply.Ending)
	}
	if got := a.gauges(t, "seq_alloc_sections_near_end"); got["near"] != 1 || got["spent"] != 1 {
		t.Errorf("got %v near the end", got)
	}
	if got, there := a.gauges(t, "seq_alloc_section_numbers_left")["0 user"]; got != 0 || !there {
		t.Errorf("got %v, %v numbers left", got, there)
	}
	a.kill()
	f.mu.Lock()
	delete(f.nodes, "a")
	f.mu.Unlock()
	b := f.start("b", 1, "")
	f.serving(b)
	if got := b.Take(ctx, space, seq.PlainAll(1), nil); len(got.Faults) != 1 || !errors.Is(got.Faults[0].Err, seq.ErrOverflow) {
		t.Errorf("a neighbour got %+v, want ErrOverflow", got)
	}
	if e := b.status(t).Ending; len(e) != 1 || !e[0].Owned || e[0].Base != uint64(seq.MaxSeq) {
		t.Errorf("after the takeover: %v", e)
	}
}
