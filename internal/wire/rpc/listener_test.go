package rpc_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

// web serves HTTP by the files, and says of each request whether it came by TLS.
func web(t *testing.T, secured *rpc.TLS) (addr string) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lis, err := secured.Listen(plain, rpc.OptionalClients)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.PeerCertificates) == 1 {
			_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
		}
	})}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(lis) }()
	t.Cleanup(func() {
		_ = srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return lis.Addr().String()
}

// shownTo asks over a new connection, and gives what the server says.
func shownTo(t *testing.T, url string, by rpc.TLSFiles) (text string, err error) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(by.Cert, by.Key)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(by.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool}}
	defer transport.CloseIdleConnections()
	reply, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get(url)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return "", errors.New(reply.Status)
	}
	body, err := io.ReadAll(reply.Body)
	return string(body), err
}

func TestOneListenerOfHTTPTakesPlaintextAndTLSWhileAClusterGoesOver(t *testing.T) {
	ca := tlstest.New(t, "ca")
	files, mine := ca.Issue(t.TempDir(), "server", -time.Hour), ca.Issue(t.TempDir(), "mine", 0)
	for _, plaintext := range []rpc.Plaintext{rpc.NoPlaintext, rpc.AcceptPlaintext, rpc.DialPlaintext} {
		secured := tlstest.Open(t, files)
		secured.AllowPlaintext(plaintext)
		addr := web(t, secured)
		silent, err := net.Dial("tcp", addr) // must hold up no other
		if err != nil {
			t.Fatal(err)
		}
		if who, err := shownTo(t, "https://"+addr, mine); err != nil || who != "mine" {
			t.Errorf("%s: TLS: %q, %v", plaintext, who, err)
		}
		who, err := shownTo(t, "http://"+addr, mine)
		if taken := err == nil; taken != (plaintext != rpc.NoPlaintext) || who != "" {
			t.Errorf("%s: plaintext: %q, %v", plaintext, who, err)
		}
		_ = silent.Close()
	}
	if addr := web(t, nil); addr == "" {
		t.Error("no listener")
	} else if _, err := shownTo(t, "http://"+addr, mine); err != nil {
		t.Errorf("without TLS: %v", err)
	}
}

func TestAListenerThatTakesBothEndsWithWhatItHasNotGiven(t *testing.T) {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secured := tlstest.Open(t, tlstest.New(t, "ca").Issue(t.TempDir(), "server", 0))
	secured.AllowPlaintext(rpc.AcceptPlaintext)
	lis, err := secured.Listen(plain, rpc.OptionalClients)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "GET"} { // one that is silent, and one that is not accepted
		conn, err := net.Dial("tcp", lis.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := lis.Close(); err != nil {
		t.Error(err)
	}
	if _, err := lis.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	} // TestMain sees what was left behind
}
