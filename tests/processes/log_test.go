package processes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/msglog"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

var (
	samplePath  = filepath.Join("..", "data", "sample.txt.gz")
	collegePath = filepath.Join("..", "..", "..", "shared", "data", "CollegeMsg.txt.gz")
)

func read(t *testing.T, path string) []msglog.Message {
	t.Helper()
	text, err := msglog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var log []msglog.Message
	for r := msglog.NewReader(text); ; {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			return log
		}
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, m)
	}
}

// bigLog is the largest log that is there: a real one beside the repository, or
// the sample.
func bigLog(t *testing.T) []msglog.Message {
	t.Helper()
	if _, err := os.Stat(collegePath); err == nil {
		return read(t, collegePath)
	}
	return read(t, samplePath)
}

// report is what seqctl replay -o json prints.
type report struct {
	Events      uint64  `json:"events"`
	Users       uint64  `json:"users"`
	Recipients  uint64  `json:"recipients"`
	Duplicates  uint64  `json:"duplicates"`
	Regressions uint64  `json:"regressions"`
	Gaps        uint64  `json:"gaps"`
	Skipped     uint64  `json:"skipped"`
	Rate        float64 `json:"rate"`
	P50         int64   `json:"p50_us"`
	P99         int64   `json:"p99_us"`
}

// replay is a seqctl replay that gets its log from the test, as far as the test likes.
type replay struct {
	t      *testing.T
	out    string // what --out names
	parts  chan []msglog.Message
	close  func() // ends the log
	stdout bytes.Buffer
	stderr bytes.Buffer
	done   chan struct{} // closed when the process has ended
	err    error         // how; read after done
}

// startReplay starts it against the cluster.
func startReplay(t *testing.T, c *localcluster.Cluster, args ...string) *replay {
	t.Helper()
	return startReplayBy(t, c, harness.Binaries(t), args...)
}

// startReplayBy is startReplay by the seqctl of a folder.
func startReplayBy(t *testing.T, c *localcluster.Cluster, bin string, args ...string) *replay {
	t.Helper()
	r := &replay{t: t, out: filepath.Join(t.TempDir(), "answers"), parts: make(chan []msglog.Message, 16), done: make(chan struct{})}
	r.close = sync.OnceFunc(func() { close(r.parts) })
	args = append(replayArgs(c, "-", r.out), args...)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := commandBy(ctx, t, bin, "seqctl", args...)
	cmd.Stdout, cmd.Stderr = &r.stdout, &r.stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	go func() {
		r.err = cmd.Wait()
		close(r.done)
	}()
	go func() {
		defer stdin.Close()
		for part := range r.parts {
			// An error is the end of the process, which says why.
			_, _ = stdin.Write(text(part))
		}
	}()
	t.Cleanup(func() {
		cancel()
		r.close()
		<-r.done
	})
	return r
}

// replayArgs is a replay that gives nothing up that is merely slow: an answer that
// nobody waits for any more is a gap.
func replayArgs(c *localcluster.Cluster, log, out string) []string {
	return []string{"replay", log, "--addr", c.GRPC(), "-o", "json", "--out", out,
		"--timeout", harness.Patience.String(), "--attempt-timeout", attempt.String()}
}

func text(log []msglog.Message) []byte {
	var b bytes.Buffer
	for _, m := range log {
		fmt.Fprintln(&b, m)
	}
	return b.Bytes()
}

// feed gives the replay more of the log, and does not wait until it is read.
func (r *replay) feed(part []msglog.Message) { r.parts <- part }

// until waits for a condition while the replay goes on.
func (r *replay) until(what string, ok func() bool) {
	r.t.Helper()
	harness.Until(r.t, what, func() bool {
		select {
		case <-r.done:
			r.t.Fatalf("the replay ended before: %s: %v: %s", what, r.err, &r.stderr)
		default:
		}
		return ok()
	})
}

// finish ends the log and gives what came of it. The replay must end well.
func (r *replay) finish() (report, []answer) {
	r.t.Helper()
	r.close()
	select {
	case <-r.done:
	case <-harness.Within(r.t).Done():
		r.t.Fatalf("the replay has not ended after %v", harness.Patience)
	}
	if r.err != nil {
		r.t.Fatalf("replay: %v: %s%s", r.err, &r.stdout, &r.stderr)
	}
	return parseReport(r.t, r.stdout.Bytes()), readAnswers(r.t, r.out)
}

func parseReport(t *testing.T, text []byte) report {
	t.Helper()
	var got report
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("replay: %v: %s", err, text)
	}
	t.Logf("replay: %+v", got)
	return got
}

// answer is one line of --out.
type answer struct {
	recipient, number uint64
	seconds           int64
}

func readAnswers(t *testing.T, path string) []answer {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []answer
	for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		var a answer
		if _, err := fmt.Sscanf(string(line), "%d %d %d", &a.recipient, &a.number, &a.seconds); err != nil {
			t.Fatalf("%s line %d: %q: %v", path, i+1, line, err)
		}
		all = append(all, a)
	}
	return all
}

// check compares the answers with the log: one for each message, in its order, and
// the numbers of each recipient rising. It gives the last number of each recipient
// and how many were left out.
func check(t *testing.T, log []msglog.Message, answers []answer) (last map[uint64]uint64, skipped uint64) {
	t.Helper()
	if len(answers) != len(log) {
		t.Fatalf("%d answers for %d messages", len(answers), len(log))
	}
	last = map[uint64]uint64{}
	for i, a := range answers {
		if m := log[i]; a.recipient != m.Recipient || a.seconds != m.Seconds {
			t.Fatalf("answer %d is %+v, message %+v", i+1, a, m)
		}
		before := last[a.recipient]
		if a.number <= before {
			t.Fatalf("answer %d: recipient %d got %d after %d", i+1, a.recipient, a.number, before)
		}
		skipped += a.number - before - 1
		last[a.recipient] = a.number
	}
	return last, skipped
}
