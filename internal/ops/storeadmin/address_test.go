package storeadmin_test

import (
	"context"
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// givesWayTo puts another store in the place where clients look for this one.
func (s *store) givesWayTo(other *store) {
	s.stop()
	place, _ := places.Load(other.addr)
	places.Store(s.addr, place)
}

func TestAnotherStoreAtAMembersAddressKeepsNobodyOut(t *testing.T) {
	s := founders(t, 3)
	fresh := learner(t, "n")
	s[2].stop()
	c := open(t, s...)
	steps, err := c.Replace(within(t), "c", fresh.addr, "")
	run(t, steps, err) // the list has addresses from here on
	founder := newStore(t, "n", func(dir string) error {
		return storesvr.Init(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: "n", MemberNames: []string{"a", "b", "n"},
			Spaces: []seq.Space{{Name: "user", Sections: sections}}})
	})
	newborn := learner(t, "n")
	for i, stranger := range []*store{founder, newborn} {
		fresh.givesWayTo(stranger)
		out := group(t, s[0], s[1], fresh).Prepare(within(t), bob, []quorum.PrepareItem{{Register: seq.SectionRegister(1), Round: uint64(i + 1)}})[0]
		if out.State != quorum.Won {
			t.Errorf("with %s at the address of a member: %v (%v)", stranger.name, out.State, out.Err)
		}
	}
	// The new disk on the machine of the old one, under its name and address.
	second := open(t, s[0], s[1], fresh)
	for done := range 2 {
		steps, err := second.Replace(within(t), "n", fresh.addr, "")
		if err != nil {
			t.Fatal(err)
		}
		if done == 1 && len(steps) > 0 {
			t.Errorf("replaced already, and still to do: %v", steps)
		}
		run(t, steps, nil)
	}
	s[0].stop()
	if out := group(t, s[1], fresh).Prepare(within(t), alice, []quorum.PrepareItem{{Register: seq.SectionRegister(1), Round: 9}})[0]; out.State != quorum.Won {
		t.Errorf("with the new store and one other: %v (%v)", out.State, out.Err)
	}
}

func TestALearnerThatIsGoneIsNamedToWhoeverBringsAnother(t *testing.T) {
	s := founders(t, 3)
	s[2].stop()
	lost, other := learner(t, "n"), learner(t, "m")
	c := open(t, s...)
	steps, err := c.Replace(within(t), "c", lost.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	run(t, steps[:2], nil)
	lost.stop()
	again := open(t, s...)
	wantErr(t, "another new store", func() error { _, err := again.Replace(within(t), "c", other.addr, ""); return err }(), storeadmin.ErrUnderWay)
	steps, err = again.Abort()
	run(t, steps, err)
	steps, err = again.Replace(within(t), "c", other.addr, "")
	run(t, steps, err)
	if l := again.List(); l.N() != 3 || l.W != 2 {
		t.Errorf("list %+v", l)
	}
}

func TestALearnerThatHasNotHeardOfItsListIsTold(t *testing.T) {
	s := founders(t, 3)
	fresh := learner(t, "n")
	first := open(t, s...)
	steps, err := first.Add(within(t), fresh.addr)
	if err != nil {
		t.Fatal(err)
	}
	fresh.stop()
	// The list is decided, and every store except the learner receives it.
	brief, cancel := context.WithCancel(within(t))
	told := make(chan error, 1)
	go func() { told <- steps[0].Run(brief) }()
	for heard := 0; heard < len(s); {
		heard = 0
		for _, voter := range s {
			if _, id := at(t, voter); id.Ref.Members == 2 {
				heard++
			}
		}
	}
	cancel()
	if err := <-told; err == nil {
		t.Fatal("the step is done, and the learner has not heard of it")
	}
	fresh.start()
	second := open(t, s...)
	steps, err = second.Add(within(t), fresh.addr)
	run(t, steps, err)
	if l := second.List(); l.N() != 4 || l.W != 3 {
		t.Errorf("list %+v", l)
	}
}

func TestTwoOfFiveThatAreLostAreReplacedOneAfterTheOther(t *testing.T) {
	s := founders(t, 5)
	want := map[seq.Register]uint64{seq.SectionRegister(2): 700}
	prepareAndStep(t, seq.SectionRegister(2), seq.Epoch{Round: 1, Session: alice}, 700, s[2], s[3], s[4])
	s[3].stop()
	s[4].stop()
	one, two := learner(t, "x"), learner(t, "y")
	c := open(t, s...)
	for i, fresh := range []*store{one, two} {
		steps, err := c.Replace(within(t), s[3+i].name, fresh.addr, "")
		run(t, steps, err)
	}
	if l := c.List(); l.N() != 5 || l.W != 3 {
		t.Errorf("list %+v", l)
	}
	s[2].stop()
	s[1].stop()
	wantBases(t, want, group(t, s[0], one, two))
}
