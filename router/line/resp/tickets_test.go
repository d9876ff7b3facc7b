package resp

import (
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
