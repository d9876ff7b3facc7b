//go:build unix

package daemon

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMainHearsTheSignalsOfTheProcess(t *testing.T) {
	code := Main("seqd", nil, func(ctx context.Context, _ []string, _, _ io.Writer) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	})
	if code != ExitOK {
		t.Errorf("got %d, want %d", code, ExitOK)
	}
}

// startDaemon makes a process of steps; say has it do one step.
func startDaemon(t *testing.T) (cmd *exec.Cmd, say func() string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), daemonEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	return cmd, func() string {
		t.Helper()
		if _, err := in.Write([]byte{'x'}); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the daemon has ended: %v", err)
		}
		return strings.TrimSpace(line)
	}
}

func TestADaemonOutlivesTheReaderOfItsLog(t *testing.T) {
	cmd, say := startDaemon(t)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	say()
	if line, err := bufio.NewReader(log).ReadString('\n'); err != nil || line != "a line of the log\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for range 100 { // the first of them would end it
		say()
	}
}

func TestADaemonGoesOnWhileNobodyReadsItsLog(t *testing.T) {
	cmd, say := startDaemon(t)
	unread, log, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	cmd.Stderr = log
	err = cmd.Start()
	log.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	hangs := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hangs.Stop()
	for range 6000 { // a pipe holds 64 KiB
		say()
	}
}

func TestAnEarlyHangupIsNotedAndEndsNothing(t *testing.T) {
	cmd, say := startDaemon(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	if got := say(); got != "on" {
		t.Fatalf("got %q before the signal", got)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // the signal comes a moment after it was sent
		if say() == "hup" {
			return
		}
	}
	t.Error("the signal was not noted")
}
