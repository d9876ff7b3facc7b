package globalid

import (
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

func TestADatacenterIsAskedForByName(t *testing.T) {
	c := newCluster(t)
	of := func(id snowflake.Datacenter, name string) func(*Config) {
		return func(cfg *Config) { cfg.Node.Datacenter = namespaces.Datacenter{ID: id, Name: name} }
	}
	cn, us := c.start("a", of(1, "cn")).dial(), c.start("b", of(2, "us")).dial()
	ask := func(from pb.SnowflakeClient, namespace, datacenter string) (*pb.SnowflakeGenerateReply, error) {
		return from.Generate(long(t), &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: 2, Datacenter: datacenter})
	}
	if got, err := ask(us, "", "cn"); !errors.Is(err, seq.ErrUnknownDatacenter) {
		t.Errorf("before its first ID: got %v, %v", got, err)
	}
	for _, row := range []struct {
		from                  pb.SnowflakeClient
		namespace, datacenter string
		want                  error
		id                    uint64
	}{
		{from: cn, datacenter: "cn", id: 1},
		{from: cn, namespace: "regional-1", datacenter: "cn", id: 1},
		{from: us, datacenter: "us", id: 2},
		{from: us, datacenter: "", id: 2},
		{from: us, datacenter: "cn", want: seq.ErrNodeUnfit},
		{from: cn, datacenter: "us", want: seq.ErrNodeUnfit},
		{from: cn, datacenter: "moon", want: seq.ErrUnknownDatacenter},
		{from: cn, namespace: "moon", datacenter: "cn", want: seq.ErrUnknownNamespace},
		{from: cn, datacenter: "c n", want: seq.ErrBadArgument},
	} {
		got, err := ask(row.from, row.namespace, row.datacenter)
		if !errors.Is(err, row.want) || row.want == nil && (err != nil || got.GetDatacenterId() != row.id || len(got.GetIds()) != 2) {
			t.Errorf("namespace %q, datacenter %q: got %v, %v, want %v and datacenter id %d", row.namespace, row.datacenter, got, err, row.want, row.id)
		}
	}
	if _, err := cn.PutNamespace(long(t), &pb.SnowflakePutNamespaceRequest{Name: "flat", Layout: "leaf"}); err != nil {
		t.Fatal(err)
	}
	if got, err := ask(cn, "flat", "cn"); !errors.Is(err, seq.ErrUnknownDatacenter) {
		t.Errorf("a layout without datacenters: got %v, %v", got, err)
	}
}
