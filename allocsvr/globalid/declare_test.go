package globalid

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

func parsed(t *testing.T, text string) namespaces.Namespace {
	t.Helper()
	ns, err := namespaces.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// configured starts a node with namespaces in its file.
func configured(t *testing.T, c *cluster, name string, texts ...string) *node {
	t.Helper()
	return c.start(name, func(cfg *Config) {
		for _, text := range texts {
			cfg.Namespaces = append(cfg.Namespaces, parsed(t, text))
		}
	})
}

func recorded(t *testing.T, n *node) map[string]namespaces.Namespace {
	t.Helper()
	d, err := n.svc.Load().names.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]namespaces.Namespace{}
	for _, ns := range d.Namespaces {
		out[ns.Name] = ns
	}
	return out
}

func TestANamespaceOfTheFileIsReadStrictly(t *testing.T) {
	got := parsed(t, "  layout=leaf  name=orders\talias=7 overflow=borrow rollback=wait:10ms ")
	want := namespaces.Namespace{Name: "orders", Alias: 7, Layout: layout(t, "time:41,worker:10,sequence:12;epoch=1288834974657;overflow=borrow;rollback=wait:10ms")}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for text, named := range map[string]string{
		"":                                    "needed",
		"name=a":                              "needed",
		"layout=leaf":                         "needed",
		"name=a layout=leaf name=b":           "twice",
		"name=a layout=leaf epoch=3":          "epoch",
		"name=a layout=leaf alias=0":          "alias",
		"name=a layout=leaf alias=x":          "alias",
		"name=a layout=leaf alias=4294967296": "alias",
		"name=a layout=leaf alias=":           "alias",
		"name=A layout=leaf":                  "name",
		"name=a layout=none":                  "none",
		"name=a layout=leaf overflow=maybe":   "maybe",
		"name=a layout=leaf rollback=wait":    "wait",
		"a leaf":                              `"a"`,
	} {
		_, err := namespaces.Parse(text)
		if !errors.Is(err, seq.ErrBadArgument) && !errors.Is(err, seq.ErrBadLayout) || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: got %v, want one that names %s", text, err, named)
		}
	}
}

func TestNamespacesOfTheFileAreRecordedAtTheStart(t *testing.T) {
	c := newCluster(t)
	a := configured(t, c, "alloc-1", "name=orders alias=7 layout=leaf", "name=default layout=request-wide")
	eventually(t, "both recorded", func() bool { return len(recorded(t, a)) == 2 })
	got := recorded(t, a)
	if ns := got["orders"]; ns.Version != 1 || ns.Alias != 7 || ns.Layout != layout(t, "leaf") {
		t.Errorf("orders: got %+v", ns)
	}
	if ns := got["default"]; ns.Layout != layout(t, "request-wide") {
		t.Errorf("default: got %+v", ns)
	}
	// Another node finds them, under name and number, with the same file or none.
	b := configured(t, c, "alloc-2", "name=orders alias=7 layout=leaf")
	plain := c.start("alloc-3")
	for _, n := range []*node{b, plain} {
		if _, issue := n.must("7", 1); issue.Namespace != "orders" || issue.Layout != "leaf" {
			t.Errorf("%s: got %+v", n.name, issue)
		}
	}
	if diff := cmp.Diff(uint64(1), recorded(t, plain)["orders"].Version); diff != "" {
		t.Errorf("the second node wrote again: %s", diff)
	}
}

func TestWhatIsRecordedIsNotUndoneByAnotherFile(t *testing.T) {
	c := newCluster(t)
	a := configured(t, c, "alloc-1", "name=orders layout=time:40,worker:8,sequence:12;epoch=1700000000000")
	eventually(t, "recorded", func() bool { return len(recorded(t, a)) == 1 })
	before := recorded(t, a)["orders"]
	for what, text := range map[string]string{
		"another policy": "name=orders layout=time:40,worker:8,sequence:12;epoch=1700000000000 overflow=borrow",
		"a wider layout": "name=orders layout=time:43,worker:8,sequence:12;epoch=1700000000000",
		"an alias":       "name=orders alias=9 layout=time:40,worker:8,sequence:12;epoch=1700000000000",
	} {
		n := configured(t, c, "alloc-2", text, "name=mark-"+strings.ReplaceAll(what, " ", "-")+" layout=leaf")
		eventually(t, "the file was read", func() bool {
			return len(recorded(t, a)) > 1 && recorded(t, a)["mark-"+strings.ReplaceAll(what, " ", "-")].Version == 1
		})
		if got := recorded(t, n)["orders"]; got != before {
			t.Errorf("%s: got %+v, want %+v", what, got, before)
		}
		n.kill()
	}
}

func TestANodeWhoseFileCouldRepeatIDsDoesNotStart(t *testing.T) {
	c := newCluster(t)
	a := configured(t, c, "alloc-1", "name=orders alias=7 layout=time:40,worker:8,sequence:12;epoch=1700000000000", "name=users alias=8 layout=leaf")
	eventually(t, "recorded", func() bool { return len(recorded(t, a)) == 2 })
	before := recorded(t, a)
	for what, text := range map[string]string{
		"another epoch":           "name=orders alias=7 layout=time:40,worker:8,sequence:12;epoch=1700000000001",
		"another split":           "name=orders layout=time:40,worker:9,sequence:11;epoch=1700000000000",
		"another alias":           "name=orders alias=9 layout=time:40,worker:8,sequence:12;epoch=1700000000000",
		"the alias of another":    "name=fresh alias=8 layout=leaf",
		"the same, after another": "name=orders alias=7 layout=leaf",
	} {
		n := configured(t, c, "alloc-2", "name=other-1 layout=leaf", text)
		select {
		case err := <-n.done:
			if !errors.Is(err, seq.ErrUnsafeChange) || !strings.Contains(err.Error(), strings.Fields(text)[0][len("name="):]) {
				t.Errorf("%s: ended with %v, want %v that names the namespace", what, err, seq.ErrUnsafeChange)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the node runs on", what)
		}
		if diff := cmp.Diff(before, recorded(t, a), cmp.Comparer(func(a, b namespaces.Namespace) bool { return a == b })); diff != "" {
			t.Errorf("%s: the refused file changed something\n%s", what, diff)
		}
	}
}

// deaf documents give no answer until they hear.
type deaf struct {
	documents.Stores
	hears atomic.Bool
	asked atomic.Int64
}

func (d *deaf) LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error) {
	d.asked.Add(1)
	if !d.hears.Load() {
		return quorum.Document{}, seq.ErrNoQuorum
	}
	return d.Stores.LoadDocument(ctx, session, reg)
}

func TestNamespacesOfTheFileAreRecordedOnceThereIsAQuorum(t *testing.T) {
	c := newCluster(t)
	docs := &deaf{Stores: c.group}
	c.start("alloc-1", func(cfg *Config) {
		cfg.Documents, cfg.Namespaces = docs, []namespaces.Namespace{parsed(t, "name=orders layout=leaf")}
	})
	eventually(t, "the stores were asked", func() bool { return docs.asked.Load() > 0 })
	docs.hears.Store(true)
	b := c.start("alloc-2")
	eventually(t, "recorded", func() bool { return len(recorded(t, b)) == 1 })
}
