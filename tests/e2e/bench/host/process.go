package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// ErrEnded: a server ended by itself; the text has the end of its log.
var ErrEnded = errors.New("server ended by itself")

// Server is a process that runs until Stop, or until this process dies.
type Server struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// As is the account of a server. Start takes a nil As for this process's own account.
type As struct{ UID, GID uint32 }

// Start runs a program in dir, with its output in dir/name.log.
func Start(dir, name string, as *As, argv ...string) (*Server, error) {
	path := filepath.Join(dir, name+".log")
	log, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	// A process group of its own, so that Ctrl-C reaches this program first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.UID, Gid: as.GID}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s := &Server{cmd: cmd, log: path, done: make(chan struct{})}
	go func() { _ = cmd.Wait(); close(s.done) }()
	return s, nil
}

// Pid is the process's.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Stop ends it with SIGTERM, after ten seconds with SIGKILL, and waits.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// Until tries again and again until ready gives no error. ErrEnded if the server is
// gone, the last error when ctx ends.
func (s *Server) Until(ctx context.Context, ready func() error) error {
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("%w: %.2000s", ErrEnded, text[max(0, len(text)-2000):])
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// FreePort is a TCP port of loopback that nobody listens on now.
func FreePort() (int, error) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer lis.Close()
	return lis.Addr().(*net.TCPAddr).Port, nil
}

// Listening says whether somebody does on a port of loopback.
func Listening(port int) error {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}
