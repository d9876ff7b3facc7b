package resp

import (
	"net"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
)

func TestTicketsAndMarks(t *testing.T) {
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(*line.Server) {}, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		for _, row := range []struct{ command, want string }{
			{"SEQ.OPEN seq:inbox/1", "*[:1 :1 :1001 :1000 :0]"},
			{"seq.open seq:inbox/1 count 3 life 500 id a sent 1700000000000", "*[:2 :4 :1002 :1000 :0]"},
			{"SEQ.MARK seq:inbox/1 seq:inbox/2 seq:inbox/13", "*[*[:0 :0 :4 :0] *[:0 :0 :0 :0] *[nil nil :0 :2]]"},
			{"SEQ.DONE seq:inbox/1 1 1001", "+OK"},
			{"SEQ.MARK seq:inbox/1", "*[*[:1 :0 :4 :0]]"},
			{"SEQ.DONE seq:inbox/1 1 1001", "-ERR TICKET_ENDED"},
			{"SEQ.CANCEL seq:inbox/2 2 1002", "-ERR TICKET_ENDED"},
			{"SEQ.CANCEL seq:inbox/1 2 1002", "+OK"},
			{"SEQ.MARK seq:inbox/1", "*[*[:4 :0 :4 :0]]"},
			{"SEQ.OPEN seq:1", "-ERR NO_TICKETS"},
			{"SEQ.MARK seq:inbox/1 seq:1", "-ERR NO_TICKETS"},
			{"SEQ.OPEN tag:orders", "-ERR only seq: keys"},
			{"SEQ.MARK tag:orders", "-ERR only seq: keys"},
			{"SEQ.DONE tag:orders 1 1", "-ERR only seq: keys"},
			{"SEQ.OPEN seq:inbox/1 COUNT 0", "-ERR COUNT must be 1 to 1048576"},
			{"SEQ.OPEN seq:inbox/1 LIFE 0", "-ERR LIFE must be 1 to 300000 ms"},
			{"SEQ.OPEN seq:inbox/1 LIFE 300001", "-ERR LIFE must be 1 to 300000 ms"},
			{"SEQ.OPEN seq:inbox/1 SENT 5", "-ERR syntax error, expected SEQ.OPEN"},
			{"SEQ.NEXT seq:inbox/1 LIFE 5", "-ERR syntax error, expected SEQ.NEXT"},
			{"SEQ.DONE seq:inbox/1 x 1", "-ERR SEQ.DONE and SEQ.CANCEL take the first number"},
			{"SEQ.DONE seq:inbox/1 1 0", "-ERR BAD_ARGUMENT"},
			{"SEQ.DONE seq:inbox/1 1", "-ERR wrong number of arguments"},
			{"SEQ.WAIT seq:inbox/1 3 3600000", "*[:4 :0 :4 :0 :55000]"},
			{"SEQ.WAIT seq:inbox/1 4 20", "*[:4 :0 :4 :0 :20]"},
			{"SEQ.WAIT seq:inbox/13 0 0", "*[nil nil :0 :2 :0]"},
			{"SEQ.WAIT seq:inbox/1 5 1000", "-ERR BAD_ARGUMENT"},
			{"SEQ.WAIT seq:inbox/1 x 1", "-ERR SEQ.WAIT takes a number"},
			{"SEQ.WAIT seq:inbox/1 1 -1", "-ERR SEQ.WAIT takes a number"},
			{"SEQ.WAIT tag:orders 1 1", "-ERR only seq: keys"},
			{"SEQ.WAIT seq:inbox/1 1", "-ERR wrong number of arguments"},
		} {
			c.Send(linetest.Array(strings.Fields(row.command)...))
			if got := c.Reply(); !strings.HasPrefix(got, row.want) {
				t.Errorf("%s: got %s, want %s", row.command, got, row.want)
			}
		}
	})
}

// A mark sees what the commands before it in a pipeline or transaction did.
func TestTicketsOfAPipelineKeepTheirOrder(t *testing.T) {
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(*line.Server) {}, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		open, mark := linetest.Array("SEQ.OPEN", "seq:inbox/1"), linetest.Array("SEQ.MARK", "seq:inbox/1")
		c.Send(open + mark + linetest.Array("INCR", "seq:inbox/1") + open + open + linetest.Array("SEQ.DONE", "seq:inbox/1", "1", "1001") + mark +
			linetest.Array("MULTI") + linetest.Array("SEQ.CANCEL", "seq:inbox/1", "3", "1003") + mark + linetest.Array("EXEC"))
		for _, want := range []string{"*[:1 ", "*[*[:0 :0 :1 :0]]", ":2", "*[:3 ", "*[:4 ", "+OK", "*[*[:2 :0 :4 :0]]", "+OK", "+QUEUED", "+QUEUED", "*[+OK *[*[:3 :0 :4 :0]]]"} {
			if got := c.Reply(); !strings.HasPrefix(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// waiting runs a test of callers that wait.
func waiting(t *testing.T, test func(t *testing.T, from *linetest.Counters, addr string, stop func())) {
	var from *linetest.Counters
	made := func() line.Numbers {
		from = linetest.NewCounters()
		return from
	}
	linetest.EachWay(t, New, made, func(*line.Server) {}, func(t *testing.T, _ *line.Server, addr string, stop func()) { test(t, from, addr, stop) })
}

func TestAWaitHoldsTheCommandsBehindItAndNoOthers(t *testing.T) {
	waiting(t, func(t *testing.T, from *linetest.Counters, addr string, _ func()) {
		c, other := linetest.Dial(t, addr), linetest.Dial(t, addr)
		take, wait := linetest.Array("INCR", "seq:inbox/1"), linetest.Array("SEQ.WAIT", "seq:inbox/1", "1", "50000")
		c.Send(take + wait + take + wait[:20])
		if got := c.Reply(); got != ":1" {
			t.Fatalf("before the wait: got %s", got)
		}
		linetest.Until(t, "the wait", func() bool { return from.Waits() == 1 })
		other.Want(":2", "INCR", "seq:inbox/1")
		for _, want := range []string{"*[:2 :0 :2 :0 :50000]", ":3"} {
			if got := c.Reply(); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		c.Send(wait[20:] + linetest.Array("MULTI") + linetest.Array("SEQ.WAIT", "seq:inbox/1", "3", "50000") + take + linetest.Array("EXEC") + wait + "PING\r\n")
		for _, want := range []string{"*[:3 :0 :3 :0 :50000]", "+OK", "+QUEUED", "+QUEUED", "*[*[:3 :0 :3 :0 :0] :4]", "*[:4 :0 :4 :0 :50000]", "+PONG"} {
			if got := c.Reply(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

func TestTheEndOfACallerEndsItsWait(t *testing.T) {
	waiting(t, func(t *testing.T, from *linetest.Counters, addr string, _ func()) {
		for _, behind := range []string{"", "PING\r\n", "*1\r\n$4\r\nPI"} {
			c := linetest.Dial(t, addr)
			c.Send(linetest.Array("SEQ.WAIT", "seq:inbox/1", "0", "50000") + behind)
			linetest.Until(t, "the wait", func() bool { return from.Waits() == 1 })
			_ = c.Conn.Close()
			linetest.Until(t, "its end", func() bool { return from.Waits() == 0 })
		}
		c := linetest.Dial(t, addr)
		c.Send(linetest.Array("SEQ.WAIT", "seq:inbox/1", "0", "50000"))
		_ = c.Conn.Close() // it may come with the command
		linetest.Dial(t, addr).Want("+PONG", "PING")
		linetest.Until(t, "its end", func() bool { return from.Waits() == 0 })
	})
}

// A caller of TLS could leave behind many commands without anybody's notice.
func TestAWaitWithManyCommandsBehindItEnds(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	linetest.ServeOn(t, line.New(New(), linetest.NewCounters(), nil), linetest.Wrapped(lis))
	c := linetest.Dial(t, lis.Addr().String())
	c.Send(linetest.Array("SEQ.WAIT", "seq:inbox/1", "0", "50000") + strings.Repeat("PING\r\n", 3000))
	if got := c.Reply(); !strings.HasPrefix(got, "-TRYAGAIN OVERLOADED: ") {
		t.Errorf("got %s", got)
	}
	for range 3000 {
		if got := c.Reply(); got != "+PONG" {
			t.Fatalf("got %s", got)
		}
	}
}

func TestTheEndOfAServerEndsItsWaits(t *testing.T) {
	waiting(t, func(t *testing.T, from *linetest.Counters, addr string, stop func()) {
		c := linetest.Dial(t, addr)
		c.Send(linetest.Array("SEQ.WAIT", "seq:inbox/1", "0", "50000"))
		linetest.Until(t, "the wait", func() bool { return from.Waits() == 1 })
		stop()
		if got := c.Reply(); !strings.HasPrefix(got, "-TRYAGAIN SHUTTING_DOWN") {
			t.Errorf("got %s", got)
		}
	})
}
