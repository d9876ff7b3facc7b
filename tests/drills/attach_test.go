package drills

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// cluster is a `seqctl dev --processes`.
type cluster struct {
	file string // its ready file
	grpc string
}

func dev(t *testing.T, flags ...string) cluster {
	t.Helper()
	dir := t.TempDir()
	c := cluster{file: filepath.Join(dir, "ready.json")}
	args := append([]string{"dev", "--processes", "--data-dir", filepath.Join(dir, "cluster"),
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", c.file}, flags...)
	cmd := harness.Command(context.Background(), t, nil, "seqctl", args...)
	harness.Serve(t, "seqctl dev", cmd)
	harness.Until(t, "dev is ready", func() bool {
		text, err := os.ReadFile(c.file)
		if err != nil {
			return false
		}
		var ready struct{ GRPC string }
		if err := json.Unmarshal(text, &ready); err != nil {
			t.Fatal(err)
		}
		c.grpc = ready.GRPC
		return true
	})
	return c
}

func TestAClusterOfOthersIsDrilledAndBroughtBack(t *testing.T) {
	c := dev(t, "--space", "orders:mode=exact,window=10m")
	drill := func(args ...string) outcome {
		t.Helper()
		return seqctl(t, t.TempDir(), append([]string{"drill", "-o", "json", "--rate", "400", "--timeout", "60s"}, args...)...)
	}
	refused := func(end outcome, code int, text string) {
		t.Helper()
		if end.Code != code || end.Stdout != "" || !strings.Contains(end.Stderr, text) {
			t.Errorf("exit %d, stdout %q, stderr %q; want exit %d, no report and %q", end.Code, end.Stdout, end.Stderr, code, text)
		}
	}
	refused(drill("kill-alloc", "--ready-file", c.file, "--node", "alloc-9"), 2, "unknown node")
	refused(drill("kill-alloc", "--addr", c.grpc), 2, "--ready-file")
	refused(drill("kill-router", "--ready-file", c.file), 2, "too small")

	check(t, drill("kill-alloc", "--ready-file", c.file, "--addr", c.grpc), "").wants(t, "taken over", "first answer")
	// The drill restarts the processes that it killed; otherwise the next drill would be refused.
	check(t, drill("drain-alloc", "--addr", c.grpc), "")
	refused(drill("drain-alloc", "--addr", c.grpc, "--space", "ledger"), 1, "unknown space")
	checkOnce(t, check(t, drill("drain-alloc", "--addr", c.grpc, "--space", "orders"), ""))
	checkOnce(t, check(t, drill("kill-alloc", "--ready-file", c.file, "--space", "orders"), ""))

	if end := seqctl(t, t.TempDir(), "drain", "alloc-1", "--addr", c.grpc); end.Code != 0 {
		t.Fatalf("drain: %s", end.Stderr)
	}
	refused(drill("restart-alloc", "--ready-file", c.file), 1, "cluster is not healthy")
}
