package namespaces

import (
	"errors"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func mustLayout(t *testing.T, text string) snowflake.Layout {
	t.Helper()
	l, err := ParseLayout(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSpansWithoutTheWorkerIDsOfOthers(t *testing.T) {
	own := Own{{First: 0, Last: 3}, {First: 8, Last: 15, Above: 5}, {First: 20, Last: 20}}
	for _, c := range []struct{ taken, want Own }{
		{nil, own},
		{Own{{First: 2, Last: 2}, {First: 3, Last: 3}, {First: 9, Last: 9}, {First: 15, Last: 15}}, Own{{First: 0, Last: 1}, {First: 8, Last: 8, Above: 5}, {First: 10, Last: 14, Above: 5}, {First: 20, Last: 20}}},
		{Own{{First: 0, Last: 0}, {First: 3, Last: 9}, {First: 18, Last: 30}}, Own{{First: 1, Last: 2}, {First: 10, Last: 15, Above: 5}}},
	} {
		if got := own.Less(c.taken); !slices.Equal(got, c.want) {
			t.Errorf("without %v: %v, want %v", c.taken, got, c.want)
		}
	}
}

func TestTheRootHasWhatItHasNotAllotted(t *testing.T) {
	l := mustLayout(t, "time:41,datacenter:2,worker:4,sequence:12;epoch=0")
	d := directory{Format: format}
	for _, a := range []Allotment{
		{Namespace: "n", Cluster: "b", First: 12, Last: 15, Above: 5},
		{Namespace: "n", Cluster: "c", First: 3, Last: 3},
		{Namespace: "n", Datacenter: 1, Cluster: "b", First: 0, Last: 7, Above: 1},
		{Namespace: "m", Cluster: "b", First: 0, Last: 15, Above: 1},
	} {
		var err error
		if d, err = d.allot(a); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		namespace string
		dc        snowflake.Datacenter
		want      Own
	}{
		{"n", 0, Own{{First: 0, Last: 2}, {First: 4, Last: 11}}},
		{"n", 1, Own{{First: 8, Last: 15}}},
		{"n", 2, Own{{First: 0, Last: 15}}},
		{"m", 0, nil},
	} {
		if got := d.own(l, c.namespace, c.dc); !slices.Equal(got, c.want) {
			t.Errorf("%s %d: the root has %v, want %v", c.namespace, c.dc, got, c.want)
		}
	}
	b := d.told("b")
	b.Member = true
	if got := b.own(l, "n", 0); !slices.Equal(got, Own{{First: 12, Last: 15, Above: 5}}) {
		t.Errorf("b has %v", got)
	}
	if c := d.told("c"); len(c.Allotments) != 0 {
		t.Errorf("c was told of %v, which the root is not done with", c.Allotments)
	}
	if _, err := d.allot(Allotment{Namespace: "n", Cluster: "c", First: 10, Last: 12}); !errors.Is(err, seq.ErrUnsafeChange) {
		t.Errorf("12 twice: %v", err)
	}
}

func TestDirectoriesAreMergedOrContradictEachOther(t *testing.T) {
	l := mustLayout(t, "twitter")
	d := directory{Format: format, Namespaces: []Namespace{{Name: "n", Alias: 7, Layout: l, Version: 3}}, Datacenters: []Datacenter{{ID: 1, Name: "cn"}}}
	same := directory{Namespaces: []Namespace{{Name: "n", Alias: 7, Layout: l, Version: 2}}, Datacenters: []Datacenter{{ID: 1}}}
	if _, changed, err := d.merge(same); changed || err != nil {
		t.Errorf("older: changed %v, %v", changed, err)
	}
	next, changed, err := d.merge(directory{
		Namespaces: []Namespace{{Name: "n", Alias: 7, Layout: l, Version: 4, Retired: 9}}, Datacenters: []Datacenter{{ID: 2, Name: "sg"}},
		Allotments: []Allotment{{Namespace: "n", Cluster: "b", Last: 3, Above: 8}}})
	if err != nil || !changed || next.Namespaces[0].Retired != 9 || len(next.Datacenters) != 2 || len(next.Allotments) != 1 {
		t.Errorf("newer: %+v, %v, %v", next, changed, err)
	}
	for what, c := range map[string]struct {
		d    directory
		want error
	}{
		"a version as another":       {directory{Namespaces: []Namespace{{Name: "n", Alias: 7, Layout: mustLayout(t, "leaf"), Version: 4, Retired: 9}}}, seq.ErrUnsafeChange},
		"an alias of another":        {directory{Namespaces: []Namespace{{Name: "m", Alias: 7, Layout: l, Version: 1}}}, seq.ErrUnsafeChange},
		"a datacenter id of another": {directory{Datacenters: []Datacenter{{ID: 1, Name: "sg"}}}, seq.ErrDatacenterTaken},
		"a worker id of another":     {directory{Allotments: []Allotment{{Namespace: "n", Cluster: "c", First: 3, Last: 4, Above: 1}}}, seq.ErrUnsafeChange},
	} {
		if got, changed, err := next.merge(c.d); !errors.Is(err, c.want) || changed || len(got.Allotments) != 1 {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
