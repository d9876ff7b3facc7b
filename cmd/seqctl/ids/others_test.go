package ids

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/base/otherids"
	"github.com/seqsvr/seqsvr/seq"
)

func TestIDsOfOthersAreTakenApartByTheSameVerb(t *testing.T) {
	t.Setenv("SEQ_ADDR", nowhere)
	for _, row := range []struct{ line, layout, time, origin, id string }{
		{"snowflake decode 175928847299117063 --layout discord", "discord", "2016-04-30T11:18:25.796Z", "", "175928847299117063"},
		{"id decode 18446744073709551615 --layout instagram", "instagram", "2081-04-30T12:54:37.272Z", "", "18446744073709551615"},
		{"id decode ffffffffffffffff --text hex --layout instagram", "instagram", "2081-04-30T12:54:37.272Z", "", "18446744073709551615"},
		{"id decode 017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "uuid-v7", "2022-02-22T19:22:22.000Z", "", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"},
		{"id decode 01ARZ3NDEKTSV4RRFFQ69G5FAV --layout ulid", "ulid", "2016-07-30T23:54:10.259Z", "", "01ARZ3NDEKTSV4RRFFQ69G5FAV"},
		{"id decode 507f1f77bcf86cd799439011", "objectid", "2012-10-17T21:13:27.000Z", "bcf86cd799", "507f1f77bcf86cd799439011"},
	} {
		out, err := call(t, fields(row.line+" -o json")...)
		var got decoded
		if err == nil {
			err = json.Unmarshal([]byte(out), &got)
		}
		if err != nil || got.Layout != row.layout || got.Time != row.time || got.Origin != row.origin || got.IDStr != row.id {
			t.Errorf("%s: got %+v, %v", row.line, got, err)
		}
		if table, err := call(t, fields(row.line)...); err != nil || !strings.Contains(table, row.id) || !strings.Contains(table, row.layout) {
			t.Errorf("%s: got %v and\n%s", row.line, err, table)
		}
	}
	for line, want := range map[string]error{
		"id decode f47ac10b-58cc-4372-a567-0e02b2c3d479":      otherids.ErrNoTime,
		"id decode 18446744073709551615":                      seq.ErrBadID,
		"id decode 18446744073709551616 --layout instagram":   seq.ErrBadID,
		"id compose --tick 1 --layout discord":                seq.ErrBadLayout,
		"id gen --kind guid":                                  seq.ErrBadArgument,
		"id gen --kind uuid --namespace orders":               seq.ErrBadArgument,
		"id decode 017f22e2-79b0-7cc3-98c4 --layout uuid":     seq.ErrBadID,
		"id decode 507f1f77bcf86cd799439011 --layout discord": seq.ErrBadID,
	} {
		if out, err := call(t, fields(line)...); !errors.Is(err, want) {
			t.Errorf("%s: got %q, %v, want %v", line, out, err, want)
		}
	}
}

func TestIDsOfOthersAreMadeWithoutACluster(t *testing.T) {
	t.Setenv("SEQ_ADDR", nowhere)
	for _, kind := range otherids.Kinds() {
		out, err := call(t, fields("id gen --count 3 -o json --kind "+kind)...)
		var got othersResult
		if err == nil {
			err = json.Unmarshal([]byte(out), &got)
		}
		if err != nil || got.Kind != kind || len(got.IDs) != 3 {
			t.Fatalf("%s: got %+v, %v", kind, got, err)
		}
		if _, err := call(t, fields("id decode "+got.IDs[2])...); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
