package drills

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cluster is a `seqctl dev --processes`.
type cluster struct {
	file string // its ready file
	grpc string
}

func dev(t *testing.T) cluster {
	t.Helper()
	dir := t.TempDir()
	c := cluster{file: filepath.Join(dir, "ready.json")}
	cmd := exec.Command(filepath.Join(bin, "seqctl"), "dev", "--processes", "--data-dir", filepath.Join(dir, "cluster"),
		"--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", c.file)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
		}
	})
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		if text, err := os.ReadFile(c.file); err == nil {
			var ready struct{ GRPC string }
			if err := json.Unmarshal(text, &ready); err != nil {
				t.Fatal(err)
			}
			c.grpc = ready.GRPC
			return c
		}
		select {
		case <-ended:
			t.Fatalf("dev ended: %s", log.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("dev was not ready in time")
		}
	}
}

func TestAClusterOfOthersIsDrilledAndBroughtBack(t *testing.T) {
	build(t)
	c := dev(t)
	drill := func(args ...string) outcome {
		t.Helper()
		return seqctl(t, t.TempDir(), append([]string{"drill", "-o", "json", "--rate", "400", "--timeout", "60s"}, args...)...)
	}
	refused := func(end outcome, code int, text string) {
		t.Helper()
		if end.code != code || end.stdout != "" || !strings.Contains(end.stderr, text) {
			t.Errorf("exit %d, stdout %q, stderr %q; want exit %d, no report and %q", end.code, end.stdout, end.stderr, code, text)
		}
	}
	refused(drill("kill-alloc", "--ready-file", c.file, "--node", "alloc-9"), 2, "unknown node")
	refused(drill("kill-alloc", "--addr", c.grpc), 2, "--ready-file")
	refused(drill("kill-router", "--ready-file", c.file), 2, "too small")

	check(t, drill("kill-alloc", "--ready-file", c.file, "--addr", c.grpc), "").wants(t, "taken over", "first answer")
	// What was killed is back, or the next one would be refused.
	check(t, drill("drain-alloc", "--addr", c.grpc), "")

	if end := seqctl(t, t.TempDir(), "drain", "alloc-1", "--addr", c.grpc); end.code != 0 {
		t.Fatalf("drain: %s", end.stderr)
	}
	refused(drill("restart-alloc", "--ready-file", c.file), 1, "cluster is not healthy")
}
