package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
)

// patience is far more than anything here takes.
const patience = 30 * time.Second

// record holds the actions of a supervisor.
type record struct {
	sessions []seq.Secret
	ended    []seq.Secret
	pids     chan int
}

// scripted supervises shell scripts, one a start; the last one is repeated.
func scripted(r *record, scripts ...string) *supervisor {
	r.pids = make(chan int, 100)
	return &supervisor{
		command: func(session seq.Secret) *exec.Cmd {
			script := scripts[min(len(r.sessions), len(scripts)-1)]
			r.sessions = append(r.sessions, session)
			cmd := exec.Command("/bin/sh", "-c", script)
			cmd.SysProcAttr = childAttributes()
			return cmd
		},
		end:     func(_ context.Context, session seq.Secret) error { r.ended = append(r.ended, session); return nil },
		started: func(pid int) error { r.pids <- pid; return nil },
		log:     slog.New(slog.DiscardHandler),
	}
}

func TestADeadChildsSessionEndsAndAnotherStartsUnderANewOne(t *testing.T) {
	var r record
	if err := scripted(&r, "exit 1", "kill -9 $$", "exit 0").run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(r.sessions) != 3 || r.sessions[0] == r.sessions[1] || r.sessions[1] == r.sessions[2] {
		t.Errorf("sessions %v, want 3 different ones", r.sessions)
	}
	if fmt.Sprint(r.ended) != fmt.Sprint(r.sessions[:2]) {
		t.Errorf("ended %v, want the two that died: %v", r.ended, r.sessions[:2])
	}
}

func TestAWronglyCalledChildIsNotStartedAgain(t *testing.T) {
	var r record
	err := scripted(&r, "exit 2").run(t.Context())
	if !errors.Is(err, daemon.ErrUsage) || len(r.sessions) != 1 {
		t.Errorf("got %v after %d starts, want ErrUsage after 1", err, len(r.sessions))
	}
}

func TestTheSignalOfTheParentReachesTheChild(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		name := map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGINT: "INT"}[signal]
		ready := filepath.Join(t.TempDir(), "ready")
		var r record
		s := scripted(&r, fmt.Sprintf("trap 'exit 0' %s; : > %s; while :; do sleep 0.01; done", name, ready))
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
				if _, err := os.Stat(ready); err == nil {
					break
				}
			}
			cancel(&daemon.Stopped{Signal: signal})
		}()
		if err := s.run(ctx); err != nil {
			t.Errorf("%s: %v, want the child's clean end", name, err)
		}
		if len(r.ended) != 0 {
			t.Errorf("%s: ended %v, want none: the child ended its own session", name, r.ended)
		}
	}
}

func TestAChildThatDoesNotLeaveWellWhileStoppingIsAnError(t *testing.T) {
	var r record
	ctx, cancel := context.WithCancel(t.Context())
	s := scripted(&r, "while :; do sleep 0.01; done")
	s.started = func(int) error { cancel(); return nil }
	if err := s.run(ctx); err == nil || len(r.ended) != 1 {
		t.Errorf("got %v with %d sessions ended, want an error and 1", err, len(r.ended))
	}
}

func TestAChildThatCannotStartIsAnError(t *testing.T) {
	s := scripted(&record{}, "")
	s.command = func(seq.Secret) *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "missing")) }
	if err := s.run(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

func TestThePidFileHoldsTheChild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pid")
	for _, pid := range []int{12345, 678} {
		if err := writePid(path, pid); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if got := strings.TrimSpace(string(text)); err != nil || got != strconv.Itoa(pid) {
			t.Errorf("got %q, %v, want %d", got, err, pid)
		}
	}
	if err := writePid("", 1); err != nil {
		t.Errorf("no file asked for: %v", err)
	}
}
