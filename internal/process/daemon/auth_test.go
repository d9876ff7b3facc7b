package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
)

// opened parses flags and opens a daemon of that cluster.
func opened(t *testing.T, cluster string, args ...string) (*Common, *bytes.Buffer, error) {
	t.Helper()
	c, log := &Common{}, &bytes.Buffer{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Flags(fs, "")
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	err := c.Open(log)
	if err == nil {
		err = c.OpenAuth(auth.Identity{Cluster: cluster, Role: auth.Alloc, Name: "a"})
	}
	return c, log, err
}

// newCA is a CA of the cluster c, and the folder that it is in.
func newCA(t *testing.T) (dir string, ca *auth.CA) {
	t.Helper()
	dir = t.TempDir()
	if err := auth.MakeCA(dir, "c", time.Hour); err != nil {
		t.Fatal(err)
	}
	ca, err := auth.OpenCA(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, ca
}

func TestWhatIsWrongWithTheSettingsOfAuthIsAUsageError(t *testing.T) {
	dir, ca := newCA(t)
	cert, key := filepath.Join(dir, "a.pem"), filepath.Join(dir, "a-key.pem")
	if _, err := ca.Issue(auth.Cert{Role: auth.Alloc, Name: "a", Valid: time.Hour}, cert, key); err != nil {
		t.Fatal(err)
	}
	policy, wrong := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "wrong.yaml")
	for path, text := range map[string]string{policy: "principals: []\n", wrong: "principals:\n  - {name: a, role: root}\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tls := []string{"--tls-cert", cert, "--tls-key", key, "--tls-ca", filepath.Join(dir, auth.CAFile)}
	for _, test := range []struct {
		cluster string
		args    []string
		want    string
	}{
		{"c", []string{"--auth", "maybe"}, `"maybe": expected off, accept or require`},
		{"c", []string{"--tls-plaintext", "yes"}, `"yes": expected no, accept or dial`},
		{"c", []string{"--tls-plaintext", "accept"}, "expected --tls-cert"},
		{"c", []string{"--policy", policy}, "expected --auth"},
		{"", []string{"--auth", "require"}, "expected --cluster"},
		{"a b", []string{"--auth", "require"}, `cluster "a b"`},
		{"c", []string{"--auth", "require", "--policy", wrong}, `line 2: principals[0] "a": role "root"`},
		{"c", []string{"--auth", "require", "--policy", filepath.Join(dir, "none")}, "none"},
	} {
		if _, _, err := opened(t, test.cluster, test.args...); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want a usage error with %q", test.args, err, test.want)
		}
	}
	c, _, err := opened(t, "c", append(tls, "--auth", "require", "--policy", policy, "--tls-plaintext", "accept")...)
	if err != nil || c.Guard.Mode() != auth.Require {
		t.Errorf("sound settings: %v, %v", c.Guard.Mode(), err)
	}
	if c, _, err := opened(t, ""); err != nil || c.Guard != nil {
		t.Errorf("by default: %v, %v", c.Guard, err)
	}
	for _, path := range []string{key, policy} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := opened(t, "c", append(tls, "--auth", "require", "--policy", policy)...)
		if !errors.Is(err, auth.ErrOpenFile) || !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), path+" has mode 0644: expected 0600") {
			t.Errorf("%s that others read: got %v", path, err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADaemonWithAnothersCertificateDoesNotStart(t *testing.T) {
	dir, ca := newCA(t)
	for _, made := range []auth.Cert{{Role: auth.Alloc, Name: "b"}, {Role: auth.Store, Name: "a"}} {
		made.Valid = time.Hour
		cert, key := filepath.Join(dir, "x.pem"), filepath.Join(dir, "x-key.pem")
		if _, err := ca.Issue(made, cert, key); err != nil {
			t.Fatal(err)
		}
		args := []string{"--tls-cert", cert, "--tls-key", key, "--tls-ca", filepath.Join(dir, auth.CAFile), "--auth"}
		is := auth.Identity{Cluster: "c", Role: made.Role, Name: made.Name}
		_, _, err := opened(t, "c", append(args, "require")...)
		if want := "x.pem is the certificate of " + is.URI() + ": expected spiffe://c/alloc/a"; !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("require: got %v, want %q", err, want)
		}
		if _, log, err := opened(t, "c", append(args, "accept")...); err != nil || !strings.Contains(log.String(), "would be refused for its certificate") {
			t.Errorf("accept: got %v, log %s", err, log)
		}
		if err := errors.Join(os.Remove(cert), os.Remove(key)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPolicyIsReadAtSIGHUPWhateverElseIsWrong(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	token := auth.NewToken()
	if err := auth.AddToken(policy, auth.Entry{Name: "eye", Role: auth.Reader, Token: token.Hash()}); err != nil {
		t.Fatal(err)
	}
	c, log, err := opened(t, "c", "--auth", "require", "--policy", policy)
	if err != nil {
		t.Fatal(err)
	}
	c.Reread = func() (*Common, error) { return nil, errors.New("made up") }
	known := func() bool { _, err := c.Guard.Try(auth.Credentials{Token: token.Secret()}, ""); return err == nil }
	if err := os.WriteFile(policy, []byte("principals:\n  - [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Reload()
	if !known() || !strings.Contains(log.String(), "the policy cannot be used, the former one stays in use") || !strings.Contains(log.String(), "line ") {
		t.Errorf("with a mistake in it: known: %v, log %s", known(), log)
	}
	if err := os.WriteFile(policy, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Reload()
	if known() {
		t.Error("a principal that was deleted is known")
	}
}
