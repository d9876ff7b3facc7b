package processes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// peakMemory is the most memory that a process ever had, in MiB.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.Atoi(strings.TrimSpace(rest[:strings.Index(rest, "kB")]))
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// TestRedisClientsThatDoNotReadOrSendHalvesCostBoundedMemory has 200 connections pipeline what
// has long replies, which are not read, and 50 that send all of a long command but its end.
func TestRedisClientsThatDoNotReadOrSendHalvesCostBoundedMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc, which is there on Linux alone")
	}
	const (
		deaf, halves = 200, 50
		most         = 300 // MiB; each deaf one could send 16 MiB, with 100 times as much of replies
		end          = harness.Patience
	)
	c := start(t, func(cfg *localcluster.Config) { cfg.RESP = "127.0.0.1:0" })
	router := c.Processes(localcluster.RoleRouter)[0]
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", router.RESP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(end))
		return conn
	}
	polite := dial()
	last := 0
	incr := func() {
		t.Helper()
		_ = polite.SetDeadline(time.Now().Add(end)) // others may take all of theirs
		_, _ = io.WriteString(polite, "INCR seq:1\r\n")
		got, err := bufio.NewReader(polite).ReadString('\n')
		n, _ := strconv.Atoi(strings.Trim(got, ":\r\n"))
		if err != nil || n <= last {
			t.Fatalf("a connection that reads: got %q, %v after %d", got, err, last)
		}
		last = n
	}
	incr()
	before := peakMemory(t, router.Pid())
	var all sync.WaitGroup
	some := []byte(strings.Repeat("INFO\r\nCOMMAND DOCS\r\nECHO "+strings.Repeat("x", 200)+"\r\nINCR seq:2\r\nWHAT\r\n", 256))
	for range deaf {
		conn := dial()
		_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
		all.Go(func() {
			for sent := 0; ; sent += len(some) {
				if sent > 16<<20 {
					t.Error("16 MiB were taken of a connection that reads no replies")
					return
				}
				if _, err := conn.Write(some); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("a connection that reads no replies is not ended")
					return
				} else if err != nil {
					return
				}
			}
		})
	}
	long := "*2\r\n$4\r\nMGET\r\n$65536\r\n" + strings.Repeat("x", 60_000)
	for range halves {
		conn := dial()
		all.Go(func() {
			_, _ = io.WriteString(conn, long)
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection with half a command is not ended")
			}
		})
	}
	for range 50 {
		incr()
	}
	all.Wait()
	incr()
	if after := peakMemory(t, router.Pid()); after-before > most {
		t.Errorf("router: %d MiB before, %d at the peak, expected at most %d more", before, after, most)
	} else {
		t.Logf("router: %d MiB before, %d at the peak", before, after)
	}
}
