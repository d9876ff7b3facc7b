package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
	"github.com/seqsvr/seqsvr/tests/kit/tlstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient bounds the wait of a test for a condition on a busy machine.
const patient = 60 * time.Second

func mustTLS(t *testing.T, f rpc.TLSFiles) *rpc.TLS {
	t.Helper()
	secured, err := rpc.NewTLS(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return secured
}

// start runs a store, an allocator and a router by the files.
func start(t *testing.T, files rpc.TLSFiles) (a *allocsvr.Server, r *router.Router) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	sc := harness.StoreConfig(t, "store-1", []string{"store-1"}, seq.Space{Sections: 8, Step: 100})
	sc.TLS = mustTLS(t, files)
	s, err := storesvr.New(sc)
	if err != nil {
		t.Fatal(err)
	}
	harness.Inside(t, "store", s.Run)
	ac := allocsvr.DefaultConfig()
	ac.Name, ac.Listen, ac.Stores, ac.Logger, ac.TLS = "alloc-1", "127.0.0.1:0", []string{s.Addr()}, log, mustTLS(t, files)
	if a, err = allocsvr.New(ac); err != nil {
		t.Fatal(err)
	}
	harness.Inside(t, "allocsvr", a.Run)
	r, err = router.New(router.Config{Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Allocs: []string{a.Addr()}, Logger: log, TLS: mustTLS(t, files)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	harness.Inside(t, "router", r.Run)
	serves(t, a, r)
	return a, r
}

// serves waits until the daemons do: an AllocSvr that is told to stop before it has found its
// stores ends with an error.
func serves(t *testing.T, all ...interface{ Ready() error }) {
	t.Helper()
	harness.Until(t, "the daemons serve", func() bool {
		for _, one := range all {
			if one.Ready() != nil {
				return false
			}
		}
		return true
	})
}

// next takes a number of a new client.
func next(t *testing.T, addr string, secured *client.TLS, wait time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	c, err := client.New(ctx, client.Config{Addrs: []string{addr}, TLS: secured})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Next(ctx, client.Key{UID: 42})
	return err
}

func TestAClusterUnderMutualTLSServesThoseThatItKnows(t *testing.T) {
	good, bad := tlstest.New(t, "good"), tlstest.New(t, "bad")
	files := good.Issue(t.TempDir(), "cluster", -time.Hour)
	a, r := start(t, files)
	known := &client.TLS{CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA}
	for what, addr := range map[string]string{"allocsvr": a.Addr(), "router": r.Addr()} {
		if err := next(t, addr, known, patient); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The routes that a router gives name the allocators, which want a certificate.
	other := bad.Issue(t.TempDir(), "other", 0)
	for what, secured := range map[string]*client.TLS{
		"plaintext":           nil,
		"no certificate":      {CAFile: files.CA},
		"another certificate": {CertFile: other.Cert, KeyFile: other.Key, CAFile: files.CA},
		"another CA":          {CertFile: files.Cert, KeyFile: files.Key, CAFile: other.CA},
	} {
		err := next(t, a.Addr(), secured, 2*time.Second)
		if err == nil {
			t.Errorf("%s: got a number", what)
		}
		if what == "another CA" && (err == nil || !strings.Contains(err.Error(), "by the CA in "+other.CA)) {
			t.Errorf("%s: got %v, want the CA's file", what, err)
		}
	}
	checkHTTP(t, r, files)
	// A replacement by another authority, while everything runs.
	bad.Issue(filepath.Dir(files.Cert), "cluster", 0)
	if err := next(t, a.Addr(), known, patient); err != nil {
		t.Errorf("with certificates that were replaced: %v", err)
	}
}

// checkHTTP asks the router's HTTP front, which wants no certificate.
func checkHTTP(t *testing.T, r *router.Router, files rpc.TLSFiles) {
	t.Helper()
	text, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer transport.CloseIdleConnections()
	caller := http.Client{Transport: transport, Timeout: patient}
	reply, err := caller.Post("https://"+r.HTTPAddr()+"/v1/next", "application/json", strings.NewReader(`{"uid":7}`))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		t.Errorf("HTTPS: got %s", reply.Status)
	}
}
