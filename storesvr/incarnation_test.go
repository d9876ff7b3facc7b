package storesvr

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

func TestAStoreKeepsTheIncarnationThatItsFirstListGivesIt(t *testing.T) {
	b := newBench(t)
	if in := b.describe().Incarnation; in.Known() {
		t.Errorf("not bound, and of %v", in)
	}
	if err := b.change.bind(t.Context(), binding{cluster: "c1", era: 0, members: b.fellows()}); err != nil {
		t.Fatal(err)
	}
	want := quorum.MemberList{Members: b.fellows()}.Derived(seq.ClusterID{}, "c1", 0)
	list := quorum.MemberList{Version: 2, R: 2, W: 2, Members: b.fellows()}
	foreign := list
	foreign.Incarnation = quorum.MemberList{Members: list.Members[:2]}.Derived(seq.ClusterID{}, "c1", 0)
	if err := b.change.adopt(t.Context(), "c1", 0, foreign); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("a list of another binding: %v, expected %v", err, seq.ErrForeignCluster)
	}
	for _, when := range []string{"bound", "started again", "after a list that does not tell it"} {
		if in := b.describe().Incarnation; in != want {
			t.Errorf("%s: it is of %v, expected %v", when, in, want)
		}
		if when == "started again" {
			if err := b.change.adopt(t.Context(), "c1", 0, list); err != nil {
				t.Fatal(err)
			}
		}
		b.reopen()
	}
}

func TestAStoreThatTheVersionBeforeBoundDerivesItsIncarnation(t *testing.T) {
	id := disk.Identity{Cluster: "c1", UUID: "u-a", Name: "a", Era: 2}
	origin := seq.ClusterID{7}
	first := disk.Members{Version: 1, List: []quorum.Member{{UUID: "u-a", Name: "a"}, {UUID: "u-b", Name: "b"}}}
	later := disk.Members{Version: 2, List: first.List}
	derived := seq.NewIncarnation(seq.ClusterID{}, "c1", 2, []string{"u-b", "u-a"})
	restored := seq.NewIncarnation(origin, "c1", 2, []string{"u-b", "u-a"})
	for name, row := range map[string]struct {
		meta disk.Meta
		want seq.Incarnation
	}{
		"the first list":    {disk.Meta{Identity: id, Members: first}, derived},
		"a later list":      {disk.Meta{Identity: id, Members: later}, seq.Incarnation{}},
		"one that was kept": {disk.Meta{Identity: id, Members: later, Incarnation: restored}, restored},
		"restored":          {disk.Meta{Identity: id, Members: first, Incarnation: seq.Incarnation{Cluster: origin, Era: 2}}, restored},
	} {
		if got := lifeOf(row.meta); got != row.want {
			t.Errorf("%s: %v, expected %v", name, got, row.want)
		}
	}
}

func TestALearnerIsOfTheIncarnationOfTheListThatTakesItIn(t *testing.T) {
	b, list, adopt, _ := newLearner(t)
	in := list(2, true)
	in.Incarnation = seq.NewIncarnation(seq.ClusterID{}, "c1", 0, []string{"x", "y", "z"})
	adopt(in, nil)
	b.reopen()
	if got := b.describe().Incarnation; got != in.Incarnation {
		t.Errorf("it is of %v, expected %v", got, in.Incarnation)
	}
}
