package processes

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/harness"
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

// TestIdleConnectionsKeepNobodyFromARouter opens more connections than the router may have files,
// at both fronts. The gRPC front and gossip stopped, too.
func TestIdleConnectionsKeepNobodyFromARouter(t *testing.T) {
	needsProc(t)
	const files, idle = 480, 600 // idle ones at each front
	c := start(t, func(cfg *localcluster.Config) {
		cfg.RESP = "127.0.0.1:0"
		cfg.Wrap = func(name string, argv []string) []string {
			if !strings.HasPrefix(name, "router") {
				return argv
			}
			return append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, files), "sh"}, argv...)
		}
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
