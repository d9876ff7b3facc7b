package storesvr

import (
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/quorum"
)

// fatalZones are the zones whose loss would leave fewer stores than a write needs, where three
// or more are known. The membership alone knows where the others are.
func (c *core) fatalZones(known []membership.Member) []string {
	zones, stores := map[string]bool{}, map[string]string{}
	for _, m := range known {
		if m.Meta.Zone != "" {
			zones[m.Meta.Zone] = true
		}
		if m.Meta.Role == membership.RoleStore {
			stores[m.Meta.Name] = m.Meta.Zone
		}
	}
	if len(zones) < quorum.FewestZones {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var of []string
	for _, m := range listOf(c.members.Members).Voters() {
		of = append(of, stores[m.Name])
	}
	_, _, w := c.members.quorums()
	return quorum.Fatal(of, w)
}
