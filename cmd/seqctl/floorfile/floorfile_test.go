package floorfile

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func all(text string) (lines []Line, err error) {
	r := NewReader(strings.NewReader(text))
	for {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, l)
	}
}

var some = []Line{
	{UID: 42, AtLeast: 6000, Given: true}, {UID: 1<<64 - 1, AtLeast: 1<<53 - 1, Given: true, UpperBound: true},
	{Key: "room:7", AtLeast: 12, Given: true}, {Key: "a \"b\",\n<é>\u2028", Given: true}, {Key: "# 1", AtLeast: 1, Given: true},
	{Section: 17, Sections: 4096, AtLeast: 10_000, Given: true, UpperBound: true},
}

func TestAnExportReadsAsItWasWritten(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, "space \"user\"\nof a cluster")
	for _, l := range some {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	got, err := all(out.String())
	if diff := cmp.Diff(some, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got)\n%s", err, diff)
	}
	// Cut anywhere before its last line, it does not read as one that is whole.
	text := out.String()
	last := strings.LastIndex(text[:len(text)-1], "\n") + 1
	for n := len(begin); n < last; n++ {
		if got, err := all(text[:n]); err == nil {
			t.Fatalf("the first %d bytes read as %v", n, got)
		}
	}
	if _, err := all(strings.Replace(text, "42 6000\n", "", 1)); !errors.Is(err, ErrCut) {
		t.Errorf("without a line: got %v, want ErrCut", err)
	}
	if _, err := all(text + "5 5\n"); !errors.Is(err, ErrFormat) {
		t.Errorf("with a line behind the end: got %v, want ErrFormat", err)
	}
}

func TestFilesOfOthersAreRead(t *testing.T) {
	got, err := all("# ours\n\n42,6000\r\n  43\t7\n\"k\" , 5\n44\n45 6")
	want := []Line{{UID: 42, AtLeast: 6000, Given: true}, {UID: 43, AtLeast: 7, Given: true}, {Key: "k", AtLeast: 5, Given: true}, {UID: 44}, {UID: 45, AtLeast: 6, Given: true}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got)\n%s", err, diff)
	}
}

func TestABadLineIsNamed(t *testing.T) {
	for text, part := range map[string]string{
		"x 5":                              `line 2: bad line: "x", expected UID`,
		"5 x":                              `number "x"`,
		"5 -1":                             `number "-1"`,
		"5 9007199254740992":               "9007199254740991",
		"18446744073709551616 5":           "expected UID",
		"5 6 7":                            `"7" behind the number`,
		`"a 5`:                             "no JSON string",
		"\"a\xff\" 5":                      "UTF-8",
		`"r-\ud83d" 5`:                     "half a character",
		`"" 5`:                             "0 bytes",
		"section 5 5":                      "S/N",
		"section 4096/4096 5":              "S below N",
		"section":                          "S/N",
		strings.Repeat("1", maxLine) + "1": "more than 16384 bytes",
	} {
		if _, err := all("1 1\n" + text + "\n"); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), part) {
			t.Errorf("%.40q: got %v, want %q", text, err, part)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, l := range some {
		f.Add(l.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, _ := all(text)
		for _, l := range lines {
			again, err := all(l.String())
			if err != nil || len(again) != 1 || again[0] != l {
				t.Fatalf("%q is written as %q and reads as %v, %v", text, l, again, err)
			}
		}
	})
}
