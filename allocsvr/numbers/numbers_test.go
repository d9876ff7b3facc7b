package numbers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seqsvr/seqsvr/seq"
)

func must(t testing.TB, f Format) *Template {
	t.Helper()
	parsed, err := f.Parse()
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestTextsAndPeriodsFollowTheZone(t *testing.T) {
	for _, row := range []struct {
		f                Format
		at, period, text string
		count            uint64
	}{
		{Format{"INV-{date:20060102}-{seq:6}", Daily, "UTC"}, "2026-11-23T23:30:00Z", "20261123", "INV-20261123-000042", 42},
		{Format{"INV-{date:20060102}-{seq:6}", Daily, "Asia/Shanghai"}, "2026-11-23T23:30:00Z", "20261124", "INV-20261124-000042", 42},
		{Format{"{date:06}{date:01}/{seq:3}", Monthly, "America/New_York"}, "2026-12-01T04:59:59Z", "202611", "2611/999", 999},
		{Format{"R{date:2006-002 15:04:05}#{seq:1}", Daily, "Europe/Berlin"}, "2026-03-29T01:00:00Z", "20260329", "R2026-088 03:00:00#7", 7},
		{Format{"{seq:4}/{date:2006}", Yearly, "Pacific/Kiritimati"}, "2026-12-31T10:00:00Z", "2027", "0001/2027", 1},
		{Format{"PO{seq:15}", Never, "UTC"}, "2026-12-31T10:00:00Z", "ever", "PO999999999999999", 999_999_999_999_999},
		{Format{"{date:2006.01.02_15}-{seq:2}", Never, "UTC"}, "2026-12-31T10:00:00Z", "ever", "2026.12.31_10-05", 5},
	} {
		p := must(t, row.f)
		if got := p.Text(at(t, row.at), row.count); got != row.text || p.Period(at(t, row.at)) != row.period {
			t.Errorf("%v at %s: got %q of %q, want %q of %q", row.f, row.at, got, p.Period(at(t, row.at)), row.text, row.period)
		}
	}
}

func TestTemplatesThatCouldRepeatOrAreWrongAreRefusedByName(t *testing.T) {
	for want, f := range map[string]Format{
		"no {seq:DIGITS}":     {"INV-{date:2006}", Never, "UTC"},
		"1 to 15 digits":      {"{seq:16}", Never, "UTC"},
		"{seq}":               {"{seq}", Never, "UTC"},
		"a second count":      {"{seq:2}{seq:2}", Never, "UTC"},
		"{uid:3}":             {"{uid:3}{seq:2}", Never, "UTC"},
		"has no }":            {"INV-{seq:2", Never, "UTC"},
		"outside of braces":   {"INV}-{seq:2}", Never, "UTC"},
		"printable ASCII":     {"№{seq:2}", Never, "UTC"},
		"1 to 128":            {"", Never, "UTC"},
		"129 bytes":           {strings.Repeat("x", 122) + "{seq:2}", Never, "UTC"},
		`"1", expected 2006`:  {"{date:20061}{seq:2}", Never, "UTC"},
		`"Jan"`:               {"{date:2006Jan}{seq:2}", Never, "UTC"},
		"no layout":           {"{date:}{seq:2}", Never, "UTC"},
		"hourly":              {"{date:2006}{seq:2}", "hourly", "UTC"},
		"say the day":         {"{date:200601}{seq:2}", Daily, "UTC"},
		"say the month (01)":  {"{date:2006}{seq:2}", Monthly, "UTC"},
		"month (01) in a":     {"{date:200602}{seq:2}", Daily, "UTC"},
		"say the year":        {"{date:0102}{seq:2}", Yearly, "UTC"},
		`zone "Mars/Olympus"`: {"{seq:2}", Never, "Mars/Olympus"},
		`zone "Local"`:        {"{seq:2}", Never, "Local"},
	} {
		if _, err := f.Parse(); !errors.Is(err, seq.ErrBadArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want a bad argument with %q", f, err, want)
		}
	}
}

func TestOnlyChangesThatRepeatNoTextAreAllowed(t *testing.T) {
	old := Format{"INV-{date:20060102}-{seq:6}", Daily, "UTC"}
	for _, row := range []struct {
		f    Format
		want error
	}{
		{old, nil},
		{Format{old.Template, Daily, "Asia/Tokyo"}, nil},
		{Format{"INV-{date:20060102}-{seq:7}", Daily, "UTC"}, nil},
		{Format{"INV-{date:20060102}-{seq:5}", Daily, "UTC"}, seq.ErrUnsafeChange},
		{Format{old.Template, Monthly, "UTC"}, seq.ErrUnsafeChange}, // which has counts of its own for each month
		{Format{"INV2-{date:20060102}-{seq:6}", Daily, "UTC"}, seq.ErrUnsafeChange},
		{Format{"INV-{date:20060201}-{seq:6}", Daily, "UTC"}, seq.ErrUnsafeChange},
		{Format{"INV-{date:20060102}-{seq:6}x", Daily, "UTC"}, seq.ErrUnsafeChange},
		{Format{"INV-{date:20060102}", Daily, "UTC"}, seq.ErrBadArgument},
	} {
		if err := row.f.Follows(old); !errors.Is(err, row.want) {
			t.Errorf("%v: got %v, want %v", row.f, err, row.want)
		}
	}
}

// Any template that is sound, any two moments and counts, also after changes that are allowed.
func TestNoTwoCountsOrPeriodsHaveOneText(t *testing.T) {
	years, months, days := []string{"2006"}, []string{"01", "0102", "002"}, []string{"02", "15", "-"}
	rapid.Check(t, func(t *rapid.T) {
		pick := func(from ...string) string { return rapid.SampledFrom(from).Draw(t, "part") }
		seqs := rapid.IntRange(1, 15).Draw(t, "digits")
		parts := []string{"{date:" + pick(years...) + "}", "{date:" + pick(months...) + "}", "{date:" + pick(days...) + "}", fmt.Sprintf("{seq:%d}", seqs), pick("", "A", "1", "-")}
		parts = rapid.Permutation(parts).Draw(t, "order")
		f := Format{strings.Join(parts, ""), pick(Never, Daily, Monthly, Yearly), pick("UTC", "Asia/Kathmandu", "America/St_Johns")}
		now, err := f.Parse()
		if err != nil {
			t.Skip(err)
		}
		later := f
		later.Zone = pick("UTC", "Pacific/Apia")
		later.Template = strings.Replace(f.Template, fmt.Sprintf("{seq:%d}", seqs), fmt.Sprintf("{seq:%d}", rapid.IntRange(seqs, 15).Draw(t, "more")), 1)
		if err := later.Follows(f); err != nil {
			t.Fatal(err)
		}
		after, err := later.Parse()
		if err != nil {
			t.Fatal(err)
		}
		moment := func() time.Time { return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0) }
		one, two := moment(), moment()
		a, b := rapid.Uint64Range(1, now.Last()).Draw(t, "count"), rapid.Uint64Range(1, after.Last()).Draw(t, "count")
		if now.Text(one, a) == after.Text(two, b) && (a != b || now.Period(one) != after.Period(two)) {
			t.Fatalf("%v, then %v: %q is count %d of %s and %d of %s", f, later, now.Text(one, a), a, now.Period(one), b, after.Period(two))
		}
	})
}

func TestWhatIsLeftOutStaysOrHasADefault(t *testing.T) {
	old := Format{"{date:2006}{seq:2}", Yearly, "Asia/Tokyo"}
	for _, row := range []struct{ f, old, want Format }{
		{Format{}, Format{}, Format{}},
		{Format{Template: "{seq:2}"}, Format{}, Format{"{seq:2}", Never, "UTC"}},
		{Format{}, old, old},
		{Format{Zone: "UTC"}, old, Format{old.Template, Yearly, "UTC"}},
		{Format{Template: "{date:2006}{seq:3}"}, old, Format{"{date:2006}{seq:3}", Yearly, "Asia/Tokyo"}},
		{Format{Reset: Daily}, Format{}, Format{Reset: Daily}},
	} {
		if got := row.f.Over(row.old); got != row.want {
			t.Errorf("%v over %v: got %v, want %v", row.f, row.old, got, row.want)
		}
	}
}
