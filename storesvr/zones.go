package storesvr

import (
	"cmp"
	"slices"

	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/quorum"
)

// storeZones are the zones of stores by their names, as the membership knows them.
func storeZones(known []membership.Member) map[string]string {
	zones := map[string]string{}
	for _, m := range known {
		if m.Meta.Role == membership.RoleStore {
			zones[m.Meta.Name] = m.Meta.Zone
		}
	}
	return zones
}

// located are the members with the zones that the list has them in, or else the membership: a
// store that is to replace another may have come up under its name.
func located(members []quorum.Member, known []membership.Member) []quorum.Member {
	zones := storeZones(known)
	members = slices.Clone(members)
	for i, m := range members {
		members[i].Zone = cmp.Or(m.Zone, zones[m.Name])
	}
	return members
}

// fatalZones are the zones whose loss would leave fewer stores than a write needs, where three
// or more are known. A store is where the membership has it, or else, of one that has been away
// for long, the list.
func (c *core) fatalZones(known []membership.Member) []string {
	c.mu.Lock()
	voters := listOf(c.members.Members).Voters()
	_, _, w := c.members.quorums()
	c.mu.Unlock()
	named, stores := map[string]bool{}, storeZones(known)
	for _, m := range known {
		named[m.Meta.Zone] = true
	}
	var of []string
	for _, m := range voters {
		zone := cmp.Or(stores[m.Name], m.Zone)
		named[zone] = true
		of = append(of, zone)
	}
	if delete(named, ""); len(named) < quorum.FewestZones {
		return nil
	}
	return quorum.Fatal(of, w)
}
