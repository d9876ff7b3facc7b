// Package etcdtest runs etcd itself for tests: one or more members on loopback, from the installed binary.
// Tests skip where there is none.
//
// What belongs here: processes. What does not: etcd's answers, which the tests check.
package etcdtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// patience bounds the time of a start on a busy machine.
const patience = 40 * time.Second

// Cluster is an etcd of some members.
type Cluster struct {
	t       *testing.T
	binary  string
	creds   credentials.TransportCredentials // of clients; if nil, plaintext
	peers   *peers                           // if nil, members reach each other directly
	Members []*Member
}

// Member is one process of etcd.
type Member struct {
	Client string // host:port for clients
	Dir    string // of its data

	cluster *Cluster
	under   []string // a command that becomes the one after it, in the same process
	args    []string
	log     string
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
}

// Start runs n members with extra arguments, and waits until they have a leader. They end with
// the test.
func Start(t *testing.T, n int, args ...string) *Cluster {
	t.Helper()
	return start(&Cluster{t: t}, n, "http://", func(string) []string { return args })
}

// StartApart is Start of members that can be cut off from each other.
func StartApart(t *testing.T, n int, args ...string) *Cluster {
	t.Helper()
	return start(&Cluster{t: t, peers: &peers{changed: make(chan struct{})}}, n, "http://", func(string) []string { return args })
}

// StartTLS is Start of members that clients reach over TLS, by credentials of theirs. args gets
// the address of each member's machine.
func StartTLS(t *testing.T, n int, creds credentials.TransportCredentials, args func(addr string) []string) *Cluster {
	t.Helper()
	return start(&Cluster{t: t, creds: creds}, n, "https://", args)
}

func start(c *Cluster, n int, scheme string, args func(addr string) []string) *Cluster {
	t := c.t
	t.Helper()
	c.binary = Tool(t, "etcd")
	dir := t.TempDir()
	var names, peers []string
	for i := range n {
		names = append(names, fmt.Sprintf("m%d", i))
	}
	hosts := harness.NewHosts(t, names...)
	for _, name := range names {
		peers = append(peers, name+"="+c.peerURL(hosts, name))
	}
	for i, name := range names {
		if c.peers != nil {
			c.peers.listen(t, i, hosts.Addr(name)+apartPort, hosts.Addr(name)+peerPort)
		}
		m := &Member{Client: hosts.Addr(name) + ":2379", Dir: filepath.Join(dir, name), cluster: c, log: filepath.Join(dir, name+".log")}
		m.args = append([]string{"--name", name, "--data-dir", m.Dir, "--log-level", "warn", "--listen-client-urls", scheme + m.Client,
			"--advertise-client-urls", scheme + m.Client, "--listen-peer-urls", "http://" + hosts.Addr(name) + peerPort,
			"--initial-advertise-peer-urls", c.peerURL(hosts, name), "--initial-cluster", strings.Join(peers, ",")}, args(hosts.Addr(name))...)
		c.Members = append(c.Members, m)
		m.Start()
	}
	t.Cleanup(func() {
		for _, m := range c.Members {
			m.Kill()
		}
	})
	c.AwaitLeader()
	return c
}

// Ports for other members: of the member, and of the way to it in a cluster of StartApart.
const (
	peerPort  = ":2380"
	apartPort = ":2381"
)

// peerURL is where other members reach one.
func (c *Cluster) peerURL(hosts *harness.Hosts, name string) string {
	if c.peers != nil {
		return "http://" + hosts.Addr(name) + apartPort
	}
	return "http://" + hosts.Addr(name) + peerPort
}

// Tool finds a binary of etcd, or skips the test.
func Tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s here: %v", name, err)
	}
	return path
}

// Endpoints are the members' addresses for clients.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, m := range c.Members {
		out = append(out, m.Client)
	}
	return out
}

// Dial connects to all members; the connection ends with the test.
func (c *Cluster) Dial() *etcdclient.Client {
	c.t.Helper()
	client, err := etcdclient.Dial(etcdclient.Config{Endpoints: c.Endpoints(), Creds: c.creds})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// AwaitLeader waits until every running member knows a leader, and gives that one.
func (c *Cluster) AwaitLeader() *Member {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), patience)
	defer cancel()
	for {
		var leader *Member
		known := 0
		status := c.status()
		for i, m := range status {
			if m.Err == nil && m.Leader != 0 {
				known++
				if m.ID == m.Leader {
					leader = c.Members[i]
				}
			}
		}
		if leader != nil && known == c.running() {
			return leader
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("no leader: %+v\n%s", status, c.logs())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// status is what the members tell, in their order.
func (c *Cluster) status() []etcdclient.Member {
	c.t.Helper()
	client, err := etcdclient.Dial(etcdclient.Config{Endpoints: c.Endpoints(), Creds: c.creds})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	return client.Status(context.WithoutCancel(c.t.Context()))
}

func (c *Cluster) running() (n int) {
	for _, m := range c.Members {
		if m.cmd != nil {
			n++
		}
	}
	return n
}

func (c *Cluster) logs() string {
	var b strings.Builder
	for _, m := range c.Members {
		text, _ := os.ReadFile(m.log)
		fmt.Fprintf(&b, "%s: %.2000s\n", m.Client, text)
	}
	return b.String()
}

// Start runs the member on what its directory has.
func (m *Member) Start() {
	t := m.cluster.t
	t.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	argv := slices.Concat(m.under, []string{m.cluster.binary}, m.args)
	m.cmd = exec.Command(argv[0], argv[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, done := m.cmd, make(chan struct{})
	m.done = done
	go func() {
		_ = cmd.Wait() // by a signal, as a rule
		close(done)
	}()
}

// SlowDisk makes every sync of the member's disk take delay longer, from its next start on. If delay is
// zero, the disk is not slowed. It skips the test where strace cannot do it.
func (m *Member) SlowDisk(delay time.Duration) {
	t := m.cluster.t
	t.Helper()
	if m.under = nil; delay == 0 {
		return
	}
	const calls = "fsync,fdatasync"
	under := []string{Tool(t, "strace"), "-D", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=" + calls,
		"-e", fmt.Sprintf("inject=%s:delay_enter=%d", calls, delay.Microseconds())}
	if out, err := exec.Command(under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("strace cannot delay calls here: %v: %s", err, out)
	}
	m.under = under
}

// Identity are the arguments by which a restored snapshot becomes this member again, with the id
// of the cluster as it was.
func (m *Member) Identity() []string {
	var out []string
	for i, arg := range m.args {
		switch arg {
		case "--name", "--initial-cluster", "--initial-advertise-peer-urls":
			out = append(out, arg, m.args[i+1])
		}
	}
	return out
}

// Kill ends the process at once, as kill -9.
func (m *Member) Kill() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	<-m.done
	m.cmd = nil
}

// Pause has the process stand still until Resume.
func (m *Member) Pause() { m.signal(syscall.SIGSTOP) }

// Resume has it go on.
func (m *Member) Resume() { m.signal(syscall.SIGCONT) }

func (m *Member) signal(s syscall.Signal) {
	m.cluster.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.cluster.t.Fatal(err)
	}
}

// Ctl runs etcdctl on all members, and gives what it prints.
func (c *Cluster) Ctl(args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, Tool(c.t, "etcdctl"), append([]string{"--endpoints", strings.Join(c.Endpoints(), ",")}, args...)...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("etcdctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}
