package seq_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

func TestProcessesThatBindTheSameStoresDeriveTheSameIncarnation(t *testing.T) {
	first := seq.NewIncarnation(seq.ClusterID{}, "prod", 0, []string{"b", "a", "c"})
	if again := seq.NewIncarnation(seq.ClusterID{}, "prod", 0, []string{"c", "b", "a"}); again != first {
		t.Errorf("%v and %v of one list", first, again)
	}
	if !first.Known() || first.Cluster != first.Binding {
		t.Errorf("the first binding is %v, expected to be the cluster", first)
	}
	for name, other := range map[string]seq.Incarnation{
		"another store":   seq.NewIncarnation(seq.ClusterID{}, "prod", 0, []string{"a", "b", "d"}),
		"another name":    seq.NewIncarnation(seq.ClusterID{}, "test", 0, []string{"a", "b", "c"}),
		"another era":     seq.NewIncarnation(seq.ClusterID{}, "prod", 1, []string{"a", "b", "c"}),
		"a longer name":   seq.NewIncarnation(seq.ClusterID{}, "proda", 0, []string{"b", "c"}),
		"uuids run on":    seq.NewIncarnation(seq.ClusterID{}, "prod", 0, []string{"ab", "c"}),
		"one store fewer": seq.NewIncarnation(seq.ClusterID{}, "prod", 0, []string{"a", "b"}),
	} {
		if other.Binding == first.Binding {
			t.Errorf("%s: the same binding", name)
		}
	}
	restored := seq.NewIncarnation(first.Cluster, "prod", 1, []string{"x", "y", "z"})
	if restored.Cluster != first.Cluster || restored.Binding == first.Binding || restored.Era != 1 {
		t.Errorf("%v restored is %v, expected the cluster kept and another binding", first, restored)
	}
}

func TestAnIncarnationIsComparedWithAnother(t *testing.T) {
	own := seq.NewIncarnation(seq.ClusterID{}, "prod", 2, []string{"a", "b", "c"})
	foreign := seq.NewIncarnation(seq.ClusterID{}, "prod", 2, []string{"a", "b", "d"})
	twice := seq.NewIncarnation(own.Cluster, "prod", 2, []string{"x"})
	older, newer, unbound := own, own, own
	older.Era, newer.Era, unbound.Binding = 1, 3, seq.ClusterID{}
	for _, row := range []struct {
		name  string
		other seq.Incarnation
		want  error
		text  []string
		newer bool
	}{
		{name: "itself", other: own},
		{name: "not known", other: seq.Incarnation{}},
		{name: "not bound yet", other: unbound},
		{name: "another cluster", other: foreign, want: seq.ErrForeignCluster, text: []string{own.Cluster.String(), foreign.Cluster.String()}},
		{name: "restored twice", other: twice, want: seq.ErrForeignCluster, text: []string{own.Binding.String(), twice.Binding.String()}},
		{name: "an older era", other: older, want: seq.ErrStaleEra, text: []string{"era 1", "older than era 2"}},
		{name: "a newer era", other: newer, want: seq.ErrStaleEra, text: []string{"era 3", "newer than era 2"}, newer: true},
	} {
		err := own.Check(row.other)
		if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%s: %v, expected %v", row.name, err, row.want)
		}
		for _, text := range row.text {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, expected %q in it", row.name, err, text)
			}
		}
		if own.Newer(row.other) != row.newer {
			t.Errorf("%s: newer is %v", row.name, !row.newer)
		}
		if (seq.Incarnation{}).Check(row.other) != nil {
			t.Errorf("%s: one that is not known refuses it", row.name)
		}
	}
}

func TestAnIncarnationIsReadBackFromItsText(t *testing.T) {
	for _, in := range []seq.Incarnation{{}, seq.NewIncarnation(seq.ClusterID{}, "prod", 1<<63, []string{"a"})} {
		back, err := seq.ParseIncarnation(in.String())
		if err != nil || back != in {
			t.Errorf("%v came back as %v, %v", in, back, err)
		}
		type kept struct {
			In seq.Incarnation `json:"in,omitzero"`
		}
		body, err := json.Marshal(kept{in})
		var read kept
		if err == nil {
			err = json.Unmarshal(body, &read)
		}
		if err != nil || read.In != in || in.IsZero() && string(body) != "{}" {
			t.Errorf("%v came back from %s as %v, %v", in, body, read.In, err)
		}
	}
	whole := seq.NewIncarnation(seq.ClusterID{}, "prod", 1, []string{"a"}).String()
	for _, text := range []string{"", "/", "//", whole + "/", whole[1:], whole[:len(whole)-1], strings.Replace(whole, "/1/", "/-1/", 1), strings.Replace(whole, "/1/", "//", 1), "g" + whole[1:]} {
		if _, err := seq.ParseIncarnation(text); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%q: %v, expected %v", text, err, seq.ErrBadArgument)
		}
	}
}
