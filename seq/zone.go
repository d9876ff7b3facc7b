package seq

import (
	"fmt"
	"regexp"
)

// MaxZone bounds the name of a zone in bytes: it travels in every member's gossip.
const MaxZone = 32

var zoneName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

// CheckZone returns ErrBadArgument for a bad name of a zone. A name has 1 to MaxZone letters, digits, ".",
// "_" and "-", and starts with a letter or digit. The empty name means no zone and is valid.
func CheckZone(zone string) error {
	if zone == "" || len(zone) <= MaxZone && zoneName.MatchString(zone) {
		return nil
	}
	return fmt.Errorf("%w: zone %.64q, expected 1 to %d letters, digits, \".\", \"_\" and \"-\", the first a letter or digit",
		ErrBadArgument, zone, MaxZone)
}

// Apart reports whether two zones are known to fail independently: both have names, and the names differ.
func Apart(a, b string) bool { return a != "" && b != "" && a != b }

// Zones returns the names of the nodes' zones, each once, in no order.
func (t *RouteTable) Zones() map[string]bool {
	zones := map[string]bool{}
	for _, n := range t.Nodes {
		if n.Zone != "" {
			zones[n.Zone] = true
		}
	}
	return zones
}

// Together counts the sections whose first standby is in the zone of their owner, although the table has
// nodes in another zone. If that zone fails, their numbers are unavailable for a while.
func (t *RouteTable) Together() (n int) {
	if len(t.Zones()) < 2 {
		return 0
	}
	for _, p := range t.Sections {
		if p.Owner == NoNode || t.Nodes[p.Owner].Zone == "" {
			continue
		}
		if p.Standby == NoNode || t.Nodes[p.Standby].Zone == t.Nodes[p.Owner].Zone {
			n++
		}
	}
	return n
}
