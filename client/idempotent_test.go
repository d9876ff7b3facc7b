package client_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// orders is a cluster with an exact space, and an ordinary one beside it.
func orders(t *testing.T, nodes int) *clienttest.Cluster {
	return clienttest.Start(t, nodes, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "orders", Sections: 32, Mode: seq.Exact})
}

func TestARetryInAnExactSpaceTakesNothingTwice(t *testing.T) {
	uids := make([]seq.UID, 40)
	for i := range uids {
		uids[i] = seq.UID(i << seq.BlockBits)
	}
	for name, take := range map[string]func(*client.Client, []seq.UID) ([]client.Range, error){
		"single calls at once": func(c *client.Client, uids []seq.UID) ([]client.Range, error) {
			out, errs := make([]client.Range, len(uids)), make([]error, len(uids))
			var wg sync.WaitGroup
			for i, uid := range uids {
				wg.Go(func() { out[i], errs[i] = c.Take(bounded(t), client.Key{Space: "orders", UID: uid}, 3) })
			}
			wg.Wait()
			return out, errors.Join(errs...)
		},
		"a batch": func(c *client.Client, uids []seq.UID) ([]client.Range, error) {
			counts := make([]uint32, len(uids))
			for i := range counts {
				counts[i] = 3
			}
			return c.NextBatch(bounded(t), "orders", uids, counts)
		},
		"a large batch, by a call of its own": func(c *client.Client, uids []seq.UID) ([]client.Range, error) {
			out := make([]client.Range, 0, len(uids))
			got, err := c.NextBatch(bounded(t), "orders", repeated(uids, 100), repeated([]uint32{3}, 100*len(uids)))
			for i := range uids {
				out = append(out, client.Range{First: got[i*100].First, Last: got[i*100+99].Last, Err: got[i*100].Err})
			}
			return out, err
		},
		"an order": func(c *client.Client, uids []seq.UID) ([]client.Range, error) {
			done := make(chan struct{})
			o := &stream.Order{Space: "orders", UIDs: uids, Counts: repeated([]uint32{3}, len(uids)), Done: func() { close(done) }}
			c.Caller().Begin(bounded(t), o)
			<-done
			return o.Ranges, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := orders(t, 2)
			c := dial(t, cluster, client.Config{AttemptTimeout: 50 * time.Millisecond})
			for _, n := range cluster.Nodes {
				n.Lose(2)
			}
			got, err := take(c, uids)
			if err != nil {
				t.Fatal(err)
			}
			now, err := c.Current(bounded(t), "orders", uids)
			if err != nil {
				t.Fatal(err)
			}
			for i := range uids {
				if got[i].Err != nil || got[i].First != 1 || now[i].Seq != got[i].Last {
					t.Errorf("uid %d: got %+v and stands at %d, want 1 to where it stands: %v", uids[i], got[i], now[i].Seq, got[i].Err)
				}
			}
		})
	}
}

// repeated is each of list n times in a row.
func repeated[T any](list []T, n int) (out []T) {
	for _, one := range list {
		for range n {
			out = append(out, one)
		}
	}
	return out
}

func TestARequestGetsItsNumbersFromWhoeverServesNow(t *testing.T) {
	cluster := orders(t, 3)
	c := dial(t, cluster, client.Config{AttemptTimeout: 50 * time.Millisecond})
	ctx, sent := bounded(t), time.Now()
	for i, key := range []client.Key{{Space: "orders", UID: 7}, client.StringKey("orders", "room:7")} {
		r := client.Request{ID: "msg-1", Sent: sent}
		first, err := c.TakeIdempotent(ctx, key, 5, r)
		if err != nil || first.Replayed || first.First != 1 || first.Last != 5 {
			t.Fatalf("%v: got %+v, %v", key, first, err)
		}
		cluster.TakeOver(0, 1)
		cluster.TakeOver(2, 1)
		cluster.Nodes[0].Kill()
		again, err := c.TakeIdempotent(ctx, key, 5, r)
		if err != nil || !again.Replayed || again.First != 1 || again.Last != 5 {
			t.Errorf("%v: repeated got %+v, %v", key, again, err)
		}
		var had *seq.IDConflict
		if _, err := c.TakeIdempotent(ctx, key, 6, r); !errors.Is(err, seq.ErrIDConflict) || !errors.As(err, &had) || had.First != 1 || had.Count != 5 {
			t.Errorf("%v: another count got %v, %+v", key, err, had)
		}
		if got, found, err := c.Lookup(ctx, key, "msg-1"); err != nil || !found || got.First != 1 || got.Last != 5 {
			t.Errorf("%v: lookup got %+v, %v, %v", key, got, found, err)
		}
		if got, found, err := c.Lookup(ctx, key, "msg-2"); err != nil || found || got.First != 0 {
			t.Errorf("%v: lookup of nothing got %+v, %v, %v", key, got, found, err)
		}
		if next, err := c.Next(ctx, key); err != nil || next != 6 {
			t.Errorf("%v: next is %d, %v, want 6", key, next, err)
		}
		if i == 0 {
			cluster.Nodes[0].Restart()
		}
	}
}

func TestABatchTellsWhichOfItsRequestsAreRepeated(t *testing.T) {
	cluster := orders(t, 2)
	c := dial(t, cluster, client.Config{})
	uids := []seq.UID{1, 1000, 2000, 1}
	batch := func(ids ...string) []client.Range {
		t.Helper()
		requests := make([]client.Request, len(ids))
		for i, id := range ids {
			requests[i] = client.Request{ID: id, Sent: time.Now()}
		}
		got, err := c.NextBatchIdempotent(bounded(t), "orders", uids, nil, requests)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := batch("a", "b", "c", "d")
	second := batch("a", "b2", "c", "d2")
	for i, r := range second {
		if want := i%2 == 0; r.Err != nil || r.Replayed != want || (r.First == first[i].First) != want {
			t.Errorf("index %d: got %+v after %+v, want replayed %v", i, r, first[i], want)
		}
	}
	names, err := c.NextKeysIdempotent(bounded(t), "orders", []string{"x", "x"}, nil, []client.Request{{ID: "a"}, {ID: "a"}})
	if err != nil || names[0].First != 1 || names[1].First != 1 || !names[1].Replayed {
		t.Errorf("one id twice in a call got %+v, %v", names, err)
	}
}

func TestRequestsThatCannotBeAreRefusedByName(t *testing.T) {
	cluster := orders(t, 1)
	c := dial(t, cluster, client.Config{})
	ctx := bounded(t)
	exact, ordinary := client.Key{Space: "orders", UID: 1}, client.Key{UID: 1}
	long := strings.Repeat("x", seq.MaxRequestID)
	for _, row := range []struct {
		name string
		key  client.Key
		r    client.Request
		want error
	}{
		{"an empty id", exact, client.Request{}, seq.ErrBadArgument},
		{"the longest id", exact, client.Request{ID: long}, nil},
		{"a longer id", exact, client.Request{ID: long + "x"}, seq.ErrBadArgument},
		{"an id in an ordinary space", ordinary, client.Request{ID: "a"}, seq.ErrIDNotKept},
		{"first sent before the window", exact, client.Request{ID: "b", Sent: time.Now().Add(-2 * seq.DefaultWindow)}, seq.ErrIDExpired},
		{"first sent tomorrow", exact, client.Request{ID: "c", Sent: time.Now().Add(24 * time.Hour)}, seq.ErrSentAhead},
	} {
		before := messages(cluster)
		_, single := c.TakeIdempotent(ctx, row.key, 1, row.r)
		got, batch := c.NextBatchIdempotent(ctx, row.key.Space, []seq.UID{row.key.UID}, nil, []client.Request{row.r})
		if batch == nil {
			batch = got[0].Err
		}
		for what, err := range map[string]error{"TakeIdempotent": single, "NextBatchIdempotent": batch} {
			if !errors.Is(err, row.want) || row.want == nil && err != nil {
				t.Errorf("%s, %s: got %v, want %v", row.name, what, err, row.want)
			}
		}
		if row.want == seq.ErrBadArgument || row.want == seq.ErrIDNotKept {
			if _, _, err := c.Lookup(ctx, row.key, row.r.ID); !errors.Is(err, row.want) {
				t.Errorf("%s, Lookup: got %v, want %v", row.name, err, row.want)
			}
			if n := messages(cluster) - before; n != 0 {
				t.Errorf("%s: %d messages were sent", row.name, n)
			}
		}
	}
	if n, err := c.Next(ctx, exact); err != nil || n != 2 {
		t.Errorf("next is %d, %v, want 2: what was refused took nothing", n, err)
	}
	if _, err := c.NextBatchIdempotent(ctx, "orders", []seq.UID{1, 2}, nil, []client.Request{{ID: "z"}}); !errors.Is(err, seq.ErrBadBatch) {
		t.Errorf("one request for two uids: %v", err)
	}
}

// An order's requests are repeated like all others, and refused by name where they cannot be.
func TestAnOrderCarriesTheRequestsOfItsCaller(t *testing.T) {
	cluster := orders(t, 1)
	c := dial(t, cluster, client.Config{AttemptTimeout: 50 * time.Millisecond})
	run := func(space string, requests ...client.Request) []client.Range {
		done := make(chan struct{})
		o := &stream.Order{Space: space, UIDs: []seq.UID{5, 6}, Requests: requests, Done: func() { close(done) }}
		c.Caller().Begin(bounded(t), o)
		<-done
		return o.Ranges
	}
	first := run("orders", client.Request{ID: "a"}, client.Request{ID: "b"})
	cluster.Nodes[0].Lose(1)
	again := run("orders", client.Request{ID: "a"}, client.Request{ID: "c"})
	if got := fmt.Sprint(first[0].First, first[1].First, again[0].First, again[0].Replayed, again[1].First, again[1].Replayed); got != "1 1 1 true 2 true" {
		t.Errorf("got %s: the second of the retried order had its number by the lost attempt", got)
	}
	for _, r := range run("user", client.Request{ID: "a"}, client.Request{ID: "b"}) {
		if !errors.Is(r.Err, seq.ErrIDNotKept) {
			t.Errorf("in an ordinary space: %v", r.Err)
		}
	}
}

// Counters in this process are asked without request ids, so a retry would take numbers again.
func TestWhatIsNearGivesNoNumbersOfAnExactSpace(t *testing.T) {
	cluster := orders(t, 1)
	c := dial(t, cluster, client.Config{})
	near := &evens{t: t, given: map[seq.UID]uint64{}}
	done := make(chan struct{})
	o := &stream.Order{Space: "orders", UIDs: []seq.UID{2}, Done: func() { close(done) }}
	c.Caller().BeginLocal(bounded(t), near, o)
	<-done
	if r := o.Ranges[0]; r.Err != nil || r.First != 1 || len(near.asked) != 0 {
		t.Errorf("got %+v, and what is near was asked %d times", r, len(near.asked))
	}
}
