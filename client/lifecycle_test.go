package client_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestAnotherClusterIsRefused(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	_, err := client.New(bounded(t), client.Config{Addrs: cluster.Addrs(), ClusterID: "another", AttemptTimeout: patience})
	if !errors.Is(err, seq.ErrForeignCluster) {
		t.Errorf("got %v, want %v", err, seq.ErrForeignCluster)
	}
}

func TestACloseEndsWaitingCalls(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	cluster.Nodes[0].Hang()
	got := make(chan error, 1)
	go func() {
		_, err := c.Next(context.Background(), client.Key{})
		got <- err
	}()
	waitFor(t, "a message", func() bool { return cluster.Nodes[0].Messages.Load() > 0 })
	_ = c.Close()
	if err := <-got; !errors.Is(err, client.ErrClosed) {
		t.Errorf("got %v, want %v", err, client.ErrClosed)
	}
	if _, err := c.Next(context.Background(), client.Key{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: got %v, want %v", err, client.ErrClosed)
	}
}

func TestAConfigThatIsNotSoundIsRefused(t *testing.T) {
	for name, cfg := range map[string]client.Config{
		"no address":         {},
		"an empty address":   {Addrs: []string{"a:1", ""}},
		"a negative timeout": {Addrs: []string{"a:1"}, Timeout: -1},
		"a tiny attempt":     {Addrs: []string{"a:1"}, AttemptTimeout: 1},
		"a negative queue":   {Addrs: []string{"a:1"}, MaxQueue: -1},
	} {
		if _, err := client.New(t.Context(), cfg); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v, want %v", name, err, seq.ErrBadArgument)
		}
	}
}
