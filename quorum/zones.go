package quorum

import (
	"fmt"
	"maps"
	"slices"
)

// FewestZones is the number of named zones from which on stores are spread over them. With two zones, one
// always has a majority of the stores.
const FewestZones = 3

// CheckZones is ErrZones if one zone has w of the stores after a change, so that its loss stops
// all writes whatever the others do. before and after have one name a store, "" where none is
// known. The error is nil where both together name fewer than FewestZones: a zone that the change
// does without is one that a store could be in.
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

// Fatal are the zones whose loss leaves fewer than w stores, by name. zones has one name a store,
// "" where none is known. CheckZones lets pass what cannot be helped: of four stores, with W of 3,
// some zone has two.
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
