package otherids

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIDsOfOthersSayWhenAndWhereTheyWereMade(t *testing.T) {
	for _, row := range []struct {
		text, kind, origin, at string
		sequence               uint64
	}{
		// RFC 9562, appendix A.1, A.5 and A.6: one moment in three versions.
		{"C232AB00-9414-11EC-B3C8-9F6BDECED846", "uuid-v1", "9f6bdeced846", "2022-02-22T19:22:22Z", 0x33c8},
		{"1EC9414C-232A-6B00-B3C8-9F6BDECED846", "uuid-v6", "9f6bdeced846", "2022-02-22T19:22:22Z", 0x33c8},
		{"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "uuid-v7", "", "2022-02-22T19:22:22Z", 0},
		{"017f22e279b07cc398c4dc0c0c07398f", "uuid-v7", "", "2022-02-22T19:22:22Z", 0},
		{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid", "", "2016-07-30T23:54:10.259Z", 0},               // of its specification
		{"507f1f77bcf86cd799439011", "objectid", "bcf86cd799", "2012-10-17T21:13:27Z", 4427793}, // of MongoDB's manual
	} {
		named, _, _ := strings.Cut(row.kind, "-")
		for _, kind := range []string{"", named} {
			got, err := Read(kind, row.text)
			if err != nil || got.Kind != row.kind || got.Origin != row.origin || got.Sequence != row.sequence || got.Time.Format(time.RFC3339Nano) != row.at {
				t.Errorf("%s as %q: got %+v, %v", row.text, kind, got, err)
			}
		}
	}
}

func TestWhatIsMadeIsReadAndAscends(t *testing.T) {
	for _, kind := range Kinds() {
		before := time.Now().Add(-time.Second)
		made, err := Make(kind, 1000, time.Now())
		if err != nil || len(made) != 1000 {
			t.Fatalf("%s: %d made, %v", kind, len(made), err)
		}
		if !slices.IsSorted(made) || len(slices.Compact(slices.Clone(made))) != len(made) {
			t.Errorf("%s: not ascending: %v", kind, made[:4])
		}
		for _, text := range made {
			got, err := Read("", text)
			if err != nil || !Is("", text) || got.Text != text || got.Time.Before(before) || got.Time.After(time.Now().Add(time.Second)) {
				t.Fatalf("%s: got %+v, %v", text, got, err)
			}
		}
	}
	if _, err := Make("guid", 1, time.Now()); !errors.Is(err, ErrKind) {
		t.Errorf("got %v", err)
	}
}

func TestTextsOfSnowflakeIDsAreNeverTakenForOthers(t *testing.T) {
	for _, text := range []string{"", "7", "18446744073709551615", "ffffffffffffffff"} {
		if Is("", text) {
			t.Errorf("%q is taken for another's ID", text)
		}
	}
}

func TestWhatIsNoIDIsRefusedByName(t *testing.T) {
	for _, row := range []struct {
		kind, text string
		want       error
	}{
		{"", "f47ac10b-58cc-4372-a567-0e02b2c3d479", ErrNoTime}, // version 4
		{"", "017f22e2-79b0-7cc3-18c4-dc0c0c07398f", ErrText},   // another variant
		{"", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g", ErrText},
		{UUID, "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", ErrText},
		{"", "81ARZ3NDEKTSV4RRFFQ69G5FAV", ErrText}, // above 128 bits
		{"", "01ARZ3NDEKTSV4RRFFQ69G5FAI", ErrText}, // not in its alphabet
		{"", "507f1f77bcf86cd79943901z", ErrText},
		{ObjectID, "507f", ErrText},
		{"", "123456789012345678901", ErrKind},
		{"guid", "507f", ErrKind},
	} {
		if _, err := Read(row.kind, row.text); !errors.Is(err, row.want) {
			t.Errorf("%s %q: got %v, want %v", row.kind, row.text, err, row.want)
		}
	}
}
