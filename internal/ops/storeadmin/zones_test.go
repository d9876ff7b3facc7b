package storeadmin_test

import (
	"testing"

	"github.com/seqsvr/seqsvr/internal/ops/storeadmin"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// inZones are stores of cluster c1, one in each of the zones, bound.
func inZones(t *testing.T, zones ...string) []*store {
	t.Helper()
	names := []string{"a", "b", "c", "d", "e", "f"}[:len(zones)]
	stores := make([]*store, len(zones))
	for i, name := range names {
		stores[i] = newStore(t, name, func(dir string) error {
			return storesvr.Init(storesvr.InitConfig{DataDir: dir, ClusterID: "c1", Name: name, MemberNames: names, Zones: zones, AnyZones: true,
				Spaces: []seq.Space{{Name: "user", Sections: sections}}})
		})
	}
	if err := connect(t, stores...).Close(); err != nil {
		t.Fatal(err)
	}
	return stores
}

func learnerIn(t *testing.T, name, zone string) *store {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: sections, KeyHash: seq.SecretKeys})
	if err != nil {
		t.Fatal(err)
	}
	return newStore(t, name, func(dir string) error {
		return storesvr.InitLearner(storesvr.LearnerConfig{DataDir: dir, ClusterID: "c1", Name: name, Zone: zone, Mapping: mapping})
	})
}

func TestAChangeThatPutsAQuorumIntoOneZoneIsRefusedUnlessAnyZoneWillDo(t *testing.T) {
	s := inZones(t, "za", "zb", "zc", "zd", "zc")
	c := open(t, s...)
	again, other := learnerIn(t, "n", "zc"), learnerIn(t, "m", "za")
	_, err := c.Replace(within(t), "a", again.addr, "a test") // zb zc zc zc zd
	wantErr(t, "three of five in one zone", err, quorum.ErrZones)
	if _, err := c.Replace(within(t), "c", again.addr, "a test"); err != nil {
		t.Errorf("one of the zone by another: %v", err)
	}
	if _, err := c.Replace(within(t), "b", other.addr, "a test"); err != nil {
		t.Errorf("two of five in two zones: %v", err)
	}
	if _, err := c.Add(within(t), again.addr); err != nil { // W is 4 of 6
		t.Errorf("three of six: %v", err)
	}
	c.AnyZones = true
	if _, err := c.Replace(within(t), "a", again.addr, "a test"); err != nil {
		t.Errorf("with any zones: %v", err)
	}
	if c.List().Version != 1 {
		t.Errorf("planning has changed the list: %+v", c.List())
	}
}

func TestARemovalThatLeavesAQuorumInOneZoneChangesNothing(t *testing.T) {
	c := open(t, inZones(t, "za", "zb", "zc", "zc", "zc", "zd")...) // W is 4, of the five left 3
	steps, err := c.Remove("f", "")
	if err == nil {
		err = storeadmin.Run(within(t), steps, nil)
	}
	wantErr(t, "three of five in one zone", err, quorum.ErrZones)
	if c.List().Version != 1 {
		t.Errorf("the list was changed: %+v", c.List())
	}
	c = open(t, inZones(t, "za", "zb", "zc", "zc", "zd")...)
	steps, err = c.Remove("e", "") // of four, with W of 3, one zone has two
	run(t, steps, err)
}

func TestAChangeThatDoesWithoutAZoneLeavesNoQuorumInOneOfTheOthers(t *testing.T) {
	s := inZones(t, "za", "zb", "zc")
	c := open(t, s...)
	again, fourth := learnerIn(t, "n", "zc"), learnerIn(t, "m", "zd")
	refused := func(what string) {
		t.Helper()
		_, err := c.Replace(within(t), "a", again.addr, "a test") // zb zc zc, W is 2
		wantErr(t, what, err, quorum.ErrZones)
	}
	refused("two of three in one zone")
	s[0].stop()
	refused("in the place of a store that is dead")
	c = open(t, s...)
	refused("found dead")
	if _, err := c.Replace(within(t), "a", fourth.addr, ""); err != nil {
		t.Errorf("one of a fourth zone: %v", err)
	}
	c.AnyZones = true
	if _, err := c.Replace(within(t), "a", again.addr, ""); err != nil {
		t.Errorf("with any zones: %v", err)
	}
}

func TestARemovalOfTheLastStoreOfAZoneLeavesNoQuorumInOneOfTheOthers(t *testing.T) {
	s := inZones(t, "za", "zb", "zc", "zc") // of the three left W is 2
	s[0].stop()
	c := open(t, s...)
	steps, err := c.Remove("a", "")
	if err == nil {
		err = storeadmin.Run(within(t), steps, nil)
	}
	wantErr(t, "two of three in one zone", err, quorum.ErrZones)
	if c.List().Version != 1 {
		t.Errorf("the list was changed: %+v", c.List())
	}
}

// A store that was taken in later, or was told another zone since it was bound, is known to be
// there by the list of the last change.
func TestTheListKeepsTheZonesOfStoresThatDie(t *testing.T) {
	s := inZones(t, "za", "zb")
	c, added := open(t, s...), learnerIn(t, "c", "zc")
	steps, err := c.Add(within(t), added.addr)
	run(t, steps, err)
	added.stop()
	c = open(t, s...)
	_, err = c.Replace(within(t), "c", learnerIn(t, "c", "za").addr, "")
	wantErr(t, "two of three in one zone", err, quorum.ErrZones)
	for _, m := range c.List().Members {
		if want := "z" + m.Name; m.Zone != want {
			t.Errorf("store %s is in zone %q of the list, want %q", m.Name, m.Zone, want)
		}
	}
}
