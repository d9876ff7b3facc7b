package resp

import (
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/seq"
)

func TestATakeWithAnIDGetsItsNumbersAgain(t *testing.T) {
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(*line.Server) {}, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		for _, row := range []struct{ command, want string }{
			{"SEQ.NEXT seq:orders/1 COUNT 3 ID a", "*[:1 :3 :0]"},
			{"SEQ.NEXT seq:orders/1 COUNT 3 ID a", "*[:1 :3 :1]"},
			{"seq.next seq:orders/1 sent 1700000000000 id a count 3", "*[:1 :3 :1]"},
			{"SEQ.NEXT seq:orders/1 ID a", "-ERR ID_CONFLICT: request id was used for another count: it has got 3 from 1, and 1 are asked for"},
			{"SEQ.NEXT seq:orders/1", "*[:4 :4 :0]"},
			{"INCR seq:orders/1", ":5"},
			{"SEQ.LOOKUP seq:orders/1 ID a", "*[:1 :3]"},
			{"SEQ.LOOKUP seq:orders/1 ID b", "nil"},
			{"SEQ.NEXT seq:1 COUNT 2", "*[:1 :2 :0]"},
			{"SEQ.NEXT seq:1 ID a", "-ERR ID_NOT_KEPT: request ids are kept by spaces of mode=exact only"},
			{"SEQ.NEXT tag:orders", "-ERR only seq: keys"},
			{"SEQ.NEXT seq:-1", "-ERR value of a seq: key is not a uid"},
			{"SEQ.NEXT seq:orders/conv:7 COUNT 3 ID a", "*[:1 :3 :0]"},
			{"SEQ.NEXT seq:orders/conv:7 COUNT 3 ID a", "*[:1 :3 :1]"},
			{"SEQ.LOOKUP seq:orders/conv:7 ID a", "*[:1 :3]"},
			{"SEQ.NEXT seq:1 COUNT 0", "-ERR COUNT must be 1 to 1048576"},
			{"SEQ.NEXT seq:1 COUNT", "-ERR syntax error, expected SEQ.NEXT"},
			{"SEQ.NEXT seq:1 COUNT 1 COUNT 1", "-ERR syntax error, expected SEQ.NEXT"},
			{"SEQ.NEXT seq:1 NAME a", "-ERR syntax error, expected SEQ.NEXT"},
			{"SEQ.NEXT seq:1 SENT 5", "-ERR syntax error, expected SEQ.NEXT"},
			{"SEQ.NEXT seq:orders/1 ID a SENT x", "-ERR SENT: value is not an integer"},
			{"SEQ.LOOKUP seq:1 NAME a", "-ERR syntax error, expected SEQ.LOOKUP"},
			{"SEQ.NEXT seq:orders/1 ID " + strings.Repeat("x", seq.MaxRequestID+1), "-ERR BAD_ARGUMENT: bad argument: ID of 65 bytes, expected 1 to 64"},
			{"SEQ.LOOKUP seq:orders/1 ID " + strings.Repeat("x", seq.MaxRequestID+1), "-ERR BAD_ARGUMENT: bad argument: ID of 65 bytes, expected 1 to 64"},
		} {
			c.Send(linetest.Array(strings.Fields(row.command)...))
			if got := c.Reply(); !strings.HasPrefix(got, row.want) {
				t.Errorf("%s: got %s, want %s", row.command, got, row.want)
			}
		}
		c.Send(linetest.Array("SEQ.NEXT", "seq:orders/1", "ID", ""))
		if got := c.Reply(); !strings.HasPrefix(got, "-ERR BAD_ARGUMENT: bad argument: ID of 0 bytes") {
			t.Errorf("an empty ID: got %s", got)
		}
	})
}

// In one pipeline with others, which go on whatever becomes of it.
func TestRequestsOfAPipelineStandBetweenItsOtherCommands(t *testing.T) {
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(*line.Server) {}, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		c.Send(linetest.Array("INCR", "seq:1") + linetest.Array("SEQ.NEXT", "seq:1", "ID", "a") + linetest.Array("INCR", "seq:1") +
			linetest.Array("SEQ.NEXT", "seq:orders/1", "ID", "a") + linetest.Array("SEQ.LOOKUP", "seq:orders/1", "ID", "a") + linetest.Array("GET", "seq:orders/1") +
			linetest.Array("MULTI") + linetest.Array("SEQ.NEXT", "seq:orders/1", "ID", "a") + linetest.Array("SEQ.LOOKUP", "seq:orders/1", "ID", "b") + linetest.Array("EXEC"))
		for _, want := range []string{":1", "-ERR ID_NOT_KEPT", ":2", "*[:1 :1 :0]", "*[:1 :1]", "$1", "+OK", "+QUEUED", "+QUEUED", "*[*[:1 :1 :1] nil]"} {
			if got := c.Reply(); !strings.HasPrefix(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

func TestARaiseKeepsItsPlaceAmongTakes(t *testing.T) {
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(*line.Server) {}, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		var all strings.Builder
		rows := []struct{ command, want string }{
			{"INCR seq:1", ":1"},
			{"SEQ.RAISE seq:1 100", ":100"},
			{"seq.raise seq:1 50", ":100"},
			{"INCR seq:1", ":101"},
			{"SEQ.RAISE seq:orders/room:7 9", ":9"},
			{"SEQ.RAISE seq:13 9", "-ERR RAISE_TOO_FAR"},
			{"SEQ.RAISE seq:1 x", "-ERR SEQ.RAISE takes the number to reach"},
			{"SEQ.RAISE seq:1 -5", "-ERR SEQ.RAISE takes the number to reach"},
			{"SEQ.RAISE seq:1 9007199254740992", "-ERR OVERFLOW"},
			{"SEQ.RAISE tag:orders 5", "-ERR only seq: keys"},
			{"SEQ.RAISE seq:1", "-ERR wrong number of arguments"},
		}
		for _, row := range rows {
			all.WriteString(linetest.Array(strings.Fields(row.command)...))
		}
		c.Send(all.String())
		for _, row := range rows {
			if got := c.Reply(); !strings.HasPrefix(got, row.want) {
				t.Errorf("%s: got %s, want %s", row.command, got, row.want)
			}
		}
	})
}
