package ui

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type member struct {
	Name string   `json:"name"`
	UID  uint64   `json:"uid"`
	Up   bool     `json:"up"`
	Tags []string `json:"tags"`
	Next *member  `json:"next,omitempty"`
	Rate float64  `json:"rate"`
}

func sample() []member {
	return []member{
		{Name: "true", UID: math.MaxUint64, Up: true, Tags: []string{"a<b", "x\x7f: #y"}, Rate: 0.5},
		{Name: "b", UID: 1<<53 + 1, Next: &member{Name: "c"}},
	}
}

func noTable() *Table { return nil }

func TestAResultPrintsAsJSONWithAllDigits(t *testing.T) {
	var out bytes.Buffer
	if err := Print(&out, FormatJSON, map[string]any{"uid": uint64(math.MaxUint64), "name": "a<b"}, noTable); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"name\": \"a<b\",\n  \"uid\": 18446744073709551615\n}\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestYAMLHasTheKeysAndTheOrderOfTheJSON(t *testing.T) {
	var out bytes.Buffer
	if err := Print(&out, FormatYAML, sample(), noTable); err != nil {
		t.Fatal(err)
	}
	want := `- name: "true"
  uid: 18446744073709551615
  up: true
  tags:
    - a<b
    - "x\x7F: #y"
  rate: 0.5
- name: b
  uid: 9007199254740993
  up: false
  tags: null
  next:
    name: c
    uid: 0
    up: false
    tags: null
    rate: 0
  rate: 0
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEmptyResultsPrintInEveryFormat(t *testing.T) {
	for format, want := range map[Format]string{FormatJSON: "[]\n", FormatYAML: "[]\n", FormatTable: "NAME   UP\n"} {
		var out bytes.Buffer
		if err := Print(&out, format, []member{}, func() *Table { return NewTable("name", "up") }); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
}

func TestAValueThatDoesNotEncodeWritesNothing(t *testing.T) {
	for _, format := range []Format{FormatJSON, FormatYAML} {
		var out bytes.Buffer
		if err := Print(&out, format, func() {}, noTable); err == nil || out.Len() > 0 {
			t.Errorf("%s: got %v and %q, want an error and nothing", format, err, out.String())
		}
	}
}

func TestAnUnknownFormatIsRefused(t *testing.T) {
	if _, err := ParseFormat("xml"); !errors.Is(err, ErrFormat) {
		t.Errorf("ParseFormat: got %v, want %v", err, ErrFormat)
	}
	if err := Print(&bytes.Buffer{}, "xml", 1, noTable); !errors.Is(err, ErrFormat) {
		t.Errorf("Print: got %v, want %v", err, ErrFormat)
	}
	for _, text := range []string{"table", "json", "yaml"} {
		if got, err := ParseFormat(text); err != nil || string(got) != text {
			t.Errorf("ParseFormat(%q) = %q, %v", text, got, err)
		}
	}
}

func TestATableAlignsNumbersRightAndTextLeft(t *testing.T) {
	table := NewTable("section", "owner", "steps", "lease").
		Row("17", "alloc-1", 12345678, 1500*time.Millisecond).
		Row("18", "é", uint64(3), 90*time.Second).
		Row("19", "", 0)
	want := strings.Join([]string{
		"SECTION   OWNER          STEPS   LEASE",
		"17        alloc-1   12,345,678   1.50s",
		"18        é                  3   1m30s",
		"19                           0",
		"",
	}, "\n")
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTextFromElsewhereCannotSteerTheTerminal(t *testing.T) {
	got := NewTable("key").Row("a\x1b[2Jb\nc\td\u202e\xff").render(true)
	want := string(Bold) + "KEY" + reset + "\na?[2Jb?c?d??\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestColoursDoNotShiftColumns(t *testing.T) {
	table := NewTable("state", "n").Row(Cell{"up", Green}, 1).Row(Cell{"stale", Red}, 20)
	colored := table.render(true)
	if !strings.Contains(colored, string(Green)+"up"+reset+"       ") {
		t.Errorf("got %q, want up in green", colored)
	}
	for _, code := range []Color{Bold, Red, Green, reset} {
		colored = strings.ReplaceAll(colored, string(code), "")
	}
	if plain := table.render(false); colored != plain {
		t.Errorf("without its colours %q, want %q", colored, plain)
	}
}

func TestMoreValuesThanColumnsPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewTable("one").Row(1, 2)
}

func TestAFileAndABufferAreNoTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if IsTerminal(file) || IsTerminal(null) || IsTerminal(&bytes.Buffer{}) || Colored(file) {
		t.Error("taken for a terminal")
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Int(n); got != want {
			t.Errorf("Int(%d) = %q, want %q", n, got, want)
		}
	}
	if got, want := Uint(math.MaxUint64), "18,446,744,073,709,551,615"; got != want {
		t.Errorf("Uint = %q, want %q", got, want)
	}
}

func TestDurationsShowThreeDigitsOrTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                "0s",
		850:                              "850ns",
		1234:                             "1.23µs",
		12345 * time.Microsecond:         "12.3ms",
		999999 * time.Microsecond:        "999ms",
		45678 * time.Millisecond:         "45.6s",
		125 * time.Second:                "2m05s",
		3*time.Hour + 12*time.Minute:     "3h12m",
		99*time.Hour + 59*time.Minute:    "4d03h",
		-1500 * time.Millisecond:         "-1.50s",
		time.Duration(math.MinInt64):     "-106751d23h",
		time.Duration(math.MaxInt64):     "106751d23h",
		time.Second + 5*time.Millisecond: "1.00s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestAProgressLineFitsItsTerminal(t *testing.T) {
	tests := []struct {
		count, total uint64
		columns      int
		want         string
	}{
		{50, 100, 52, "copy [========>       ]  50% 50/100 2.00s left 2.00s"},
		{100, 100, 40, "copy [==============] 100% 100/100 2.00s"},
		{150, 100, 40, "copy [==============] 100% 150/100 2.00s"},
		{0, 100, 35, "copy [>          ]   0% 0/100 2.00s"},
		{1, 100, 20, "copy   1% 1/100 2.00"},
		{1234, 0, 80, "copy 1,234 2.00s"},
		{0, 0, 80, "copy 2.00s"},
		{1, 2, 0, ""},
	}
	for _, test := range tests {
		got := progressLine("copy", test.count, test.total, 2*time.Second, Uint, test.columns)
		if got != test.want {
			t.Errorf("%d of %d in %d columns:\ngot  %q\nwant %q", test.count, test.total, test.columns, got, test.want)
		}
		if utf8.RuneCountInString(got) > test.columns {
			t.Errorf("%q is wider than %d", got, test.columns)
		}
	}
}

func TestProgressIsSilentWhereNobodyLooks(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, "copy", 10)
	p.Add(5)
	p.Done()
	p.Add(5)
	if out.Len() > 0 {
		t.Errorf("got %q, want nothing", out.String())
	}
}

func TestProgressOnATerminalEndsItsLineOnce(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "copy", 10, false, true)
	p.Add(10)
	p.Say("file\x1b[2J 7")
	p.Done()
	p.Done()
	p.Add(1)
	got := out.String()
	if !strings.HasPrefix(got, "\r\x1b[Kcopy") || !strings.Contains(got, "copy: file?[2J 7 [") || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
		t.Errorf("got %q, want one line", got)
	}
}

func TestAClockCountsByItself(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, "bench", uint64(time.Nanosecond), true, true)
	p.Done()
	if got := out.String(); !strings.Contains(got, "100%") {
		t.Errorf("got %q after all of the time", got)
	}
}
