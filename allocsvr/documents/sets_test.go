package documents_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/memstore"
)

func newStores(t *testing.T) *memstore.Cluster {
	t.Helper()
	return newCluster(t, seq.Space{Name: "user", Sections: 8}).stores
}

// nodeSets returns the Sets of one node, which began with the present record. If lost is true, the node does
// not learn the outcome of its first swap, which was applied or not.
func nodeSets(t *testing.T, c *memstore.Cluster, lost, applied bool, change ...func(*documents.SetsConfig)) *documents.Sets {
	t.Helper()
	stores, session := c.Unsure(t, lost, applied), seq.NewSession()
	first, err := documents.ReadSets(t.Context(), c.Unsure(t, false, false), seq.NewSession())
	if err != nil {
		t.Fatal(err)
	}
	cfg := documents.SetsConfig{Life: t.Context(), Stores: stores, Session: session, First: first, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&cfg)
	}
	return documents.NewSets(cfg)
}

// joinRoot has a cluster join a root. A cluster that is refused has not begun to.
func joinRoot(t *testing.T, d *documents.Sets, name, root, rootCluster string) (sets.Record, error) {
	t.Helper()
	begun := false
	r, err := d.Join(t.Context(), name, []string{root}, rootCluster, func(context.Context) error {
		begun = true
		return nil
	})
	if begun != (err == nil) {
		t.Errorf("%s of %s in cluster %q: begun %v, %v", name, root, rootCluster, begun, err)
	}
	return r, err
}

func TestAClusterJoinsOneRootUnderOneName(t *testing.T) {
	for _, applied := range []bool{true, false} {
		c := newStores(t)
		if r, err := joinRoot(t, nodeSets(t, c, true, applied), "b", "r1", "root"); err != nil || r.Name != "b" || r.Has(0) {
			t.Fatalf("joined as %+v, %v", r, err)
		}
		for _, cluster := range []string{"root", ""} { // an operator's tool of before does not say
			if r, err := joinRoot(t, nodeSets(t, c, false, false), "b", "r2"+cluster, cluster); err != nil || r.Root[0] != "r2"+cluster || r.RootCluster != "root" {
				t.Errorf("again, the root is elsewhere: %+v, %v", r, err)
			}
		}
		for _, other := range []string{"r1", "r2"} {
			if _, err := joinRoot(t, nodeSets(t, c, false, false), "b", other, "stranger"); !errors.Is(err, seq.ErrConflict) {
				t.Errorf("another root at %s: %v", other, err)
			}
		}
		if _, err := joinRoot(t, nodeSets(t, c, false, false), "c", "r1", "root"); !errors.Is(err, seq.ErrConflict) {
			t.Errorf("under another name: %v", err)
		}
		if err := nodeSets(t, c, false, false).Found(t.Context(), "main"); !errors.Is(err, seq.ErrConflict) {
			t.Errorf("as a root: %v", err)
		}
	}
}

// A Record of an older build names no root. The next step that names one adds it.
func TestARecordWithoutTheClusterOfItsRootTakesOne(t *testing.T) {
	c := newStores(t)
	if _, err := joinRoot(t, nodeSets(t, c, false, false), "b", "r", ""); err != nil {
		t.Fatal(err)
	}
	if r, err := joinRoot(t, nodeSets(t, c, true, false), "b", "r", "root"); err != nil || r.RootCluster != "root" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := joinRoot(t, nodeSets(t, c, false, false), "b", "r", "stranger"); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("another root: %v", err)
	}
}

func TestARootJoinsNoOther(t *testing.T) {
	c := newStores(t)
	for range 2 {
		if err := nodeSets(t, c, true, true).Found(t.Context(), "main"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := joinRoot(t, nodeSets(t, c, false, false), "main", "r", "other"); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("a root joined: %v", err)
	}
	if err := nodeSets(t, c, false, false).Found(t.Context(), "other"); !errors.Is(err, seq.ErrConflict) {
		t.Errorf("it has another name: %v", err)
	}
}

func TestTheMapIsChangedAtTheRootAlone(t *testing.T) {
	root := nodeSets(t, newStores(t), false, false)
	add := func(m sets.Map) (sets.Map, bool, error) {
		return m.Add(sets.Set{Name: "main", Cluster: "a"}, sets.Set{Name: "b", Cluster: "b", Addrs: []string{"b1"}})
	}
	if m, err := root.ChangeMap(t.Context(), add); err != nil || len(m.Sets) != 2 {
		t.Fatal(m, err)
	}
	if m, err := root.LoadMap(t.Context()); err != nil || m.Version != 1 || root.Map().Version != 1 {
		t.Errorf("the root has map %d and knows %d, %v", m.Version, root.Map().Version, err)
	}
	other := newStores(t)
	if _, err := joinRoot(t, nodeSets(t, other, false, false), "b", "r1", "root"); err != nil {
		t.Fatal(err)
	}
	d := nodeSets(t, other, false, false)
	if _, err := d.LoadMap(t.Context()); !errors.Is(err, documents.ErrNotRoot) {
		t.Errorf("read: %v", err)
	}
	if _, err := d.ChangeMap(t.Context(), add); !errors.Is(err, documents.ErrNotRoot) {
		t.Errorf("changed: %v", err)
	}
}

// A node of another Set asks the root's nodes in turn for a newer map. While none answers, it uses the map
// that it heard last.
func TestAnotherSetHearsOfTheMap(t *testing.T) {
	c := newStores(t)
	if _, err := nodeSets(t, c, false, false).Join(t.Context(), "b", []string{"dead", "r"}, "root", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards now and asked
	now, asked := sets.Map{Version: 3}, make(chan uint64, 100)
	records := make(chan sets.Record, 100)
	d := nodeSets(t, c, false, false, func(cfg *documents.SetsConfig) {
		cfg.OnRecord = func(r sets.Record) { records <- r }
		cfg.Root = func(_ context.Context, addr string, newerThan uint64) (sets.Map, error) {
			if addr != "r" {
				return sets.Map{}, errors.New("connection refused")
			}
			mu.Lock()
			defer mu.Unlock()
			asked <- newerThan
			if now.Version == 0 {
				return sets.Map{}, errors.New("no quorum")
			}
			return now, nil
		}
	})
	set := func(version uint64, restored ...bool) {
		mu.Lock()
		defer mu.Unlock()
		now.Version, now.Restored = version, len(restored) > 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	look := func(held, want uint64) {
		t.Helper()
		if got := <-asked; got != held {
			t.Errorf("asked for what is newer than %d, held %d", got, held)
		}
		d.Look()
		<-asked // the look before is over
		if got := d.Map().Version; got != want {
			t.Errorf("knows map %d, want %d", got, want)
		}
		for len(asked) > 0 {
			<-asked
		}
	}
	look(0, 3)
	set(2) // of a root that was restored, or a node that is behind
	d.Look()
	look(3, 3)
	set(0)
	d.Look()
	look(3, 3)
	set(4)
	d.Look()
	look(3, 4)
	set(5, true) // of a backup: it may lack a Set that was heard of
	d.Look()
	look(4, 4)
	set(6)
	d.Look()
	look(4, 6)

	// The node sees the step of another node at its next look.
	if _, err := nodeSets(t, c, false, false).Step(t.Context(), sets.Step{Op: sets.Activate, Move: 1, By: 1}, []sets.Range{{First: 2, Sections: 1}}); err != nil {
		t.Fatal(err)
	}
	d.Look()
	for r := range records {
		if r.Has(2) {
			break
		}
	}
	if !d.Known().Has(2) || d.Known().Has(1) {
		t.Errorf("knows %+v", d.Known())
	}
	cancel()
	<-done
}

// Stores of a build that knows no Sets are of a cluster that is alone, and cannot join.
func TestStoresThatKnowNoSets(t *testing.T) {
	d := documents.NewSets(documents.SetsConfig{Life: t.Context(), Stores: setless{}, Session: seq.NewSession(), Logger: slog.New(slog.DiscardHandler)})
	if r, err := d.Load(t.Context()); err != nil || !r.IsRoot() || !r.Has(7) {
		t.Errorf("its record: %+v, %v", r, err)
	}
	if _, err := joinRoot(t, d, "b", "r", "root"); !errors.Is(err, seq.ErrUnknownRegister) {
		t.Errorf("joined: %v", err)
	}
	if _, err := d.LoadMap(t.Context()); !errors.Is(err, seq.ErrUnknownRegister) {
		t.Errorf("map: %v", err)
	}
}

// setless are stores without the documents of Sets.
type setless struct{}

func (setless) LoadDocument(context.Context, seq.Session, seq.Register) (quorum.Document, error) {
	return quorum.Document{}, seq.ErrUnknownRegister
}

func (setless) SwapDocument(context.Context, seq.Session, seq.Register, uint64, []byte) (quorum.Document, error) {
	return quorum.Document{}, seq.ErrUnknownRegister
}

// A Set's stores keep the map that a node of the Set has read. A node that starts there while the root is
// dead knows of all Sets.
func TestTheMapThatASetHeardOutlivesItsNodes(t *testing.T) {
	c := newStores(t)
	if _, err := nodeSets(t, c, false, false).Join(t.Context(), "b", []string{"r"}, "root", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	told := func(version uint64) func(*documents.SetsConfig) {
		return func(cfg *documents.SetsConfig) {
			cfg.Root = func(context.Context, string, uint64) (sets.Map, error) {
				if version == 0 {
					return sets.Map{}, errors.New("connection refused")
				}
				return sets.Map{Version: version, Sets: []sets.Set{{Name: "main"}, {Name: "b"}}}, nil
			}
		}
	}
	late := nodeSets(t, c, false, false, told(3)) // hears of it when others have heard of a newer one
	heard := func(d *documents.Sets, want uint64) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); d.Run(ctx) }()
		until := func(what string, ok func() bool) {
			t.Helper()
			for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("timed out: %s", what)
				}
			}
		}
		until("it is at the stores", func() bool {
			first, err := documents.ReadSets(t.Context(), c.Unsure(t, false, false), seq.NewSession())
			if err != nil {
				t.Fatal(err)
			}
			return first.Map.Version == want && first.Map.Heard && len(first.Map.Sets) == 2
		})
		until("the node to know it", func() bool { return d.Map().Version == want })
		cancel()
		<-done
	}
	heard(nodeSets(t, c, false, false, told(3)), 3)
	if m := nodeSets(t, c, false, false, told(0)).Map(); m.Version != 3 || len(m.Sets) != 2 {
		t.Errorf("a node that starts while the root is dead knows map %d of %v", m.Version, m.Sets)
	}
	heard(nodeSets(t, c, false, false, told(2)), 3) // of a node of the root that is behind
	heard(nodeSets(t, c, false, false, told(0)), 3)
	heard(nodeSets(t, c, false, false, told(5)), 5)
	heard(late, 5)
}
