package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

func TestTheFlagsOfEtcd(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := load([]string{"--name", "a", "--etcd", "e1:2379,e2:2379", "--etcd-user", "seq", "--etcd-password-file", password}, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Etcd.Endpoints) != 2 || o.Etcd.Password != "secret" || o.Etcd.Prefix != "/seqsvr" || o.Lease != 3*time.Second {
		t.Errorf("got %+v with a lease of %v", o.Etcd, o.Lease)
	}
	if o, err = load([]string{"--name", "a", "--etcd", "e1:2379", "--lease", "2s"}, nil, io.Discard); err != nil || o.Lease != 2*time.Second {
		t.Errorf("a lease that is given: got %v, %v, want 2s", o.Lease, err)
	}
	for _, row := range []struct {
		args []string
		want error
	}{
		{[]string{"--stores", "s:1"}, seq.ErrBadArgument},
		{[]string{"--supervise"}, seq.ErrBadArgument},
		{[]string{"--etcd-password-file", password + "-not"}, seq.ErrBadArgument},
		{[]string{"--etcd-cert", password}, rpc.ErrTLS},
	} {
		if _, err := load(append([]string{"--name", "a", "--etcd", "e1:2379"}, row.args...), nil, io.Discard); !errors.Is(err, row.want) || !errors.Is(err, daemon.ErrUsage) {
			t.Errorf("%v: got %v, want %v", row.args, err, row.want)
		}
	}
}
