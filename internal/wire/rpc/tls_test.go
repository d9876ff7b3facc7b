package rpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
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

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

// secure serves gRPC health by the files and gives its address.
func secure(t *testing.T, f rpc.TLSFiles, clients rpc.Clients) string {
	t.Helper()
	creds, err := tlstest.Open(t, f).ServerCreds(clients)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := gate.NewServer(gate.ServerConfig{Creds: creds})
	gate.RegisterHealth(srv)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gate.Serve(ctx, srv, lis) }()
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
		err := ask(t, row.addr, tlstest.Open(t, row.files).DialOptions()...)
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

// ways are certificates that no peer may trust, and what crypto/tls says of them.
var ways = []struct {
	name, want string
	change     func(*x509.Certificate)
}{
	{"expired", "expired", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }},
	{"another host's", "127.0.0.1", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"elsewhere"} }},
	{"not for this side", "incompatible key usage", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }},
}

func TestACertificateOfTheRightCAIsRefusedUnlessItIsValidHere(t *testing.T) {
	ca := tlstest.New(t, "ca")
	sound := ca.Issue(t.TempDir(), "sound", 0)
	strict := secure(t, sound, rpc.RequireClients)
	for _, way := range ways {
		files := ca.Issue(t.TempDir(), "spoilt", 0, way.change)
		err := ask(t, secure(t, files, rpc.RequireClients), tlstest.Open(t, sound).DialOptions()...)
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), way.want) || !strings.Contains(err.Error(), "by the CA in "+sound.CA) {
			t.Errorf("a server with a certificate that is %s: got %v", way.name, err)
		}
		if way.name == "another host's" { // a client's host is not checked
			continue
		}
		if err := ask(t, strict, tlstest.Open(t, files).DialOptions()...); status.Code(err) != codes.Unavailable {
			t.Errorf("a client with a certificate that is %s: got %v", way.name, err)
		}
	}
}

// replaceCA writes an authority's certificate over another's.
func replaceCA(t *testing.T, old, by rpc.TLSFiles) {
	t.Helper()
	text, err := os.ReadFile(by.CA)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old.CA, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAReplacedCAIsThatOfTheNextHandshake(t *testing.T) {
	old, next := tlstest.New(t, "old"), tlstest.New(t, "next")
	later := next.Issue(t.TempDir(), "later", 0)
	serverFiles, clientFiles := old.Issue(t.TempDir(), "server", -time.Hour), old.Issue(t.TempDir(), "client", -time.Hour)
	addr, client := secure(t, serverFiles, rpc.RequireClients), tlstest.Open(t, clientFiles)
	if err := ask(t, addr, client.DialOptions()...); err != nil {
		t.Fatalf("before: %v", err)
	}
	replaceCA(t, clientFiles, later)
	if err := ask(t, addr, client.DialOptions()...); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "by the CA in "+clientFiles.CA) {
		t.Errorf("the client's CA was replaced: got %v", err)
	}
	replaceCA(t, serverFiles, later)
	other := old.Issue(t.TempDir(), "other", 0)
	if err := ask(t, addr, tlstest.Open(t, other).DialOptions()...); status.Code(err) != codes.Unavailable {
		t.Errorf("the server's CA was replaced: got %v", err)
	}
}

func TestASessionIsNotResumedUnderACAThatWasReplaced(t *testing.T) {
	old, next := tlstest.New(t, "old"), tlstest.New(t, "next")
	serverFiles, clientFiles := old.Issue(t.TempDir(), "server", -time.Hour), old.Issue(t.TempDir(), "client", 0)
	cfg, err := tlstest.Open(t, serverFiles).Listener(rpc.RequireClients)
	if err != nil {
		t.Fatal(err)
	}
	lis, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for conn, err := lis.Accept(); err == nil; conn, err = lis.Accept() {
			_, _ = conn.Write([]byte{1}) // not to those that are refused
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = lis.Close(); <-done })

	text, err := os.ReadFile(clientFiles.CA)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(clientFiles.Cert, clientFiles.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}}
	connect := func() (resumed bool, err error) {
		conn, err := dialer.DialContext(t.Context(), "tcp", lis.Addr().String())
		if err != nil {
			return false, err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 1))
		return conn.(*tls.Conn).ConnectionState().DidResume, err
	}
	if _, err := connect(); err != nil {
		t.Fatalf("before: %v", err)
	}
	if resumed, err := connect(); !resumed || err != nil {
		t.Fatalf("before: resumed %v, %v; the rest would show nothing", resumed, err)
	}
	replaceCA(t, serverFiles, next.Issue(t.TempDir(), "next", 0))
	if resumed, err := connect(); err == nil {
		t.Errorf("the server's CA was replaced: it was served, resumed %v", resumed)
	}
}

func TestABrokenFileLeavesTheFormerOneInUseAndIsToldOnce(t *testing.T) {
	ca := tlstest.New(t, "ca")
	dir := t.TempDir()
	serverFiles := ca.Issue(t.TempDir(), "server", 0)
	addr := secure(t, serverFiles, rpc.RequireClients)
	var log strings.Builder // written to by the handshakes, one after the other
	client, err := rpc.NewTLS(ca.Issue(dir, "client", -time.Hour), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key.pem", "ca.pem"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("half of a"), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := ask(t, addr, client.DialOptions()...); err != nil {
				t.Errorf("while %s is broken: %v", name, err)
			}
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "former ones stay in use") || !strings.Contains(text, path) {
			t.Errorf("%s is broken; the log is\n%s", name, text)
		}
		log.Reset()
		ca.Issue(dir, "client", -time.Minute)
		if err := ask(t, addr, client.DialOptions()...); err != nil {
			t.Errorf("%s is sound again: %v", name, err)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "replaced") {
			t.Errorf("%s is sound again; the log is\n%s", name, text)
		}
		log.Reset()
	}
	if err := os.Remove(filepath.Join(dir, "cert.pem")); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, addr, client.DialOptions()...); err != nil || !strings.Contains(log.String(), "cert.pem") {
		t.Errorf("without a file: %v; the log is\n%s", err, log.String())
	}
}

func TestCertificatesAreReplacedWithoutARestart(t *testing.T) {
	old, next := tlstest.New(t, "old"), tlstest.New(t, "next")
	serverDir, clientDir := t.TempDir(), t.TempDir()
	addr := secure(t, old.Issue(serverDir, "server", -time.Hour), rpc.RequireClients)
	client := tlstest.Open(t, old.Issue(clientDir, "client", -time.Hour))
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
		if _, err := rpc.NewTLS(files, nil); !errors.Is(err, rpc.ErrTLS) {
			t.Errorf("%s: got %v, want ErrTLS", name, err)
		}
	}
	if secured, err := rpc.NewTLS(rpc.TLSFiles{}, nil); secured != nil || err != nil || secured.DialOptions() != nil {
		t.Errorf("no files: got %v, %v, want plaintext", secured, err)
	}
	if _, err := tlstest.Open(t, rpc.TLSFiles{CA: f.CA}).ServerCreds(rpc.RequireClients); !errors.Is(err, rpc.ErrTLS) {
		t.Errorf("a listener without a certificate: got %v, want ErrTLS", err)
	}
}
