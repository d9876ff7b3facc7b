package history

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// sorted puts calls of key 1 in the order of their numbers.
func sorted(calls []Call) []Call {
	slices.SortFunc(calls, func(a, b Call) int { return cmp.Compare(a.First, b.First) })
	return calls
}

func many(n int) []Call {
	calls := make([]Call, n)
	for i := range calls {
		calls[i] = of(Key{Space: "a\nb", UID: 1<<64 - 1}, i%100-3, call(uint64(i)+1, uint64(i)+1, 1<<62, 1<<62+1))
	}
	return calls
}

// addAll adds calls from 8 goroutines.
func addAll(calls []Call, add func(Call)) {
	var wg sync.WaitGroup
	for part := range slices.Chunk(calls, (len(calls)+7)/8) {
		wg.Go(func() {
			for _, c := range part {
				add(c)
			}
		})
	}
	wg.Wait()
}

func TestTheRecorderKeepsTheCallsOfAllClients(t *testing.T) {
	var r Recorder
	if got := r.Calls(); len(got) != 0 {
		t.Errorf("an empty recorder holds %v", got)
	}
	want := many(2000)
	addAll(want, r.Add)
	if diff := gocmp.Diff(want, sorted(r.Calls())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAFileGivesBackEveryCallAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	want := many(500)
	addAll(want, func(c Call) {
		if err := file.Add(c); err != nil {
			t.Error(err)
		}
	})
	// Not closed yet: a killed process does not come to that either.
	got, err := ReadFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, sorted(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if err := file.Add(want[0]); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Add after Close: got %v, want %v", err, os.ErrClosed)
	}
}

func TestAnExistingFileIsNotContinued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, []byte(`{"uid":1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want %v", err, os.ErrExist)
	}
}

func TestSeveralFilesAreOneHistory(t *testing.T) {
	folder := t.TempDir()
	var paths []string
	for i, c := range []Call{call(7, 7, 0, 1), call(6, 6, 2, 3)} {
		path := filepath.Join(folder, string(rune('a'+i)))
		file, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(file.Add(c), file.Close()); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	calls, err := ReadFiles(paths...)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(calls).Err(); !errors.Is(err, ErrRegression) {
		t.Errorf("got %v, want %v", err, ErrRegression)
	}
	if _, err := ReadFiles(paths[0], filepath.Join(folder, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
}

func TestOnlyTheLastLineMayBeCutShort(t *testing.T) {
	const whole = `{"uid":1,"first":2,"last":3,"start":4,"end":5,"client":6}`
	one := []Call{of(Key{UID: 1}, 6, call(2, 3, 4, 5))}
	tests := []struct {
		name, text string
		want       []Call
		err        error
	}{
		{"empty", "", nil, nil},
		{"whole", whole + "\n", one, nil},
		{"the end of the line is missing", whole, one, nil},
		{"half a line", whole + "\n" + whole[:20], one, nil},
		{"half a line in the middle", whole[:20] + "\n" + whole + "\n", nil, ErrBadLine},
		{"two glued together", whole[:20] + whole + "\n", nil, ErrBadLine},
		{"empty line", "\n" + whole + "\n", nil, ErrBadLine},
		{"no object", "null\n", nil, ErrBadLine},
		{"negative number", `{"uid":1,"first":-2}` + "\n", nil, ErrBadLine},
		{"endless line", strings.Repeat(" ", maxLine+1), nil, ErrBadLine},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Read(strings.NewReader(test.text))
			if !errors.Is(err, test.err) {
				t.Fatalf("got %v, want %v", err, test.err)
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestACallThatWouldReadBackOtherwiseIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, c := range map[string]Call{
		"above the bound":   {Err: strings.Repeat("x", maxLine)},
		"space not UTF-8":   of(Key{Space: "\xff"}, 1, call(1, 1, 0, 1)),
		"message not UTF-8": {Err: "\xff"},
	} {
		if err := file.Add(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := file.Add(call(1, 1, 0, 1)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if got, err := ReadFiles(path); err != nil || len(got) != 1 {
		t.Errorf("got %v, %v, want one call", got, err)
	}
}
