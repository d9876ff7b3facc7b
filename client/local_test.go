package client_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func local(t testing.TB, c *client.Client, cfg client.LocalConfig) *client.Local {
	t.Helper()
	l, err := c.NewLocal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Ready(bounded(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALocalMakesIDsHereAndAsksNobodyForThem(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	c := dial(t, cluster, client.Config{})
	l := local(t, c, client.LocalConfig{Namespace: "1"})
	ctx, r := bounded(t), newRegister(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				id, err := l.Next(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				r.add(client.IDs{Runs: []snowflake.Run{{First: id, Last: id, Stride: 1}}})
			}
			got, err := l.Take(ctx, 5000)
			if err != nil || got.Len() != 5000 || !got.Fallback || got.Namespace != "regional-1" || got.Datacenter != clienttest.Datacenter {
				t.Errorf("got %d of %+v, %v", got.Len(), got, err)
			}
			r.add(got)
		})
	}
	all.Wait()
	if asked := generates(cluster); asked != 0 || l.Stats().IDs != 8*5200 || cluster.Delegations() != 1 {
		t.Errorf("the service was asked for %d IDs, and for %d windows; %+v", asked, cluster.Delegations(), l.Stats())
	}
	if _, err := l.Take(ctx, client.MaxIDs+1); !errors.Is(err, seq.ErrBadCount) {
		t.Errorf("got %v, want %v", err, seq.ErrBadCount)
	}
	for _, n := range cluster.Nodes {
		n.Kill()
	}
	if _, err := l.Next(ctx); err != nil {
		t.Errorf("all dead: %v", err)
	}
}

func TestALocalGivesItsWorkerIDBackToTheNodeThatLentIt(t *testing.T) {
	for name, end := range map[string]func(*client.Client, *client.Local) error{
		"its end":      func(_ *client.Client, l *client.Local) error { return l.Close() },
		"the client's": func(c *client.Client, _ *client.Local) error { return c.Close() },
	} {
		cluster := clienttest.Start(t, 3)
		c := dial(t, cluster, client.Config{})
		l := local(t, c, client.LocalConfig{})
		ctx := bounded(t)
		got, err := l.Take(ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(c, l); err != nil {
			t.Fatal(err)
		}
		layout, err := snowflake.ParseLayout(got.Layout)
		if err != nil {
			t.Fatal(err)
		}
		last, err := layout.Decode(got.Runs[len(got.Runs)-1].Last)
		if err != nil {
			t.Fatal(err)
		}
		back := cluster.Returned()
		if len(back) != 1 || snowflake.Worker(back[0].GetWorkerId()) != got.Worker || snowflake.Tick(back[0].GetLastTickUsed()) != last.Tick || back[0].GetNamespace() != "default" {
			t.Errorf("%s: given back %v, want worker %d with tick %d", name, back, got.Worker, last.Tick)
		}
		if _, err := l.Next(ctx); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: afterwards: got %v, want %v", name, err, client.ErrClosed)
		}
		if _, err := l.Take(ctx, 2); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: afterwards, some: got %v, want %v", name, err, client.ErrClosed)
		}
		if err := errors.Join(l.Close(), c.Close()); err != nil || len(cluster.Returned()) != 1 {
			t.Errorf("%s: once more: %v, %v", name, err, cluster.Returned())
		}
		if _, err := c.NewLocal(client.LocalConfig{}); !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: a new one: got %v", name, err)
		}
	}
}

func TestAWorkerIDIsGivenBackThroughARoutersAddressAndByAFallbackToo(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{Indirect: true, Fallback: &client.Fallback{Namespace: "1", Also: []string{"orders"}}})
	waitFor(t, "two windows", func() bool { return c.Stats().Fallback.Windows >= 2 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if back := cluster.Returned(); len(back) != 2 || back[0].GetNamespace() == back[1].GetNamespace() {
		t.Errorf("given back: %v", back)
	}
}

func TestALocalWithoutAWindowAsksTheServiceAndComesBack(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	cluster.Lend(seq.ErrWorkersExhausted)
	c := dial(t, cluster, client.Config{Timeout: patience})
	l, err := c.NewLocal(client.LocalConfig{Window: client.MinFallbackWindow})
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	if got, err := l.Take(ctx, 3); err != nil || got.Fallback || got.Len() != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if id, err := l.Next(ctx); err != nil || id == 0 {
		t.Errorf("got %d, %v", id, err)
	}
	here := func() bool {
		got, err := l.Take(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		return got.Fallback
	}
	cluster.Lend(nil)
	waitFor(t, "IDs made here", here)
	cluster.Lend(seq.ErrNoQuorum)
	waitFor(t, "its window to end", func() bool { return !here() })
	cluster.Lend(nil)
	waitFor(t, "IDs made here again", here)
	waitFor(t, "windows to be made longer", func() bool { return here() && l.Stats().Windows >= 5 })
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestALocalThatIsNotSoundIsRefused(t *testing.T) {
	c := dial(t, clienttest.Start(t, 1), client.Config{})
	for name, row := range map[string]struct {
		cfg  client.LocalConfig
		want error
	}{
		"a short window": {client.LocalConfig{Window: time.Millisecond}, seq.ErrBadArgument},
		"a long window":  {client.LocalConfig{Window: time.Hour}, seq.ErrBadArgument},
		"no name":        {client.LocalConfig{Namespace: "a b"}, seq.ErrUnknownNamespace},
	} {
		if _, err := c.NewLocal(row.cfg); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", name, err, row.want)
		}
	}
}

func TestCallsOneAfterTheOtherWaitForASilentServiceOnce(t *testing.T) {
	const after = 2 * time.Second
	cluster := clienttest.Start(t, 1)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience, Timeout: patience, Fallback: &client.Fallback{After: after}})
	waitFor(t, "a window", func() bool { return c.Stats().Fallback.Windows > 0 })
	cluster.Nodes[0].Hang()
	ctx, begun := bounded(t), time.Now()
	for i := range 50 {
		if ids, err := c.Generate(ctx, "", 10); err != nil || !ids.Fallback {
			t.Fatalf("call %d: got %+v, %v", i, ids, err)
		}
		if took := time.Since(begun); took < after || took > 5*after {
			t.Fatalf("%d calls took %v, want one wait of %v", i+1, took, after)
		}
	}
	cluster.Nodes[0].Resume()
	waitFor(t, "the service to answer", func() bool {
		ids, err := c.Generate(ctx, "", 1)
		return err == nil && !ids.Fallback
	})
}

func BenchmarkLocal(b *testing.B) {
	c := dial(b, clienttest.Start(b, 1), client.Config{})
	l := local(b, c, client.LocalConfig{Namespace: "clicks", Window: client.MaxFallbackWindow})
	ctx := b.Context()
	b.Run("Next", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Take4096", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Take(ctx, 4096); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(4096*float64(b.N)/b.Elapsed().Seconds()/1e6, "M_ids/s")
	})
}
