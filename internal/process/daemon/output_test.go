package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/process/telemetry"
)

// reader is a log whose reader hangs, has left, or reads.
type reader struct {
	mu   sync.Mutex // guards all
	text bytes.Buffer
	gone error         // of the next writes
	hang chan struct{} // the next writes wait until it is closed; if nil, they do not wait
	held chan struct{} // gets a token from each write that waits
}

func newReader() *reader { return &reader{held: make(chan struct{}, 1000)} }

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	hang := r.hang
	r.mu.Unlock()
	if hang != nil {
		r.held <- struct{}{}
		<-hang
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone != nil {
		return 0, r.gone
	}
	return r.text.Write(p)
}

func (r *reader) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func (r *reader) set(gone error, hang chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone, r.hang = gone, hang
}

// await waits until the text was read.
func (r *reader) await(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(r.String(), want); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			text := r.String()
			t.Fatalf("no %q in the log, which ends with %q", want, text[max(0, len(text)-200):])
		}
	}
}

func TestALogThatNobodyReadsHoldsNobodyUpAndIsCounted(t *testing.T) {
	r := newReader()
	release := make(chan struct{})
	r.set(nil, release)
	out := NewOutput(r)
	log, _, err := NewLogger(out, "error", "json")
	if err != nil {
		t.Fatal(err)
	}
	log.Error("first")
	<-r.held // the writer waits from here on
	const line = 1 << 10
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for i := range 3 * outputBytes / line {
			log.Error(fmt.Sprint(i), "pad", strings.Repeat("x", line))
		}
	}()
	select {
	case <-logged:
	case <-time.After(30 * time.Second):
		t.Fatal("a line waits for the reader of the log")
	}
	dropped := out.Dropped()
	if dropped < outputBytes/line || dropped > 3*outputBytes/line {
		t.Errorf("%d lines were dropped", dropped)
	}
	r.set(nil, nil)
	close(release)
	r.await(t, fmt.Sprintf(`"level":"WARN","msg":"lines of this log were dropped, it was not read or could not be written","lines":%d}`, dropped))
	log.Error("flows again")
	out.Close()
	if text := r.String(); !strings.HasSuffix(text, "\"msg\":\"flows again\"}\n") || strings.Count(text, "were dropped") != 1 || out.Dropped() != dropped {
		t.Errorf("dropped %d, told %d times, the log ends with %q", out.Dropped(), strings.Count(text, "were dropped"), text[len(text)-100:])
	}
	if kept := uint64(strings.Count(r.String(), `"pad"`)); kept+dropped != 3*outputBytes/line {
		t.Errorf("%d lines are there and %d dropped", kept, dropped)
	}
}

// awaitDrop waits until a line was dropped.
func awaitDrop(t *testing.T, out *Output) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); out.Dropped() == 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no line was dropped")
		}
	}
}

func TestALogThatCannotBeWrittenIsCountedUntilItCan(t *testing.T) {
	r := newReader()
	r.set(errors.New("no space left"), nil)
	out := NewOutput(r)
	log, _, err := NewLogger(out, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("lost")
	awaitDrop(t, out)
	r.set(nil, nil)
	log.Info("kept")
	r.await(t, "lines=1")
	if text := r.String(); strings.Contains(text, "msg=lost") || !strings.Contains(text, "msg=kept") {
		t.Errorf("got %q", text)
	}
	out.Close()
	if log.Info("too late"); out.Dropped() != 2 {
		t.Errorf("%d dropped, want the line after the end as well", out.Dropped())
	}
}

func TestTheEndWaitsForALogOnlyForAMoment(t *testing.T) {
	r := newReader()
	release := make(chan struct{})
	r.set(nil, release)
	out := NewOutput(r)
	io.WriteString(out, "seqd: the disk is away\n")
	began := time.Now()
	closed := make(chan struct{})
	go func() { defer close(closed); out.Close() }() // comes back though the line is not read
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Fatal("the end waits for the reader of the log")
	}
	if took := time.Since(began); took < lastWords {
		t.Errorf("the last line was given %v, want %v", took, lastWords)
	}
	close(release)
	<-out.done
	if r.String() != "seqd: the disk is away\n" {
		t.Errorf("got %q", r.String())
	}
}

func TestDroppedLinesAreAMetric(t *testing.T) {
	r := newReader()
	r.set(os.ErrClosed, nil)
	out := NewOutput(r)
	defer out.Close()
	c, err := loader("", out)(nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Logger.Info("lost")
	awaitDrop(t, out)
	page := httptest.NewRecorder()
	c.admin("seqd", newStill()).Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(page.Body.String(), "\n"+telemetry.Prefix+"log_dropped_lines_total 1\n") {
		t.Errorf("got %s", page.Body)
	}
}
