package regions

import (
	"errors"
	"slices"
	"strings"
	"testing"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

func ns(t *testing.T, name string, alias uint32, layout string, recorded bool) Namespace {
	t.Helper()
	l, err := snowflake.Preset(layout)
	if err != nil {
		if l, err = snowflake.ParseLayout(layout); err != nil {
			t.Fatal(err)
		}
	}
	return Namespace{name, alias, l, recorded}
}

func TestClustersAreComparedByWhatTheirCallersMean(t *testing.T) {
	const wide = "time:42,datacenter:3,worker:6,sequence:12;epoch=1596364434706;overflow=borrow" // regional, with another policy
	cn, sg := []Datacenter{{1, "cn"}}, []Datacenter{{1, "sg"}}
	for _, row := range []struct {
		what           string
		mine, theirs   Namespace
		dcs, otherDCs  []Datacenter
		want, wantText string
	}{
		{"one id", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "regional", true), cn, sg, "a", `clusters x and y can make the same IDs: namespace "a", datacenters 1 "cn" and 1 "sg"`},
		{"one id under one name", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "regional", true), cn, cn, "a", `1 "cn"`},
		{"no names", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "regional", true), []Datacenter{{0, ""}}, []Datacenter{{0, ""}}, "a", "0 without a name"},
		{"policies", ns(t, "a", 0, "regional", true), ns(t, "a", 0, wide, true), cn, sg, "a", ""},
		{"offered", ns(t, "a", 0, "regional", false), ns(t, "a", 0, "regional", false), cn, sg, "a", ""},
		{"two ids", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "regional", true), cn, []Datacenter{{2, "sg"}, {3, "us"}}, "", ""},
		{"one of several", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "regional", true), []Datacenter{{2, "x"}, {5, "y"}}, []Datacenter{{4, "z"}, {5, "w"}}, "a", `5 "y"`},
		{"other names of namespaces", ns(t, "a", 0, "regional", true), ns(t, "b", 0, "regional", true), cn, sg, "", ""},
		{"another alias", ns(t, "a", 3, "regional", true), ns(t, "b", 4, "regional", true), cn, sg, "", ""},
		{"one alias", ns(t, "a", 3, "regional", true), ns(t, "b", 3, "regional", true), cn, sg, "a", `namespace "a" and "b", both alias 3`},
		{"nothing used there", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "regional", true), cn, nil, "", ""},
		{"fields that lie elsewhere", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "twitter", true), []Datacenter{{1, ""}}, []Datacenter{{1, ""}, {2, ""}}, "a", "1 without a name and 2 without"},
		{"no datacenters", ns(t, "a", 0, "leaf", true), ns(t, "a", 0, "leaf", true), cn, []Datacenter{{2, "sg"}}, "a", "layouts leaf and leaf, not both with datacenters"},
		{"no datacenters on one side", ns(t, "a", 0, "leaf", true), ns(t, "a", 0, "regional", true), cn, []Datacenter{{2, "sg"}}, "a", "layouts leaf and regional"},
		{"no datacenters, and nothing recorded", ns(t, "a", 0, "leaf", false), ns(t, "a", 0, "leaf", true), cn, []Datacenter{{2, "sg"}}, "", ""},
		{"an id that has no place", ns(t, "a", 0, "regional", true), ns(t, "a", 0, "regional", true), []Datacenter{{9, ""}}, []Datacenter{{9, ""}}, "", ""},
	} {
		x := Cluster{ID: "x", Namespaces: []Namespace{row.mine}, Datacenters: row.dcs}
		y := Cluster{ID: "y", Namespaces: []Namespace{row.theirs}, Datacenters: row.otherDCs}
		all := x.Conflicts(y)
		if len(all) != min(len(row.want), 1) || row.want != "" && (all[0].Namespace != row.want || !strings.Contains(all[0].String(), row.wantText)) {
			t.Errorf("%s: got %v, want %q with %q", row.what, all, row.want, row.wantText)
		}
		if back := y.Conflicts(x); len(back) != len(all) {
			t.Errorf("%s: seen from there %v, from here %v", row.what, back, all)
		}
	}
}

func TestAReplyIsReadAsAClusterOrRefused(t *testing.T) {
	reply := &pb.SnowflakeNamespacesReply{ClusterId: "shop-cn", Namespaces: []*pb.SnowflakeNamespace{
		{Name: "a", Alias: 3, Version: 2, Layout: &pb.SnowflakeLayout{Text: "time:42,datacenter:3,worker:6,sequence:12;epoch=1596364434706"}},
		{Name: "old", Version: 2, RetiredUnixMs: 5, Layout: &pb.SnowflakeLayout{Text: "of another age"}},
		{Name: "b", Layout: &pb.SnowflakeLayout{Text: "time:41,datacenter:5,worker:5,sequence:12;unit=1ms;epoch=1288834974657"}},
	}, Datacenters: []*pb.SnowflakeDatacenter{{Id: 1, Name: "cn"}}}
	c, err := Of(reply, "h:1")
	names := []string{}
	for _, n := range c.Namespaces {
		names = append(names, n.Name)
	}
	if err != nil || c.ID != "shop-cn" || !slices.Equal(names, []string{"a", "b"}) || !c.Namespaces[0].Recorded || c.Namespaces[1].Recorded || c.Namespaces[0].Alias != 3 || !slices.Equal(c.Datacenters, []Datacenter{{1, "cn"}}) {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err := Of(&pb.SnowflakeNamespacesReply{}, "h:1"); err != nil || c.ID != "at h:1" {
		t.Errorf("a version that tells no id: %+v, %v", c, err)
	}
	reply.Namespaces[1].RetiredUnixMs = 0
	if _, err := Of(reply, "h:1"); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "shop-cn") || !strings.Contains(err.Error(), `"old"`) {
		t.Errorf("got %v, want ErrUnreadable with cluster and namespace", err)
	}
}
