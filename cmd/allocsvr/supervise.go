package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/seq"
)

// A child that dies again and again is started after pauses that double from firstPause to lastPause. After
// a child has lived for steady, the pauses begin at firstPause again.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	steady     = 30 * time.Second
)

// endPatience bounds how long the stores are asked to end a dead child's session.
// Leases last 10 s at most: afterwards there is nothing left to end.
const endPatience = 10 * time.Second

// supervisor runs one child after the other. The death of a child is certain
// knowledge (waitpid), so its session is ended at the stores without waiting for the
// lease; each child has a session of its own, drawn here.
type supervisor struct {
	node    string // of the children
	command func(secret seq.Secret) *exec.Cmd
	end     func(ctx context.Context, secret seq.Secret) error
	started func(pid int) error
	reload  func()           // applies its own settings, before the child gets a SIGHUP
	hangups <-chan os.Signal // SIGHUP, which goes to the child
	log     *slog.Logger
}

// supervise is the parent's whole life.
func supervise(ctx context.Context, o *options, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("supervise: find own executable: %w", err)
	}
	stores := newEnder(o.Name, o.Stores, o.Common.Logger, o.Common.TLS.DialOptions(auth.Store, auth.Alloc)...)
	defer stores.close()
	hangups, unheard := daemon.Hangups()
	defer unheard()
	s := &supervisor{
		node:    o.Name,
		reload:  o.Reload,
		hangups: hangups,
		command: func(secret seq.Secret) *exec.Cmd {
			cmd := exec.Command(self, append(slices.Clone(args), "--supervise=false")...)
			text, _ := secret.MarshalText() // never fails
			cmd.Env = append(os.Environ(), secretEnv+"="+string(text))
			// Its output goes past this process, which would be one more to hang.
			cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, childAttributes()
			return cmd
		},
		end:     stores.end,
		started: func(pid int) error { return writePid(o.pidFile, pid) },
		log:     o.Common.Logger,
	}
	return s.run(ctx)
}

// run starts children until ctx ends, one ends well, or one was wrongly called.
func (s *supervisor) run(ctx context.Context) error {
	for pause := firstPause; ; {
		secret := seq.NewSecret(s.node)
		began := time.Now()
		state, err := s.child(ctx, secret)
		if err != nil {
			return fmt.Errorf("supervise: %w", err)
		}
		if state.Success() {
			return nil
		}
		s.log.Warn("child died, its session ends now", "session", secret.Session(), "status", state.String())
		s.endSession(secret)
		switch {
		case state.ExitCode() == daemon.ExitUsage:
			return daemon.Usage(fmt.Errorf("supervise: the child was wrongly called (%s)", state))
		case ctx.Err() != nil:
			return fmt.Errorf("supervise: child ended while stopping: %s", state)
		}
		if time.Since(began) >= steady {
			pause = firstPause
		}
		if !wake.Sleep(ctx, pause) {
			return nil
		}
		pause = min(2*pause, lastPause)
	}
}

// endSession is worth trying also when this process is being stopped.
func (s *supervisor) endSession(secret seq.Secret) {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	if err := s.end(ctx, secret); err != nil {
		s.log.Warn("session not ended, its lease runs out by itself", "session", secret.Session(), "error", err)
	}
}

// child runs one child to its end, and hands it the signal that ends ctx.
func (s *supervisor) child(ctx context.Context, secret seq.Secret) (*os.ProcessState, error) {
	cmd := s.command(secret)
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The signal at the parent's death comes at the death of the thread that
		// started the child: this one stays as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // what it tells is in the state
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the child: %w", err)
	}
	s.log.Info("child started", "pid", cmd.Process.Pid, "session", secret.Session())
	if err := s.started(cmd.Process.Pid); err != nil {
		s.log.Warn("pid file not written", "error", err)
	}
	for {
		select {
		case <-ended:
			return cmd.ProcessState, nil
		case <-s.hangups:
			s.reload()
			_ = cmd.Process.Signal(syscall.SIGHUP) // it may have ended just now
		case <-ctx.Done():
			_ = cmd.Process.Signal(forward(ctx)) // likewise
			<-ended
			return cmd.ProcessState, nil
		}
	}
}

// forward is the signal that ended ctx.
func forward(ctx context.Context) os.Signal {
	var stopped *daemon.Stopped
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped.Signal
	}
	return syscall.SIGTERM
}

// writePid replaces the file in one step, so that a reader never sees half of it.
func writePid(path string, pid int) error {
	if path == "" {
		return nil
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(strconv.Itoa(pid)+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
