package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestABatchAnswersEachIndex(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30})
	c := dial(t, cluster, client.Config{})
	ctx := bounded(t)
	if _, err := c.Raise(ctx, client.Key{UID: 64}, seq.MaxSeq, client.Forced); err != nil {
		t.Fatal(err)
	}
	got, err := c.NextBatch(ctx, "user", []seq.UID{0, 64, 0, 128, 0}, []uint32{1, 1, 10, 3, 2})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(got[1].Err, seq.ErrOverflow) {
		t.Errorf("index 1: got %v, want %v", got[1].Err, seq.ErrOverflow)
	}
	got[1].Err = nil
	want := []client.Range{{First: 1, Last: 1}, {}, {First: 2, Last: 11}, {First: 1, Last: 3}, {First: 12, Last: 13}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	values, err := c.Current(ctx, "", []seq.UID{0, 128, 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	for i := range values[:2] {
		if ago := time.Since(values[i].LastTaken); ago < -time.Second || ago > time.Minute {
			t.Errorf("index %d: taken %v ago", i, ago)
		}
		values[i].LastTaken = time.Time{}
	}
	if diff := cmp.Diff([]client.Value{{Seq: 13}, {Seq: 3}, {}}, values); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestARaiseNeverLowers(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	c := dial(t, cluster, client.Config{})
	ctx, key := bounded(t), client.StringKey("", "room-1")
	for _, row := range []struct{ floor, want seq.Seq }{{100, 100}, {50, 100}, {100, 100}, {0, 100}, {101, 101}} {
		if got, err := c.Raise(ctx, key, row.floor); err != nil || got != row.want {
			t.Errorf("raise to %d: got %d, %v, want %d", row.floor, got, err, row.want)
		}
	}
	if got, err := c.Next(ctx, key); err != nil || got != 102 {
		t.Errorf("next: got %d, %v, want 102", got, err)
	}
}

func TestBatchesStayUniqueThroughFailovers(t *testing.T) {
	ctx, b := bounded(t), newBook(t)
	throughTakeovers(t, func(what string, c *client.Client, uids []seq.UID) {
		t.Helper()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				out, err := c.NextBatch(ctx, "", uids, nil)
				if err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				for i, r := range out {
					if r.Err != nil {
						t.Errorf("%s: index %d: %v", what, i, r.Err)
						continue
					}
					b.add(client.Key{UID: uids[i]}, r.First, r.Last)
				}
				if values, err := c.Current(ctx, "", uids); err != nil {
					t.Errorf("%s: current: %v", what, err)
				} else {
					for i, v := range values {
						if v.Err != nil || v.Seq < out[i].Last {
							t.Errorf("%s: current of index %d is %d, %v; %d was handed out", what, i, v.Seq, v.Err, out[i].Last)
						}
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestLargeBatchesWaitForRoomAndNotForTheirAttempts(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	node := cluster.Nodes[0]
	c := dial(t, cluster, client.Config{AttemptTimeout: time.Minute, Timeout: time.Minute})
	ctx := bounded(t)
	if err := c.Caller().Reach(ctx); err != nil {
		t.Fatal(err)
	}
	uids := make([]seq.UID, seq.MaxBatch)
	for i := range uids {
		uids[i] = seq.UID(i)
	}
	node.Hang()
	const calls, fit = 8, 1
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = c.NextBatch(ctx, "", uids, nil)
			} else {
				_, err = c.Current(ctx, "", uids)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for node.Calls.Load() < fit && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // for those that are not to come
	if n := node.Calls.Load(); n != fit {
		t.Errorf("%d of %d large calls came to a server that answers none, want %d", n, calls, fit)
	}
	impatient, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if got, err := c.NextBatch(impatient, "", uids, nil); err == nil && got[0].Err == nil {
		t.Error("a call without room was answered")
	}
	node.Resume()
	wg.Wait()
	if n := node.Calls.Load(); n != calls {
		t.Errorf("%d calls came for %d", n, calls)
	}
}
