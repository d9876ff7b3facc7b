package integration

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// TestTheFrontOfAnAllocSvrGivesEachNumberOnceThroughACut has clients of Redis take from keys of
// both AllocSvr by the front of one, which loses its sections meanwhile.
func TestTheFrontOfAnAllocSvrGivesEachNumberOnceThroughACut(t *testing.T) {
	const keys, conns = 40, 6
	c := start(t)
	front, err := router.NewRESP(router.Config{RESPListen: "127.0.0.1:0", Allocs: c.addrs()[:1], Logger: slog.New(slog.DiscardHandler)}, c.allocs[0].server)
	if err != nil {
		t.Fatal(err)
	}
	harness.Inside(t, "front", front.Run)

	var mu sync.Mutex // guards given
	given := map[string]bool{}
	// pass has each connection take of all keys, twice each, by one pipeline.
	pass := func(what string) {
		t.Helper()
		var all sync.WaitGroup
		for range conns {
			all.Go(func() {
				conn, err := net.Dial("tcp", front.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				var ask strings.Builder
				for k := range 2 * keys {
					fmt.Fprintf(&ask, "INCR seq:%d\r\n", k/2*64)
				}
				if _, err := conn.Write([]byte(ask.String())); err != nil {
					t.Error(err)
					return
				}
				in, last := bufio.NewReader(conn), 0
				for k := range 2 * keys {
					line, err := in.ReadString('\n')
					n, bad := strconv.Atoi(strings.Trim(line, ":\r\n"))
					if err != nil || bad != nil {
						t.Errorf("%s: command %d: got %q, %v", what, k, line, err)
						return
					}
					if k%2 == 1 && n <= last {
						t.Errorf("%s: key %d: got %d after %d", what, k/2, n, last)
					}
					last = n
					mu.Lock()
					if one := fmt.Sprint(k/2, " ", n); given[one] {
						t.Errorf("%s: key and number %s were given twice", what, one)
					} else {
						given[one] = true
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	pass("all well")
	// A node that got no processor for as long as a lease gives nothing for a moment.
	c.until("some are given by the AllocSvr of the front, others by its neighbour", func() bool {
		near, far := c.numbers(0), c.numbers(1)
		pass("again")
		return t.Failed() || c.numbers(0) > near && c.numbers(1) > far
	})
	c.cut(0)
	c.until("the neighbour serves all", func() bool { return c.served(1) == sections })
	pass("after the front's AllocSvr was cut off")
	c.mend(0)
	pass("as it comes back")
}
