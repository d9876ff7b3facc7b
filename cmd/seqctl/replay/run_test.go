package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/seqsvr/seqsvr/internal/ops/msglog"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/madelog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service counts one sequence a UID, and notices two calls of one UID at once.
type service struct {
	mu    sync.Mutex // guards the fields below
	last  map[seq.UID]seq.Seq
	busy  map[seq.UID]bool
	clash bool
	fail  map[seq.UID]error
}

func newService() *service {
	return &service{last: map[seq.UID]seq.Seq{}, busy: map[seq.UID]bool{}, fail: map[seq.UID]error{}}
}

func (s *service) next(_ context.Context, j job) (seq.Seq, bool, error) {
	uid := seq.UID(j.message.Recipient)
	s.mu.Lock()
	s.clash = s.clash || s.busy[uid]
	s.busy[uid] = true
	s.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[uid] = false
	if err := s.fail[uid]; err != nil {
		return 0, false, err
	}
	s.last[uid]++
	return s.last[uid], false, nil
}

func made(t *testing.T, users, messages int) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := madelog.Generate(&text, 11, users, messages); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

func nothing(uint64) {}

func TestALogReplaysInOrderForEachRecipientAndInTheOutput(t *testing.T) {
	text := made(t, 50, 5000)
	for _, callers := range []int{1, 7, 64} {
		s := newService()
		var out bytes.Buffer
		var mu sync.Mutex
		var progress uint64
		r, err := replay(t.Context(), msglog.NewReader(bytes.NewReader(text)), s.next, callers, &out, func(n uint64) {
			mu.Lock()
			defer mu.Unlock()
			progress += n
		})
		if err != nil {
			t.Fatal(err)
		}
		want := report{Events: 5000, Users: usersIn(text), Recipients: uint64(len(s.last))}
		if diff := cmp.Diff(want, r, cmpopts.IgnoreFields(report{}, "Rate", "P50", "P99", "Seconds")); diff != "" {
			t.Errorf("%d callers (-want +got)\n%s", callers, diff)
		}
		if s.clash {
			t.Errorf("%d callers: two calls for one recipient at once", callers)
		}
		if progress != 5000 {
			t.Errorf("%d callers: progress %d, want 5000", callers, progress)
		}
		if diff := cmp.Diff(expected(t, text), out.String()); diff != "" {
			t.Errorf("%d callers: output (-want +got)\n%s", callers, diff)
		}
	}
}

// usersIn counts the distinct senders and recipients of a log.
func usersIn(text []byte) uint64 {
	seen := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		seen[f[0]], seen[f[1]] = true, true
	}
	return uint64(len(seen))
}

// expected returns the output of a replay of the log on a new service.
func expected(t *testing.T, text []byte) string {
	t.Helper()
	var out strings.Builder
	last := map[string]int{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		last[f[1]]++
		fmt.Fprintf(&out, "%s %d %s\n", f[1], last[f[1]], f[2])
	}
	return out.String()
}

func TestAnUnreadableLineEndsTheReplayAfterAllBeforeItWasAnswered(t *testing.T) {
	log := "1 2 100\n1 3 101\nnonsense\n1 2 102\n"
	var out bytes.Buffer
	r, err := replay(t.Context(), msglog.NewReader(strings.NewReader(log)), newService().next, 4, &out, nothing)
	if !errors.Is(err, msglog.ErrBadLine) || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "SENDER RECIPIENT UNIX_SECONDS") {
		t.Errorf("got %v, want ErrBadLine that names line 3 and what was expected", err)
	}
	if r.Events != 2 || out.String() != "2 1 100\n3 1 101\n" {
		t.Errorf("got %d events and output %q, want the two before the line", r.Events, out.String())
	}
}

func TestAFailedCallEndsTheReplayAndNamesTheLine(t *testing.T) {
	s := newService()
	s.fail[3] = seq.ErrNoQuorum
	_, err := replay(t.Context(), msglog.NewReader(strings.NewReader("1 2 100\n1 3 101\n")), s.next, 2, nil, nothing)
	if !errors.Is(err, seq.ErrNoQuorum) || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), "recipient 3") {
		t.Errorf("got %v, want ErrNoQuorum with line 2 and recipient 3", err)
	}
}

func TestAReplayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	take := func(context.Context, job) (seq.Seq, bool, error) {
		if count++; count == 10 {
			cancel()
		}
		return seq.Seq(count), false, nil
	}
	r, err := replay(ctx, msglog.NewReader(bytes.NewReader(made(t, 2, 1000))), take, 1, nil, nothing)
	if !errors.Is(err, context.Canceled) || r.Events != 10 {
		t.Errorf("got %v after %d events, want context.Canceled after 10", err, r.Events)
	}
}

func TestNumbersThatRepeatOrFallAreReported(t *testing.T) {
	numbers := []seq.Seq{1, 2, 2, 9, 5}
	i := 0
	take := func(context.Context, job) (seq.Seq, bool, error) { i++; return numbers[i-1], false, nil }
	r, err := replay(t.Context(), msglog.NewReader(strings.NewReader(strings.Repeat("1 2 3\n", len(numbers)))), take, 1, nil, nothing)
	if err != nil {
		t.Fatal(err)
	}
	want := report{Events: 5, Users: 2, Recipients: 1, Duplicates: 1, Regressions: 1, Gaps: 1, Skipped: 6}
	if diff := cmp.Diff(want, r, cmpopts.IgnoreFields(report{}, "Rate", "P50", "P99", "Seconds")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// full fails after so many bytes, as a full disk does.
type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAnOutputThatFailsIsReported(t *testing.T) {
	_, err := replay(t.Context(), msglog.NewReader(bytes.NewReader(made(t, 20, 500))), newService().next, 4, &full{100}, nothing)
	if !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}
