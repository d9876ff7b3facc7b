// Package linetest has servers, numbers in memory and callers for the tests of package line and of
// its dialects.
//
// What belongs here: parts of tests of two packages or more. What does not: tests.
package linetest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/router/line"
)

// Bound is the longest time that a test waits for something.
const Bound = 20 * time.Second

// wrapped is a listener whose connections are not *net.TCPConn, as those with TLS.
type wrapped struct{ net.Listener }

func (w wrapped) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{c}, nil
}

// Wrapped returns a listener to whose connections a Server gives a goroutine each.
func Wrapped(lis net.Listener) net.Listener { return wrapped{lis} }

// EachWay runs a test on a Server with a loop, and on one with a goroutine for each connection. change
// may set it up before it serves.
func EachWay(t *testing.T, dialect func() line.Dialect, from func() line.Numbers, change func(*line.Server), test func(t *testing.T, s *line.Server, addr string, stop func())) {
	for _, way := range []string{"loop", "goroutines"} {
		t.Run(way, func(t *testing.T) {
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := lis.Addr().String()
			if way == "goroutines" {
				lis = Wrapped(lis)
			}
			s := line.New(dialect(), from(), nil)
			change(s)
			test(t, s, addr, ServeOn(t, s, lis))
		})
	}
}

// Serve runs a Server on a listener of its own until stop, or until the end of the test.
func Serve(t *testing.T, s *line.Server) (addr string, stop func()) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return lis.Addr().String(), ServeOn(t, s, lis)
}

// ServeOn runs a Server on a listener until stop, or until the end of the test.
func ServeOn(t *testing.T, s *line.Server, lis net.Listener) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, lis, Bound) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// NoEvidence reads no certificate.
func NoEvidence(*tls.ConnectionState) auth.Evidence { return auth.Evidence{} }

// Guarded returns a guard that requires a token, and a token that may take from the space of users.
func Guarded(t *testing.T) (*auth.Guard, auth.Token) {
	t.Helper()
	token := auth.NewToken()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	text := fmt.Sprintf("principals:\n  - name: chat\n    role: caller\n    tokens: [%s]\n    grants: [{space: user, verbs: [take, read]}]\n", token.Hash().Hex())
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	guard, err := auth.New(auth.Config{Mode: auth.Require, Cluster: "c1", PolicyFile: policy})
	if err != nil {
		t.Fatal(err)
	}
	return guard, token
}
