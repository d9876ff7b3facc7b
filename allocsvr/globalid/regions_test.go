package globalid

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/textlog"
)

// region is a cluster of its own with one node, and what another one sees of it.
type region struct {
	*cluster
	*node
	away atomic.Bool // it does not answer
	log  *textlog.Log
}

var errAway = errors.New("no route to host")

// startRegion runs a node of a datacenter in a new cluster that looks at others.
func startRegion(t *testing.T, id string, dc snowflake.Datacenter, name string, others ...*region) *region {
	t.Helper()
	r := &region{cluster: newCluster(t), log: &textlog.Log{}}
	r.node = r.join(id, dc, name, others...)
	return r
}

// join runs one more node of the region.
func (r *region) join(id string, dc snowflake.Datacenter, name string, others ...*region) *node {
	return r.cluster.start(id+"-"+name, func(cfg *Config) {
		cfg.Cluster, cfg.Node.Datacenter = id, namespaces.Datacenter{ID: dc, Name: name}
		cfg.Logger = slog.New(slog.NewTextHandler(r.log, nil))
		for _, other := range others {
			cfg.Regions = append(cfg.Regions, Region{Addr: other.name, Ask: other.ask})
		}
	})
}

// ask is the method that other regions call.
func (r *region) ask(ctx context.Context) (*pb.SnowflakeNamespacesReply, error) {
	if r.away.Load() {
		return nil, errAway
	}
	return server{s: r.svc.Load()}.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{})
}

// ended waits until the node has ended by itself.
func (r *region) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-long(t).Done():
		t.Fatal("the node goes on")
		return nil
	}
}

// conflicts returns the conflicts that the node reports after a look.
func (r *region) conflicts(t *testing.T) []string {
	t.Helper()
	r.svc.Load().abroad.look(long(t))
	reply, err := r.ask(long(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.gauge("seq_snowflake_region_conflicts", ""); int(got) != len(reply.Conflicts) {
		t.Errorf("the metric says %v, the reply %v", got, reply.Conflicts)
	}
	return reply.Conflicts
}

// met counts the IDs that both have.
func met(a, b []snowflake.ID) (n int) {
	have := map[snowflake.ID]bool{}
	for _, id := range a {
		have[id] = true
	}
	for _, id := range b {
		if have[id] {
			n++
		}
	}
	return n
}

func TestANewClusterWithTheDatacenterOfAnotherRegionDoesNotStart(t *testing.T) {
	cn := startRegion(t, "shop-cn", 1, "cn")
	cn.must("", 1)
	for _, name := range []string{"sg", "cn", ""} {
		sg := startRegion(t, "shop-sg", 1, name, cn)
		err := sg.ended(t)
		if !errors.Is(err, seq.ErrDatacenterTaken) {
			t.Fatalf("as %q: got %v, want ErrDatacenterTaken", name, err)
		}
		for _, part := range []string{"shop-cn", "shop-sg", `1 "cn"`, `namespace "default"`} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("as %q: %q does not name %s", name, err, part)
			}
		}
		if v, err := sg.svc.Load().names.Load(long(t)); err != nil || len(v.Datacenters) != 0 {
			t.Errorf("as %q: the id was bound all the same: %+v, %v", name, v.Datacenters, err)
		}
	}
}

func TestClustersWithDatacentersOfTheirOwnStartAndMeetNowhere(t *testing.T) {
	cn := startRegion(t, "shop-cn", 1, "cn")
	one, _ := cn.must("", 4096)
	sg := startRegion(t, "shop-sg", 2, "sg", cn)
	sg.wall.Store(cn.wall.Load())
	two, _ := sg.must("", 4096)
	if all := sg.conflicts(t); len(all) != 0 || met(one, two) != 0 {
		t.Errorf("conflicts %q, %d IDs are of both", all, met(one, two))
	}
	if got := sg.gauge("seq_snowflake_regions", "heard"); got != 1 {
		t.Errorf("the other region is heard: %v", got)
	}
}

func TestARegionThatIsAwayStopsNothingAndIsComparedLater(t *testing.T) {
	cn := startRegion(t, "shop-cn", 1, "cn")
	cn.must("", 1)
	cn.away.Store(true)
	sg := startRegion(t, "shop-sg", 1, "sg", cn)
	sg.must("", 1)
	if all := sg.conflicts(t); len(all) != 0 || sg.gauge("seq_snowflake_regions", "heard") != 0 || !strings.Contains(sg.log.String(), "nothing waits for it") {
		t.Errorf("while it is away: %q, log %s", all, sg.log)
	}
	cn.away.Store(false)
	all := sg.conflicts(t)
	if len(all) != 3 || !strings.Contains(all[0], `clusters shop-sg and shop-cn can make the same IDs: namespace "default", datacenters 1 "sg" and 1 "cn"`) {
		t.Fatalf("got %q, want one of each namespace that is offered", all)
	}
	if text := sg.log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "IDs can repeat those of another region") {
		t.Errorf("log %s", text)
	}
	// It has used the datacenter: it goes on, and so does a node that starts now.
	sg.must("", 1)
	sg.join("shop-sg-2", 1, "sg", cn).must("", 1)
	cn.away.Store(true) // what it told holds
	if again := sg.conflicts(t); len(again) != 3 {
		t.Errorf("when it is away again: %q", again)
	}
	cn.away.Store(false)
	if _, err := cn.svc.Load().names.Retire(long(t), namespaces.Ref{Name: "default"}, false); err != nil {
		t.Fatal(err)
	}
	if rest := sg.conflicts(t); len(rest) != 2 {
		t.Errorf("after a namespace was retired there: %q", rest)
	}
}

func TestTheFirstUseOfADatacenterIsRefusedWhereAnotherRegionWasFaster(t *testing.T) {
	cn := startRegion(t, "shop-cn", 1, "cn")
	sg := startRegion(t, "shop-sg", 1, "sg", cn)
	if all := sg.conflicts(t); len(all) != 0 {
		t.Fatalf("before anybody has made an ID: %q", all)
	}
	cn.must("", 1)
	sg.pass(2 * regionsFresh)
	if _, _, err := sg.gen("", 1); !errors.Is(err, seq.ErrDatacenterTaken) {
		t.Errorf("got %v, want ErrDatacenterTaken", err)
	}
	if err := cn.svc.Load().abroad.first(long(t), cn.svc.Load().cfg.Node.Datacenter); err != nil {
		t.Errorf("the one that was first: %v", err)
	}
	cn.must("", 1)
}

func TestAnotherDatacenterIsTheCureOfAConflict(t *testing.T) {
	cn := startRegion(t, "shop-cn", 1, "cn")
	cn.must("", 1)
	cn.away.Store(true)
	sg := startRegion(t, "shop-sg", 1, "sg", cn)
	sg.must("", 1)
	cn.away.Store(false)
	moved := sg.join("shop-sg", 2, "sg-2", cn)
	if _, got := moved.must("", 1); got.Datacenter != 2 {
		t.Errorf("got %+v", got)
	}
	if all := sg.conflicts(t); len(all) == 0 || strings.Contains(all[0], "datacenters 2") {
		t.Errorf("got %q, want those of the id that both have used", all)
	}
}

func TestIDsWithoutADatacenterAreNotMadeInTwoRegions(t *testing.T) {
	flat := func(cfg *Config) {
		cfg.Namespaces = []namespaces.Namespace{{Name: "orders", Layout: layout(t, "leaf")}}
	}
	cn := &region{cluster: newCluster(t), log: &textlog.Log{}}
	cn.node = cn.cluster.start("cn", flat, func(cfg *Config) { cfg.Cluster = "shop-cn" })
	cn.must("orders", 1)
	sg := &region{cluster: newCluster(t), log: &textlog.Log{}}
	sg.node = sg.cluster.start("sg", flat, func(cfg *Config) {
		cfg.Cluster, cfg.Node.Datacenter.ID, cfg.Regions = "shop-sg", 2, []Region{{Addr: cn.name, Ask: cn.ask}}
	})
	if err := sg.ended(t); !errors.Is(err, seq.ErrDatacenterTaken) || !strings.Contains(err.Error(), `namespace "orders"`) || !strings.Contains(err.Error(), "not both with datacenters") {
		t.Errorf("got %v", err)
	}
}

func TestAClusterIsNotItsOwnOtherRegion(t *testing.T) {
	cn := startRegion(t, "shop-cn", 1, "cn")
	cn.must("", 1)
	same := &region{cluster: cn.cluster, log: cn.log}
	same.node = same.join("shop-cn", 1, "cn", cn)
	same.must("", 1)
	if all := same.conflicts(t); len(all) != 0 || !strings.Contains(cn.log.String(), `it is of this cluster, \"shop-cn\"`) {
		t.Errorf("got %q, log %s", all, cn.log)
	}
}

func TestAnotherRegionOfTheSameNameIsNotTakenForThisCluster(t *testing.T) {
	life := func(digit byte) func(*Config) {
		return func(c *Config) { c.Cluster, c.Life = "prod", seq.Incarnation{Cluster: seq.ClusterID{digit}} }
	}
	dc := func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 1, Name: "cn"} }
	cn := newCluster(t).start("cn", life(1), dc)
	cn.must("", 1)
	other := func(c *Config) {
		c.Regions = []Region{{Addr: "cn", Ask: (&region{node: cn}).ask}}
	}
	sg := &region{cluster: newCluster(t)}
	sg.node = sg.cluster.start("sg", life(2), dc, other)
	if err := sg.ended(t); !errors.Is(err, seq.ErrDatacenterTaken) || !strings.Contains(err.Error(), "prod (01") || !strings.Contains(err.Error(), "prod (02") {
		t.Errorf("got %v", err)
	}
}

func TestIDsOfOneDatacenterIdInTwoClustersRepeat(t *testing.T) {
	makes := func(dc snowflake.Datacenter) []snowflake.ID {
		ids, _ := newCluster(t).start("a", func(cfg *Config) {
			worker := snowflake.Worker(0)
			cfg.Node = namespaces.Node{Datacenter: namespaces.Datacenter{ID: dc}, Worker: &worker}
		}).must("", 4096)
		return ids
	}
	if met(makes(1), makes(1)) == 0 || met(makes(1), makes(2)) != 0 {
		t.Errorf("%d IDs are of both, want some; of two datacenters %d, want none", met(makes(1), makes(1)), met(makes(1), makes(2)))
	}
}

// The root looks at the regions for all Sets: one of them may not have been told of any.
func TestTheRootLetsNoSetUseADatacenterOfAnotherRegionFirst(t *testing.T) {
	sg := startRegion(t, "shop-sg", 5, "sg")
	sg.must("", 1)
	g := newGroup(t, 3)
	root := g.start(0, "root", func(c *Config) {
		c.Cluster, c.Node.Datacenter = "shop-cn", namespaces.Datacenter{ID: 1, Name: "cn"}
		c.Regions = []Region{{Addr: sg.name, Ask: sg.ask}}
	})
	root.must("", 1)
	of := func(id snowflake.Datacenter) func(*Config) {
		return func(c *Config) { c.Cluster, c.Node.Datacenter = "shop-cn-b", namespaces.Datacenter{ID: id} }
	}
	if ids, _, err := g.start(1, "b", of(5)).gen("", 5); !errors.Is(err, seq.ErrDatacenterTaken) {
		t.Errorf("%v, %v", ids, err)
	}
	if v, err := root.svc.Load().names.Load(t.Context()); err != nil || v.Bound(5) {
		t.Errorf("it is used: %+v, %v", v.Datacenters, err)
	}
	if found := root.svc.Load().abroad.conflicts(); len(found) > 0 {
		t.Errorf("what was refused counts as a conflict: %v", found)
	}
	g.start(2, "c", of(6)).must("", 5)
}
