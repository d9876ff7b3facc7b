package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// batch is some IDs of a generator of worker 7.
func batch(t *testing.T, n int) snowflake.Batch {
	t.Helper()
	layout, err := snowflake.ParseLayout("time:41,worker:10,sequence:12;unit=1ms;epoch=0;overflow=borrow")
	if err != nil {
		t.Fatal(err)
	}
	g, err := snowflake.New(layout, 0, 7, 0, snowflake.WithClock(func() int64 { return 1 }))
	if err != nil {
		t.Fatal(err)
	}
	g.Extend(1000)
	b, err := g.Take(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t *testing.T, cfg Config) *Log {
	t.Helper()
	l, err := Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run writes what is in the queue and ends.
func run(l *Log) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.Run(ctx)
}

func lines(t *testing.T, path string) (out []line) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var one line
		if err := json.Unmarshal(s.Bytes(), &one); err != nil {
			t.Fatalf("%s: %q: %v", path, s.Text(), err)
		}
		out = append(out, one)
	}
	return out
}

func TestEveryRunOfIDsIsALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	l := open(t, Config{Path: path})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l.Note(Note{At: at, Kind: Issued, Agent: "mailer", Caller: "caller/chat", Namespace: "orders", Worker: 7, Batches: []snowflake.Batch{batch(t, 5000)}})
	l.Note(Note{At: at, Kind: Lent, Agent: "web@host", Namespace: "orders", Worker: 8, First: 9007199254740993, Last: 9007199254740999})
	run(l)
	got := lines(t, path)
	want := []line{
		{"2026-01-02T03:04:05Z", Issued, "mailer", "caller/chat", "orders", 0, 7, fmt.Sprint(1<<22 | 7<<12), fmt.Sprint(1<<22 | 7<<12 | 4095), 1, 4096},
		{"2026-01-02T03:04:05Z", Issued, "mailer", "caller/chat", "orders", 0, 7, fmt.Sprint(2<<22 | 7<<12), fmt.Sprint(2<<22 | 7<<12 | 903), 1, 904},
		{"2026-01-02T03:04:05Z", Lent, "web@host", "", "orders", 0, 8, "9007199254740993", "9007199254740999", 0, 0},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d: got %+v, want %+v", i, got[i], want[i])
		}
	}
	if written, dropped := l.Counts(); written != 3 || dropped != 0 {
		t.Errorf("counted %d and %d", written, dropped)
	}
	if at, err := os.Stat(path); err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", at, err)
	}
	again := open(t, Config{Path: path})
	again.Note(Note{At: at, Kind: Returned, Namespace: "orders"})
	run(again)
	if got := lines(t, path); len(got) != 4 {
		t.Errorf("a second start has %d lines, want 4", len(got))
	}
}

func TestFilesAreRotatedAndTakeNoMoreThanTheyMay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ids.jsonl")
	l := open(t, Config{Path: path, Bytes: MinBytes, Files: 2})
	const notes = 4000
	for k := range notes {
		l.Note(Note{At: time.UnixMilli(int64(k)), Kind: Returned, Agent: strings.Repeat("a", 64), Namespace: "orders", Last: snowflake.ID(k)})
	}
	run(l)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatalf("got %v, %v", files, err)
	}
	next := ""
	for _, name := range []string{path + ".2", path + ".1", path} {
		at, err := os.Stat(name)
		if err != nil || at.Size() > MinBytes || name != path && at.Size() < MinBytes/2 {
			t.Errorf("%s: got %v, %v", name, at, err)
		}
		for _, one := range lines(t, name) {
			if next != "" && one.Last != next {
				t.Fatalf("%s: got %s after what is before %s", name, one.Last, next)
			}
			var n int
			if _, err := fmt.Sscan(one.Last, &n); err != nil {
				t.Fatal(err)
			}
			next = fmt.Sprint(n + 1)
		}
	}
	if next != fmt.Sprint(notes) {
		t.Errorf("the newest file ends before %s, want %d", next, notes)
	}
}

func TestAFullQueueAndADiskThatFailsKeepNobodyWaiting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := open(t, Config{Path: filepath.Join(dir, "ids.jsonl"), Bytes: MinBytes, Files: 1})
	noted := make(chan struct{})
	go func() {
		defer close(noted)
		for range queued + 7 { // nothing is taken out of the queue
			l.Note(Note{Kind: Returned, Namespace: strings.Repeat("n", 64)})
		}
	}()
	select {
	case <-noted:
	case <-time.After(30 * time.Second):
		t.Fatal("a note waits for the queue")
	}
	if written, dropped := l.Counts(); written != 0 || dropped != 7 {
		t.Errorf("counted %d and %d, want 7 left out", written, dropped)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	run(l) // the file has no name any more, and no other can be made
	if written, dropped := l.Counts(); written != 0 || dropped != queued+7 {
		t.Errorf("counted %d and %d, want all left out", written, dropped)
	}
	var none *Log
	none.Note(Note{Kind: Issued})
}

// note is a note of one line.
func note(k int) Note { return Note{Kind: Returned, Namespace: "orders", Last: snowflake.ID(k)} }

// counted checks the counts so far.
func counted(t *testing.T, l *Log, written, dropped uint64) {
	t.Helper()
	if w, d := l.Counts(); w != written || d != dropped {
		t.Fatalf("counted %d written and %d dropped, want %d and %d", w, d, written, dropped)
	}
}

func TestAFileThatWasMovedOrDeletedIsFollowedByAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	l := open(t, Config{Path: path})
	l.write(note(1))
	l.flush()
	for k, away := range []func() error{
		func() error { return os.Rename(path, path+".old") },
		func() error { return os.Remove(path) },
		func() error { return errors.Join(os.Rename(path, path+".older"), os.WriteFile(path, nil, 0o600)) },
	} {
		if err := away(); err != nil {
			t.Fatal(err)
		}
		l.write(note(k + 2))
		l.flush()
		counted(t, l, uint64(k+2), 0)
		if got := lines(t, path); len(got) != 1 || got[0].Last != fmt.Sprint(k+2) {
			t.Errorf("step %d: the file of that name has %+v", k, got)
		}
	}
	if err := os.Truncate(path, 0); err != nil { // logrotate with copytruncate
		t.Fatal(err)
	}
	l.write(note(9))
	l.flush()
	if got := lines(t, path); len(got) != 1 || got[0].Last != "9" {
		t.Errorf("after it was cut the file has %+v", got)
	}
}

func TestAReopenedFileLetsGoOfTheOldOneAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	l := open(t, Config{Path: path})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.Run(ctx) }()
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	l.Reopen()
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no file of that name")
		}
	}
	l.Note(note(1))
	stop()
	<-done
	if got := lines(t, path); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
	var none *Log
	none.Reopen()
}

func TestLinesThatCannotBeWrittenAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.jsonl")
	l := open(t, Config{Path: path})
	l.write(note(1))
	readable, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.file.Close()
	l.file = readable // as a disk that fails at the flush
	l.flush()
	counted(t, l, 0, 1)
	l.write(note(2)) // too early to try again
	counted(t, l, 0, 2)
	l.bad = time.Time{}
	l.write(note(3))
	l.flush()
	counted(t, l, 1, 2)
	if got := lines(t, path); len(got) != 1 || got[0].Last != "3" {
		t.Errorf("got %+v", got)
	}
}

func TestAnAuditThatIsNotSoundIsRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"small files": {Bytes: 100}, "less than none": {Files: -1}, "too many": {Files: MaxFiles + 1},
	} {
		if _, err := Open(cfg, nil); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v, want %v", name, err, seq.ErrBadArgument)
		}
	}
	if _, err := Open(Config{Path: filepath.Join(t.TempDir(), "no", "such")}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
