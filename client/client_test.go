package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
	"github.com/seqsvr/seqsvr/tests/kit/waits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds how long a test waits for a condition.
const patience = 30 * time.Second

func dial(t testing.TB, cluster *clienttest.Cluster, cfg client.Config) *client.Client {
	t.Helper()
	if cfg.AttemptTimeout == 0 { // a call that is slow for want of a processor is not made twice: tests count
		cfg.AttemptTimeout = patience
	}
	if cfg.Addrs == nil {
		cfg.Addrs = cluster.Addrs()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := client.New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waits.AtMost(t, 4*patience))
	t.Cleanup(cancel)
	return ctx
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	most := waits.AtMost(t, patience)
	deadline := time.After(most)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited %v for %s", most, what)
		case <-tick.C:
		}
	}
}

// throughTakeovers does a round, of UIDs that stand there twice, while all of three nodes are well,
// and after each kind of takeover.
func throughTakeovers(t *testing.T, try func(what string, c *client.Client, uids []seq.UID)) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30})
	c := dial(t, cluster, client.Config{AttemptTimeout: 50 * time.Millisecond})
	uids := make([]seq.UID, 40)
	for i := range uids {
		uids[i] = seq.UID(i / 2 * 64)
	}
	round := func(what string) { try(what, c, uids) }
	round("all well")
	cluster.Nodes[0].Kill()
	cluster.TakeOver(0, 1)
	round("after a death")
	cluster.Publish()
	round("with the new table")
	cluster.Nodes[1].Hang()
	cluster.TakeOver(1, 2)
	round("with a hanging owner")
	cluster.Behave(false, true, nil)
	cluster.TakeOver(2, 0)
	cluster.Nodes[0].Restart()
	round("after a move of which the target is not told")
}

// uidOf finds a uid whose section node serves.
func uidOf(c *clienttest.Cluster, node int) seq.UID {
	for uid := seq.UID(0); ; uid += 1 << seq.BlockBits {
		if c.Owner(c.Mapping.Spaces[0].SectionOf(uid)) == node {
			return uid
		}
	}
}

// book records what was handed out and reports what comes twice.
type book struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[string]bool
}

func newBook(t *testing.T) *book { return &book{t: t, seen: map[string]bool{}} }

func (b *book) add(key client.Key, first, last seq.Seq) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := first; s <= last; s++ {
		entry := fmt.Sprint(key, "=", s)
		if s == 0 || b.seen[entry] {
			b.t.Errorf("%s was zero or handed out twice", entry)
		}
		b.seen[entry] = true
	}
}

func TestConcurrentCallsTravelTogether(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 64}, seq.Space{Name: "pts", Sections: 64})
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	ctx, b := bounded(t), newBook(t)
	const callers, each = 200, 25
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			// Half of the callers share their keys with others.
			key := client.Key{UID: seq.UID(i / 2 * 64)}
			if i%3 == 0 {
				key.Space = "pts"
			}
			var before seq.Seq
			for n := range each {
				first, last, err := c.NextN(ctx, key, uint32(1+n%3))
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				if first <= before {
					t.Errorf("caller %d: got %d after %d", i, first, before)
				}
				before = last
				b.add(key, first, last)
			}
		})
	}
	wg.Wait()
	var messages, keys int64
	for _, n := range cluster.Nodes {
		messages += n.Messages.Load()
		keys += n.Keys.Load()
	}
	if keys != callers*each {
		t.Errorf("%d keys arrived, want %d: nothing had to be retried", keys, callers*each)
	}
	if messages >= keys {
		t.Errorf("%d messages for %d calls, want fewer", messages, keys)
	}
}

func TestNumbersStayUniqueThroughFailovers(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30})
	c := dial(t, cluster, client.Config{AttemptTimeout: 50 * time.Millisecond})
	ctx, b := bounded(t), newBook(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var done [24]sync.Mutex
	counts := make([]int, len(done))
	for i := range done {
		wg.Go(func() {
			key := client.Key{UID: seq.UID(i / 2 * 64)}
			var before seq.Seq
			for {
				select {
				case <-stop:
					return
				default:
				}
				first, last, err := c.NextN(ctx, key, 2)
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				if first <= before {
					t.Errorf("caller %d: got %d after %d", i, first, before)
				}
				before = last
				b.add(key, first, last)
				done[i].Lock()
				counts[i]++
				done[i].Unlock()
			}
		})
	}
	// goOn waits until every caller got three more answers.
	goOn := func(what string) {
		start := make([]int, len(done))
		for i := range done {
			done[i].Lock()
			start[i] = counts[i]
			done[i].Unlock()
		}
		waitFor(t, what, func() bool {
			for i := range done {
				done[i].Lock()
				n := counts[i]
				done[i].Unlock()
				if n < start[i]+3 && !t.Failed() {
					return false
				}
			}
			return true
		})
	}
	goOn("the start")
	cluster.Nodes[0].Kill()
	cluster.TakeOver(0, 1)
	goOn("a takeover that the table does not know")
	cluster.Publish()
	cluster.Nodes[0].Restart()
	goOn("the new table")
	cluster.Nodes[1].Hang()
	cluster.TakeOver(1, 2)
	goOn("a takeover from a hanging owner")
	cluster.Nodes[1].Resume()
	cluster.TakeOver(2, 0)
	goOn("a move from a live owner")
	cluster.Behave(false, true, nil)
	cluster.TakeOver(0, 1)
	goOn("a move of which the target is not told")
	close(stop)
	wg.Wait()
}

func TestACallWaitsForATakeover(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 3})
	cluster.Behave(false, true, nil)
	c := dial(t, cluster, client.Config{})
	key := client.Key{UID: uidOf(cluster, 0)}
	cluster.Nodes[0].Kill()
	got := make(chan error, 1)
	go func() {
		_, err := c.Next(bounded(t), key)
		got <- err
	}()
	waitFor(t, "the standbys to be asked", func() bool {
		return cluster.Nodes[1].Messages.Load() > 1 && cluster.Nodes[2].Messages.Load() > 1
	})
	cluster.TakeOver(0, 2)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestALeavingCallerDisturbsNoOther(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	// No attempt ends by itself here: a call that returns does so by its own context.
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	ctx := bounded(t)
	cluster.Nodes[0].Hang()
	leaving, leave := context.WithCancel(ctx)
	var stay, gone sync.WaitGroup
	b := newBook(t)
	for i := range 40 {
		key := client.Key{UID: seq.UID(i / 4)}
		if i%2 == 0 {
			gone.Go(func() {
				if _, err := c.Next(leaving, key); !errors.Is(err, context.Canceled) {
					t.Errorf("leaving caller: got %v", err)
				}
			})
			continue
		}
		stay.Go(func() {
			n, err := c.Next(ctx, key)
			if err != nil {
				t.Errorf("staying caller: %v", err)
				return
			}
			b.add(key, n, n)
		})
	}
	waitFor(t, "a message", func() bool { return cluster.Nodes[0].Messages.Load() > 0 })
	leave()
	gone.Wait()
	cluster.Nodes[0].Resume()
	stay.Wait()
}

func TestALostConnectionWakesAllInFlight(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 2})
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	ctx := bounded(t)
	cluster.Nodes[0].Hang()
	key := client.Key{UID: uidOf(cluster, 0)}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.Next(ctx, key); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, "a message", func() bool { return cluster.Nodes[0].Messages.Load() > 0 })
	cluster.TakeOver(0, 1)
	cluster.Nodes[0].Kill()
	wg.Wait()
}

func TestANewerTableInAReplyIsAdopted(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{})
	cluster.TakeOver(0, 1)
	cluster.Publish()
	if _, err := c.Next(bounded(t), client.Key{UID: uidOf(cluster, 1)}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the newer table", func() bool { return c.Caller().Table().Routes().Version == 2 })
}

func TestErrorsThatNoRetryCuresComeAtOnce(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	c := dial(t, cluster, client.Config{})
	ctx := bounded(t)
	if _, err := c.Raise(ctx, client.Key{UID: 5}, seq.MaxSeq, client.Forced); err != nil {
		t.Fatal(err)
	}
	space := &cluster.Mapping.Spaces[0]
	other := seq.UID(6) // in another section than the one that is full
	for space.SectionOf(other) == space.SectionOf(5) {
		other++
	}
	rows := []struct {
		name string
		call func() error
		want error
	}{
		{"a count of 0", func() error { _, _, err := c.NextN(ctx, client.Key{}, 0); return err }, seq.ErrBadCount},
		{"a count above the limit", func() error { _, _, err := c.NextN(ctx, client.Key{}, seq.MaxCount+1); return err }, seq.ErrBadCount},
		{"an unknown space", func() error { _, err := c.Next(ctx, client.Key{Space: "moon"}); return err }, seq.ErrUnknownSpace},
		{"a full sequence", func() error { _, err := c.Next(ctx, client.Key{UID: 5}); return err }, seq.ErrOverflow},
		{"a floor above the limit", func() error { _, err := c.Raise(ctx, client.Key{}, seq.MaxSeq+1); return err }, seq.ErrOverflow},
		{"a floor too far up", func() error { _, err := c.Raise(ctx, client.Key{UID: other}, 2*seq.DefaultMaxJump); return err }, seq.ErrJump},
		{"no key", func() error { _, err := c.NextBatch(ctx, "", nil, nil); return err }, seq.ErrBadBatch},
		{"too many keys", func() error { _, err := c.Current(ctx, "", make([]seq.UID, seq.MaxBatch+1)); return err }, seq.ErrBadBatch},
		{"counts that do not match", func() error { _, err := c.NextBatch(ctx, "", []seq.UID{1, 2}, []uint32{1}); return err }, seq.ErrBadBatch},
		{"a bad count in a batch", func() error { _, err := c.NextBatch(ctx, "", []seq.UID{1, 2}, []uint32{1, 0}); return err }, seq.ErrBadCount},
	}
	for _, row := range rows {
		if err := row.call(); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
}

func TestTheLastReasonIsInTheErrorOfACallThatRanOut(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 4})
	// The time is over after the first round, and no attempt ends by its own limit.
	c := dial(t, cluster, client.Config{Timeout: 1, AttemptTimeout: patience})
	cluster.Behave(false, false, seq.ErrNoQuorum)
	if _, err := c.Next(context.Background(), client.Key{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("no quorum: got %v", err)
	}
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	asked := func() (n int64) {
		for _, node := range cluster.Nodes {
			n += node.Messages.Load()
		}
		return n
	}
	before := asked()
	got := make(chan error, 1)
	go func() {
		out, err := c.NextBatch(ctx, "", []seq.UID{1}, nil)
		if err == nil {
			err = out[0].Err
		}
		got <- err
	}()
	waitFor(t, "a second round", func() bool { return asked() > before+2 })
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) || !errors.Is(err, seq.ErrNoQuorum) {
		t.Errorf("no quorum, in a batch: got %v", err)
	}
	for _, n := range cluster.Nodes {
		n.Kill()
	}
	if _, err := c.Next(context.Background(), client.Key{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("all dead: got %v", err)
	}
}

func TestUnorderedAnswersNeedLeave(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 1, Mode: seq.UniqueOnly})
	cluster.Behave(true, false, nil)
	ctx := bounded(t)
	strict, loose := dial(t, cluster, client.Config{}), dial(t, cluster, client.Config{AllowUnordered: true})
	if n, err := strict.Next(ctx, client.Key{}); !errors.Is(err, client.ErrUnordered) || n != 0 {
		t.Errorf("got %d, %v, want %v", n, err, client.ErrUnordered)
	}
	if r, err := loose.Take(ctx, client.Key{}, 1); err != nil || !r.Unordered {
		t.Errorf("got %+v, %v", r, err)
	}
	if out, err := strict.NextBatch(ctx, "", []seq.UID{1}, nil); err != nil || !errors.Is(out[0].Err, client.ErrUnordered) {
		t.Errorf("got %+v, %v", out, err)
	}
}
