package arbiter

import (
	"context"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter/placement"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// Change is the result of an operator's request: the new table, and the number of sections that move.
type Change struct {
	Version uint64
	Moved   uint32
}

// Drain records in the table that the node is to be empty, or undoes that. The node hands its sections over
// itself, and records their new owners.
func (r *Arbiter) Drain(ctx context.Context, node string, undo bool) (Change, error) {
	kind, by := "drain", rpc.ChangeBy(ctx)
	if undo {
		kind = "undrain"
	}
	var toMove uint32
	next, err := r.cfg.Routes.Change(ctx, func(t *seq.RouteTable) ([]Event, error) {
		drained, err := placement.Drain(t, node, undo)
		if err != nil {
			return nil, err
		}
		*t, toMove = *drained, 0
		if !undo {
			toMove = uint32(countOwned(t, node))
		}
		return []Event{{Kind: kind, Subject: node, Reason: by}}, nil
	})
	if err != nil {
		return Change{}, err
	}
	r.Look()
	return Change{Version: next.Version, Moved: toMove}, nil
}

// Move pins a section to a node, or to none if node is empty.
func (r *Arbiter) Move(ctx context.Context, section seq.SectionID, node string, live func(name string) (seq.Session, bool)) (Change, error) {
	by := rpc.ChangeBy(ctx)
	what := Event{Kind: "move", Subject: fmt.Sprintf("section %d", section), Reason: by + ": to " + node}
	if node == "" {
		what.Reason = by + ": unpinned"
	}
	return r.change(ctx, false, []Event{what}, func(t *seq.RouteTable) (*seq.RouteTable, error) {
		return placement.Move(t, section, node, func(name string) bool {
			s, ok := live(name)
			return ok && t.Nodes[t.Index(name)].Takes(s)
		})
	})
}

// Rebalance plans without the care that is taken otherwise: at once, and after mass suspicion.
func (r *Arbiter) Rebalance(ctx context.Context) (Change, error) {
	return r.change(ctx, true, nil, func(t *seq.RouteTable) (*seq.RouteTable, error) { return t, nil })
}

// change alters the table by an operator's wish and plans what follows from it, in
// one write.
func (r *Arbiter) change(ctx context.Context, force bool, what []Event, alter func(t *seq.RouteTable) (*seq.RouteTable, error)) (Change, error) {
	var moved uint32
	next, err := r.cfg.Routes.Change(ctx, func(t *seq.RouteTable) ([]Event, error) {
		before := slices.Clone(t.Sections)
		names := nodeNames(t)
		altered, err := alter(t)
		if err != nil {
			return nil, err
		}
		events := slices.Clone(what)
		if planned, changes := placement.Plan(r.input(altered, force)); planned != nil {
			altered = planned
			events = append(events, toEvents(changes)...)
		}
		*t = *altered
		moved = countMoved(before, names, t)
		return events, nil
	})
	if err != nil {
		return Change{}, err
	}
	return Change{Version: next.Version, Moved: moved}, nil
}

func nodeNames(t *seq.RouteTable) []string {
	names := make([]string, len(t.Nodes))
	for i, n := range t.Nodes {
		names[i] = n.Name
	}
	return names
}

// countMoved counts the sections whose desired owner is another node than before.
func countMoved(before []seq.Placement, names []string, t *seq.RouteTable) (moved uint32) {
	for id, p := range before {
		owner, _ := t.Owner(seq.SectionID(id))
		old := ""
		if p.Owner >= 0 {
			old = names[p.Owner]
		}
		if owner.Name != old {
			moved++
		}
	}
	return moved
}

// countOwned counts the sections that the table gives to the node.
func countOwned(t *seq.RouteTable, name string) (n int) {
	me := t.Index(name)
	for _, p := range t.Sections {
		if me >= 0 && int(p.Owner) == me {
			n++
		}
	}
	return n
}
