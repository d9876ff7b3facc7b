package globalid

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

// group is Sets: clusters with the same clocks, of which the first is the root.
type group struct {
	t     *testing.T
	sets  []*cluster
	mu    sync.Mutex   // guards sets[0] against nodes that ask while it is replaced
	down  atomic.Bool  // the root does not answer other Sets
	asked atomic.Int64 // times that the root was
	// restored is true if the root's map is from a backup and not settled.
	restored atomic.Bool
}

func newGroup(t *testing.T, n int) *group {
	g := &group{t: t, sets: []*cluster{newCluster(t)}}
	for range n - 1 {
		g.sets = append(g.sets, (&cluster{t: t, clock: g.sets[0].clock, wall: g.sets[0].wall}).withStores())
	}
	return g
}

// rootOf is the root as nodes of a Set know it: namespaces.Root.
type rootOf struct {
	g   *group
	set int
}

func (r rootOf) Elsewhere() error {
	if r.set == 0 {
		return nil
	}
	return errors.New("ask the root")
}

func (r rootOf) Settled(context.Context) error {
	if r.set == 0 && r.g.restored.Load() {
		return fmt.Errorf("%w: %w", seq.ErrWorkersKept, sets.ErrMapRestored)
	}
	return nil
}

func (r rootOf) Name(cluster string) string { return "set " + cluster }

func (r rootOf) Ask(ctx context.Context, w namespaces.AllotmentRequest) ([]byte, error) {
	r.g.asked.Add(1)
	if r.g.down.Load() {
		return nil, fmt.Errorf("%w: connection refused", seq.ErrNoRoute)
	}
	var others []string
	for i := range r.g.sets[1:] {
		others = append(others, fmt.Sprint(i+1))
	}
	var err error
	for _, n := range r.g.root().all() {
		if n.dead() {
			continue
		}
		var told []byte
		if told, err = n.svc.Load().Allot(ctx, fmt.Sprint(r.set), others, w); err == nil {
			return told, nil
		}
	}
	return nil, err
}

// root returns the root Set. Nodes ask it from goroutines of their own.
func (g *group) root() *cluster {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.sets[0]
}

// dead reports whether the node was killed or has left.
func (n *node) dead() bool {
	n.leases.mu.Lock()
	defer n.leases.mu.Unlock()
	return n.leases.dead
}

// start runs a node of a Set.
func (g *group) start(set int, name string, change ...func(*Config)) *node {
	return g.sets[set].start(name, append(change, func(c *Config) { c.Root = rootOf{g, set} })...)
}

// pass lets time pass for all Sets.
func (g *group) pass(d time.Duration) {
	for ; d > 0; d -= testLease / 4 {
		g.sets[0].pass(min(d, testLease/4))
		for _, c := range g.sets[1:] {
			for _, n := range c.all() {
				n.leases.renew()
			}
		}
	}
}

// leap is cluster.leap for all Sets.
func (g *group) leap(d time.Duration) {
	g.pass(2 * testLease)
	g.sets[0].wall.Add(d.Milliseconds())
}

// only binds a node to one worker id.
func only(w snowflake.Worker) func(*Config) {
	return func(c *Config) { c.Node.Worker = &w }
}

// has returns the worker ids that a Set other than the root may use, or, of the root, those that it
// may not.
func (g *group) has(set int, namespace string) (out []snowflake.Worker) {
	for _, n := range g.sets[set].all() {
		if n.dead() {
			continue
		}
		v, err := n.svc.Load().names.Load(g.t.Context())
		if err != nil {
			g.t.Fatal(err)
		}
		for _, a := range v.Allotments {
			for w := a.First; w <= a.Last && a.Namespace == namespace && a.Above > 0; w++ {
				out = append(out, w)
			}
		}
		slices.Sort(out)
		return out
	}
	return nil
}

func (g *group) book() *ledger {
	return &ledger{t: g.t, seen: map[string]map[snowflake.ID]string{}}
}

// take has a node make IDs, and notes them.
func (l *ledger) take(n *node, namespace string, count int) (snowflake.Worker, []snowflake.ID) {
	l.t.Helper()
	ids, got := n.must(namespace, count)
	l.add(namespace, fmt.Sprintf("%s worker %d", n.name, got.Worker), ids)
	return got.Worker, ids
}

const eight = "time:43,worker:3,sequence:6;epoch=1700000000000"

func TestSetsHaveWorkerIDsOfTheirOwn(t *testing.T) {
	g := newGroup(t, 3)
	book := g.book()
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	used := map[snowflake.Worker]string{}
	for i, name := range []string{"root", "b1", "b2", "c1"} {
		n := root
		if i > 0 {
			n = g.start((i+1)/2, name)
		}
		w, _ := book.take(n, "orders", 50)
		if who := used[w]; who != "" {
			t.Errorf("worker id %d is %s's and %s's", w, who, name)
		}
		used[w] = name
	}
	b, c := g.has(1, "orders"), g.has(2, "orders")
	if len(b) != 2 || len(c) != 1 || slices.Contains(b, c[0]) || !slices.Equal(g.has(0, "orders"), slices.Sorted(slices.Values(append(b, c...)))) {
		t.Errorf("Set b has %v and Set c %v, and the root says %v", b, c, g.has(0, "orders"))
	}

	// Without the root a Set goes on, also with nodes that are new.
	g.down.Store(true)
	g.sets[1].all()[1].kill()
	g.pass(2 * testLease)
	book.take(g.start(1, "b3"), "orders", 50)
	if _, _, err := g.start(1, "b4").gen("never-heard-of", 1); err == nil || errors.Is(err, seq.ErrUnknownNamespace) {
		t.Errorf("a namespace that the root alone could know: %v", err)
	}
}

func TestASetAsksForMoreWorkerIDsUntilTheRootNeedsTheRest(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	book.take(root, "orders", 1)
	made := 0
	for i := range 8 {
		n := g.start(1, fmt.Sprint("b", i))
		ids, got, err := n.gen("orders", 10)
		if err != nil {
			if !errors.Is(err, seq.ErrWorkersExhausted) {
				t.Errorf("got %v", err)
			}
			break
		}
		book.add("orders", fmt.Sprintf("%s worker %d", n.name, got.Worker), ids)
		made++
	}
	if made != 4 { // of two Sets each has half
		t.Errorf("%d nodes of the Set have a worker id, of eight", made)
	}
	book.take(g.start(0, "root2"), "orders", 1) // the root kept some
	if len(g.has(1, "orders")) != made {
		t.Errorf("the Set has %v", g.has(1, "orders"))
	}
}

// Callers of one Set ask for more windows than the Set's share. The worker ids for the other Sets are kept
// for them.
func TestEachSetGetsWorkerIDsWhateverAnotherOneWants(t *testing.T) {
	for roots := 1; roots <= 2; roots++ {
		g := newGroup(t, 3)
		book := g.book()
		root := g.start(0, "root")
		g.sets[0].add(root, "orders", eight)
		book.take(root, "orders", 1)
		for range roots - 1 {
			book.take(g.start(0, "another"), "orders", 1)
		}
		b := g.start(1, "b")
		if lent := b.lend(t, "orders"); lent < 2 {
			t.Errorf("b has lent %d", lent)
		}
		g.pass(3 * time.Minute) // all windows are over
		book.take(g.start(2, "c"), "orders", 20)
		book.take(b, "orders", 20)
	}
}

// There are more Sets than worker ids. The first Sets to ask get an id each.
func TestManySetsShareFewWorkerIDs(t *testing.T) {
	g := newGroup(t, 12)
	book := g.book()
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	book.take(root, "orders", 1)
	for set := 1; set <= 7; set++ {
		book.take(g.start(set, fmt.Sprint("b", set)), "orders", 1)
	}
	if _, _, err := g.start(8, "late").gen("orders", 1); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("the last, which the root keeps: %v", err)
	}
}

// A call that was slow ends what it began itself, not what was begun since with the same worker ids.
func TestAnAllotmentIsConfirmedByTheCallThatMadeIt(t *testing.T) {
	g := newGroup(t, 2)
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	names, want := root.svc.Load().names, namespaces.Allotment{Namespace: "orders", Cluster: "1", First: 6, Last: 7}
	reserve := func() namespaces.Allotment {
		t.Helper()
		a, err := names.Reserve(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	confirm := func(a namespaces.Allotment, above uint64) {
		t.Helper()
		left := want
		if left.Above = above; above == 0 {
			if err := names.Confirm(t.Context(), a, nil); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err := names.Confirm(t.Context(), a, &left); err != nil {
			t.Fatal(err)
		}
	}
	slow := reserve()
	confirm(slow, 0) // another ended it: a node of the root had the worker ids
	again := reserve()
	confirm(slow, 5) // as it was before that node made IDs
	if has := g.has(0, "orders"); len(has) != 0 {
		t.Errorf("confirmed by another call: %v", has)
	}
	confirm(again, 9)
	v, err := names.Load(t.Context())
	if want.Above = 9; err != nil || len(v.Allotments) != 1 || v.Allotments[0] != want {
		t.Errorf("got %+v, %v, want %+v", v.Allotments, err, want)
	}
}

// at calls f before the look at the worker ids, once.
func at(f func()) func(*Config) {
	var once sync.Once
	return func(c *Config) {
		read := c.ReadPrefix
		c.ReadPrefix = func(ctx context.Context, session seq.Session, prefix string) (map[seq.Register]quorum.Outcome, error) {
			out, err := read(ctx, session, prefix)
			once.Do(f)
			return out, err
		}
	}
}

// A node of the root that has looked before the Set was given the worker id must not use it.
func TestANodeOfTheRootHearsOfAnAllotmentAfterItWasPromisedTheWorkerID(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	var b *node
	slow := g.start(0, "slow", only(7), at(func() {
		b = g.start(1, "b", only(7))
		if w, _ := book.take(b, "orders", 20); w != 7 {
			t.Errorf("b has worker id %d", w)
		}
	}))
	if _, got, err := slow.gen("orders", 20); !errors.Is(err, seq.ErrWorkersExhausted) && !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("slow has worker id %d, %v", got.Worker, err)
	}
	book.take(b, "orders", 20)
}

// The look before is not enough: the registers themselves are gained for the Set.
func TestAWorkerIDThatANodeOfTheRootTookMeanwhileIsNotAllotted(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	var holder *node
	root := g.start(0, "root", at(func() {
		holder = g.start(0, "holder", only(7))
		if w, _ := book.take(holder, "orders", 20); w != 7 {
			t.Errorf("holder has worker id %d", w)
		}
	}))
	g.sets[0].add(root, "orders", eight)
	if _, got, err := g.start(1, "b", only(7)).gen("orders", 20); !errors.Is(err, seq.ErrWorkersExhausted) {
		t.Errorf("b has worker id %d, %v", got.Worker, err)
	}
	book.take(holder, "orders", 20)
	if left := g.has(0, "orders"); len(left) != 0 {
		t.Errorf("allotted: %v", left)
	}
	book.take(g.start(1, "b2"), "orders", 20)
}

// The Set's IDs begin above the IDs that the root made under a worker id, whatever the clocks show.
func TestIDsOfASetBeginAboveThoseOfTheRoot(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	first := g.start(0, "first", only(7))
	g.sets[0].add(first, "orders", eight)
	_, made := book.take(first, "orders", 50)
	first.leave()
	root := g.start(0, "root")
	g.pass(10 * time.Second)
	b := g.start(1, "b", only(7))
	b.jump(-11 * time.Second) // below what the root made
	w, ids := book.take(b, "orders", 50)
	if w != 7 || ids[0] <= made[len(made)-1] {
		t.Errorf("worker %d: IDs from %d on, after %d of the root", w, ids[0], made[len(made)-1])
	}
	book.take(root, "orders", 1)
}

// A root that was restored knows nothing of what it allotted since the backup.
func TestARootThatWasRestoredMakesNoIDsBeforeTheOtherSetsTold(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	book.take(root, "orders", 1)
	backup := g.sets[0].backup()
	b := g.start(1, "b")
	w, _ := book.take(b, "orders", 20)
	g.restore(backup, root)
	again := g.start(0, "again", only(w))
	if _, _, err := again.gen("orders", 1); !errors.Is(err, seq.ErrWorkersKept) {
		t.Errorf("before it is settled: %v", err)
	}
	if err := again.svc.Load().Settle(t.Context(), g.told(b)); err != nil {
		t.Fatal(err)
	}
	g.restored.Store(false)
	eventually(t, "it knows that Set b has its worker id", func() bool {
		_, got, err := again.gen("orders", 1)
		if err == nil {
			t.Fatalf("it has worker id %d, which Set b has", got.Worker)
		}
		return errors.Is(err, seq.ErrWorkersExhausted)
	})
	book.take(b, "orders", 20)
	book.take(g.start(0, "other"), "orders", 20)
}

// restoredFrom is a cluster that has some documents of another, in the place of that.
func restoredFrom(t *testing.T, old *cluster, documents []quorum.RegisterState) *cluster {
	t.Helper()
	c := (&cluster{t: t, clock: old.clock, wall: old.wall}).withStores()
	session := seq.NewSecret("").Session()
	for _, st := range documents {
		doc, err := c.group.LoadDocument(t.Context(), session, st.Register)
		if err == nil {
			_, err = c.group.SwapDocument(t.Context(), session, st.Register, doc.Version, st.Payload[8:])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestWhatTheRootChangesReachesTheSets(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root", func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 1, Name: "cn"} })
	b := g.start(1, "b", func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 1, Name: "cn"} })
	book.take(root, "", 20)
	book.take(b, "", 20) // as it is offered, and recorded by the root
	if _, _, err := g.start(1, "sg", func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 1, Name: "sg"} }).gen("", 1); !errors.Is(err, seq.ErrDatacenterTaken) {
		t.Errorf("a datacenter id under another name, in another Set: %v", err)
	}

	g.sets[0].add(root, "late", eight)
	book.take(b, "late", 20)
	if _, err := root.svc.Load().names.Retire(t.Context(), namespaces.Ref{Name: "late"}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := b.svc.Load().names.Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.gen("late", 1); !errors.Is(err, seq.ErrRetired) {
		t.Errorf("retired at the root: %v", err)
	}
	if _, err := b.svc.Load().names.Put(t.Context(), namespaces.Edit{Name: "own", Layout: eight}); err == nil {
		t.Error("a Set other than the root has changed the namespaces")
	}
}

// Also where IDs have none in them, and the Set has a worker id to spare.
func TestTheRootHearsOfEachDatacenterOfASet(t *testing.T) {
	g := newGroup(t, 2)
	book := g.book()
	root := g.start(0, "root")
	g.sets[0].add(root, "orders", eight)
	book.take(g.start(1, "b"), "orders", 20)
	book.take(g.start(1, "b2", func(c *Config) { c.Node.Datacenter = namespaces.Datacenter{ID: 2, Name: "sg"} }), "orders", 20)
	if v, err := root.svc.Load().names.Load(t.Context()); err != nil || v.NameOf(2) != "sg" {
		t.Errorf("the root knows %+v, %v", v.Datacenters, err)
	}
}

func TestAClusterThatHasMadeIDsDoesNotJoin(t *testing.T) {
	c := newCluster(t)
	n := c.start("a")
	if err := n.svc.Load().Join(t.Context()); err != nil {
		t.Errorf("it made none: %v", err)
	}
	d := newCluster(t)
	n = d.start("d")
	n.must("", 1)
	if err := n.svc.Load().Join(t.Context()); !errors.Is(err, seq.ErrUnsafeChange) {
		t.Errorf("it has made IDs: %v", err)
	}
}

// A window of a node of another Set is not gone on with: its worker id is that Set's.
func TestAWindowIsNotExtendedInAnotherSet(t *testing.T) {
	g := newGroup(t, 2)
	root, b := g.start(0, "root"), g.start(1, "b")
	g.sets[0].add(root, "orders", eight)
	wish := workers.WindowRequest{Window: time.Minute}
	lend := func(n *node, w workers.WindowRequest) workers.Window {
		t.Helper()
		if _, err := n.svc.Load().names.Find(t.Context(), namespaces.Ref{Name: "orders"}); err != nil {
			t.Fatal(err)
		}
		d, err := n.svc.Load().workers.Of("orders").Delegate(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	one := lend(root, wish)
	two := lend(b, workers.WindowRequest{Window: time.Minute, Extends: true, Named: one.Named, Ticket: one.Ticket})
	if two.Worker == one.Worker || two.Continues {
		t.Errorf("got %+v after %+v", two.Named, one.Named)
	}
}

// In virtual time, as the drill of one cluster. SEED gives another run than the kept one.
func TestNoIDTwiceOverSets(t *testing.T) {
	bubble.Test(t, noIDTwiceOverSets)
}

func noIDTwiceOverSets(t *testing.T) {
	const rounds = 30
	rnd := rand.New(rand.NewPCG(seedOf(t), 2))
	g := newGroup(t, 3)
	book := g.book()
	living := make([][]*node, len(g.sets))
	all := func() (out []*node) { return slices.Concat(living...) }
	for set := range living {
		for i := range 2 {
			living[set] = append(living[set], g.start(set, fmt.Sprintf("%d-%d", set, i)))
		}
	}
	names := policies(g.sets[0], living[0][0])[:3]
	for range rounds {
		jumper := all()[rnd.IntN(len(all()))]
		if jumper.offset.Load() != 0 {
			jumper.offset.Store(0)
		} else {
			jumper.jump(jumps[rnd.IntN(len(jumps))])
		}
		set := rnd.IntN(len(g.sets))
		g.sets[set].fail(fault(rnd.IntN(3)), rnd.IntN(3))
		g.down.Store(rnd.IntN(4) == 0)
		var wg sync.WaitGroup
		wg.Go(func() { burst(book, all(), names) })
		wg.Go(func() { // beside it, nodes come and go
			for range 2 {
				more := g.start(rnd.IntN(len(g.sets)), "more")
				for _, name := range names {
					if ids, got, err := more.gen(name, 5); err == nil {
						book.add(name, fmt.Sprintf("more %s worker %d", more.session, got.Worker), ids)
					}
				}
				more.kill()
			}
		})
		wg.Wait()
		g.sets[set].fail(works, 0, 1, 2)
		k := rnd.IntN(2)
		old := living[set][k]
		if rnd.IntN(2) == 0 {
			old.leave()
		} else {
			old.kill()
		}
		living[set][k] = g.start(set, old.name)
		living[set][k].offset.Store(old.offset.Load())
		g.pass(2 * testLease)
	}
	g.down.Store(false)
	for _, n := range all() {
		n.offset.Store(0)
	}
	g.leap(2 * storeAhead)
	for set := range living {
		for _, name := range names {
			made := false // one of the two may have the Set's only worker id
			for _, n := range living[set] {
				ids, got, err := n.gen(name, 50)
				if err == nil {
					book.add(name, fmt.Sprintf("%s %s worker %d", n.name, n.session, got.Worker), ids)
				}
				made = made || err == nil
			}
			if !made {
				t.Errorf("no node of Set %d makes IDs of %s", set, name)
			}
		}
	}
	t.Logf("%d ids; Sets have %v and %v of %s", book.n, g.has(1, names[0]), g.has(2, names[0]), names[0])
}
