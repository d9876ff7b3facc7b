package etcdstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// bump is the amount by which raised raises.
const bump = 1 << 20

var nobody = seq.Session(1 << 40)

// raised is what is there, raised by one bump.
func raised(c etcdstore.Contents) (etcdstore.Beginning, error) { return raisedTo(c.OldestOf + 1)(c) }

// raisedTo raises by a bump for each era up to that one.
func raisedTo(era seq.Era) func(c etcdstore.Contents) (etcdstore.Beginning, error) {
	return func(c etcdstore.Contents) (etcdstore.Beginning, error) {
		return raisedBy(c, bump*uint64(era-c.OldestOf))
	}
}

func raisedBy(c etcdstore.Contents, by uint64) (etcdstore.Beginning, error) {
	b := etcdstore.Beginning{Mapping: c.Mapping, Floors: quorum.Floors{Tag: c.Floors.Tag + by, Section: c.Floors.Section + by}}
	for _, st := range c.States {
		st.Promised = seq.Epoch{Round: st.Promised.Round + 1, Session: nobody}
		st.Accepted = st.Promised
		st.Max += by
		b.States = append(b.States, st)
	}
	return b, nil
}

func order(era seq.Era) etcdstore.NewEra {
	return etcdstore.NewEra{Prefix: rigPrefix, Cluster: "rig", Era: era}
}

func (n *node) load() etcdstore.Contents {
	n.Helper()
	c, err := etcdstore.Load(n.Context(), n.kv, rigPrefix)
	if err != nil {
		n.Fatal(err)
	}
	return c
}

func TestARestoredSnapshotIsRaisedInPlaceAboveAllThatWasHandedOut(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	etcd := a.kv.etcd
	snapshot := etcd.Save()
	a.want("step", a.step(alice, 1, section, 5000), quorum.VerdictOK)
	etcd.Restore(snapshot, 6)
	if _, err := a.tryRenew(alice, alice.String(), 1); !errors.Is(err, etcdstore.ErrRestored) {
		t.Fatalf("after the snapshot: %v, want ErrRestored", err)
	}
	if c := a.load(); !errors.Is(c.Trouble, etcdstore.ErrRestored) || len(c.Sessions) != 1 || c.Sessions[0].Name != alice.String() {
		t.Errorf("what is there: %+v", c)
	}
	if err := order(1).Raise(t.Context(), a.kv, raised); err != nil {
		t.Fatal(err)
	}
	fresh := newNode(t, etcd)
	id := fresh.Identity()
	if was := a.Identity().Incarnation; !was.Newer(id.Incarnation) || id.Incarnation.Binding == was.Binding {
		t.Errorf("the new era is of incarnation %v, expected a later era of %v", id.Incarnation, was)
	}
	if id.Ref.Era != 1 || id.UUID != a.Identity().UUID || !id.Voting || id.Floors.Tag != bump || id.Floors.Section != bump {
		t.Errorf("the new era: %+v", id)
	}
	if got := fresh.prepare(bob, 9, seq.TagRegister("that no era knows")); got.Floor != bump || got.Max != bump {
		t.Errorf("a tag of the new era counts for %d, its floor is %d", got.Max, got.Floor)
	}
	if got := fresh.prepare(bob, 9, seq.SectionRegister(1)); got.Floor != bump || got.Max < bump {
		t.Errorf("a section of the new era counts for %d, its floor is %d", got.Max, got.Floor)
	}
	if c := fresh.load(); c.Trouble != nil || len(c.Sessions) != 0 {
		t.Errorf("the new era has sessions %+v, trouble %v", c.Sessions, c.Trouble)
	}
	if _, err := b.tryRenew(bob, bob.String(), 0); !errors.Is(err, seq.ErrStaleEra) && !errors.Is(err, etcdstore.ErrRestored) {
		t.Errorf("a process of the era before: %v, want that it is stopped", err)
	}
	if _, err := b.tryStep(alice, 1, section, 6000); err == nil {
		t.Error("a step of the era before was taken")
	}
	fresh.renew(bob, 0)
	got := fresh.prepare(bob, 2, section)
	fresh.want("take", got, quorum.VerdictOK)
	if got.Max <= 5000 {
		t.Errorf("the section begins at %d, after 5000 were handed out", got.Max)
	}
}

// TestWhatIsWrittenUntilTheEraBeginsIsRaisedToo has a step arrive between the look at the cluster
// and the end of its era.
func TestWhatIsWrittenUntilTheEraBeginsIsRaisedToo(t *testing.T) {
	a, b := rig(t)
	a.own(alice, 1, section)
	b.kv.before = func(txn etcdstore.Txn) {
		if len(txn.If) == 0 {
			return
		}
		b.kv.before = nil
		a.want("step", a.step(alice, 1, section, 9000), quorum.VerdictOK)
	}
	if err := order(1).Raise(t.Context(), b.kv, raised); err != nil {
		t.Fatal(err)
	}
	if got := a.shown(section); got.Max != 9000+bump || got.Life != 0 || got.Promised.Session != nobody {
		t.Errorf("the section begins as %+v, after 9000", got)
	}
}

func TestNothingIsWrittenWhereANewEraIsRefused(t *testing.T) {
	a, _ := rig(t)
	fault := errors.New("no room")
	before := a.load()
	if err := order(1).Raise(t.Context(), a.kv, func(etcdstore.Contents) (etcdstore.Beginning, error) { return etcdstore.Beginning{}, fault }); !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
	other := order(1)
	other.Cluster = "other"
	if err := other.Raise(t.Context(), a.kv, raised); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("another cluster: %v", err)
	}
	if err := order(1).Raise(t.Context(), a.kv, exactly); !errors.Is(err, etcdstore.ErrNoExact) {
		t.Errorf("an exact space: %v", err)
	}
	if err := order(1).Raise(t.Context(), a.kv, large); !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("a large document: %v", err)
	}
	b, _ := raised(before)
	if err := order(1).Make(t.Context(), a.kv, b); !errors.Is(err, etcdstore.ErrInitialized) {
		t.Errorf("over a cluster: %v", err)
	}
	if after := a.load(); after.Revision != before.Revision {
		t.Errorf("revision %d after %d", after.Revision, before.Revision)
	}
	free := order(1)
	free.Prefix = "/free"
	if err := free.Raise(t.Context(), a.kv, raised); !errors.Is(err, etcdstore.ErrNotInitialized) {
		t.Errorf("nothing there: %v", err)
	}
}

func exactly(c etcdstore.Contents) (etcdstore.Beginning, error) {
	b, err := raised(c)
	b.Mapping.Spaces = append([]seq.Space(nil), b.Mapping.Spaces...)
	b.Mapping.Spaces[0].Mode = seq.Exact
	return b, err
}

func large(c etcdstore.Contents) (etcdstore.Beginning, error) {
	b, err := raised(c)
	b.States = append(b.States, quorum.RegisterState{Register: "dlarge", Payload: make([]byte, etcdstore.MaxPayload+1)})
	return b, err
}

func TestAnEraMadeElsewhereHasEveryRegister(t *testing.T) {
	a, _ := rig(t)
	a.own(alice, 1, section)
	b, err := raised(a.load())
	if err != nil {
		t.Fatal(err)
	}
	there := order(3)
	there.Prefix = "/there"
	if err := there.Make(t.Context(), a.kv, b); err != nil {
		t.Fatal(err)
	}
	got, err := etcdstore.Load(t.Context(), a.kv, "/there")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.States, got.States); diff != "" || got.Era != 3 || got.Trouble != nil || got.UUID == a.Identity().UUID {
		t.Errorf("era %d, trouble %v (-want +got)\n%s", got.Era, got.Trouble, diff)
	}
}

// TestAnInterruptedRestoreOpensNothing stops a restore before each of its transactions, and does it
// again: for five eras, of which the cluster may have handed out numbers.
func TestAnInterruptedRestoreOpensNothing(t *testing.T) {
	for at := 0; ; at++ {
		a, _ := rig(t)
		a.own(alice, 1, section)
		done := 0
		a.kv.hold = func(etcdstore.Txn) bool { done++; return done > at }
		err := order(5).Raise(t.Context(), a.kv, raisedTo(5))
		a.kv.hold, a.kv.held = nil, nil
		if err == nil {
			if at < 5 {
				t.Errorf("a restore of %d transactions", at)
			}
			return
		}
		c := a.load()
		if c.Era == 0 {
			continue // nothing was begun
		}
		if _, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: a.kv, Prefix: rigPrefix}); !errors.Is(err, etcdstore.ErrNotInitialized) {
			t.Errorf("stopped at %d: %v, want ErrNotInitialized", at, err)
		}
		if err := order(4).Raise(t.Context(), a.kv, raisedTo(4)); !errors.Is(err, seq.ErrStaleEra) {
			t.Errorf("an earlier era after %d: %v", at, err)
		}
		b, _ := raised(c)
		if err := order(5).Make(t.Context(), a.kv, b); !errors.Is(err, etcdstore.ErrInitialized) {
			t.Errorf("of a backup after %d: %v", at, err)
		}
		if err := order(5).Raise(t.Context(), a.kv, raisedTo(5)); err != nil {
			t.Errorf("again after %d: %v", at, err)
		}
		fresh := newNode(t, a.kv.etcd)
		fresh.renew(bob, 0)
		if got := fresh.prepare(bob, 5, section); got.Verdict != quorum.VerdictOK || got.Max < 100+5*bump {
			t.Errorf("again after %d: %+v", at, got)
		}
	}
}

func TestANewEraOpensOnlyAfterTheLeasesBefore(t *testing.T) {
	a, _ := rig(t)
	o := order(1)
	const bound = 200 * time.Millisecond
	var told []string
	o.Told = func(what string) { told = append(told, what) }
	began := time.Now()
	err := o.Raise(t.Context(), a.kv, func(c etcdstore.Contents) (etcdstore.Beginning, error) {
		b, err := raised(c)
		b.LeaseBound = bound
		return b, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < bound+4*time.Millisecond || len(told) == 0 {
		t.Errorf("open after %v, told %q", took, told)
	}
}

func TestWindowsOfWorkerIdsAreOverByAnOperatorsWord(t *testing.T) {
	a, b := rig(t)
	now := time.Now()
	if floor, err := etcdstore.WindowsOver(t.Context(), a.kv, rigPrefix, now); err != nil || floor.UnixMilli() != 0 {
		t.Errorf("never restored: %v, %v", floor, err)
	}
	o := order(1)
	err := o.Raise(t.Context(), b.kv, func(c etcdstore.Contents) (etcdstore.Beginning, error) {
		begin, err := raised(c)
		begin.Floors.Worker = uint64(now.Add(time.Hour).UnixMilli())
		return begin, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []time.Time{now, now.Add(time.Minute)} { // it never rises
		if floor, err := etcdstore.WindowsOver(t.Context(), a.kv, rigPrefix, to); err != nil || floor.UnixMilli() != now.UnixMilli() {
			t.Fatalf("to %v: %v, %v", to, floor, err)
		}
	}
	fresh := newNode(t, a.kv.etcd)
	if got := fresh.Identity().Floors; got != (quorum.Floors{Tag: bump, Section: bump, Worker: uint64(now.UnixMilli())}) {
		t.Errorf("floors %+v", got)
	}
}
