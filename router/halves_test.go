package router_test

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// requests are what TestOddRequestsAndHalvesAreBorne cuts, joins and changes.
var requests = []string{
	"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /v1/current?uids=1&uids=%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET /api/segment/get/orders HTTP/1.0\r\n\r\n",
	"HEAD /livez HTTP/1.1\r\nHost: evil.example\r\nOrigin: null\r\n\r\n",
	"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"uid\":2}",
	"POST /v1/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"uid\":",
	"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"uid\r\n",
	"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
	"POST /v1/snowflake/generate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	"GET /" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X-A: b\r\n", 3000) + "\r\n",
	"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "*1\r\n$4\r\nPING\r\n", "\r\n\r\n", "\x00",
}

// TestOddRequestsAndHalvesAreBorne has callers send what they like for two seconds, while a polite
// one takes numbers. FUZZ_SEED repeats a run.
func TestOddRequestsAndHalvesAreBorne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FUZZ_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("FUZZ_SEED=%d", seed)
	cluster := clienttest.Start(t, 1)
	r := start(t, router.Config{Allocs: cluster.Addrs(), Leaf: true})
	end := time.Now().Add(2 * time.Second)
	var callers sync.WaitGroup
	for i := range uint64(12) {
		callers.Go(func() {
			from := rand.New(rand.NewPCG(seed, i))
			for time.Now().Before(end) {
				conn, err := net.Dial("tcp", r.HTTPAddr())
				if err != nil {
					continue
				}
				_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
				for range 1 + from.IntN(3) {
					b := []byte(requests[from.IntN(len(requests))] + requests[from.IntN(len(requests))])
					for range from.IntN(4) {
						b[from.IntN(len(b))] = byte(from.IntN(256))
					}
					_, _ = conn.Write(b[:len(b)-from.IntN(len(b)/2+1)])
				}
				if reply, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
					if reply.StatusCode == http.StatusInternalServerError {
						text, _ := io.ReadAll(reply.Body)
						t.Errorf("500: %s", text)
					}
					_ = reply.Body.Close()
				}
				_ = conn.Close()
			}
		})
	}
	taken := 0
	for ; time.Now().Before(end) || taken == 0; taken++ {
		if code := fetch(t, bounded(t), http.MethodPost, "http://"+r.HTTPAddr()+"/v1/next", `{"uid":1}`); code != http.StatusOK {
			t.Fatalf("a polite caller: got %d", code)
		}
	}
	callers.Wait()
	http.DefaultClient.CloseIdleConnections()
	harness.Until(t, "all connections are closed", func() bool { return !serves() })
}
