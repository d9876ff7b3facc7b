package localcluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
)

func TestWithoutEtcdOrMembersNoneIsStarted(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for members, want := range map[int]error{0: ErrConfig, MaxStores + 1: ErrConfig, 3: ErrNoEtcd} {
		if _, err := StartEtcd(EtcdConfig{Dir: t.TempDir(), Members: members}); !errors.Is(err, want) {
			t.Errorf("%d members: got %v, want %v", members, err, want)
		}
	}
}

func TestAnotherMemberLeadsWhenTheLeaderLeaves(t *testing.T) {
	if testing.Short() {
		t.Skip("runs etcd")
	}
	e, err := StartEtcd(EtcdConfig{Dir: t.TempDir(), Members: 3})
	if errors.Is(err, ErrNoEtcd) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	client, err := etcdclient.Dial(etcdclient.Config{Endpoints: e.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader := func() *Process {
		t.Helper()
		p, err := e.Leader(ctx, client)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := leader()
	if err := first.Stop(ctx); err != nil {
		t.Errorf("a member that was told to leave: %v", err)
	}
	if second := leader(); second == first {
		t.Errorf("%s leads, and does not run", second.Name)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	leader()
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	leader()
	e.Close()
	for _, p := range e.Processes() {
		if p.Running() {
			t.Errorf("%s runs after Close", p.Name)
		}
	}
}
