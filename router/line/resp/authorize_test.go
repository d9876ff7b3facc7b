package resp

import (
	"crypto/tls"
	"strconv"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
)

func TestATransactionIsAllowedAsAWholeOrNotAtAll(t *testing.T) {
	guard, token := linetest.Guarded(t)
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) {
		s.Authorize(guard, func(*tls.ConnectionState) auth.Evidence { return auth.Evidence{} })
	}, func(t *testing.T, s *line.Server, addr string, _ func()) {
		c := linetest.Dial(t, addr)
		starts := func(want string, words ...string) {
			t.Helper()
			c.Send(linetest.Array(words...))
			if got := c.Reply(); !strings.HasPrefix(got, want) {
				t.Errorf("%q: got %s, want %s ...", words, got, want)
			}
		}
		starts("-NOAUTH", "INCR", "seq:1")
		starts("-WRONGPASS", "AUTH", "chat", "wrong")
		starts("+OK", "AUTH", "chat", token.Secret())
		starts(":1", "INCR", "seq:1")
		starts("-NOPERM", "INCR", "tag:orders")
		starts("+OK", "MULTI")
		starts("+QUEUED", "INCR", "seq:1")
		starts("+QUEUED", "INCR", "tag:orders")
		starts("-EXECABORT Transaction discarded because of: NOPERM", "EXEC")
		starts("$1", "GET", "seq:1") // nothing was taken
		starts("+OK", "MULTI")
		starts("+QUEUED", "INCR", "seq:1")
		starts("*[:2]", "EXEC")
	})
}

func TestAStrangerMaySendLittle(t *testing.T) {
	guard, token := linetest.Guarded(t)
	linetest.EachWay(t, New, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) { s.Authorize(guard, linetest.NoEvidence) }, func(t *testing.T, _ *line.Server, addr string, _ func()) {
		for _, row := range []struct{ send, want string }{
			{"*11\r\n", "unauthenticated multibulk length"},
			{"*2\r\n$4\r\nECHO\r\n$16385\r\n", "unauthenticated bulk length"},
			{"ECHO " + strings.Repeat("x", 20<<10), "request above 16384"},
			{"*3\r\n$4\r\nECHO\r\n$9000\r\n" + strings.Repeat("x", 9000) + "\r\n$9000\r\n" + strings.Repeat("x", 8000), "request above 16384"},
		} {
			c := linetest.Dial(t, addr)
			c.Send(row.send)
			if got := c.Reply(); !strings.Contains(got, row.want) {
				t.Errorf("%.30q: got %s, want %s", row.send, got, row.want)
			}
			if err := c.Ended(); err != nil {
				t.Errorf("%.30q: got %v, want the end", row.send, err)
			}
		}
		c := linetest.Dial(t, addr)
		keys := make([]string, 50)
		for i := range keys {
			keys[i] = "seq:" + strconv.Itoa(i)
		}
		long := strings.Repeat("x", 20<<10)
		c.Send(linetest.Array("AUTH", token.Secret()) + linetest.Array(append([]string{"MGET"}, keys...)...) + linetest.Array("ECHO", long)) // one pipeline
		if got := c.Reply(); got != "+OK" {
			t.Fatal(got)
		}
		if got := c.Reply(); strings.HasPrefix(got, "-") {
			t.Errorf("MGET behind AUTH: got %s", got)
		}
		if got := c.Reply(); got != "$"+long {
			t.Errorf("ECHO behind AUTH: got %.60s", got)
		}
	})
}
