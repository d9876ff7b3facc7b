package globalid

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// ended is a layout that had its last tick in 2024.
const ended = "baidu"

// addEnded records a namespace as it could be before its layout had ended.
func (c *cluster) addEnded(n *node, name, text string) {
	c.t.Helper()
	now := c.wall.Swap(time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	defer c.wall.Store(now)
	_, err := n.svc.Load().names.Put(context.Background(), namespaces.Edit{Name: name, Layout: text})
	if err != nil {
		c.t.Fatal(err)
	}
}

func TestANamespaceWhoseLayoutHasEndedIsNotRecorded(t *testing.T) {
	c := newCluster(t)
	a := c.start("a")
	_, err := a.dial().PutNamespace(long(t), &pb.SnowflakePutNamespaceRequest{Name: "old", Layout: ended})
	if !errors.Is(err, seq.ErrTimeExhausted) || !strings.Contains(err.Error(), "2024-11-20") {
		t.Errorf("got %v, want %v with the day", err, seq.ErrTimeExhausted)
	}
	b := configured(t, c, "b", "name=new layout=leaf", "name=old layout="+ended)
	select {
	case err := <-b.done:
		if !errors.Is(err, seq.ErrTimeExhausted) || !strings.Contains(err.Error(), "old") {
			t.Errorf("a node with such a file: got %v, want its end by %v", err, seq.ErrTimeExhausted)
		}
	case <-time.After(patience):
		t.Errorf("a node with such a file runs, want its end by %v", seq.ErrTimeExhausted)
	}
	if got := recorded(t, a); len(got) != 0 {
		t.Errorf("recorded are %v", got)
	}
	offers := c.start("c", func(cfg *Config) { cfg.Namespaces = []namespaces.Namespace{parsed(t, "name=old layout="+ended)} })
	if _, _, err := offers.gen("old", 1); err == nil || len(recorded(t, a)) != 0 {
		t.Errorf("a request at such a node: got %v, recorded %v", err, recorded(t, a))
	}
	if _, _, err := offers.svc.Load().names.Record(long(t), "old"); !errors.Is(err, seq.ErrTimeExhausted) || len(recorded(t, a)) != 0 {
		t.Errorf("a request before the node has ended: got %v, recorded %v", err, recorded(t, a))
	}
}

func TestANamespaceWhoseLayoutEndedLaterStaysUntilItIsRetired(t *testing.T) {
	c := newCluster(t)
	a := c.start("a")
	c.addEnded(a, "old", ended)
	b := configured(t, c, "b", "name=new layout=leaf", "name=old layout="+ended)
	eventually(t, "the file was read", func() bool { return recorded(t, a)["new"].Version == 1 })
	client, ctx := b.dial(), long(t)
	if _, err := client.PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: "old", Overflow: "borrow", Version: 1}); !errors.Is(err, seq.ErrTimeExhausted) {
		t.Errorf("another policy: got %v, want %v", err, seq.ErrTimeExhausted)
	}
	if got, err := client.RetireNamespace(ctx, &pb.SnowflakeRetireNamespaceRequest{Namespace: "old"}); err != nil || got.RetiredUnixMs == 0 {
		t.Errorf("retire: got %v, %v", got, err)
	}
	if _, err := client.RetireNamespace(ctx, &pb.SnowflakeRetireNamespaceRequest{Namespace: "old", Undo: true}); !errors.Is(err, seq.ErrTimeExhausted) {
		t.Errorf("undo: got %v, want %v", err, seq.ErrTimeExhausted)
	}
}

func TestARetiredNamespaceHandsOutNothingUntilThatIsUndoneAndRepeatsNothing(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	c.add(a, "orders", "leaf")
	before, _ := a.must("orders", 100)
	client, other, ctx := a.dial(), b.dial(), long(t)
	got, err := client.RetireNamespace(ctx, &pb.SnowflakeRetireNamespaceRequest{Namespace: "orders"})
	if err != nil || got.RetiredUnixMs == 0 || got.Version != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	if again, err := other.RetireNamespace(ctx, &pb.SnowflakeRetireNamespaceRequest{Namespace: "orders"}); err != nil || again.RetiredUnixMs != got.RetiredUnixMs || again.Version != 2 {
		t.Errorf("again: got %v, %v", again, err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, seq.ErrRetired) || !strings.Contains(err.Error(), "orders") {
			t.Errorf("%s: got %v, want %v", what, err, seq.ErrRetired)
		}
	}
	for name, n := range map[string]pb.SnowflakeClient{"the node that had a worker id": client, "another": other} {
		_, err := n.Generate(ctx, &pb.SnowflakeGenerateRequest{Namespace: "orders", Count: 1})
		refused(name+" generates", err)
		_, err = n.Delegate(ctx, &pb.SnowflakeDelegateRequest{Namespace: "orders"})
		refused(name+" delegates", err)
		_, err = n.Info(ctx, &pb.SnowflakeInfoRequest{Namespace: "orders"})
		refused(name+" tells of its worker id", err)
		_, err = n.PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: "orders", Overflow: "borrow", Version: 2})
		refused(name+" changes it", err)
		_, err = n.PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: "orders", Layout: "leaf"})
		refused(name+" adds it", err)
		if _, err := n.Decode(ctx, &pb.SnowflakeDecodeRequest{Id: &pb.SnowflakeDecodeRequest_Number{Number: int64(before[0])}, Namespace: "orders"}); err != nil {
			t.Errorf("%s decodes an ID of before: %v", name, err)
		}
	}
	shown, err := other.Namespaces(ctx, &pb.SnowflakeNamespacesRequest{Namespace: "orders"})
	if err != nil || len(shown.Namespaces) != 1 || shown.Namespaces[0].RetiredUnixMs != got.RetiredUnixMs {
		t.Errorf("shown as %v, %v", shown, err)
	}
	if got, err := client.RetireNamespace(ctx, &pb.SnowflakeRetireNamespaceRequest{Namespace: "orders", Undo: true}); err != nil || got.RetiredUnixMs != 0 || got.Version != 3 {
		t.Fatalf("undo: got %v, %v", got, err)
	}
	after, _ := a.must("orders", 100)
	for _, id := range after {
		if slices.Contains(before, id) {
			t.Errorf("id %d twice", id)
		}
	}
}

func TestAFileDoesNotBringARetiredNamespaceBack(t *testing.T) {
	c := newCluster(t)
	a := configured(t, c, "a", "name=orders layout=leaf")
	eventually(t, "recorded", func() bool { return len(recorded(t, a)) == 1 })
	if _, err := a.dial().RetireNamespace(long(t), &pb.SnowflakeRetireNamespaceRequest{Namespace: "orders"}); err != nil {
		t.Fatal(err)
	}
	before := recorded(t, a)["orders"]
	b := configured(t, c, "b", "name=orders layout=leaf", "name=later layout=leaf")
	eventually(t, "the file was read", func() bool { return recorded(t, a)["later"].Version == 1 })
	if got := recorded(t, b)["orders"]; got != before || got.Retired == 0 {
		t.Errorf("got %+v, want %+v", got, before)
	}
	if _, _, err := b.gen("orders", 1); !errors.Is(err, seq.ErrRetired) {
		t.Errorf("got %v, want %v", err, seq.ErrRetired)
	}
	// The document decides also for a node that has not heard of it.
	if _, _, err := b.svc.Load().names.Record(long(t), "orders"); !errors.Is(err, seq.ErrRetired) {
		t.Errorf("taken into use: got %v, want %v", err, seq.ErrRetired)
	}
	if _, _, err := b.gen("later", 1); err != nil { // the node serves the others
		t.Error(err)
	}
}

func TestWhatIsOnlyOfferedCanBeRetired(t *testing.T) {
	c := newCluster(t)
	a, b := c.start("a"), c.start("b")
	client, ctx := a.dial(), long(t)
	if got, err := client.RetireNamespace(ctx, &pb.SnowflakeRetireNamespaceRequest{Alias: 1}); err != nil || got.Name != "regional-1" || got.Version != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, _, err := b.gen("1", 1); !errors.Is(err, seq.ErrRetired) {
		t.Errorf("got %v, want %v", err, seq.ErrRetired)
	}
	for _, req := range []*pb.SnowflakeRetireNamespaceRequest{{}, {Namespace: "moon"}} {
		if _, err := client.RetireNamespace(ctx, req); !errors.Is(err, seq.ErrBadArgument) && !errors.Is(err, seq.ErrUnknownNamespace) {
			t.Errorf("%v: got %v", req, err)
		}
	}
}
