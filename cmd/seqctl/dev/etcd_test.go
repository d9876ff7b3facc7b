package dev

import (
	"errors"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
)

func TestWhatDoesNotWorkOnEtcdIsRefusedByName(t *testing.T) {
	for line, want := range map[string]string{
		"--space x:mode=exact":      "exact spaces are not supported on etcd",
		"--stores 3":                "--stores with --etcd",
		"--processes --supervise":   "supervise with etcd",
		"--etcd-ca /nosuch/ca":      "/nosuch/ca",
		"--etcd-password-file /nos": "--etcd-password-file",
	} {
		args := append([]string{"dev", "--data-dir", t.TempDir(), "--etcd", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, strings.Fields(line)...)
		if _, _, err := seqctl(t.Context(), args...); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a usage error with %q", line, err, want)
		}
	}
	_, _, err := seqctl(t.Context(), "dev", "--data-dir", t.TempDir(), "--etcd", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	if !errors.Is(err, etcdclient.ErrUnreachable) {
		t.Errorf("no etcd there: got %v, want ErrUnreachable", err)
	}
}

func TestDevOnEtcdGoesOnAboveEveryNumber(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	etcd := etcdtest.Start(t, 1)
	dir := t.TempDir()
	flags := []string{"--etcd", etcd.Endpoints()[0], "--etcd-prefix", "/dev", "--etcd-min-version", "3.4.0"}
	var last uint64
	for i := range 2 {
		c := up(t, dir, flags...)
		var got taken
		c.ask(t, &got, "next", "42")
		if got.First <= last {
			t.Fatalf("start %d: got %+v after %d", i, got, last)
		}
		last = got.Last
		c.down(t)
		if text := c.log.String(); !strings.Contains(text, "registers in etcd, 3 allocators") || !strings.Contains(text, "below /dev") || strings.Contains(text, "stores") {
			t.Errorf("start %d says %s", i, text)
		}
	}
	_, _, err := seqctl(t.Context(), append([]string{"dev", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, flags...)...)
	if !errors.Is(err, localcluster.ErrConfig) || !strings.Contains(err.Error(), "--cluster local-") {
		t.Errorf("another directory: got %v, want ErrConfig with the cluster's id", err)
	}
	client := etcd.Dial()
	if _, err := client.Do(t.Context(), etcdstore.Txn{Then: []etcdstore.Op{{Kind: etcdstore.Delete, Key: "/dev/meta"}}}); err != nil {
		t.Fatal(err)
	}
	_, _, err = seqctl(t.Context(), append([]string{"dev", "--data-dir", dir, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, flags...)...)
	if !errors.Is(err, localcluster.ErrState) {
		t.Errorf("a cluster that is gone: got %v, want ErrState", err)
	}
}
