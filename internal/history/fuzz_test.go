package history

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzRead: a history is read, or refused by name; what was read is written to be read
// again, and Check has a verdict on all of it.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"uid":1,"first":1,"last":3,"start":5,"end":9,"client":2}` + "\n" + `{"space":"pts","uid":7,"start":5,"end":9,"client":2,"err":"lost"}` + "\n"))
	f.Add([]byte(`{"uid":1,"first":9007199254740991,"last":9007199254740992,"start":9,"end":1}` + "\n" + `{"uid":1,"fi`))
	f.Add([]byte("null\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		calls, err := Read(bytes.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrBadLine) {
				t.Fatalf("error of no name: %v", err)
			}
			return
		}
		if r := Check(calls); r.Requests != len(calls) || (r.Err() == nil) != (r.Invalid == 0 && r.Duplicates == 0 && r.Regressions == 0) {
			t.Fatalf("%d calls: %v, error %v", len(calls), r, r.Err())
		}
		path := filepath.Join(t.TempDir(), "history")
		file, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range calls {
			if err := file.Add(c); err != nil {
				return // a text that JSON cannot hold, or a line that would be too long
			}
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadFiles(path); err != nil || !cmp.Equal(calls, again) {
			t.Fatalf("written and read again: %s (%v)", cmp.Diff(calls, again), err)
		}
	})
}
