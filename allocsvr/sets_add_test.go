package allocsvr

import (
	"errors"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// add has a cluster that is at the addresses of a Set of another division, or of this one, join.
func (d *division) add(name string, at *division, i int) error {
	d.t.Helper()
	_, err := d.root.Add(d.t.Context(), setadmin.NewSet(name, at.addrs(i), at), d.addrs(0))
	return err
}

// known reports whether the map has a Set of that name.
func (d *division) known(name string) bool {
	d.t.Helper()
	m, err := d.root.Map(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.ContainsFunc(m.Sets, func(s sets.Set) bool { return s.Name == name })
}

// another is a root of another cluster at the same addresses.
func another(t *testing.T) *division {
	t.Helper()
	d := newDivision(t, 0)
	d.fleets = []*fleet{d.alone(0, "another", user16())}
	return d
}

func TestASetOfOneRootIsNoSetOfAnother(t *testing.T) {
	d, other := newDivision(t, 2, user16()), another(t)
	for _, name := range []string{d.name(1), "b"} {
		if err := other.add(name, d, 1); !errors.Is(err, seq.ErrConflict) {
			t.Errorf("as %s: %v", name, err)
		}
		if other.known(name) {
			t.Errorf("%s is in the map of the other root", name)
		}
	}
	if err := d.add(d.name(1), d, 1); err != nil {
		t.Errorf("again to its own: %v", err)
	}
	if _, err := (&setadmin.Root{Set: setadmin.NewSet(d.name(1), d.addrs(1), d)}).Map(t.Context()); err != nil {
		t.Errorf("it tells no map: %v", err)
	}
	d.finish(d.begin(1, sets.Range{First: 0, Sections: 8}))
}

// The users of a cluster that was called would go back to the numbers of the root.
func TestAClusterThatWasUsedBecomesNoSet(t *testing.T) {
	d := newDivision(t, 2, user16())
	used := newDivision(t, 0)
	used.fleets = []*fleet{used.alone(0, "used", user16())}
	used.fleets[0].next(7)
	err := d.add("late", used, 0)
	if !errors.Is(err, setadmin.ErrUsed) || !errors.Is(err, seq.ErrConflict) {
		t.Errorf("got %v", err)
	}
	if d.known("late") || used.fleets[0].ids.joined.Load() {
		t.Error("it has begun to join")
	}
	used.fleets[0].next(7)

	// A node asks itself once more, since it may be called between the two looks.
	conn, err := used.At(used.addrs(0)[0])
	if err != nil {
		t.Fatal(err)
	}
	var refused int
	for range used.addrs(0) {
		_, err := pb.NewSetsClient(conn).Join(t.Context(), &pb.JoinSetRequest{Name: "late", Root: d.addrs(0), RootClusterId: "cluster-0"})
		if errors.Is(err, seq.ErrConflict) {
			refused++
		}
		if conn, err = used.At(used.addrs(0)[1]); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("no node refused to join")
	}
}

func TestARootThatIsAddedByMistakeStaysARoot(t *testing.T) {
	d, other := newDivision(t, 2, user16()), another(t)
	if err := other.add("b", d, 0); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("a root was added to another: %v", err)
	}
	if d.fleets[0].ids.joined.Load() || other.known("b") {
		t.Errorf("it has begun to join: its worker ids %v, the map of the other %v", d.fleets[0].ids.joined.Load(), other.known("b"))
	}
}

// A cluster that has the id of a Set, and is not it, gets nothing of what that Set has.
func TestAClusterThatWasInitialisedAnewIsNotTheSetOfItsID(t *testing.T) {
	for what, use := range map[string]func(*division){
		"sections":   func(d *division) { d.finish(d.begin(1, sets.Range{First: 0, Sections: 8})) },
		"worker ids": func(d *division) { d.fleets[0].ids.gave.Store(true) },
		"nothing":    nil,
	} {
		t.Run(what, func(t *testing.T) {
			d := newDivision(t, 2, user16())
			if use != nil {
				use(d)
			}
			if err := d.add(d.name(1), d, 1); err != nil {
				t.Errorf("the Set itself again: %v", err)
			}
			for _, n := range d.fleets[1].all() {
				n.kill()
			}
			d.fleets[1] = d.alone(1, "cluster-1", user16())
			err := d.add(d.name(1), d, 1)
			if want := use != nil; errors.Is(err, seq.ErrBadArgument) != want || (err == nil) == want {
				t.Errorf("got %v", err)
			}
			if joined := d.fleets[1].ids.joined.Load(); joined != (use == nil) {
				t.Errorf("it has joined: %v", joined)
			}
		})
	}
}
