package globalid

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// dial serves a node over gRPC.
func (n *node) dial() pb.SnowflakeClient {
	t := n.c.t
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gate.NewServer(gate.ServerConfig{})
	n.svc.Load().Register(srv)
	go srv.Serve(lis)
	t.Cleanup(srv.Stop)
	conn, err := rpc.Dial(lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pb.NewSnowflakeClient(conn)
}

func long(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func unixMs(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func TestKnownIDsDecodeAndComposeAsTheirUsersKnowThem(t *testing.T) {
	client := newCluster(t).start("a").dial()
	ctx := long(t)
	for _, row := range []struct {
		layout                       string
		id                           int64
		tick                         uint64
		unixMs                       int64 // zero if it is not checked
		datacenter, worker, sequence uint64
	}{
		{layout: "twitter", id: 4194304, tick: 1},
		{layout: "twitter", id: 4194305, tick: 1, sequence: 1},
		{layout: "twitter", id: 1541815603606036480, tick: 367597485448, datacenter: 11, worker: 26},
		{layout: "regional", id: 108152875544481803, tick: 51571309826, unixMs: unixMs(t, "2022-03-22T07:55:44.532Z"), datacenter: 1, worker: 1, sequence: 11},
		{layout: "regional", id: 107209837483659272, tick: 51121634237, datacenter: 1, worker: 1, sequence: 8},
		{layout: "baidu-29", id: 180363646902239241, tick: 10498546, worker: 4, sequence: 9},
		{layout: "leaf", id: 1169786042799259000, tick: 278898726177, unixMs: 1567733700834, worker: 39, sequence: 3448},
		{layout: "sonyflake", id: 362637573840961538, tick: 21614883771, worker: 2},
		{layout: "time:39,sequence:8,machine:16;unit=10ms;epoch=2014-09-01T00:00:00Z", id: 362637573840961538, tick: 21614883771, worker: 2},
	} {
		got, err := client.Decode(ctx, &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Number{Number: row.id}, Layout: row.layout})
		if err != nil {
			t.Errorf("decode %d as %s: %v", row.id, row.layout, err)
			continue
		}
		if got.Tick != row.tick || got.DatacenterId != row.datacenter || got.WorkerId != row.worker || got.Sequence != row.sequence ||
			row.unixMs != 0 && got.UnixMs != row.unixMs || got.Text != fmt.Sprint(row.id) {
			t.Errorf("decode %d as %s: got %v", row.id, row.layout, got)
		}
		for _, req := range []*pb.SnowflakeComposeRequest{
			{Time: &pb.SnowflakeComposeRequest_Tick{Tick: row.tick}},
			{Time: &pb.SnowflakeComposeRequest_UnixMs{UnixMs: got.UnixMs}},
		} {
			req.Layout, req.DatacenterId, req.WorkerId, req.Sequence = row.layout, row.datacenter, row.worker, row.sequence
			again, err := client.Compose(ctx, req)
			if err != nil || !proto.Equal(again, got) {
				t.Errorf("compose %v: got %v, %v", req, again, err)
			}
		}
	}
}

func TestTextFormsGoBothWays(t *testing.T) {
	client := newCluster(t).start("a").dial()
	ctx := long(t)
	for encoding, text := range map[string]string{
		"": "1023510546613293056", "decimal": "1023510546613293056", "base58": "3nNeLuv1t79", "zbase32": "hpb7pppcywyy", "hex": "e343cf0ff0e1000",
	} {
		if encoding == "hex" {
			text = fmt.Sprintf("%x", 1023510546613293056)
		}
		got, err := client.Decode(ctx, &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Text{Text: text}, Encoding: encoding})
		if err != nil || got.Id != 1023510546613293056 {
			t.Errorf("%s %q: got %v, %v", encoding, text, got, err)
			continue
		}
		back, err := client.Compose(ctx, &pb.SnowflakeComposeRequest{Time: &pb.SnowflakeComposeRequest_Tick{Tick: got.Tick},
			DatacenterId: got.DatacenterId, WorkerId: got.WorkerId, Sequence: got.Sequence, Encoding: encoding})
		if err != nil || back.Text != text {
			t.Errorf("%s: got %v, %v, want text %q", encoding, back, err, text)
		}
	}
}

func TestBadInputIsRefusedByNameOverTheWire(t *testing.T) {
	n := newCluster(t).start("a")
	client := n.dial()
	ctx := long(t)
	decode := func(req *pb.SnowflakeDecodeRequest) error { _, err := client.Decode(ctx, req); return err }
	compose := func(req *pb.SnowflakeComposeRequest) error { _, err := client.Compose(ctx, req); return err }
	number := func(id int64) *pb.SnowflakeDecodeRequest_Number { return &pb.SnowflakeDecodeRequest_Number{Number: id} }
	text := func(s string) *pb.SnowflakeDecodeRequest_Text { return &pb.SnowflakeDecodeRequest_Text{Text: s} }
	tick := func(v uint64) *pb.SnowflakeComposeRequest_Tick { return &pb.SnowflakeComposeRequest_Tick{Tick: v} }
	generate := func(req *pb.SnowflakeGenerateRequest) error { _, err := client.Generate(ctx, req); return err }
	put := func(req *pb.SnowflakePutNamespaceRequest) error { _, err := client.PutNamespace(ctx, req); return err }
	for what, row := range map[string]struct{ err, want error }{
		"a negative id":             {decode(&pb.SnowflakeDecodeRequest{Id: number(-1)}), seq.ErrBadID},
		"an id above its layout":    {decode(&pb.SnowflakeDecodeRequest{Id: number(1 << 40), Layout: "time:20,worker:4,sequence:8;epoch=0"}), seq.ErrBadID},
		"a wrong alphabet":          {decode(&pb.SnowflakeDecodeRequest{Id: text("3nNeLuv1t7l"), Encoding: "base58"}), seq.ErrBadID},
		"a text too long":           {decode(&pb.SnowflakeDecodeRequest{Id: text("11111111111111111111")}), seq.ErrBadID},
		"a text above 63 bits":      {decode(&pb.SnowflakeDecodeRequest{Id: text("9223372036854775808")}), seq.ErrBadID},
		"no id":                     {decode(&pb.SnowflakeDecodeRequest{}), seq.ErrBadID},
		"an unknown encoding":       {decode(&pb.SnowflakeDecodeRequest{Id: text("1"), Encoding: "base99"}), seq.ErrBadArgument},
		"65 bits":                   {decode(&pb.SnowflakeDecodeRequest{Id: number(1), Layout: "time:43,worker:10,sequence:12;epoch=0"}), seq.ErrBadLayout},
		"64 bits, to be made":       {put(&pb.SnowflakePutNamespaceRequest{Name: "x", Layout: "time:42,worker:10,sequence:12;epoch=0"}), seq.ErrBadLayout},
		"a layout for reading":      {put(&pb.SnowflakePutNamespaceRequest{Name: "x", Layout: "time:42,worker:10,sequence:12;epoch=0"}), seq.ErrBadLayout},
		"64 bits, put together":     {compose(&pb.SnowflakeComposeRequest{Layout: "discord", Time: tick(1)}), seq.ErrBadLayout},
		"a UUID without a time":     {decode(&pb.SnowflakeDecodeRequest{Id: text("f47ac10b-58cc-4372-a567-0e02b2c3d479")}), seq.ErrBadID},
		"a UUID of a namespace":     {decode(&pb.SnowflakeDecodeRequest{Id: text("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), Namespace: "default"}), seq.ErrBadID},
		"no layout at all":          {decode(&pb.SnowflakeDecodeRequest{Id: number(1), Layout: "twiter"}), seq.ErrBadLayout},
		"an unknown namespace":      {decode(&pb.SnowflakeDecodeRequest{Id: number(1), Namespace: "moon"}), seq.ErrUnknownNamespace},
		"a worker out of range":     {compose(&pb.SnowflakeComposeRequest{Time: tick(1), WorkerId: 32}), seq.ErrBadID},
		"no time":                   {compose(&pb.SnowflakeComposeRequest{}), seq.ErrBadArgument},
		"a tick behind the last":    {compose(&pb.SnowflakeComposeRequest{Time: tick(1 << 41)}), seq.ErrTimeExhausted},
		"the second after the last": {compose(&pb.SnowflakeComposeRequest{Layout: "baidu", Time: &pb.SnowflakeComposeRequest_UnixMs{UnixMs: unixMs(t, "2024-11-20T21:24:16+08:00")}}), seq.ErrTimeExhausted},
		"a time before the epoch":   {compose(&pb.SnowflakeComposeRequest{Time: &pb.SnowflakeComposeRequest_UnixMs{UnixMs: 5}}), seq.ErrBadID},
		"a count too large":         {generate(&pb.SnowflakeGenerateRequest{Count: seq.MaxIDs + 1}), seq.ErrBadCount},
		"an agent with a space":     {generate(&pb.SnowflakeGenerateRequest{Count: 1, Agent: "a b"}), seq.ErrBadArgument},
		"an agent of digits":        {generate(&pb.SnowflakeGenerateRequest{Count: 1, Agent: "1a"}), seq.ErrBadArgument},
		"the name of no agent":      {generate(&pb.SnowflakeGenerateRequest{Count: 1, Agent: unnamedAgent}), seq.ErrBadArgument},
		"an encoding of no name":    {generate(&pb.SnowflakeGenerateRequest{Count: 1, Encoding: "rot13"}), seq.ErrBadArgument},
		"an unknown alias":          {generate(&pb.SnowflakeGenerateRequest{Count: 1, Alias: 77}), seq.ErrUnknownNamespace},
		"a namespace of no layout":  {put(&pb.SnowflakePutNamespaceRequest{Name: "x"}), seq.ErrBadLayout},
		"a policy of no name":       {put(&pb.SnowflakePutNamespaceRequest{Name: "x", Layout: "leaf", Overflow: "hope"}), seq.ErrBadLayout},
		"a name of digits":          {put(&pb.SnowflakePutNamespaceRequest{Name: "7", Layout: "leaf"}), seq.ErrBadArgument},
	} {
		if !errors.Is(row.err, row.want) {
			t.Errorf("%s: got %v, want %v", what, row.err, row.want)
		}
	}
	if _, err := client.Compose(ctx, &pb.SnowflakeComposeRequest{Layout: "baidu",
		Time: &pb.SnowflakeComposeRequest_UnixMs{UnixMs: unixMs(t, "2024-11-20T21:24:15+08:00")}}); err != nil {
		t.Errorf("the last second of baidu: %v", err)
	}
	if _, err := client.Generate(ctx, &pb.SnowflakeGenerateRequest{Count: 1}); err != nil {
		t.Errorf("after all that: %v", err)
	}
	if got, err := client.Generate(ctx, &pb.SnowflakeGenerateRequest{}); err != nil || len(got.GetIds()) != 1 {
		t.Errorf("without a count: got %v, %v, want one ID", got, err)
	}
}

func TestIDsAndRunsAreTheSameNumbersOfOneWorker(t *testing.T) {
	n := newCluster(t).start("a", func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 1, Name: "cn"} })
	client := n.dial()
	ctx := long(t)
	seen := map[uint64]bool{}
	for _, runs := range []bool{false, true} {
		got, err := client.Generate(ctx, &pb.SnowflakeGenerateRequest{Alias: 1, Count: 10_000, AsRuns: runs, Encoding: "base62"})
		if err != nil {
			t.Fatal(err)
		}
		ids := got.Ids
		for _, r := range got.Runs {
			for id := r.First; id <= r.Last; id += r.Stride {
				ids = append(ids, id)
			}
		}
		if len(ids) != 10_000 || runs == (len(got.Ids) > 0) || len(got.Texts) != len(ids) {
			t.Fatalf("runs %v: got %d ids and %d texts", runs, len(ids), len(got.Texts))
		}
		for k, id := range ids {
			if read, err := snowflake.Base62.Parse(got.Texts[k]); err != nil || uint64(read) != id {
				t.Fatalf("id %d has the text %q: %d, %v", id, got.Texts[k], read, err)
			}
			if seen[id] || k > 0 && id <= ids[k-1] {
				t.Fatalf("id %d twice or not rising", id)
			}
			seen[id] = true
		}
		last, err := client.Decode(ctx, &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Number{Number: int64(ids[9999])}, Namespace: "1"})
		if err != nil || last.WorkerId != got.WorkerId || last.DatacenterId != 1 || last.Datacenter != "cn" || got.DatacenterId != 1 || got.Layout != "regional" {
			t.Errorf("got %v, %v", last, err)
		}
	}
}

func TestAgentsAreCountedByNameInABoundedTable(t *testing.T) {
	n := newCluster(t).start("a")
	client := n.dial()
	ctx := long(t)
	for agent, count := range map[string]uint32{"": 1, "web-1": 5, "batch": 7} {
		if _, err := client.Generate(ctx, &pb.SnowflakeGenerateRequest{Count: count, Agent: agent}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]uint64{"(none)": 1, "web-1": 5, "batch": 7}, n.svc.Load().agents.counts()); diff != "" {
		t.Error(diff)
	}
	var a agents
	for k := range 2 * maxAgents {
		c, err := a.counter(fmt.Sprint("agent-", k))
		if err != nil {
			t.Fatal(err)
		}
		c.Add(1)
	}
	if got := a.counts(); len(got) != maxAgents+1 || got[otherAgents] != maxAgents {
		t.Errorf("got %d names, %d by others", len(got), got[otherAgents])
	}
}

func TestAnOperatorSeesAndChangesNamespaces(t *testing.T) {
	c := newCluster(t)
	client, other := c.start("a").dial(), c.start("b").dial()
	ctx := long(t)
	made, err := client.PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: "orders", Alias: 9, Layout: "leaf", Overflow: "borrow"})
	if err != nil {
		t.Fatal(err)
	}
	if made.Version != 1 || made.Layout.Name != "leaf" || made.Layout.Overflow != "borrow" || made.Layout.Rollback != "wait:5ms" {
		t.Errorf("got %v", made)
	}
	// The other node knows it at once.
	if got, err := other.Generate(ctx, &pb.SnowflakeGenerateRequest{Alias: 9, Count: 1}); err != nil || got.Namespace != "orders" {
		t.Errorf("got %v, %v", got, err)
	}
	change := &pb.SnowflakePutNamespaceRequest{Name: "orders", Rollback: "borrow", Version: 1}
	made, err = other.PutNamespace(ctx, change)
	if err != nil || made.Version != 2 || made.Alias != 9 || made.Layout.Overflow != "borrow" || made.Layout.Rollback != "borrow" {
		t.Errorf("got %v, %v", made, err)
	}
	if _, err := client.PutNamespace(ctx, change); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("the same again: got %v, want %v", err, seq.ErrConflict)
	}
	if _, err := client.PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: "orders", Layout: "twitter", Version: 2}); !errors.Is(err, seq.ErrUnsafeChange) {
		t.Errorf("another layout: got %v, want %v", err, seq.ErrUnsafeChange)
	}
	all, err := client.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{})
	if err != nil || len(all.Namespaces) != 4 || all.Namespaces[0].Name != "default" || all.Namespaces[0].Version != 0 {
		t.Errorf("got %v, %v", all, err)
	}
	if diff := cmp.Diff([]*pb.SnowflakeDatacenter{{}}, all.GetDatacenters(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	one, err := client.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{Namespace: "9"})
	if err != nil || len(one.Namespaces) != 1 || one.Namespaces[0].Version != 2 {
		t.Errorf("got %v, %v", one, err)
	}
	if _, err := client.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{Namespace: "moon"}); !errors.Is(err, seq.ErrUnknownNamespace) {
		t.Errorf("got %v, want %v", err, seq.ErrUnknownNamespace)
	}
	layouts, err := client.Layouts(ctx, &pb.SnowflakeLayoutsRequest{})
	if err != nil || len(layouts.Layouts) < 9 {
		t.Fatalf("got %v, %v", layouts, err)
	}
	for _, l := range layouts.Layouts {
		if l.Exhausted != (l.Name == "baidu") || l.Text == "" {
			t.Errorf("got %v", l)
		}
	}
}

func TestAnOperatorSeesWhoHoldsWhat(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a", func(c *Config) { c.Node.Datacenter.ID = 1 }), c.start("b", func(c *Config) { c.Node.Datacenter.ID = 2 })
	ctx := long(t)
	mine, err := a.dial().Info(ctx, &pb.SnowflakeInfoRequest{Alias: 2})
	if err != nil || mine.Node != "a" || mine.DatacenterId != 1 || mine.Layout.Name != "regional" || mine.TimestampUnixMs != c.wall.Load() ||
		mine.ConfirmedUnixMs <= uint64(mine.TimestampUnixMs) {
		t.Errorf("got %v, %v", mine, err)
	}
	b.must("2", 1)
	b.leave()
	got, err := a.dial().Workers(ctx, &pb.SnowflakeWorkersRequest{Namespace: "regional-2"})
	if err != nil || len(got.Workers) != 2 || got.Pool != 64 {
		t.Fatalf("got %v, %v", got, err)
	}
	if w := got.Workers[0]; w.DatacenterId != 1 || w.WorkerId != mine.WorkerId || w.Node != "a" || w.Free || w.LeaseLeftMs <= 0 {
		t.Errorf("held: got %v", w)
	}
	if w := got.Workers[1]; w.DatacenterId != 2 || w.Session != 0 || !w.Free || w.LeaseLeftMs != -1 || w.MarkUnixMs == 0 {
		t.Errorf("released: got %v", w)
	}
}
