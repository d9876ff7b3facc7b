package quorum

import (
	"fmt"
	"maps"
	"slices"
)

// FewestZones is the number of named zones from which on stores are spread over them. With two zones, one
// always has a majority of the stores.
const FewestZones = 3

// CheckZones returns ErrZones if one zone has w of the stores after a change, so that its loss stops all
// writes. before and after have the zone of each store, or "" if it is unknown. If both together name fewer
// than FewestZones zones, CheckZones returns nil. A zone that the change leaves still counts, because a
// store could move there.
func CheckZones(before, after []string, w int) error {
	if len(byZone(slices.Concat(before, after))) < FewestZones {
		return nil
	}
	count := byZone(after)
	for _, z := range slices.Sorted(maps.Keys(count)) {
		if count[z] >= w {
			return fmt.Errorf("%w: %d of %d stores in zone %s, expected fewer than W, which is %d", ErrZones, count[z], len(after), z, w)
		}
	}
	return nil
}

// Fatal returns the zones, by name, whose loss leaves fewer than w stores. zones has the zone of each
// store, or "" if it is unknown. Some zones are fatal whatever the layout, and CheckZones allows them: with
// four stores and a W of 3, one zone has two stores.
func Fatal(zones []string, w int) (fatal []string) {
	for z, n := range byZone(zones) {
		if len(zones)-n < w {
			fatal = append(fatal, z)
		}
	}
	slices.Sort(fatal)
	return fatal
}

// byZone counts the stores of each zone that has a name.
func byZone(zones []string) map[string]int {
	count := map[string]int{}
	for _, z := range zones {
		if z != "" {
			count[z]++
		}
	}
	return count
}
