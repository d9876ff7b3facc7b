package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Hosts are machines of a network of a test's own: each a loopback address, so that all
// may use the ports that manifests and documents name. Linux has them without a set-up.
type Hosts struct{ addrs map[string]string }

// guardPort of the last address of a subnet says that it is taken: daemons of a test use
// addresses of hosts only.
const guardPort = "5999"

// NewHosts gives each name an address, the same name the same one, in a subnet that no
// other test on this machine has until this one ends.
func NewHosts(t testing.TB, names ...string) *Hosts {
	t.Helper()
	h := &Hosts{addrs: make(map[string]string)}
	prefix := ""
	for tries := 0; prefix == ""; tries++ {
		prefix = fmt.Sprintf("127.%d.%d.", 64+rand.N(128), rand.N(256))
		guard, err := net.Listen("tcp", net.JoinHostPort(prefix+"254", guardPort))
		if err == nil {
			t.Cleanup(func() { _ = guard.Close() })
		} else if prefix = ""; tries > 100 {
			t.Fatalf("no free subnet of loopback addresses: %v", err)
		}
	}
	for _, name := range names {
		if h.addrs[name] == "" {
			h.addrs[name] = fmt.Sprint(prefix, 1+len(h.addrs))
		}
	}
	return h
}

// Addr is the address of a host, empty for a name that is none.
func (h *Hosts) Addr(name string) string { return h.addrs[name] }

// Service is a daemon that was started, with its log.
type Service struct {
	whose, log string
	cmd        *exec.Cmd
	done       chan struct{} // closed when it has ended
}

// Serve starts a daemon; its log is shown when the test fails, and it is stopped at the
// end of the test if it still runs.
func Serve(t testing.TB, whose string, cmd *exec.Cmd) *Service {
	t.Helper()
	s := &Service{whose: whose, log: filepath.Join(t.TempDir(), "log"), cmd: cmd, done: make(chan struct{})}
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", whose, err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(s.done)
	}()
	t.Cleanup(func() {
		s.Stop(t)
		NoPanic(t, whose, s.log)
		if t.Failed() {
			ShowLog(t, whose, s.log)
		}
	})
	return s
}

// Signal sends the daemon a signal; it is an error if it has ended.
func (s *Service) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// Log is all that it has logged.
func (s *Service) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Tell asks the daemon to leave (SIGTERM) without waiting.
func (s *Service) Tell() { _ = s.Signal(syscall.SIGTERM) }

// Stop is Tell and Wait. It may be called again.
func (s *Service) Stop(t testing.TB) {
	t.Helper()
	s.Tell()
	s.Wait(t)
}

// Wait waits until the daemon has left; one that does not is killed, and the test fails.
func (s *Service) Wait(t testing.TB) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(Patience):
		_ = s.cmd.Process.Kill()
		<-s.done
		t.Errorf("%s did not stop in %v", s.whose, Patience)
	}
}
