package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/etcdtest"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

func TestARouterTakesEitherAllocSvrOrTheirEtcd(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   "--etcd to find them in",
		"--allocs a:1 --etcd b:1":            "--allocs and --etcd",
		"--etcd b:1 --etcd-ca /no/ca":        "/no/ca",
		"--etcd b:1 --max-in-work 1":         "10064",
		"--etcd b:1 --etcd-password-file /n": "--etcd-password-file",
	} {
		if _, err := load(strings.Fields(line), nil, io.Discard); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(strings.ReplaceAll(err.Error(), ",", ""), want) {
			t.Errorf("%q: got %v, want a usage error with %q", line, err, want)
		}
	}
	if _, err := load([]string{"--etcd", "b:1"}, nil, io.Discard); err != nil {
		t.Error(err)
	}
}

func TestARouterFindsAllocSvrInEtcd(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	etcd := etcdtest.Start(t, 1)
	client := etcd.Dial()
	o, err := load([]string{"--etcd", etcd.Endpoints()[0], "--etcd-prefix", "/routes", "--etcd-min-version", "3.4.0"}, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	find := func(cluster string, patience time.Duration) ([]string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		o.ClusterID = cluster
		return o.lookForAllocs(ctx, client)
	}
	const long = 90 * time.Second
	if _, err := find("", long); !errors.Is(err, etcdstore.ErrNotInitialized) {
		t.Errorf("no cluster there: %v", err)
	}
	if err := etcdstore.Init(t.Context(), client, etcdstore.InitConfig{Prefix: "/routes", Cluster: "c1", Spaces: []seq.Space{{Name: seq.DefaultSpace, Sections: 1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := find("c2", long); !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("another cluster: %v", err)
	}
	// Within its time a busy etcd may not answer at all.
	if got, err := find("c1", 2*time.Second); !errors.Is(err, errNoAllocs) && !errors.Is(err, etcdclient.ErrUnreachable) && !errors.Is(err, context.DeadlineExceeded) || got != nil {
		t.Errorf("no AllocSvr: %v", err)
	}
	store, err := etcdstore.Open(t.Context(), etcdstore.Config{KV: client, Prefix: "/routes", Clock: clock.Boot()})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"b", "a"} {
		who := sessiontest.Session(uint64(i) + 1)
		_, err := store.Renew(t.Context(), quorum.RenewRequest{Ref: store.Identity().Ref, Session: who, Secret: sessiontest.SecretOf(who), Name: name, Addr: name + ":1", Lease: time.Second})
		if err != nil {
			t.Fatal(err)
		}
	}
	got, err := find("c1", long)
	if diff := cmp.Diff([]string{"a:1", "b:1"}, got); diff != "" || err != nil {
		t.Errorf("found %v (-want +got)\n%s", err, diff)
	}
}
