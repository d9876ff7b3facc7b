package msglog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the messages and the errors of the bad lines between them.
// It fails the test on an error of the input.
func readAll(t *testing.T, r io.Reader) (messages []Message, bad []error) {
	t.Helper()
	reader := NewReader(r)
	for {
		m, err := reader.Next()
		switch {
		case err == io.EOF:
			return messages, bad
		case errors.Is(err, ErrBadLine), errors.Is(err, ErrLineTooLong):
			bad = append(bad, err)
		case err != nil:
			t.Fatal(err)
		default:
			messages = append(messages, m)
		}
	}
}

func pack(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestALogIsReadPlainOrPackedWhateverItsName(t *testing.T) {
	const text = "1 2 1082040961\n3\t4  1082155839\r\n18446744073709551615 0 9223372036854775807"
	want := []Message{{1, 2, 1082040961}, {3, 4, 1082155839}, {math.MaxUint64, 0, math.MaxInt64}}
	twice := append(pack(t, "1 2 1082040961\n3 4 1082155839\n"), pack(t, "18446744073709551615 0 9223372036854775807\n")...)
	for name, content := range map[string][]byte{"plain": []byte(text), "packed": pack(t, text), "packed in two parts": twice} {
		t.Run(name, func(t *testing.T) {
			log, err := Open(write(t, content))
			if err != nil {
				t.Fatal(err)
			}
			got, bad := readAll(t, log)
			if diff := cmp.Diff(want, got); diff != "" || len(bad) > 0 {
				t.Errorf("bad lines %v, messages (-want +got)\n%s", bad, diff)
			}
			if err := log.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheDashReadsStandardInput(t *testing.T) {
	file, err := os.Open(write(t, pack(t, "7 8 9\n")))
	if err != nil {
		t.Fatal(err)
	}
	defer func(stdin *os.File) { os.Stdin = stdin }(os.Stdin)
	os.Stdin = file
	log, err := Open("-")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := readAll(t, log)
	if diff := cmp.Diff([]Message{{7, 8, 9}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Errorf("standard input was closed with the log: %v", err)
	}
}

func TestAnEmptyLogHasNoMessages(t *testing.T) {
	for _, content := range [][]byte{nil, pack(t, "")} {
		log, err := Open(write(t, content))
		if err != nil {
			t.Fatal(err)
		}
		if got, bad := readAll(t, log); len(got)+len(bad) > 0 {
			t.Errorf("got %v, %v, want nothing", got, bad)
		}
		log.Close()
	}
}

func TestALogThatCannotBeOpenedIsAnError(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing: got %v, want %v", err, os.ErrNotExist)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
	if _, err := Open(write(t, []byte{0x1f, 0x8b, 7})); err == nil {
		t.Error("a broken gzip header was accepted")
	}
}

func TestAPackedLogThatIsCutShortIsAnErrorThatStays(t *testing.T) {
	packed := pack(t, strings.Repeat("1 2 3\n4 5 6\n", 100))
	log, err := Open(write(t, packed[:len(packed)-9]))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	reader := NewReader(log)
	for err = nil; err == nil; {
		_, err = reader.Next()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want %v", err, io.ErrUnexpectedEOF)
	}
	if _, again := reader.Next(); again != err {
		t.Errorf("afterwards got %v, want %v", again, err)
	}
}

func TestABadLineIsNamedAndTheNextOneIsRead(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"empty", "", `bad line: "": expected 3 fields, SENDER RECIPIENT UNIX_SECONDS`},
		{"too few", "1 2", `bad line: "1 2": expected 3 fields`},
		{"too many", "1 2 3 4", `bad line: "1 2 3 4": expected 3 fields`},
		{"sender", "x 2 3", `bad line: "x": expected a whole number from 0 to 2^64-1 as SENDER`},
		{"recipient", "1 -2 3", `bad line: "-2": expected a whole number from 0 to 2^64-1 as RECIPIENT`},
		{"seconds", "1 2 3.5", `bad line: "3.5": expected a whole number from 0 to 2^63-1 as UNIX_SECONDS`},
		{"sender overflows", "18446744073709551616 2 3", `as SENDER`},
		{"seconds overflow", "1 2 9223372036854775808", `as UNIX_SECONDS`},
		{"a little too long", "1 2 3" + strings.Repeat(" ", MaxLine), `line too long: it begins "1 2 3 `},
		{"far too long", strings.Repeat("1 2 3 ", 1<<16), `line too long: it begins "1 2 3 1 2 3 `},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, bad := readAll(t, strings.NewReader("1 2 3\n"+test.line+"\n4 5 6\n"))
			if diff := cmp.Diff([]Message{{1, 2, 3}, {4, 5, 6}}, got); diff != "" {
				t.Errorf("messages (-want +got)\n%s", diff)
			}
			if len(bad) != 1 || !strings.HasPrefix(bad[0].Error(), "message log line 2: ") || !strings.Contains(bad[0].Error(), test.want) {
				t.Fatalf("got %v\nwant %s", bad, test.want)
			}
			if len(bad[0].Error()) > 400 {
				t.Errorf("the error is %d bytes long", len(bad[0].Error()))
			}
		})
	}
}

func TestALineOfExactlyTheBoundIsRead(t *testing.T) {
	line := "1 2 3"
	line += strings.Repeat(" ", MaxLine-len(line))
	if got, bad := readAll(t, strings.NewReader(line)); len(got) != 1 || len(bad) > 0 {
		t.Errorf("got %v, %v, want one message", got, bad)
	}
}

func TestTheReaderKnowsItsLine(t *testing.T) {
	reader := NewReader(strings.NewReader("1 2 3\nbad\n4 5 6\n"))
	for want := 1; want <= 3; want++ {
		_, err := reader.Next()
		if got := reader.Line(); got != want || (want == 2) != (err != nil) {
			t.Errorf("line %d: Line() = %d, error %v", want, got, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{"", "1 2 3\n", "1 2 3", "\n\n", "a b c\n1 2\n", "18446744073709551615 1 9223372036854775807\r\n", "1 2 3 4"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		reader := NewReader(bytes.NewReader(text))
		lines := 0
		for {
			m, err := reader.Next()
			if err == io.EOF {
				break
			}
			lines++
			if reader.Line() != lines {
				t.Fatalf("Line() = %d, want %d", reader.Line(), lines)
			}
			if err != nil {
				if !errors.Is(err, ErrBadLine) && !errors.Is(err, ErrLineTooLong) {
					t.Fatalf("line %d: %v has no name", lines, err)
				}
				continue
			}
			if m.Seconds < 0 {
				t.Fatalf("line %d: %+v lies before 1970", lines, m)
			}
			again, err := NewReader(strings.NewReader(m.String() + "\n")).Next()
			if err != nil || again != m {
				t.Fatalf("%+v reads back as %+v, %v", m, again, err)
			}
		}
		want := bytes.Count(text, []byte("\n"))
		if len(text) > 0 && text[len(text)-1] != '\n' {
			want++
		}
		if lines != want {
			t.Fatalf("%d lines came out of %d", lines, want)
		}
	})
}
