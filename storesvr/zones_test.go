package storesvr

import (
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/quorum"
)

// seen are members of the gossip, each by its role, name and zone.
func seen(rows ...[3]string) (known []membership.Member) {
	for _, r := range rows {
		known = append(known, membership.Member{Meta: membership.Meta{Role: membership.Role(r[0]), Name: r[1], Zone: r[2]}})
	}
	return known
}

func TestAStoreTellsWhereItsFellowsAreByTheListOrElseTheMembership(t *testing.T) {
	known := seen([3]string{"store", "a", "zx"}, [3]string{"store", "b", "zb"}, [3]string{"alloc", "c", "zc"})
	for name, row := range map[string]struct {
		listed []string
		want   []string
	}{
		"the list knows":       {[]string{"za", "zz", "zc"}, []string{"za", "zz", "zc"}}, // a new store of that name has come up in zx
		"the membership knows": {[]string{"", "", ""}, []string{"zx", "zb", ""}},
	} {
		var members []quorum.Member
		for i, m := range testMembers {
			members = append(members, quorum.Member{UUID: "u-" + m, Name: m, Zone: row.listed[i]})
		}
		for i, m := range located(members, known) {
			if m.Zone != row.want[i] || members[i].Zone != row.listed[i] {
				t.Errorf("%s: store %s is in %q, want %q; the list itself has %q", name, m.Name, m.Zone, row.want[i], members[i].Zone)
			}
		}
	}
}

// A store is counted where the membership has it; one that the membership has forgotten, where
// the list has it. Of two zones one has W stores whatever is done.
func TestTheMetricCountsZonesWhoseLossIsFatal(t *testing.T) {
	for name, row := range map[string]struct {
		listed []string
		known  []membership.Member
		want   []string
	}{
		"three zones":                       {[]string{"za", "zb", "zc"}, nil, nil},
		"moved since the list":              {[]string{"za", "zb", "zc"}, seen([3]string{"store", "b", "zc"}, [3]string{"alloc", "n", "zb"}), []string{"zc"}},
		"two zones":                         {[]string{"zc", "zb", "zc"}, nil, nil},
		"two zones, and an allocator":       {[]string{"zc", "zb", "zc"}, seen([3]string{"alloc", "n", "za"}), []string{"zc"}},
		"a dead one is where it was":        {[]string{"zc", "zb", "zc"}, seen([3]string{"router", "r", "za"}, [3]string{"store", "b", "zb"}), []string{"zc"}},
		"the list has none, two are known":  {[]string{"", "", ""}, seen([3]string{"store", "a", "za"}, [3]string{"store", "b", "za"}, [3]string{"alloc", "n", "zb"}), nil},
		"the list has none, of three zones": {[]string{"", "", ""}, seen([3]string{"store", "a", "za"}, [3]string{"store", "b", "za"}, [3]string{"alloc", "n", "zb"}, [3]string{"alloc", "m", "zc"}), []string{"za"}},
	} {
		b := newBench(t)
		b.core.members.Version = 1
		for i, m := range testMembers {
			b.core.members.List = append(b.core.members.List, quorum.Member{UUID: "u-" + m, Name: m, Zone: row.listed[i]})
		}
		if got := b.core.fatalZones(row.known); !slices.Equal(got, row.want) {
			t.Errorf("%s: the loss of %q is fatal, want %q", name, got, row.want)
		}
	}
}

func TestABindToTheSameMembersElsewhereIsTheSame(t *testing.T) {
	b := newBench(t)
	fellows := b.fellows()
	for _, zone := range []string{"za", "", "zb"} {
		for i := range fellows {
			fellows[i].Zone = zone
		}
		if err := b.change.bind(t.Context(), binding{cluster: "c1", era: 0, members: fellows}); err != nil {
			t.Fatalf("in zone %q: %v", zone, err)
		}
	}
	if got := b.describe().Members; got[0].Zone != "za" {
		t.Errorf("bound in zone za, the list is %+v", got)
	}
	list := quorum.MemberList{Version: 2, R: 2, W: 2, Members: slices.Clone(fellows)}
	for _, zone := range []string{"za", "zb"} {
		for i := range list.Members {
			list.Members[i].Zone = zone
		}
		list.Members = slices.Clone(list.Members)
		if err := b.change.adopt(t.Context(), "c1", 0, list); err != nil {
			t.Fatalf("in zone %q: %v", zone, err)
		}
	}
}
