package line_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/router/line/linetest"
	"github.com/seqsvr/seqsvr/router/line/resp"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

// TestPlaintextBesideTLSIsTheLoops: of a listener that takes both, only TLS needs goroutines.
func TestPlaintextBesideTLSIsTheLoops(t *testing.T) {
	files := tlstest.New(t, "ca").Issue(t.TempDir(), "server", 0)
	secured, err := rpc.NewTLS(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	secured.AllowPlaintext(rpc.AcceptPlaintext)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis, err := secured.Listen(plain, rpc.OptionalClients)
	if err != nil {
		t.Fatal(err)
	}
	s := line.New(resp.New(), linetest.NewCounters(), nil)
	linetest.ServeOn(t, s, lis)
	for i, text := range []string{"PING\r\n", "*1\r\n$4\r\nPING\r\n"} {
		c, err := net.Dial("tcp", plain.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		pings(t, c, text[:1], text[1:])
		if n := s.Goroutines(); n != 0 {
			t.Errorf("plaintext connection %d: %d have a goroutine", i, n)
		}
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	c, err := tls.Dial("tcp", plain.Addr().String(), &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pings(t, c, "PING\r\n")
	if n := s.Goroutines(); n != 1 {
		t.Errorf("with one of TLS: %d have a goroutine", n)
	}
}

// pings sends a PING in parts, and wants its answer.
func pings(t *testing.T, c net.Conn, parts ...string) {
	t.Helper()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	for _, part := range parts {
		if _, err := c.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, len("+PONG\r\n"))
	for n := 0; n < len(got); {
		k, err := c.Read(got[n:])
		if err != nil {
			t.Fatalf("%q, %v", got[:n], err)
		}
		n += k
	}
	if string(got) != "+PONG\r\n" {
		t.Errorf("got %q", got)
	}
}
