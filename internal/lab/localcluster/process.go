package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// poll is the time between two looks at a condition in another process.
const poll = 10 * time.Millisecond

// Process is one daemon of the cluster, running or not. Its node never changes. All
// methods are safe for concurrent use.
type Process struct {
	Node
	Log string // file that its output is appended to

	argv    []string
	env     []string
	pidFile string // of the serving child, where a supervising parent runs it; else empty
	bySign  bool   // told to leave it ends by that signal, as etcd does, and not with a code

	mu  sync.Mutex // guards run
	run *run       // the last start; nil before the first
}

// run is one incarnation.
type run struct {
	process *os.Process
	done    chan struct{}    // closed after exit was set
	exit    *os.ProcessState // read only after done
	meant   atomic.Bool      // Stop or Kill asked for its end
}

// Start starts the process; it does not wait until it serves. ErrRunning if it runs.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.ended() {
		return fmt.Errorf("start %s: %w", p.Name, ErrRunning)
	}
	if p.pidFile != "" {
		_ = os.Remove(p.pidFile) // of an incarnation that is gone
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, log, log
	cmd.SysProcAttr = childAttributes()
	r := &run{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The signal at the parent's death comes at the death of the thread that
		// started the child: this one stays as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		r.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // what it tells is in the state
		r.exit = cmd.ProcessState
		close(r.done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.run = r
	return nil
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// current is the incarnation that runs.
func (p *Process) current() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil || p.run.ended() {
		return nil, fmt.Errorf("%s: %w", p.Name, ErrNotRunning)
	}
	return p.run, nil
}

// Pid is the process id, of the supervising parent where there is one; 0 when it
// does not run.
func (p *Process) Pid() int {
	r, err := p.current()
	if err != nil {
		return 0
	}
	return r.process.Pid
}

// Failed says whether the last incarnation ended without a call of this Process that
// asked for it: it crashed, refused to start, or was killed from elsewhere.
func (p *Process) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run != nil && p.run.ended() && !p.run.meant.Load()
}

// Running says whether the process has been started and has not ended.
func (p *Process) Running() bool { return p.Pid() != 0 }

// Done is closed when the incarnation that runs now, or ran last, has ended. Nil
// before the first start.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run == nil {
		return nil
	}
	return p.run.done
}

// Exit says how the last incarnation ended: "signal: killed", or "exit status 1" with
// the last line of its log; empty while it runs.
func (p *Process) Exit() string {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	if r == nil || !r.ended() {
		return ""
	}
	text := r.exit.String()
	if line := p.lastLine(); r.exit.Exited() && line != "" {
		text += ": " + line
	}
	return text
}

func (p *Process) lastLine() string {
	file, err := os.Open(p.Log)
	if err != nil {
		return ""
	}
	defer file.Close()
	tail := make([]byte, 4096)
	if info, err := file.Stat(); err == nil && info.Size() > int64(len(tail)) {
		_, _ = file.Seek(-int64(len(tail)), 2)
	}
	n, _ := file.Read(tail)
	lines := bytes.Split(bytes.TrimSpace(tail[:n]), []byte("\n"))
	return string(lines[len(lines)-1])
}

// Kill is kill -9 on the process that serves: of a supervised one the child, which
// its parent then starts again. It returns when that process is gone.
func (p *Process) Kill() error {
	return p.hurt(func(r *run, victim *os.Process, gone <-chan struct{}) error {
		if gone != nil {
			r.meant.Store(true)
		}
		if err := victim.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		if gone != nil {
			<-gone
			return nil
		}
		for victim.Signal(syscall.Signal(0)) == nil {
			<-time.After(poll)
		}
		return nil
	})
}

// Pause stops the process that serves as a hang would (SIGSTOP), until Resume.
func (p *Process) Pause() error {
	return p.hurt(func(_ *run, victim *os.Process, _ <-chan struct{}) error { return victim.Signal(syscall.SIGSTOP) })
}

// Resume lets a paused process go on (SIGCONT).
func (p *Process) Resume() error {
	return p.hurt(func(_ *run, victim *os.Process, _ <-chan struct{}) error { return victim.Signal(syscall.SIGCONT) })
}

// hurt does something to the process that serves. gone is closed at its end if it
// is this process's own child, and nil otherwise.
func (p *Process) hurt(do func(r *run, victim *os.Process, gone <-chan struct{}) error) error {
	r, err := p.current()
	if err != nil {
		return err
	}
	if p.pidFile == "" {
		return do(r, r.process, r.done)
	}
	child, err := p.child(r.process.Pid)
	if err != nil {
		return err
	}
	defer child.Release()
	return do(r, child, nil)
}

// ServingPid is the id of the process that serves: the child of a supervised one,
// else Pid. 0 when none runs.
func (p *Process) ServingPid() int {
	r, err := p.current()
	if err != nil {
		return 0
	}
	if p.pidFile == "" {
		return r.process.Pid
	}
	child, err := p.child(r.process.Pid)
	if err != nil {
		return 0
	}
	defer child.Release()
	return child.Pid
}

// child finds the supervised child by the file that its parent wrote. The handle is
// taken before the check, so that it is never another process that came by its id.
func (p *Process) child(parent int) (*os.Process, error) {
	text, err := os.ReadFile(p.pidFile)
	if err != nil {
		return nil, fmt.Errorf("child of %s: %w: %w", p.Name, ErrNotRunning, err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil || pid <= 0 {
		return nil, fmt.Errorf("child of %s: %w: pid file holds %q", p.Name, ErrNotRunning, text)
	}
	handle, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("child of %s: %w: %w", p.Name, ErrNotRunning, err)
	}
	if !isChild(pid, parent) {
		_ = handle.Release()
		return nil, fmt.Errorf("child of %s: %w: pid %d is not of its parent", p.Name, ErrNotRunning, pid)
	}
	return handle, nil
}

// Stop asks the process to leave (SIGTERM) and waits until it has left. If ctx ends first, Stop kills the
// process and returns an error that wraps ctx.Err(). If the process left in another way than it should,
// such as with an exit code, the error is ErrExited. Stop does nothing if the process does not run.
func (p *Process) Stop(ctx context.Context) error {
	r, err := p.current()
	if err != nil {
		return nil
	}
	r.meant.Store(true)
	if err := r.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	_ = p.Resume() // a paused one would never hear it
	select {
	case <-r.done:
	case <-ctx.Done():
		p.killTree(r)
		return fmt.Errorf("stop %s: %w, killed", p.Name, ctx.Err())
	}
	if how, ok := r.exit.Sys().(syscall.WaitStatus); p.bySign && ok && how.Signal() == syscall.SIGTERM {
		return nil
	}
	if !r.exit.Success() {
		return fmt.Errorf("stop %s: %w: %s", p.Name, ErrExited, p.Exit())
	}
	return nil
}

// killTree ends the process for good: of a supervised one the parent first, so that
// it starts no other child.
func (p *Process) killTree(r *run) {
	r.meant.Store(true)
	var child *os.Process
	if p.pidFile != "" {
		child, _ = p.child(r.process.Pid)
	}
	_ = r.process.Signal(syscall.SIGKILL)
	<-r.done
	if child != nil {
		_ = child.Signal(syscall.SIGKILL)
		for child.Signal(syscall.Signal(0)) == nil {
			<-time.After(poll)
		}
		_ = child.Release()
	}
}

// Restart stops the process if it runs, and starts it again under the same name and
// addresses. It returns when the new one takes connections.
func (p *Process) Restart(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	if err := p.Start(); err != nil {
		return err
	}
	return p.WaitListening(ctx)
}

// WaitListening waits until the process takes connections at Addr. ErrExited if it
// ended instead, ErrNotReady if ctx ended.
func (p *Process) WaitListening(ctx context.Context) error {
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", p.Addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s: %w: %s", p.Name, ErrExited, p.Exit())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", p.Name, ErrNotReady, err)
		case <-time.After(poll):
		}
	}
}
