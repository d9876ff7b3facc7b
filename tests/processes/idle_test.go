package processes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// TestManyRedisClientsWithHalvesCostBoundedMemory has 600 connections send most of the largest
// command. They took 600 MB.
func TestManyRedisClientsWithHalvesCostBoundedMemory(t *testing.T) {
	needsProc(t)
	const conns, most = 600, 100 * mib
	c := start(t, func(cfg *localcluster.Config) { cfg.RESP = "127.0.0.1:0" })
	router := c.Processes(localcluster.RoleRouter)[0]
	served(t, router.Addr)
	before := resident(t, router.Pid())
	half := "*17\r\n$4\r\nMGET\r\n" + strings.Repeat("$60000\r\n"+strings.Repeat("x", 60_000)+"\r\n", 15) + "$60000\r\n"
	var all sync.WaitGroup
	for range conns {
		conn, err := net.Dial("tcp", router.RESP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(harness.Patience))
		all.Go(func() {
			_, _ = io.WriteString(conn, half)
			if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("a connection with half a command is not ended")
			}
		})
	}
	for i := range 20 { // a caller of the same address that sends small commands
		redis(t, router.RESP, fmt.Sprintf("ECHO %d", i), fmt.Sprintf("$%d", len(fmt.Sprint(i))))
	}
	all.Wait()
	redis(t, router.RESP, "INCR seq:1", ":")
	after := resident(t, router.Pid())
	t.Logf("router: %d MiB before, %d at the peak", before/mib, after/mib)
	if after-before > most {
		t.Errorf("router: %d MiB before, %d at the peak, want at most %d more", before/mib, after/mib, most/mib)
	}
}

// redis sends a command on a new connection, and wants a reply that begins so.
func redis(t *testing.T, addr, command, want string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, harness.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	_, _ = io.WriteString(conn, command+"\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
		t.Fatalf("%s: got %q, %v", command, line, err)
	}
}

// withFiles lets each process of a role have so many files and connections.
func withFiles(cfg *localcluster.Config, role localcluster.Role, files int) {
	cfg.Wrap = func(name string, argv []string) []string {
		if !strings.HasPrefix(name, string(role)) {
			return argv
		}
		return append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, files), "sh"}, argv...)
	}
}

// TestIdleConnectionsKeepNobodyFromARouter opens more connections than the router may have files,
// at both fronts. The gRPC front and gossip stopped, too.
func TestIdleConnectionsKeepNobodyFromARouter(t *testing.T) {
	needsProc(t)
	const files, idle = 480, 600 // idle ones at each front
	c := start(t, func(cfg *localcluster.Config) {
		cfg.RESP = "127.0.0.1:0"
		withFiles(cfg, localcluster.RoleRouter, files)
	})
	router := c.Processes(localcluster.RoleRouter)[0]
	served(t, router.Addr)
	polite := &http.Client{Timeout: harness.Patience} // one connection, open all the time
	take := func(by *http.Client) {
		t.Helper()
		reply, err := by.Post("http://"+router.HTTP+"/v1/next", "application/json", strings.NewReader(`{"uid":7}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, reply.Body)
		_ = reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			t.Fatal(reply.Status)
		}
	}
	take(polite)
	for i := range idle {
		for _, addr := range []string{router.HTTP, router.RESP} {
			conn, err := net.DialTimeout("tcp", addr, harness.Patience)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if i%2 == 0 {
				_, _ = io.WriteString(conn, "GET ") // half of a request is no call
			}
		}
	}
	take(polite)
	take(&http.Client{Timeout: harness.Patience, Transport: &http.Transport{DisableKeepAlives: true}})
	redis(t, router.RESP, "INCR seq:1", ":")
	served(t, router.Addr)
}

// Three times as many connections as a daemon may have files come to its gRPC port and never call. Every
// second one completes the handshake of HTTP/2, and answers pings. They are closed, and no other connection is: callers,
// gossip, leases and the admin listener go on.
func TestConnectionsThatNeverCallTakeNoFilesOfOthers(t *testing.T) {
	for _, role := range []localcluster.Role{localcluster.RoleRouter, localcluster.RoleStore, localcluster.RoleAlloc} {
		t.Run(string(role), func(t *testing.T) { testSilent(t, role) })
	}
}

func testSilent(t *testing.T, role localcluster.Role) {
	needsProc(t)
	const files, idle = 480, 1500
	c := start(t, func(cfg *localcluster.Config) {
		withAdmin(cfg, role)
		withFiles(cfg, role, files)
	})
	at := c.Processes(role)[0]
	served(t, c.GRPC())
	var dials atomic.Int64
	conn, err := rpc.Dial(c.GRPC(), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := pb.NewSequenceClient(conn).Next(harness.Within(t), &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 42}}); err != nil {
		t.Fatal(err)
	}
	failed, stop := politely(t, conn)
	before := loggedBy(t, c, "leases lost")
	var ended atomic.Int64
	var answering []*frames
	for i := range idle {
		if i%2 == 0 {
			if f := openFrames(t, c, at.Addr); f != nil {
				answering = append(answering, f)
			}
			continue
		}
		conn, err := net.DialTimeout("tcp", at.Addr, harness.Patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		go func() { _, _ = io.Copy(io.Discard, conn); ended.Add(1) }()
	}
	_ = metricsOf(t, at)
	served(t, c.GRPC())
	answers(t, c, c.Addrs(localcluster.RoleAlloc)[0])
	run(t, "seqctl", "status", "--addr", c.GRPC()).Want(t, 0)
	harness.Until(t, "connections that never call are closed", func() bool {
		n := int(ended.Load()) + idle/2 - len(answering)
		for _, f := range answering {
			if f.over() {
				n++
			}
		}
		return n >= idle-files
	})
	stop()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d calls of a polite caller failed", n)
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("the polite caller connected %d times, want once", n)
	}
	if now := loggedBy(t, c, "leases lost"); now != before {
		t.Errorf("leases were lost %d times", now-before)
	}
	allAlive(t, c)
}
