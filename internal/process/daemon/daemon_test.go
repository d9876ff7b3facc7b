package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/seqsvr/seqsvr/internal/base/version"
)

// daemonEnv has a test binary be a daemon in place of its tests.
const daemonEnv = "SEQ_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(daemonEnv) != "" {
		os.Exit(steps())
	}
	goleak.VerifyTestMain(m)
}

// result is what one call of serve left behind.
type result struct {
	code           int
	stdout, stderr string
}

func call(args []string, signals <-chan os.Signal, run Run) result {
	var stdout, stderr bytes.Buffer
	code := serve("seqd", args, &stdout, &stderr, signals, run)
	return result{code, stdout.String(), stderr.String()}
}

func mustNotRun(t *testing.T) Run {
	return func(context.Context, []string, io.Writer, io.Writer) error {
		t.Error("the daemon was started")
		return nil
	}
}

func TestTheExitCodeSaysHowTheDaemonEnded(t *testing.T) {
	broken := errors.New("the disk is away")
	tests := []struct {
		name   string
		err    error
		code   int
		stderr string
	}{
		{"done", nil, ExitOK, ""},
		{"help", fmt.Errorf("parse: %w", pflag.ErrHelp), ExitOK, ""},
		{"failed", broken, ExitFailure, "seqd: the disk is away\n"},
		{"wrongly called", Usage(broken), ExitUsage, "seqd: the disk is away\n"},
		{"wrongly called, wrapped", fmt.Errorf("start: %w", ErrUsage), ExitUsage, "seqd: start: usage\n"},
		{"cancelled though no signal came", context.Canceled, ExitFailure, "seqd: context canceled\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := call([]string{"--flag"}, nil, func(_ context.Context, args []string, _, _ io.Writer) error {
				if len(args) != 1 || args[0] != "--flag" {
					t.Errorf("args = %q, want --flag", args)
				}
				return test.err
			})
			if want := (result{test.code, "", test.stderr}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestTheFirstSignalCancelsAndWaitsForTheDrain(t *testing.T) {
	broken := errors.New("fsync failed")
	tests := []struct {
		name  string
		drain func(ctx context.Context) error
		code  int
	}{
		{"drained", func(context.Context) error { return nil }, ExitOK},
		{"drained, says so", func(ctx context.Context) error { return fmt.Errorf("serve: %w", ctx.Err()) }, ExitOK},
		{"drained, gives the cause", func(ctx context.Context) error { return context.Cause(ctx) }, ExitOK},
		{"drain failed", func(context.Context) error { return broken }, ExitFailure},
		{"cancelled and failed", func(ctx context.Context) error { return errors.Join(ctx.Err(), broken) }, ExitFailure},
		{"failed while cancelled", func(ctx context.Context) error { return fmt.Errorf("%w: %w", broken, ctx.Err()) }, ExitFailure},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			signals := make(chan os.Signal, 1)
			got := call(nil, signals, func(ctx context.Context, _ []string, _, _ io.Writer) error {
				signals <- syscall.SIGTERM
				<-ctx.Done()
				var stopped *Stopped
				if cause := context.Cause(ctx); !errors.As(cause, &stopped) || stopped.Signal != syscall.SIGTERM {
					t.Errorf("cause = %v, want a stop by %v", cause, syscall.SIGTERM)
				}
				return test.drain(ctx)
			})
			if got.code != test.code {
				t.Errorf("got %+v, want code %d", got, test.code)
			}
		})
	}
}

func TestASecondSignalExitsWithoutWaiting(t *testing.T) {
	for second, want := range map[os.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		signals := make(chan os.Signal, 1)
		stuck, left := make(chan struct{}), make(chan struct{})
		got := call(nil, signals, func(ctx context.Context, _ []string, _, _ io.Writer) error {
			defer close(left)
			signals <- syscall.SIGTERM
			<-ctx.Done()
			signals <- second
			<-stuck
			return nil
		})
		if got.code != want || !strings.Contains(got.stderr, "exiting at once") {
			t.Errorf("%v: got %+v, want code %d", second, got, want)
		}
		close(stuck)
		<-left
	}
}

func TestTheVersionIsAnsweredWithoutStarting(t *testing.T) {
	line := "seqd " + version.String() + "\n"
	for _, args := range [][]string{{"--version"}, {"--config", "x", "--version"}, {"version"}, {"version", "-o", "text"}} {
		if got, want := call(args, nil, mustNotRun(t)), (result{ExitOK, line, ""}); got != want {
			t.Errorf("%q: got %+v, want %+v", args, got, want)
		}
	}
	for _, args := range [][]string{{"version", "-o", "json"}, {"version", "-ojson"}, {"version", "--output=json"}} {
		got := call(args, nil, mustNotRun(t))
		var info version.Info
		if err := json.Unmarshal([]byte(got.stdout), &info); err != nil || got.code != ExitOK || info != version.Get() {
			t.Errorf("%q: got %+v, %v, want the version as JSON", args, got, err)
		}
	}
}

func TestAWrongVersionVerbIsAUsageError(t *testing.T) {
	for _, args := range [][]string{{"version", "-o", "xml"}, {"version", "now"}, {"version", "--loud"}} {
		got := call(args, nil, mustNotRun(t))
		if got.code != ExitUsage || !strings.HasPrefix(got.stderr, "seqd: version: ") || got.stdout != "" {
			t.Errorf("%q: got %+v, want code %d", args, got, ExitUsage)
		}
	}
}

func TestAfterTheDoubleDashVersionIsAnArgument(t *testing.T) {
	started := false
	call([]string{"--", "--version"}, nil, func(context.Context, []string, io.Writer, io.Writer) error {
		started = true
		return nil
	})
	if !started {
		t.Error("the daemon was not started")
	}
}

func TestUsageOfNoErrorIsNoError(t *testing.T) {
	if err := Usage(nil); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}

// steps is a daemon that writes a line to its log for each byte of its stdin, and then
// one to stdout. It says "hup" for the SIGHUP that it got before the first byte.
func steps() int {
	return Main("seqd", nil, func(ctx context.Context, _ []string, stdout, stderr io.Writer) error {
		in := bufio.NewReader(os.Stdin)
		for {
			if _, err := in.ReadByte(); err != nil {
				return nil
			}
			fmt.Fprintln(stderr, "a line of the log")
			hangups, stop := Hangups()
			select {
			case <-hangups:
				fmt.Fprintln(stdout, "hup")
			default:
				fmt.Fprintln(stdout, "on")
			}
			stop()
		}
	})
}
