package resp

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

// dialFrom is dial from another address of the loopback interface.
func dialFrom(t *testing.T, from, addr string) *caller {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the loopback interface has one address")
	}
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(bound))
	return &caller{t, conn, bufio.NewReader(conn)}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(bound); !ok(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
	}
}

func TestUnfinishedCommandsShareOneBudget(t *testing.T) {
	const budget, conns = 1 << 20, 40
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) {
		s.Share(gate.NewBudget(budget))
		s.waits.sweep, s.waits.request = 20*time.Millisecond, 2*time.Second
	}, func(t *testing.T, s *Server, addr string, _ func()) {
		polite := dial(t, addr)
		half := "*2\r\n$4\r\nMGET\r\n$65000\r\n" + strings.Repeat("x", 60_000)
		ended := make(chan string, conns)
		for range conns {
			c := dial(t, addr)
			go func() {
				_, _ = io.WriteString(c.conn, half)
				text, _ := io.ReadAll(c.in)
				ended <- string(text)
			}()
		}
		told := 0
		for i := range conns {
			for j := range 5 { // beside the others, from the same address
				polite.want(":"+strconv.Itoa(5*i+j+1), "INCR", "seq:1")
			}
			if used := s.budget.Used(); used > budget/2 {
				t.Errorf("one address has %d of %d bytes, want at most half", used, budget)
			}
			if i == 0 { // while the others still hold what they may
				other := dialFrom(t, "127.0.0.2", addr)
				long := strings.Repeat("y", 60_000)
				other.want("$"+long, "ECHO", long)
				_ = other.conn.Close()
				until(t, "it has given back what it had", func() bool { return s.budget.Used() <= budget/2 })
			}
			if strings.Contains(<-ended, "OVERLOADED") {
				told++
			}
		}
		if told == 0 {
			t.Error("no connection was told that the memory is spent")
		}
		_ = polite.conn.Close()
		until(t, "all is given back", func() bool { return s.budget.Used() == 0 && s.seats.Taken() == 0 && s.stats.open.Load() == 0 })
	})
}

func TestWhatATransactionKeepsCounts(t *testing.T) {
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) { s.Share(gate.NewBudget(1 << 20)) }, func(t *testing.T, s *Server, addr string, _ func()) {
		c := dial(t, addr)
		c.want("+OK", "MULTI")
		text := array("ECHO", strings.Repeat("x", 60_000))
		for range 20 { // 1.2 MB
			if _, err := io.WriteString(c.conn, text); err != nil {
				break
			}
		}
		if text, _ := io.ReadAll(c.in); !strings.Contains(string(text), "OVERLOADED") {
			t.Errorf("a transaction of 1.2 MB: %.200s", text)
		}
		until(t, "all is given back", func() bool { return s.budget.Used() == 0 })
	})
}

func TestPipelinesGoOnWhileMemoryIsShort(t *testing.T) {
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) { s.Share(gate.NewBudget(64 << 10)) }, func(t *testing.T, s *Server, addr string, _ func()) {
		const conns, n = 8, 2000
		done := make(chan bool, conns)
		for i := range conns {
			c := dial(t, addr)
			uid := strconv.Itoa(i)
			go func() { _, _ = io.WriteString(c.conn, strings.Repeat(array("INCR", "seq:"+uid), n)) }()
			go func() {
				for k := range n {
					if line, err := c.in.ReadString('\n'); err != nil || line != ":"+strconv.Itoa(k+1)+"\r\n" {
						t.Errorf("reply %d: %q, %v", k, line, err)
						break
					}
				}
				done <- true
			}()
		}
		for range conns {
			<-done
		}
	})
}

func noEvidence(*tls.ConnectionState) auth.Evidence { return auth.Evidence{} }

func TestAStrangerMaySendLittle(t *testing.T) {
	guard, token := guarded(t)
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) { s.Authorize(guard, noEvidence) }, func(t *testing.T, s *Server, addr string, _ func()) {
		for _, row := range []struct{ send, want string }{
			{"*11\r\n", "unauthenticated multibulk length"},
			{"*2\r\n$4\r\nECHO\r\n$16385\r\n", "unauthenticated bulk length"},
			{"ECHO " + strings.Repeat("x", 20<<10), "request above 16384"},
			{"*3\r\n$4\r\nECHO\r\n$9000\r\n" + strings.Repeat("x", 9000) + "\r\n$9000\r\n" + strings.Repeat("x", 8000), "request above 16384"},
		} {
			c := dial(t, addr)
			c.send(row.send)
			if got := c.reply(); !strings.Contains(got, row.want) {
				t.Errorf("%.30q: got %s, want %s", row.send, got, row.want)
			}
			if err := c.ended(); err != nil {
				t.Errorf("%.30q: got %v, want the end", row.send, err)
			}
		}
		c := dial(t, addr)
		keys := make([]string, 50)
		for i := range keys {
			keys[i] = "seq:" + strconv.Itoa(i)
		}
		long := strings.Repeat("x", 20<<10)
		c.send(array("AUTH", token.Secret()) + array(append([]string{"MGET"}, keys...)...) + array("ECHO", long)) // one pipeline
		if got := c.reply(); got != "+OK" {
			t.Fatal(got)
		}
		if got := c.reply(); strings.HasPrefix(got, "-") {
			t.Errorf("MGET behind AUTH: got %s", got)
		}
		if got := c.reply(); got != "$"+long {
			t.Errorf("ECHO behind AUTH: got %.60s", got)
		}
	})
}

func TestAStrangerHasLittleTime(t *testing.T) {
	guard, token := guarded(t)
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) {
		s.Authorize(guard, noEvidence)
		s.waits.sweep, s.waits.stranger = 10*time.Millisecond, time.Second
	}, func(t *testing.T, s *Server, addr string, _ func()) {
		var known *caller
		until(t, "a caller shows its token in time", func() bool {
			known = dial(t, addr)
			_, _ = io.WriteString(known.conn, array("AUTH", token.Secret()))
			line, _ := known.in.ReadString('\n')
			return line == "+OK\r\n"
		})
		sends := []string{"", "PING\r\n", "*2\r\n$4\r\nAUTH\r\n$9\r\n", "INCR seq:1\r\n", "AUTH wrong\r\n"}
		strangers := make([]*caller, len(sends))
		for i, send := range sends {
			strangers[i] = dial(t, addr)
			_, _ = io.WriteString(strangers[i].conn, send)
		}
		for i, c := range strangers {
			if err := c.ended(); err != nil {
				t.Errorf("after %q: got %v, want the end", sends[i], err)
			}
		}
		known.want(":1", "INCR", "seq:1")
	})
}

func TestConnectionsWithoutACommandYieldTheirPlaces(t *testing.T) {
	eachWay(t, func() Numbers { return newCounters() }, func(s *Server) { s.SetLimits(Limits{MaxConns: 4}) }, func(t *testing.T, s *Server, addr string, _ func()) {
		polite := dial(t, addr)
		polite.want(":1", "INCR", "seq:1")
		idle := make([]*caller, 20)
		for i := range idle {
			idle[i] = dial(t, addr)
			idle[i].send("*1\r\n$4\r\nPI") // half a command is none
		}
		for _, c := range idle[:len(idle)-3] {
			if err := c.ended(); err != nil {
				t.Fatalf("a connection without a command: got %v, want the end", err)
			}
		}
		polite.want(":2", "INCR", "seq:1")
		dial(t, addr).want(":3", "INCR", "seq:1")
		until(t, "those without a place are gone", func() bool { return s.stats.open.Load() == 4 })
	})
}
