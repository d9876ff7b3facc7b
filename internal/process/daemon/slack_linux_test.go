package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asDaemon in the environment has this program be a daemon that tells its slack.
const asDaemon = "SEQSVR_TEST_SLACK"

func init() {
	if os.Getenv(asDaemon) != "" {
		again := signal.Ignored(syscall.SIGHUP) // this is the program that Slacken has started
		Slacken()
		runtime.LockOSThread()
		now, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		fmt.Println(os.Getpid(), time.Duration(now), err, again, os.Args[1:])
		os.Exit(0)
	}
}

func TestADaemonSlackensUnlessSomebodyHasChosen(t *testing.T) {
	for _, test := range []struct{ before, want time.Duration }{
		{usualSlack, timerSlack},
		{70 * time.Microsecond, 70 * time.Microsecond},
		{2 * time.Millisecond, 2 * time.Millisecond},
	} {
		pid, got := startedWith(t, test.before)
		want := fmt.Sprintf("%d %v <nil> %v [one two]", pid, test.want, test.before == usualSlack)
		if got != want {
			t.Errorf("started with %v: got %q, want %q", test.before, got, want)
		}
	}
}

// startedWith starts this program by a thread with a slack.
func startedWith(t *testing.T, slack time.Duration) (pid int, out string) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
		t.Skip("no timer slack:", err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(usualSlack), 0, 0, 0) }()
	cmd := exec.Command(os.Args[0], "one", "two")
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, strings.TrimSpace(string(text))
}
