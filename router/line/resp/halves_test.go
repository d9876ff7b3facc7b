package resp

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
)

// seeds returns the stored inputs of the parser's fuzzers and further inputs of this test.
func seeds(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/fuzz/*/*")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{
		"", "\r\n", "PING\r\n", "*0\r\n", "*-1\r\n", "*1\r\n$-1\r\n", "*1\r\n$4\r\nPING\r\n", "*2\r\n$4\r\nECHO\r\n$65536\r\n",
		"*16384\r\n", "*16385\r\n", "*99999999999999999999\r\n", "$5\r\nhello\r\n", "*1\r\n$65537\r\n", "MULTI\r\nECHO x\r\nEXEC\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\n", "HELLO 3 AUTH a b SETNAME c\r\n", "MGET " + strings.Repeat("seq:1 ", 500) + "\r\n",
		"COMMAND DOCS\r\nINFO\r\nCOMMAND\r\n", "SEQ.NEXT seq:1 COUNT 3 ID a\r\n", "SEQ.WAIT seq:inbox/1 0 50000\r\n", "SEQ.RAISE seq:1 5\r\n", "CLIENT SETNAME " + strings.Repeat("n", 60_000) + "\r\n", "\x00\xff*\r\n",
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "[]byte("); ok {
				if one, err := strconv.Unquote(strings.TrimSuffix(quoted, ")")); err == nil {
					all = append(all, one)
				}
			}
		}
	}
	return all
}

// odd makes bytes of seeds: whole, cut, doubled, with some changed.
func odd(from *rand.Rand, all []string) string {
	text := all[from.IntN(len(all))]
	for range from.IntN(3) {
		text += all[from.IntN(len(all))]
	}
	b := []byte(text)
	for range from.IntN(4) {
		if len(b) > 0 {
			b[from.IntN(len(b))] = byte(from.IntN(256))
		}
	}
	return string(b[:len(b)-from.IntN(len(b)/2+1)])
}

// TestOddBytesAndHalvesAreBorne has callers send what they like for two seconds, while a polite one
// takes numbers. FUZZ_SEED repeats a run.
func TestOddBytesAndHalvesAreBorne(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("FUZZ_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("FUZZ_SEED=%d", seed)
	all := seeds(t)
	var shared *gate.Budget
	var d *dialect
	made := func() line.Dialect {
		d = newDialect()
		return d
	}
	linetest.EachWay(t, made, func() line.Numbers { return linetest.NewCounters() }, func(s *line.Server) {
		shared = gate.NewBudget(8 << 20)
		s.Share(shared)
		s.SetLimits(line.Limits{MaxConns: 64})
	}, func(t *testing.T, s *line.Server, addr string, stop func()) {
		polite := linetest.Dial(t, addr)
		polite.Want(":1", "INCR", "seq:7777777")
		end := time.Now().Add(2 * time.Second)
		var callers sync.WaitGroup
		for i := range uint64(16) {
			callers.Go(func() {
				from := rand.New(rand.NewPCG(seed, i))
				for time.Now().Before(end) {
					conn, err := net.Dial("tcp", addr)
					if err != nil {
						continue
					}
					_ = conn.SetDeadline(time.Now().Add(50 * time.Millisecond))
					for range 1 + from.IntN(4) {
						_, _ = io.WriteString(conn, odd(from, all))
					}
					if from.IntN(2) == 0 {
						_, _ = io.CopyN(io.Discard, conn, int64(from.IntN(4096)))
					}
					_ = conn.Close()
				}
			})
		}
		n := 1
		for ; time.Now().Before(end); n++ {
			polite.Want(":"+strconv.Itoa(n+1), "INCR", "seq:7777777")
		}
		callers.Wait()
		polite.Want(":"+strconv.Itoa(n+1), "INCR", "seq:7777777")
		_ = polite.Conn.Close()
		linetest.Until(t, "all connections are closed and all memory is given back", func() bool {
			return s.Stats().Conns == 0 && shared.Used() == 0 && d.queued.Load() == 0
		})
		runtime.GC()
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		if mem.HeapAlloc > 64<<20 {
			t.Errorf("%d bytes are in use after the end", mem.HeapAlloc)
		}
	})
}
