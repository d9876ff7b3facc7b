package ids

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// regionOf is a cluster that has made IDs of one datacenter in a namespace.
func regionOf(t *testing.T, cluster, namespace string, dc uint64, name string) *node {
	t.Helper()
	l, err := snowflake.Preset("regional")
	if err != nil {
		t.Fatal(err)
	}
	n := serve(t, true)
	n.say(answer{reply: &pb.SnowflakeNamespacesReply{ClusterId: cluster,
		Namespaces:  []*pb.SnowflakeNamespace{{Name: namespace, Version: 1, Layout: &pb.SnowflakeLayout{Text: l.String()}}},
		Datacenters: []*pb.SnowflakeDatacenter{{Id: dc, Name: name}}}})
	return n
}

func TestClustersOfRegionsAreComparedByHand(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	cn, sg, us := regionOf(t, "shop-cn", "orders", 1, "cn"), regionOf(t, "shop-sg", "orders", 1, "sg"), regionOf(t, "shop-us", "orders", 2, "us")
	out, err := call(t, "namespace", "compare", "--addr", cn.addr, us.addr)
	if err != nil || !strings.Contains(out, "shop-cn") || !strings.Contains(out, "2 us") {
		t.Errorf("apart: got %v, %s", err, out)
	}
	out, err = call(t, "namespace", "compare", "--addr", cn.addr, us.addr, sg.addr)
	const want = `clusters shop-cn and shop-sg can make the same IDs: namespace "orders", datacenters 1 "cn" and 1 "sg"`
	if !errors.Is(err, errShared) || errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) || !strings.Contains(out, want) {
		t.Errorf("got %v, %s", err, out)
	}
	out, err = call(t, "namespace", "compare", "--addr", sg.addr, cn.addr, "-o", "json")
	row := parsed(t, out).(map[string]any)["conflicts"].([]any)[0].(map[string]any)
	if !errors.Is(err, errShared) || row["cluster_id"] != "shop-sg" || row["other_cluster_id"] != "shop-cn" || row["namespace"] != "orders" || row["datacenter"].(map[string]any)["name"] != "sg" {
		t.Errorf("got %v, %s", err, out)
	}
	if _, err := call(t, "namespace", "compare", "--addr", cn.addr, cn.addr); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "shop-cn") {
		t.Errorf("one cluster: got %v", err)
	}
	if _, err := call(t, "namespace", "compare", "--addr", cn.addr); !errors.Is(err, daemon.ErrUsage) {
		t.Errorf("no other: got %v", err)
	}
	if _, err := call(t, "namespace", "compare", "--addr", cn.addr, "127.0.0.1:1"); err == nil || errors.Is(err, errShared) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("one that is away: got %v", err)
	}
}

func TestAClusterOfAContextIsComparedWithThoseOfContexts(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	cn, sg := regionOf(t, "shop-cn", "orders", 1, "cn"), regionOf(t, "shop-sg", "orders", 1, "sg")
	for name, n := range map[string]*node{"cn": cn, "sg": sg} {
		if _, err := call(t, "context", "add", name, "--addr", n.addr); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "seqctl", "contexts.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, "namespace", "compare", "--context", "cn", "sg"); !errors.Is(err, errShared) || !strings.Contains(err.Error(), "shop-sg") {
		t.Errorf("got %v", err)
	}
	if _, err := call(t, "namespace", "compare", "--context", "cn", sg.addr); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "context") {
		t.Errorf("an address beside a context: got %v", err)
	}
	if _, err := call(t, "namespace", "compare", "--context", "cn", "moon"); !errors.Is(err, daemon.ErrUsage) {
		t.Errorf("no such context: got %v", err)
	}
}
