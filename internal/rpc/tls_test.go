package rpc_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/tlstest"
)

func mustTLS(t *testing.T, f rpc.TLSFiles) *rpc.TLS {
	t.Helper()
	secured, err := rpc.NewTLS(f)
	if err != nil {
		t.Fatal(err)
	}
	return secured
}

// secure serves gRPC health by the files and gives its address.
func secure(t *testing.T, f rpc.TLSFiles, clients rpc.Clients) string {
	t.Helper()
	creds, err := mustTLS(t, f).ServerCreds(clients)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := rpc.NewServer(rpc.ServerConfig{Creds: creds})
	rpc.RegisterHealth(srv)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- rpc.Serve(ctx, srv, lis) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return lis.Addr().String()
}

// ask makes one call over a new connection.
func ask(t *testing.T, addr string, opts ...grpc.DialOption) error {
	t.Helper()
	conn, err := rpc.Dial(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

func TestBothSidesOfAConnectionProveWhoTheyAre(t *testing.T) {
	good, bad := tlstest.New(t, "good"), tlstest.New(t, "bad")
	server := good.Issue(t.TempDir(), "server", 0)
	friend := good.Issue(t.TempDir(), "friend", 0)
	stranger := bad.Issue(t.TempDir(), "stranger", 0)
	disguised := stranger
	disguised.CA = friend.CA
	anonymous := rpc.TLSFiles{CA: friend.CA}
	strict, lax := secure(t, server, rpc.RequireClients), secure(t, server, rpc.OptionalClients)
	rows := []struct {
		name, addr string
		files      rpc.TLSFiles
		want       string // "" for success; else a part of the error
	}{
		{"a friend", strict, friend, ""},
		{"a friend where it is optional", lax, friend, ""},
		{"nobody's certificate where it is optional", lax, anonymous, ""},
		{"nobody's certificate", strict, anonymous, "certificate"},
		{"another CA's certificate", strict, disguised, "certificate"},
		{"another CA's certificate where it is optional", lax, disguised, "certificate"},
		{"a server of another CA", strict, stranger, "by the CA in " + stranger.CA},
		{"plaintext", strict, rpc.TLSFiles{}, ""},
	}
	for _, row := range rows {
		err := ask(t, row.addr, mustTLS(t, row.files).DialOptions()...)
		switch {
		case row.name == "plaintext":
			if err == nil {
				t.Error("a call in plaintext went through")
			}
		case row.want == "":
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
		case status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), row.want):
			// A server that refuses a certificate may say so or just hang up.
			if status.Code(err) != codes.Unavailable || strings.HasPrefix(row.want, "by the CA") {
				t.Errorf("%s: got %v, want Unavailable with %q", row.name, err, row.want)
			}
		}
	}
}

func TestCertificatesAreReplacedWithoutARestart(t *testing.T) {
	old, next := tlstest.New(t, "old"), tlstest.New(t, "next")
	serverDir, clientDir := t.TempDir(), t.TempDir()
	addr := secure(t, old.Issue(serverDir, "server", -time.Hour), rpc.RequireClients)
	client := mustTLS(t, old.Issue(clientDir, "client", -time.Hour))
	if err := ask(t, addr, client.DialOptions()...); err != nil {
		t.Fatalf("before: %v", err)
	}
	next.Issue(serverDir, "server", 0)
	if err := ask(t, addr, client.DialOptions()...); err == nil {
		t.Error("the server went on with certificates that were replaced")
	}
	next.Issue(clientDir, "client", 0)
	if err := ask(t, addr, client.DialOptions()...); err != nil {
		t.Errorf("after both were replaced: %v", err)
	}
	if err := os.WriteFile(filepath.Join(serverDir, "key.pem"), []byte("half of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, addr, client.DialOptions()...); err != nil {
		t.Errorf("while the key is being written: %v", err)
	}
}

func TestFilesThatDoNotFitAreRefusedByName(t *testing.T) {
	a := tlstest.New(t, "a")
	f, other := a.Issue(t.TempDir(), "one", 0), a.Issue(t.TempDir(), "two", 0)
	for name, files := range map[string]rpc.TLSFiles{
		"no key":         {Cert: f.Cert, CA: f.CA},
		"no certificate": {Key: f.Key},
		"another's key":  {Cert: f.Cert, Key: other.Key},
		"a missing file": {Cert: f.Cert, Key: f.Key, CA: filepath.Join(t.TempDir(), "none.pem")},
		"a CA of keys":   {CA: f.Key},
	} {
		if _, err := rpc.NewTLS(files); !errors.Is(err, rpc.ErrTLS) {
			t.Errorf("%s: got %v, want ErrTLS", name, err)
		}
	}
	if secured, err := rpc.NewTLS(rpc.TLSFiles{}); secured != nil || err != nil || secured.DialOptions() != nil {
		t.Errorf("no files: got %v, %v, want plaintext", secured, err)
	}
	if _, err := mustTLS(t, rpc.TLSFiles{CA: f.CA}).ServerCreds(rpc.RequireClients); !errors.Is(err, rpc.ErrTLS) {
		t.Errorf("a listener without a certificate: got %v, want ErrTLS", err)
	}
}
