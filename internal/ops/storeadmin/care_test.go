package storeadmin_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

var alice, bob = sessiontest.Session(0xa), sessiontest.Session(0xb)

// confirmed writes to each pair of three stores what that pair alone has.
func confirmed(t *testing.T, s []*store) map[seq.Register]uint64 {
	t.Helper()
	want := map[seq.Register]uint64{}
	for i, pair := range [][]*store{{s[0], s[1]}, {s[1], s[2]}, {s[0], s[2]}} {
		for _, reg := range []seq.Register{seq.SectionRegister(seq.SectionID(i)), seq.TagRegister(fmt.Sprint("orders", i)), seq.WorkerRegister("ns", 1, uint64(i))} {
			want[reg] = 1000 * uint64(i+1)
			prepareAndStep(t, reg, seq.Epoch{Round: 3, Session: alice}, want[reg], pair...)
		}
	}
	return want
}

// confirmedByThree writes to each three of five stores what these three alone have.
func confirmedByThree(t *testing.T, s []*store) map[seq.Register]uint64 {
	t.Helper()
	want := map[seq.Register]uint64{}
	write := func(reg seq.Register, stores ...*store) {
		want[reg] = 5000 + uint64(len(want))
		prepareAndStep(t, reg, seq.Epoch{Round: 3, Session: alice}, want[reg], stores...)
	}
	for i := range s {
		for j := range i {
			for k := range j {
				write(seq.TagRegister(fmt.Sprint("three", i, j, k)), s[i], s[j], s[k])
				write(seq.WorkerRegister("ns", 3, uint64(len(want))), s[i], s[j], s[k])
			}
		}
	}
	write(seq.SectionRegister(5), s[:3]...)
	return want
}

// wantBases takes every register over from exactly these stores, by a session that then
// starts at what it finds.
func wantBases(t *testing.T, want map[seq.Register]uint64, g *quorum.Group) {
	t.Helper()
	for reg, least := range want {
		out := g.Prepare(within(t), bob, []quorum.PrepareItem{{Register: reg, Round: 9, Create: reg.OnDemand()}})[0]
		if out.State != quorum.Won || out.Max < least {
			t.Errorf("%s: %v (%v), max %d, want at least %d", reg, out.State, out.Err, out.Max, least)
		}
	}
}

func TestAReplacementHasWhatAnyMajorityOfTheOldStoresConfirmed(t *testing.T) {
	// Whichever store is replaced, and whichever dies afterwards, the new store and the
	// last of the old ones know everything.
	for dead := range 3 {
		for next := range 3 {
			if next == dead {
				continue
			}
			t.Run(fmt.Sprintf("%d replaced then %d lost", dead, next), func(t *testing.T) {
				t.Parallel()
				s := founders(t, 3)
				want := confirmed(t, s)
				s[dead].stop()
				fresh := learner(t, "n")
				c := open(t, s...)
				steps, err := c.Replace(within(t), s[dead].name, fresh.addr, "")
				run(t, steps, err)
				if l := c.List(); l.Version != 3 || l.N() != 3 || l.R != 2 || l.W != 2 {
					t.Errorf("list %+v", l)
				}
				s[next].stop()
				wantBases(t, want, group(t, s[3-dead-next], fresh))
			})
		}
	}
}

func TestAChangeThatWasKilledAfterAnyStepIsTakenUpByTheSameOrder(t *testing.T) {
	for killed := 0; ; killed++ {
		s := founders(t, 3)
		want := confirmed(t, s)
		s[2].stop()
		fresh := learner(t, "n")
		first := open(t, s[:2]...)
		steps, err := first.Replace(within(t), "c", fresh.addr, "")
		if err != nil {
			t.Fatal(err)
		}
		if killed > len(steps) {
			break
		}
		run(t, steps[:killed], nil)
		first.Close()
		fresh.stop() // and the new store with it
		fresh.start()

		second := open(t, s[:2]...)
		steps, err = second.Replace(within(t), "c", fresh.addr, "")
		run(t, steps, err)
		again, err := second.Replace(within(t), "c", fresh.addr, "")
		if err != nil || len(again) != 0 {
			t.Errorf("killed after %d: once more: %d steps, %v", killed, len(again), err)
		}
		s[0].stop()
		wantBases(t, want, group(t, s[1], fresh))
	}
}

// A command that does not know what the half of a change leads to would write a list that can neither
// be finished nor taken back.
func TestACommandThatCannotReadTheChangeUnderWayBeginsNothing(t *testing.T) {
	s := founders(t, 3)
	s[2].stop()
	fresh, w := learner(t, "n"), &wire{}
	first := open(t, s[:2]...)
	steps, err := first.Replace(within(t), "c", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	run(t, steps[:2], nil)

	w.fail("Read", 0)
	w.cut = true
	c, err := storeadmin.Open(within(t), addrs(s[:2]...), w.options()...)
	if !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("opened by no read: %v", err)
	}
	if err == nil {
		_ = c.Close()
	}
	second := open(t, s[:2]...)
	steps, err = second.Replace(within(t), "c", fresh.addr, "")
	run(t, steps, err)
	if l := second.List(); l.N() != 3 || l.W != 2 {
		t.Errorf("list %+v", l)
	}
}

func TestAListThatWasDecidedAndToldToNobodyIsFinished(t *testing.T) {
	s := founders(t, 3)
	s[2].stop()
	fresh := learner(t, "n")
	c := open(t, s...)
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	run(t, steps[:1], nil)
	// Decided at both stores, of which only one hears of it.
	run(t, steps[1:2], nil)
	_, id := at(t, s[0])
	if id.Ref.Members != 2 || id.N != 2 {
		t.Fatalf("identity %+v", id)
	}
	other := open(t, s...)
	wantErr(t, "another change", func() error { _, err := other.Remove("a", "test"); return err }(), storeadmin.ErrUnderWay)
	if other.List().Version != 2 {
		t.Errorf("list %+v", other.List())
	}
}

// After growing, the five stores have every write that three confirmed. After shrinking, the three stores
// that are left have every write that any three of the five confirmed, whichever store is lost.
func TestGrowingToFiveAndBackLosesNothing(t *testing.T) {
	s := founders(t, 3)
	want := confirmed(t, s)
	c := open(t, s...)
	four, five := learner(t, "d"), learner(t, "e")
	for i, fresh := range []*store{four, five} {
		steps, err := c.Add(within(t), fresh.addr)
		run(t, steps, err)
		if l := c.List(); l.N() != 4+i || l.W != 3 || l.R != 3 {
			t.Errorf("list %+v", l)
		}
	}
	s[0].stop()
	s[1].stop()
	g := group(t, s[2], four, five)
	wantBases(t, want, g)
	s[0].start()
	s[1].start()
	maps.Copy(want, confirmedByThree(t, []*store{s[0], s[1], s[2], four, five}))
	four.stop()
	five.stop()
	written, err := group(t, s...).SwapDocument(within(t), alice, seq.RoutesRegister, 0, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	four.start()
	five.start()
	c = open(t, append(s, four, five)...)
	for _, name := range []string{"a", "b"} {
		steps, err := c.Remove(name, "")
		run(t, steps, err)
	}
	if l := c.List(); l.N() != 3 || l.W != 2 {
		t.Errorf("list %+v", l)
	}
	left := []*store{s[2], four, five}
	for lost := range left {
		for i, x := range left {
			x.stop()
			if i != lost {
				x.start()
			}
		}
		g := group(t, slices.Delete(slices.Clone(left), lost, lost+1)...)
		doc, err := g.LoadDocument(within(t), bob, seq.RoutesRegister)
		if err != nil || doc.Version != written.Version || !bytes.Equal(doc.Body, written.Body) {
			t.Errorf("without store %s: document %+v, %v, want %+v", left[lost].name, doc, err, written)
		}
		wantBases(t, want, g)
	}
}

func TestAnAbortedReplacementLeavesTheOldStores(t *testing.T) {
	s := founders(t, 3)
	want := confirmed(t, s)
	fresh := learner(t, "n")
	c := open(t, s...)
	_, err := c.Abort()
	wantErr(t, "nothing to abort", err, storeadmin.ErrNothing)
	steps, err := c.Replace(within(t), "c", fresh.addr, "a test")
	if err != nil {
		t.Fatal(err)
	}
	run(t, steps[:3], nil)
	if _, id := at(t, s[2]); id.Voting {
		t.Errorf("the store that was taken out: %q", id.State)
	}
	steps, err = open(t, s...).Abort()
	run(t, steps, err)
	s[0].stop()
	wantBases(t, want, group(t, s[1], s[2]))
	if _, id := at(t, fresh); id.Voting {
		t.Errorf("the learner votes: %q", id.State)
	}
}

func TestReplaceRefusesByName(t *testing.T) {
	s := founders(t, 3)
	c := open(t, s...)
	fresh := learner(t, "n")
	plan := func(old, addr, force string) error {
		_, err := c.Replace(within(t), old, addr, force)
		return err
	}
	stranger := newStore(t, "x", func(dir string) error {
		mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: sections})
		if err != nil {
			return err
		}
		return storesvr.InitLearner(storesvr.LearnerConfig{DataDir: dir, ClusterID: "c2", Name: "x", Mapping: mapping})
	})
	wantErr(t, "a store that serves", plan("a", fresh.addr, ""), storeadmin.ErrAlive)
	wantErr(t, "an unknown store", plan("z", fresh.addr, ""), storeadmin.ErrNoMember)
	wantErr(t, "a learner of another cluster", plan("a", stranger.addr, "test"), seq.ErrForeignCluster)
	wantErr(t, "a voter as the new one", plan("a", s[1].addr, "test"), storeadmin.ErrUnderWay)
	_, err := c.Remove("a", "")
	wantErr(t, "two left", err, storeadmin.ErrTooFew)
	if c.List().Version != 1 {
		t.Errorf("list %+v", c.List())
	}
}

func TestALearnerVotesForNobody(t *testing.T) {
	s := founders(t, 3)
	fresh := learner(t, "n")
	c := open(t, s...)
	steps, err := c.Add(within(t), fresh.addr)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		client, id := at(t, fresh)
		ref := id.Ref
		_, err := client.Prepare(within(t), quorum.PrepareRequest{Ref: ref, Session: bob, Secret: sessiontest.SecretOf(bob), Items: []quorum.PrepareItem{{Register: seq.SectionRegister(0), Round: 1}}})
		wantErr(t, when+": prepare", err, seq.ErrNotVoting)
		_, err = client.Step(within(t), quorum.StepRequest{Ref: ref, Session: bob, Secret: sessiontest.SecretOf(bob), Items: []quorum.StepItem{{Register: seq.SectionRegister(0), Round: 1, Max: 1}}})
		wantErr(t, when+": step", err, seq.ErrNotVoting)
		_, err = client.Renew(within(t), quorum.RenewRequest{Ref: ref, Session: bob, Secret: sessiontest.SecretOf(bob), Name: "bob", Lease: quorum.MinLease})
		wantErr(t, when+": renew", err, seq.ErrNotVoting)
		list := c.List()
		list.Version += 5
		list.Members = append([]quorum.Member{{UUID: id.UUID, Name: id.Name, Addr: fresh.addr}}, s2members(list)...)
		list.R, list.W = 3, 3
		if when != "filled" {
			_, err = client.Adopt(within(t), "c1", 0, list)
			wantErr(t, when+": made a voter", err, seq.ErrNotVoting)
		}
	}
	check("made")
	run(t, steps[:1], nil)
	check("in the list")
	run(t, steps[1:2], nil)
	check("filled")
}

// A session that has not heard of the new list serves by what it was leased under the old
// one, which the voters of the new one do not wait for.
func TestNoStoreIsMadeAVoterBeforeTheLeasesOfTheListBeforeHaveEnded(t *testing.T) {
	t.Parallel()
	const lease = 1500 * time.Millisecond
	s := founders(t, 3)
	for _, x := range s {
		client, id := at(t, x)
		if _, err := client.Renew(within(t), quorum.RenewRequest{Ref: id.Ref, Session: alice, Secret: sessiontest.SecretOf(alice), Name: "alice", Lease: lease}); err != nil {
			t.Fatal(err)
		}
	}
	fresh := learner(t, "n")
	c := open(t, s...)
	steps, err := c.Add(within(t), fresh.addr)
	run(t, steps[:2], err) // taken in, and filled
	for _, x := range s {
		if _, id := at(t, x); id.Ref.Members != 2 || id.ListAge < lease {
			t.Errorf("store %s has list %d for %v, the learner is filled before a lease of %v from before it has ended", x.name, id.Ref.Members, id.ListAge, lease)
		}
	}
	run(t, steps[2:], nil)
}

func s2members(l quorum.MemberList) (voters []quorum.Member) { return l.Voters() }

func TestADocumentSurvivesTheReplacementOfAnyStore(t *testing.T) {
	s := founders(t, 3)
	g := group(t, s...)
	if _, err := g.SwapDocument(within(t), alice, seq.RoutesRegister, 0, []byte("one")); err != nil {
		t.Fatal(err)
	}
	s[0].stop()
	fresh := learner(t, "n")
	c := open(t, s...)
	steps, err := c.Replace(within(t), "a", fresh.addr, "")
	run(t, steps, err)
	s[1].stop()
	doc, err := group(t, s[2], fresh).LoadDocument(within(t), bob, seq.RoutesRegister)
	if err != nil || doc.Version != 1 || !bytes.Equal(doc.Body, []byte("one")) {
		t.Errorf("got %+v, %v", doc, err)
	}
}
