package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// watcher reads a watch. Neither a number nor a mark of a key may fall.
type watcher struct {
	name string
	mu   sync.Mutex // guards told
	told map[client.Key]client.Update
}

func (c *cluster) watch(name string, by *client.Client, keys []client.Key) *watcher {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w, err := by.Watch(ctx, keys...)
	if err != nil {
		c.t.Fatal(err)
	}
	out := &watcher{name: name, told: map[client.Key]client.Update{}}
	var reading sync.WaitGroup
	c.t.Cleanup(func() {
		w.Close()
		reading.Wait()
	})
	reading.Go(func() {
		for {
			news, err := w.Next(context.Background())
			if err != nil {
				if !errors.Is(err, client.ErrClosed) {
					c.t.Error(err)
				}
				return
			}
			for _, u := range news {
				out.hear(c.t, u)
			}
		}
	})
	return out
}

func (w *watcher) hear(t *testing.T, u client.Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.told[u.Key]
	if u.Err != nil { // it was told before, and goes on
		if u.Ended {
			t.Errorf("%s: %v ended: %v", w.name, u.Key, u.Err)
		}
		return
	}
	if u.Last < before.Last || u.KnownIn == 0 && u.Seq < before.Seq {
		t.Errorf("%s: %v went from %d, mark %d, to %d, mark %d", w.name, u.Key, before.Last, before.Seq, u.Last, u.Seq)
	}
	if u.KnownIn > 0 {
		u.Seq = before.Seq
	}
	w.told[u.Key] = u
}

func (w *watcher) of(key client.Key) client.Update {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[key]
}

func TestAWatchMissesNothingOverATakeoverAndHandOvers(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster on disks")
	}
	c := start(t, seq.Space{Name: "strict", Sections: 8, Mode: seq.Strict}, seq.Space{Name: "ledger", Sections: 8, Mode: seq.Exact},
		seq.Space{Name: "inbox", Sections: 8, Step: 500, Tickets: time.Second})
	direct, through := c.sdk(false, c.addrs()...), c.sdk(true, c.router.Addr())
	var keys []client.Key
	for i := range 24 {
		for _, space := range []string{"user", "strict", "ledger", "inbox"} {
			keys = append(keys, client.Key{Space: space, UID: seq.UID(i * 1_000_003)})
		}
		keys = append(keys, client.StringKey("user", fmt.Sprint("room:", i)))
	}
	watchers := []*watcher{c.watch("direct", direct, keys), c.watch("through the router", through, keys)}
	caughtUp := func(when string) {
		t.Helper()
		last := map[client.Key]seq.Seq{}
		for _, key := range keys {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			n, err := direct.Next(ctx, key)
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if key.Space == "inbox" {
				ticket, err := direct.Open(ctx, key, 1)
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				if n = ticket.Last; key.UID%2 == 0 { // all others end by their time
					if err := ticket.Done(ctx); err != nil {
						t.Fatalf("%s: %v", when, err)
					}
				}
			}
			cancel()
			last[key] = n
		}
		for _, w := range watchers {
			for key, n := range last {
				c.until(fmt.Sprintf("%s %s told %d of %v, with its mark", when, w.name, n, key), func() bool {
					u := w.of(key)
					return u.Last == n && u.Seq == n && u.KnownIn == 0
				})
			}
		}
	}
	caughtUp("at first")
	c.cut(0)
	c.until("the other node serves all", func() bool { return c.served(1) == c.all })
	caughtUp("after a takeover")
	c.mend(0)
	c.until("the first node is back", func() bool { return c.served(0) >= 0 })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.until("sections are handed over", func() bool {
		_, err := c.allocs[1].admin.Drain(ctx, &pb.DrainRequest{Node: "alloc-2"})
		return err == nil && c.served(0) == c.all
	})
	caughtUp("after hand-overs")
	c.cut(0, 1)
	c.until("all leases are over", func() bool { return c.served(0)+c.served(1) == 0 })
	c.mend(0, 1)
	c.until("every section is served again", func() bool { return c.served(0)+c.served(1) == c.all })
	caughtUp("after an outage of all stores")
}
