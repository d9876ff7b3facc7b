package processes

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// Two clusters with nothing in common, of which the second one is given the datacenter id of the
// first: its allocator ends with both named, until it has an id of its own.
func TestTwoRegionsDoNotShareADatacenterUnnoticed(t *testing.T) {
	region := func(id string, alloc ...string) func(*localcluster.Config) {
		return func(cfg *localcluster.Config) {
			cfg.ClusterID, cfg.Stores, cfg.Allocs, cfg.Sections = id, 1, 1, setSections
			cfg.Args = map[localcluster.Role][]string{localcluster.RoleAlloc: alloc}
		}
	}
	ids := func(c *localcluster.Cluster, count uint32) map[string]bool {
		t.Helper()
		sdk, err := client.New(harness.Within(t), client.Config{Addrs: []string{c.GRPC()}, Timeout: harness.Patience})
		if err != nil {
			t.Fatal(err)
		}
		defer sdk.Close()
		got, err := sdk.Generate(harness.Within(t), "regional-1", count)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]bool{}
		for id := range got.All() {
			all[id.String()] = true
		}
		return all
	}
	cn := harness.Start(t, region("shop-cn", "--datacenter-id", "1", "--datacenter", "cn"))
	one := ids(cn, 1000)

	sg := harness.Launch(t, region("shop-sg", "--datacenter-id", "1", "--datacenter", "sg", "--regions", cn.GRPC()))
	wrong := sg.Processes(localcluster.RoleAlloc)[0]
	harness.Until(t, "the allocator ends by itself", wrong.Failed)
	log, err := os.ReadFile(wrong.Log)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"shop-cn", "shop-sg", `1 "cn"`, `1 "sg"`, "datacenter id belongs to another name"} {
		if !strings.Contains(string(log), part) {
			t.Errorf("the log does not say %s: %s", part, log)
		}
	}
	if err := sg.StopAll(harness.Within(t)); err != nil && !errors.Is(err, localcluster.ErrExited) {
		t.Fatal(err)
	}

	us := harness.Start(t, region("shop-us", "--datacenter-id", "2", "--datacenter", "us", "--regions", cn.GRPC()))
	for id := range ids(us, 1000) {
		if one[id] {
			t.Errorf("%s is of both", id)
		}
	}
	compare := func(other *localcluster.Cluster) harness.Ended {
		return harness.Run(t, harness.Command(harness.Within(t), t, nil, "seqctl", "namespace", "compare", "--addr", cn.GRPC(), other.GRPC(), "-o", "json"))
	}
	var r struct {
		Clusters []struct {
			Cluster string `json:"cluster_id"`
		} `json:"clusters"`
	}
	if got := compare(us); got.Code != 0 || json.Unmarshal([]byte(got.Stdout), &r) != nil || len(r.Clusters) != 2 || r.Clusters[1].Cluster != "shop-us" {
		t.Errorf("compare: %+v", got)
	}

	// A cluster that was told of nobody has the id as well: by hand it is found.
	eu := harness.Start(t, region("shop-eu", "--datacenter-id", "1", "--datacenter", "eu"))
	ids(eu, 1)
	if got := compare(eu); got.Code != 1 || !strings.Contains(got.Stderr, "shop-eu") || !strings.Contains(got.Stderr, "shop-cn") || !strings.Contains(got.Stdout, "regional-1") {
		t.Errorf("compare: %+v", got)
	}
}
