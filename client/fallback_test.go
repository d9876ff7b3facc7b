package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestIDsAreMadeHereWhileTheServiceIsAway(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	c := dial(t, cluster, client.Config{Timeout: patience, Fallback: &client.Fallback{Namespace: "1", After: 50 * time.Millisecond}})
	waitFor(t, "a window", func() bool { return c.Stats().Fallback.Windows > 0 })
	ctx, r := bounded(t), newRegister(t)
	some := func(what, namespace string) (here int) {
		t.Helper()
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range 8 {
			wg.Go(func() {
				for range 5 {
					ids, err := c.Generate(ctx, namespace, uint32(1+i*70))
					if err != nil || ids.Len() != 1+i*70 || ids.Namespace != "regional-1" || ids.Datacenter != clienttest.Datacenter {
						t.Errorf("%s: got %d of %+v, %v", what, ids.Len(), ids, err)
						return
					}
					r.add(ids)
					if ids.Fallback {
						mu.Lock()
						here++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		return here
	}
	some("all well", "1")
	for _, n := range cluster.Nodes {
		n.Kill()
	}
	before := c.Stats().Fallback
	if here := some("all dead", "1") + some("all dead, by name", "regional-1"); here != 80 {
		t.Errorf("%d calls say that their IDs were made here, want 80", here)
	}
	after := c.Stats().Fallback
	if after.IDs < before.IDs+80 || after.Windows == 0 || time.Until(after.ValidUntil) <= 0 {
		t.Errorf("got %+v after %+v", after, before)
	}
	for _, n := range cluster.Nodes {
		n.Restart()
	}
	waitFor(t, "the service to answer", func() bool { return some("back", "1") < 40 || t.Failed() })
}

func TestASilentServiceIsStoodInForToo(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience, Timeout: patience, Fallback: &client.Fallback{After: 50 * time.Millisecond}})
	waitFor(t, "a window", func() bool { return c.Stats().Fallback.Windows > 0 })
	cluster.Nodes[0].Hang()
	if ids, err := c.Generate(bounded(t), "", 10); err != nil || !ids.Fallback || ids.Worker == 0 {
		t.Errorf("silent: got %+v, %v", ids, err)
	}
	cluster.Nodes[0].Resume()
	cluster.Behave(false, false, seq.ErrNoQuorum)
	if ids, err := c.Generate(bounded(t), "default", 1); err != nil || !ids.Fallback {
		t.Errorf("no quorum: got %+v, %v", ids, err)
	}
}

func TestAnAnswerOfTheServiceIsNotStoodInFor(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{Timeout: patience, Fallback: &client.Fallback{After: patience / 2}})
	waitFor(t, "a window", func() bool { return c.Stats().Fallback.Windows > 0 })
	ctx := bounded(t)
	for _, fault := range []error{seq.ErrTimeExhausted, seq.ErrDatacenterTaken} {
		cluster.Behave(false, false, fault)
		if ids, err := c.Generate(ctx, "", 1); !errors.Is(err, fault) || ids.Len() != 0 {
			t.Errorf("got %+v, %v, want %v", ids, err, fault)
		}
	}
	cluster.Behave(false, false, nil)
	if _, err := c.Generate(ctx, "", client.MaxIDs+1); !errors.Is(err, seq.ErrBadCount) {
		t.Errorf("got %v, want %v", err, seq.ErrBadCount)
	}
	if got := c.Stats().Fallback; got.IDs != 0 || got.Refused != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestOtherNamespacesAreNotStoodInFor(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{Timeout: patience, Fallback: &client.Fallback{Namespace: "orders", After: time.Millisecond}})
	waitFor(t, "a window", func() bool { return c.Stats().Fallback.Windows > 0 })
	cluster.Nodes[0].Kill()
	ctx, cancel := context.WithCancel(bounded(t))
	got := make(chan error, 1)
	go func() {
		_, err := c.Generate(ctx, "", 2)
		got <- err
	}()
	if ids, err := c.Generate(ctx, "orders", 2); err != nil || !ids.Fallback {
		t.Errorf("got %+v, %v", ids, err)
	}
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestWithoutAWindowTheServiceIsWaitedFor(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	cluster.Behave(false, false, seq.ErrNoQuorum)
	c := dial(t, cluster, client.Config{Timeout: patience, Fallback: &client.Fallback{After: time.Millisecond}})
	ctx, cancel := context.WithCancel(bounded(t))
	got := make(chan error, 1)
	go func() {
		_, err := c.Generate(ctx, "", 2)
		got <- err
	}()
	waitFor(t, "a refusal", func() bool { return c.Stats().Fallback.Refused > 0 })
	asked := cluster.Nodes[0].Generates.Load()
	waitFor(t, "the service to be asked on", func() bool { return cluster.Nodes[0].Generates.Load() > asked+4 })
	cancel()
	if err := <-got; !errors.Is(err, client.ErrNoFallback) || !errors.Is(err, seq.ErrNoQuorum) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	cluster.Behave(false, false, nil)
	if ids, err := c.Generate(bounded(t), "", 2); err != nil || ids.Len() != 2 {
		t.Errorf("got %+v, %v", ids, err)
	}
}

func TestAWindowIsMadeLongerBeforeItEnds(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{Fallback: &client.Fallback{After: time.Millisecond, Window: client.MinFallbackWindow}})
	waitFor(t, "a window", func() bool { return c.Stats().Fallback.Windows > 0 })
	first := c.Stats().Fallback
	waitFor(t, "two more", func() bool { return c.Stats().Fallback.Windows >= first.Windows+2 })
	if last := c.Stats().Fallback; !last.ValidUntil.After(first.ValidUntil) || uint64(cluster.Delegations()) < last.Windows {
		t.Errorf("got %+v after %+v", last, first)
	}
}

func TestAFallbackThatIsNotSoundIsRefused(t *testing.T) {
	for name, f := range map[string]client.Fallback{
		"a negative wait":     {After: -1},
		"a wait past the end": {After: time.Hour},
		"a short window":      {Window: time.Millisecond},
		"a long window":       {Window: time.Hour},
	} {
		if _, err := client.New(t.Context(), client.Config{Addrs: []string{"a:1"}, Fallback: &f}); !errors.Is(err, seq.ErrBadArgument) {
			t.Errorf("%s: got %v, want %v", name, err, seq.ErrBadArgument)
		}
	}
}
