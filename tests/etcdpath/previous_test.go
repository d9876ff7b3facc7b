package etcdpath

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// output is what a process writes. Safe for concurrent use.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) has(words string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := o.text.String(); !strings.Contains(text, words) {
		return fmt.Errorf("%q is not in the log: %s", words, text[max(0, len(text)-2000):])
	}
	return nil
}

// startPrevious runs an AllocSvr of the version before as a process. stop ends it in order.
func startPrevious(t *testing.T, name string, etcd *etcdtest.Cluster) (log *output, stop func()) {
	t.Helper()
	log = &output{}
	cmd := exec.Command(filepath.Join(harness.Previous(t), "allocsvr"), "--name", name, "--listen", "127.0.0.1:0", "--admin", "", "--data-dir", t.TempDir(),
		"--etcd", strings.Join(etcd.Endpoints(), ","), "--etcd-prefix", prefix, "--etcd-min-version", "3.4.0", "--lease", lease.String())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	return log, stop
}

// There is no store between a node and etcd that could refuse it: a build of before stops by what it
// reads there.
func TestABuildOfBeforeIsKeptOutOfAnEtcdThatRequiresANewerOne(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd and processes")
	}
	etcd := etcdtest.Start(t, 1)
	initCluster(t, etcd, sections)
	a := startNode(t, "a", etcd)
	until(t, "the newer node serves", func() error { return serves(t, a, sections) })
	log, stop := startPrevious(t, "b", etcd)
	until(t, "the older node serves beside it", func() error { return log.has("msg=ready") })

	store, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: etcd.Dial(), Prefix: prefix, Clock: clock.Boot()})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Require(t.Context(), version.Sets); !errors.Is(err, seq.ErrProtocol) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("required beside an older node: %v", err)
	}
	stop()
	until(t, "a newer protocol is required", func() error { return store.Require(t.Context(), version.Sets) })
	log, _ = startPrevious(t, "b", etcd)
	until(t, "the older node ends and says why", func() error { return log.has("these keys need a build of protocol 3 or newer") })

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	until(t, "the newer node has all", func() error { return serves(t, a, sections) })
	c, err := client.New(ctx, client.Config{Addrs: []string{a.server.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Next(ctx, client.Key{UID: 7}); err != nil {
		t.Errorf("the newer node: %v", err)
	}
}
