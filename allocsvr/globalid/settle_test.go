package globalid

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// backup returns the document of namespaces as it is now, or nothing if there is none yet.
func (c *cluster) backup() (out []quorum.RegisterState) {
	for _, st := range c.stores[0].dump() {
		if st.Register == seq.NamespacesRegister && len(st.Payload) > 0 {
			out = append(out, st)
		}
	}
	return out
}

// restore kills the root's node, and replaces the root's stores by stores restored from the backup.
func (g *group) restore(backup []quorum.RegisterState, old *node) {
	old.kill()
	restored := restoredFrom(g.t, g.sets[0], backup)
	g.mu.Lock()
	g.sets[0] = restored
	g.mu.Unlock()
	g.pass(10 * time.Second) // as the floors of a restored era have everybody wait
	g.restored.Store(true)
}

// told returns a Set's report for the settlement of the root.
func (g *group) told(n *node) [][]byte {
	g.t.Helper()
	told, err := n.svc.Load().Allot(g.t.Context(), "1", nil, namespaces.AllotmentRequest{})
	if err != nil {
		g.t.Fatal(err)
	}
	return [][]byte{told}
}

func in31(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 31} }

// with has a namespace in the configuration of a node.
func with(t *testing.T, name, text string) func(*Config) {
	return func(c *Config) {
		c.Namespaces = append(c.Namespaces, namespaces.Namespace{Name: name, Layout: layout(t, text)})
	}
}

// The layout that the root would write contradicts the Sets' layout of the same version. Worker id bits of
// one layout are datacenter bits of the other, so both would make the same IDs.
func TestARootThatWasRestoredWritesNothingBeforeTheOtherSetsTold(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root", in31)
	backup := g.sets[0].backup() // nothing is recorded yet
	g.sets[0].add(root, "default", "leaf")
	b := g.start(1, "b", only(1023))
	eventually(t, "b has heard of the layout", func() bool {
		ids, _, err := b.gen("default", 20)
		if err == nil {
			book.add("default", "b", ids)
		}
		return err == nil
	})
	g.restore(backup, root)
	again := g.start(0, "again", in31, only(31), with(t, "default", "twitter"))
	names := again.svc.Load().names
	for range 20 {
		if _, _, err := again.gen("default", 1); !errors.Is(err, seq.ErrWorkersKept) {
			t.Fatalf("before it is settled: %v", err)
		}
		if _, err := names.For(t.Context(), namespaces.AllotmentRequest{Namespace: "default"}); !errors.Is(err, seq.ErrWorkersKept) {
			t.Fatalf("a Set asks before it is settled: %v", err)
		}
	}
	if v, err := names.Load(t.Context()); err != nil || len(v.Namespaces) > 0 || len(v.Datacenters) > 0 {
		t.Errorf("before it is settled the root recorded %+v, %+v, %v", v.Namespaces, v.Datacenters, err)
	}
	if err := again.svc.Load().Settle(t.Context(), g.told(b)); err != nil {
		t.Fatal(err)
	}
	g.restored.Store(false)
	other := g.start(0, "other", in31, only(31))
	eventually(t, "it makes IDs", func() bool {
		ids, _, err := other.gen("default", 20)
		if err == nil {
			book.add("default", "root", ids)
		}
		return err == nil
	})
	book.take(b, "default", 20)
	select {
	case err := <-again.done: // it was told of a configuration that does not fit what is recorded
		if !errors.Is(err, seq.ErrUnsafeChange) {
			t.Errorf("the node with another layout in its configuration ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("a node goes on with another layout in its configuration than is recorded")
	}
}

// A node that has run since before the root was settled records the configured namespaces after that.
func TestWhatIsConfiguredIsRecordedOnceTheRootIsSettled(t *testing.T) {
	g := newGroup(t, 2)
	g.restored.Store(true)
	root := g.start(0, "root", with(t, "orders", eight))
	names := root.svc.Load().names
	if _, _, err := root.gen("orders", 1); !errors.Is(err, seq.ErrWorkersKept) {
		t.Errorf("before: %v", err)
	}
	if err := root.svc.Load().Settle(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	g.restored.Store(false)
	eventually(t, "it is recorded", func() bool {
		v, err := names.Load(t.Context())
		return err == nil && len(v.Namespaces) == 1
	})
}

// A node that finds an allotment half done finishes it.
func TestAnAllotmentThatADeadNodeBeganIsFinishedByAnother(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root", only(0))
	g.sets[0].add(root, "orders", eight)
	book.take(root, "orders", 1)
	if _, err := root.svc.Load().names.Reserve(t.Context(), namespaces.Allotment{Namespace: "orders", Cluster: "1", First: 6, Last: 7}); err != nil {
		t.Fatal(err)
	}
	root.kill()
	g.start(0, "root2")
	w, _ := book.take(g.start(1, "b"), "orders", 20)
	if has := g.has(1, "orders"); len(has) != 2 || has[0] != 6 || w < 6 {
		t.Errorf("the Set has %v, and makes IDs with %d", has, w)
	}
}

// The backup of a root has an allotment half done that has been finished since. The Set's report shows how
// the allotment ended.
func TestARootIsSettledThoughItsBackupIsFromAmidAnAllotment(t *testing.T) {
	for what, reserved := range map[string]namespaces.Allotment{
		"what the Set has":   {Namespace: "orders", Cluster: "1", First: 6, Last: 7},
		"more than it has":   {Namespace: "orders", Cluster: "1", First: 5, Last: 7},
		"what another had":   {Namespace: "orders", Cluster: "2", First: 7, Last: 7},
		"what no Set has":    {Namespace: "orders", Cluster: "1", First: 3, Last: 4},
		"in another library": {Namespace: "library", Cluster: "1", First: 6, Last: 7},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGroup(t, 3)
			book := g.book()
			root := g.start(0, "root", only(0))
			g.sets[0].add(root, "orders", eight)
			names := root.svc.Load().names
			book.take(root, "orders", 1)
			reserved, err := names.Reserve(t.Context(), reserved)
			if err != nil {
				t.Fatal(err)
			}
			backup := g.sets[0].backup()
			if err := names.Confirm(t.Context(), reserved, nil); err != nil {
				t.Fatal(err)
			}
			b := g.start(1, "b", only(7))
			book.take(b, "orders", 20)
			book.take(g.start(1, "b2", only(6)), "orders", 20)
			g.restore(backup, root)
			again := g.start(0, "again")
			if err := again.svc.Load().Settle(t.Context(), g.told(b)); err != nil {
				t.Fatal(err)
			}
			g.restored.Store(false)
			eventually(t, "the root makes IDs", func() bool {
				ids, _, err := again.gen("orders", 20)
				if err == nil {
					book.add("orders", "again", ids)
				}
				return err == nil
			})
			book.take(b, "orders", 20)
			book.take(g.start(2, "c"), "orders", 20)
		})
	}
}

// The root was restored and has forgotten which worker ids it gave Set b, which goes on with them for
// longer than the floors of the root last; then b is restored as well, and has forgotten them, too.
func TestWorkerIDsThatRootAndSetHaveForgottenAreNotUsedWhileTheirWindowsLast(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", "twitter")
	book.take(root, "orders", 1)
	backup := g.sets[0].backup()
	g.down.Store(true) // else b asks for worker ids at once
	first := g.start(1, "b")
	if err := first.svc.Load().Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	backupOfB := g.sets[1].backup()
	g.down.Store(false)
	eventually(t, "b has worker ids", func() bool {
		ids, _, err := first.gen("orders", 20)
		book.add("orders", "b", ids)
		return err == nil
	})
	g.restore(backup, root)
	g.leap(2 * storeAhead)
	k := &client{c: g.sets[1], name: "k", book: book}
	w := k.must(first, "orders").WorkerId
	again := g.start(0, "again", only(snowflake.Worker(w)))
	first.kill()
	g.sets[1] = restoredFrom(t, g.sets[1], backupOfB)
	for _, s := range g.sets[1].stores {
		s.setFloors(g.sets[1].floors())
	}
	b := g.start(1, "b again")
	if err := again.svc.Load().Settle(t.Context(), g.told(b)); err != nil {
		t.Fatal(err)
	}
	g.restored.Store(false)
	for range 20 {
		if ids, _, err := again.gen("orders", 20); !errors.Is(err, seq.ErrWorkersKept) {
			t.Fatalf("the root makes IDs while windows are in use that none knows of: %v, %v", ids, err)
		}
		if _, err := again.svc.Load().names.For(t.Context(), namespaces.AllotmentRequest{Namespace: "orders"}); !errors.Is(err, seq.ErrWorkersKept) {
			t.Fatalf("it allots worker ids: %v", err)
		}
	}
	k.drain(2000)
	b.kill() // else it may be allotted the only worker id of the root's node
	g.leap(storeAhead + time.Second)
	eventually(t, "the root makes IDs when all windows are over", func() bool {
		ids, _, err := again.gen("orders", 20)
		if err == nil {
			book.add("orders", "root", ids)
		}
		return err == nil
	})
}
