package quorum

import (
	"errors"
	"slices"
	"testing"
)

func TestNoZoneMayHaveSoManyStoresAsAWriteNeeds(t *testing.T) {
	for _, row := range []struct {
		zones []string
		w     int
		ok    bool
		fatal []string
	}{
		{[]string{"a", "b", "c"}, 2, true, nil},
		{[]string{"a", "b", "c", "a", "b"}, 3, true, nil},
		{[]string{"a", "a", "a", "b", "c"}, 3, false, []string{"a"}},
		{[]string{"a", "a", "b", "c"}, 3, true, []string{"a"}}, // cannot be helped with four stores in three zones
		{[]string{"a", "a", "", "c"}, 3, true, []string{"a"}},
		{[]string{"a", "a", "b", ""}, 2, true, nil}, // two zones are named
		{[]string{"a", "b", "c", "", ""}, 3, true, nil},
		{[]string{"a", "a", "b"}, 2, true, []string{"a"}}, // of two zones one has a majority
		{[]string{"a"}, 1, true, []string{"a"}},
		{[]string{"", "", ""}, 2, true, nil},
		{nil, 0, true, nil},
	} {
		err := CheckZones(nil, row.zones, row.w)
		if (err == nil) != row.ok || err != nil && !errors.Is(err, ErrZones) {
			t.Errorf("zones %q, W %d: got %v, want %t", row.zones, row.w, err, row.ok)
		}
		if got := Fatal(row.zones, row.w); !slices.Equal(got, row.fatal) {
			t.Errorf("zones %q, W %d: the loss of %q is fatal, want %q", row.zones, row.w, got, row.fatal)
		}
	}
}

func TestAZoneThatAChangeDoesWithoutIsOneThatAStoreCouldBeIn(t *testing.T) {
	for _, row := range []struct {
		before, after []string
		w             int
		ok            bool
	}{
		{[]string{"a", "b", "c"}, []string{"b", "c", "c"}, 2, false},
		{[]string{"a", "b", "c", "c"}, []string{"b", "c", "c"}, 2, false},
		{[]string{"a", "b", "c", "c"}, []string{"a", "b", "c"}, 2, true},
		{[]string{"b", "c", "c"}, []string{"b", "c", "c"}, 2, true}, // of two zones one has a majority
		{[]string{"", "b", "c"}, []string{"b", "c", "c"}, 2, true},
		{[]string{"a", "a", "a"}, []string{"a", "a", "b"}, 2, true},
		{[]string{"a", "a", "b"}, []string{"a", "a", "c"}, 2, false},
		{[]string{"a", "a", "a", "b", "c"}, []string{"a", "b", "c"}, 2, true}, // what was does not count
	} {
		if err := CheckZones(row.before, row.after, row.w); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrZones) {
			t.Errorf("from %q to %q, W %d: got %v, want %t", row.before, row.after, row.w, err, row.ok)
		}
	}
}
