package processes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

func TestTheCAAndAllCertificatesAreReplacedWhileNumbersAreTaken(t *testing.T) {
	c := start(t, func(cfg *localcluster.Config) { cfg.Secure, cfg.Allocs, cfg.Sections = true, 2, 64 })
	app := c.Secured.Caller
	dir := filepath.Dir(app.Files.CA)
	read := func(path string) []byte {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	// replace puts a file in place at once, as docs/security.md asks for.
	replace := func(path string, text []byte) {
		t.Helper()
		fresh := path + ".new"
		if err := errors.Join(os.WriteFile(fresh, text, 0o600), os.Rename(fresh, path)); err != nil {
			t.Fatal(err)
		}
	}
	take := func(what string, files rpc.TLSFiles, token string, patience time.Duration) error {
		t.Helper()
		k, err := client.New(harness.Within(t), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), ClusterID: c.ClusterID, TokenFile: token, Lazy: true,
			TLS: &client.TLS{CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key, VerifyRole: true}})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer k.Close()
		ctx, cancel := context.WithTimeout(harness.Within(t), patience) // a call that is not served is repeated until then
		defer cancel()
		_, err = k.Next(ctx, client.Key{UID: 2})
		return err
	}
	const long = time.Minute
	taking := startTaker(t, 1, client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), ClusterID: c.ClusterID, TokenFile: app.TokenFile,
		TLS: &client.TLS{CAFile: app.Files.CA, VerifyRole: true}})

	old := t.TempDir() // what a caller keeps of the first CA
	stale := rpc.TLSFiles{Cert: filepath.Join(old, "cert.pem"), Key: filepath.Join(old, "key.pem"), CA: filepath.Join(old, "ca.pem")}
	replace(stale.Cert, read(app.Files.Cert))
	replace(stale.Key, read(app.Files.Key))
	replace(stale.CA, read(app.Files.CA))

	next := t.TempDir()
	if err := auth.MakeCA(next, c.ClusterID, time.Hour); err != nil {
		t.Fatal(err)
	}
	ca, err := auth.OpenCA(next)
	if err != nil {
		t.Fatal(err)
	}
	first, second := read(app.Files.CA), read(filepath.Join(next, auth.CAFile))
	replace(app.Files.CA, append(append([]byte{}, first...), second...)) // both
	if err := take("both CAs, the old certificate", stale, "", long); err != nil {
		t.Errorf("both CAs, an old certificate: %v", err)
	}
	for _, one := range append([]localcluster.Node{{Role: localcluster.Role(app.Role), Name: app.Name}}, c.Nodes...) {
		base := filepath.Join(dir, string(one.Role)+"-"+one.Name)
		made := filepath.Join(next, one.Name)
		if _, err := ca.Issue(auth.Cert{Role: auth.Role(one.Role), Name: one.Name, Hosts: []string{"127.0.0.1"}, Valid: time.Hour}, made, made+"-key"); err != nil {
			t.Fatal(err)
		}
		replace(base+"-key.pem", read(made+"-key"))
		replace(base+".pem", read(made))
	}
	if err := take("the new certificate", app.Files, "", long); err != nil {
		t.Errorf("both CAs, new certificates: %v", err)
	}
	replace(app.Files.CA, second) // the old one is out
	if err := take("the new CA", app.Files, "", long); err != nil {
		t.Errorf("the new CA alone: %v", err)
	}
	if err := take("a token under the new CA", rpc.TLSFiles{CA: app.Files.CA}, app.TokenFile, long); err != nil {
		t.Errorf("a token, the new CA alone: %v", err)
	}
	stale.CA = app.Files.CA
	if err := take("the old certificate", stale, "", 3*time.Second); err == nil {
		t.Error("a certificate of the CA that was taken out is served")
	}
	if err := taking.stopped(); err != nil {
		t.Errorf("who took numbers all the while: %v", err)
	}
}

func TestARevokedPrincipalIsRefusedByItsCertificateAndItsToken(t *testing.T) {
	c := start(t, func(cfg *localcluster.Config) { cfg.Secure, cfg.Allocs, cfg.Sections = true, 1, 8 })
	app := c.Secured.Caller
	shown := map[string]*client.Client{}
	for name, cfg := range map[string]client.Config{
		"certificate": {TLS: &client.TLS{CAFile: app.Files.CA, CertFile: app.Files.Cert, KeyFile: app.Files.Key}},
		"token":       {TLS: &client.TLS{CAFile: app.Files.CA}, TokenFile: app.TokenFile},
	} {
		cfg.Addrs = c.Addrs(localcluster.RoleAlloc)
		k, err := client.New(harness.Within(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if _, err := k.Next(harness.Within(t), client.Key{UID: 1}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		shown[name] = k
	}
	policy := filepath.Join(filepath.Dir(app.Files.CA), "policy.yaml")
	if err := os.WriteFile(policy, []byte("principals: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, k := range shown { // on the connections that are open, without a signal
		harness.Until(t, name+" is refused", func() bool {
			_, err := k.Next(harness.Within(t), client.Key{UID: 1})
			return errors.Is(err, seq.ErrUnauthenticated)
		})
	}
}
