package ctl

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
)

// ownContexts gives the test a configuration directory of its own.
func ownContexts(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, dir)
	}
	for _, name := range []string{"SEQ_ADDR", "SEQ_STORES", "SEQ_CONTEXT"} {
		t.Setenv(name, "")
	}
	file, err := contextsFile()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// must runs a command line that succeeds.
func must(t *testing.T, line string) string {
	t.Helper()
	out, err := call(t, strings.Fields(line)...)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out
}

func TestVerbsAskTheContextInUseUnlessAnAddressIsNamed(t *testing.T) {
	ownContexts(t)
	n := serve(t)
	must(t, "context add here --addr "+n.addr)
	must(t, "context add away --addr 127.0.0.1:1 --use")
	fails := func(line string) {
		t.Helper()
		if _, err := call(t, strings.Fields(line)...); !errors.Is(err, errNoAnswer) {
			t.Errorf("%s: got %v, want no answer", line, err)
		}
	}
	fails("status")
	must(t, "status --context here")
	must(t, "status --addr "+n.addr)
	fails("status --context here --addr 127.0.0.1:2") // a flag stands above the context that was named
	must(t, "context use here")
	must(t, "status")
	fails("status --context away")
	t.Setenv("SEQ_CONTEXT", "away")
	fails("status")
	t.Setenv("SEQ_CONTEXT", "")
	t.Setenv("SEQ_ADDR", "127.0.0.1:2")
	fails("status")
	t.Setenv("SEQ_ADDR", "")
	must(t, "context use --none")
	if _, err := call(t, "status", "--timeout", "1ns"); err == nil || strings.Contains(err.Error(), n.addr) {
		t.Errorf("got %v without a context, want %s", err, DefaultAddr)
	}
}

func TestContextsAreListedAndRemoved(t *testing.T) {
	ownContexts(t)
	must(t, "context add b --addr 10.0.0.1:7400,10.0.0.2:7400 --use")
	must(t, "context add a --addr 10.0.0.3:7400")
	var rows []contextRow
	if err := json.Unmarshal([]byte(must(t, "context list -o json")), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].Name != "a" || rows[0].Current || rows[1].Name != "b" || !rows[1].Current || len(rows[1].Addrs) != 2 {
		t.Errorf("listed %+v", rows)
	}
	if out, err := call(t, "__complete", "context", "use", ""); err != nil || !strings.HasPrefix(out, "a\nb\n") {
		t.Errorf("completed %q, %v", out, err)
	}
	if out := must(t, "context remove b"); strings.Contains(out, "yes") || strings.Contains(out, "10.0.0.1") {
		t.Errorf("after the removal:\n%s", out)
	}
}

func TestAWrongContextIsRefused(t *testing.T) {
	ownContexts(t)
	must(t, "context add prod --addr 10.0.0.1:7400")
	for line, want := range map[string]string{
		"context use prud":                                      "expected one of prod",
		"context remove prud":                                   "expected one of prod",
		"status --context prud":                                 "expected one of prod",
		"context use":                                           "NAME|--none",
		"context add x":                                         "--addr",
		"context add x --addr here":                             `"here"`,
		"context add ../x --addr a:1":                           `"../x"`,
		"context add prod --addr a:1":                           "--replace",
		"context add x --addr a:1 --tls-ca /nosuch/ca.pem":      "/nosuch/ca.pem",
		"context add x --addr a:1 --token-file /nosuch/token":   "--tls-ca",
		"context add x --addr a:1 --tls-cluster c":              "--tls-ca",
		"context add x --addr a:1 --token swordfish":            "--token",
		"context add x --addr a:1 --tls-cert c.pem --tls-ca ca": "expected both or none",
	} {
		if _, err := call(t, strings.Fields(line)...); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a usage error with %q", line, err, want)
		}
	}
	must(t, "context add prod --addr 10.0.0.2:7400 --replace")
}

func TestContextsAreForTheirUserAlone(t *testing.T) {
	file := ownContexts(t)
	must(t, "context add prod --addr 10.0.0.1:7400 --use")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file has %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"status", "context list"} {
		if _, err := call(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), "expected 0600") {
			t.Errorf("%s: got %v of a file that others read", line, err)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"contexts: [1, 2]\n", "token: swordfish\n", "{"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := call(t, "status"); err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "swordfish") || strings.Contains(err.Error(), "unmarshal") {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".contexts-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
