package line_test

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/router/line/resp"
)

func TestUnfinishedCommandsShareOneBudget(t *testing.T) {
	const budget, conns = 1 << 20, 40
	var shared *gate.Budget
	linetest.EachWay(t, resp.New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) {
		shared = gate.NewBudget(budget)
		s.Share(shared)
		s.Waits().Sweep, s.Waits().Request = 20*time.Millisecond, 2*time.Second
	}, func(t *testing.T, s *line.Server, addr string, _ func()) {
		polite := linetest.Dial(t, addr)
		half := "*2\r\n$4\r\nMGET\r\n$65000\r\n" + strings.Repeat("x", 60_000)
		ended := make(chan string, conns)
		for range conns {
			c := linetest.Dial(t, addr)
			go func() {
				_, _ = io.WriteString(c.Conn, half)
				text, _ := io.ReadAll(c.In)
				ended <- string(text)
			}()
		}
		told := 0
		for i := range conns {
			for j := range 5 { // beside the others, from the same address
				polite.Want(":"+strconv.Itoa(5*i+j+1), "INCR", "seq:1")
			}
			if used := shared.Used(); used > budget/2 {
				t.Errorf("one address has %d of %d bytes, want at most half", used, budget)
			}
			if i == 0 { // while the others still hold what they may
				other := linetest.DialFrom(t, "127.0.0.2", addr)
				long := strings.Repeat("y", 60_000)
				other.Want("$"+long, "ECHO", long)
				_ = other.Conn.Close()
				linetest.Until(t, "it has given back what it had", func() bool { return shared.Used() <= budget/2 })
			}
			if strings.Contains(<-ended, "OVERLOADED") {
				told++
			}
		}
		if told == 0 {
			t.Error("no connection was told that the memory is spent")
		}
		_ = polite.Conn.Close()
		linetest.Until(t, "all is given back", func() bool { return shared.Used() == 0 && s.Seats() == 0 && s.Stats().Conns == 0 })
	})
}

func TestPipelinesGoOnWhileMemoryIsShort(t *testing.T) {
	linetest.EachWay(t, resp.New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) { s.Share(gate.NewBudget(64 << 10)) }, func(t *testing.T, s *line.Server, addr string, _ func()) {
		const conns, n = 8, 2000
		done := make(chan bool, conns)
		for i := range conns {
			c := linetest.Dial(t, addr)
			uid := strconv.Itoa(i)
			go func() { _, _ = io.WriteString(c.Conn, strings.Repeat(linetest.Array("INCR", "seq:"+uid), n)) }()
			go func() {
				for k := range n {
					if line, err := c.In.ReadString('\n'); err != nil || line != ":"+strconv.Itoa(k+1)+"\r\n" {
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

func TestAStrangerHasLittleTime(t *testing.T) {
	guard, token := linetest.Guarded(t)
	linetest.EachWay(t, resp.New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) {
		s.Authorize(guard, linetest.NoEvidence)
		s.Waits().Sweep, s.Waits().Stranger = 10*time.Millisecond, time.Second
	}, func(t *testing.T, s *line.Server, addr string, _ func()) {
		var known *linetest.Caller
		linetest.Until(t, "a caller shows its token in time", func() bool {
			known = linetest.Dial(t, addr)
			_, _ = io.WriteString(known.Conn, linetest.Array("AUTH", token.Secret()))
			line, _ := known.In.ReadString('\n')
			return line == "+OK\r\n"
		})
		sends := []string{"", "PING\r\n", "*2\r\n$4\r\nAUTH\r\n$9\r\n", "INCR seq:1\r\n", "AUTH wrong\r\n"}
		strangers := make([]*linetest.Caller, len(sends))
		for i, send := range sends {
			strangers[i] = linetest.Dial(t, addr)
			_, _ = io.WriteString(strangers[i].Conn, send)
		}
		for i, c := range strangers {
			if err := c.Ended(); err != nil {
				t.Errorf("after %q: got %v, want the end", sends[i], err)
			}
		}
		known.Want(":1", "INCR", "seq:1")
	})
}

func TestConnectionsWithoutACommandYieldTheirPlaces(t *testing.T) {
	linetest.EachWay(t, resp.New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) { s.SetLimits(line.Limits{MaxConns: 4}) }, func(t *testing.T, s *line.Server, addr string, _ func()) {
		polite := linetest.Dial(t, addr)
		polite.Want(":1", "INCR", "seq:1")
		idle := make([]*linetest.Caller, 20)
		for i := range idle {
			idle[i] = linetest.Dial(t, addr)
			idle[i].Send("*1\r\n$4\r\nPI") // half a command is none
		}
		for _, c := range idle[:len(idle)-3] {
			if err := c.Ended(); err != nil {
				t.Fatalf("a connection without a command: got %v, want the end", err)
			}
		}
		polite.Want(":2", "INCR", "seq:1")
		linetest.Dial(t, addr).Want(":3", "INCR", "seq:1")
		linetest.Until(t, "those without a place are gone", func() bool { return s.Stats().Conns == 4 })
	})
}
