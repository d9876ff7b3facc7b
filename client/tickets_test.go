package client_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// inbox is a cluster with a space of tickets, and one without.
func inbox(t *testing.T) (*clienttest.Cluster, *client.Client) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "inbox", Sections: 8, Tickets: 2 * time.Second})
	return cluster, dial(t, cluster, client.Config{})
}

// marked waits until the mark of the key is known and as wanted.
func marked(t *testing.T, c *client.Client, key client.Key, want client.Mark) {
	t.Helper()
	var got []client.Mark
	var err error
	waitFor(t, "the mark", func() bool {
		if got, err = c.Marks(bounded(t), key); err != nil || got[0].Err != nil {
			t.Fatal(err, got)
		}
		return got[0] == want
	})
}

func TestAReaderGoesByMarksThroughTheSDK(t *testing.T) {
	_, c := inbox(t)
	for _, key := range []client.Key{{Space: "inbox", UID: 7}, client.StringKey("inbox", "room:7")} {
		first, err := c.Open(bounded(t), key, 3)
		if err != nil {
			t.Fatal(err)
		}
		second, err := c.Open(bounded(t), key, 1, client.WithLife(time.Second))
		if err != nil || first.First != 1 || first.Last != 3 || second.First != 4 || second.Life != time.Second || first.Life != 2*time.Second {
			t.Fatalf("got %+v, %+v, %v", first, second, err)
		}
		ctx, cancel := first.Context(bounded(t))
		if end, ok := ctx.Deadline(); !ok || !end.Before(first.Deadline) {
			t.Errorf("the context ends at %v, the ticket at %v", end, first.Deadline)
		}
		cancel()
		if err := second.Done(bounded(t)); err != nil {
			t.Error(err)
		}
		if err := second.Done(bounded(t)); !errors.Is(err, seq.ErrTicketEnded) {
			t.Errorf("done twice: got %v, want ErrTicketEnded", err)
		}
		if err := c.Caller().Done(bounded(t), key, first.First, second.ID, false); !errors.Is(err, seq.ErrTicketEnded) {
			t.Errorf("by another's ticket: got %v, want ErrTicketEnded", err)
		}
		if err := first.Cancel(bounded(t)); err != nil {
			t.Error(err)
		}
		marked(t, c, key, client.Mark{Seq: 4, Last: 4})
		if n, err := c.Next(bounded(t), key); n != 5 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		marked(t, c, key, client.Mark{Seq: 5, Last: 5})
		if _, err := c.Open(bounded(t), key, 1, client.WithLife(100*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		marked(t, c, key, client.Mark{Seq: 6, Fence: 6, Last: 6}) // its life has passed
	}
}

func TestARepeatedOpenOfAnExactSpaceThroughTheSDK(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "inbox", Sections: 8, Tickets: time.Minute, Mode: seq.Exact})
	c := dial(t, cluster, client.Config{})
	key, once := client.Key{Space: "inbox", UID: 7}, client.OpenedOnce(client.Request{ID: "message 1"})
	first, err := c.Open(bounded(t), key, 2, once)
	if err != nil || first.Replayed {
		t.Fatalf("got %+v, %v", first, err)
	}
	if other, err := c.Open(bounded(t), key, 1); err != nil || other.First != 3 || other.Replayed {
		t.Errorf("got %+v, %v for a call without a request", other, err)
	}
	again, err := c.Open(bounded(t), key, 2, once)
	if err != nil || again.First != first.First || again.Last != first.Last || again.ID != first.ID || !again.Replayed {
		t.Errorf("got %+v, %v, want %+v again", again, err, first)
	}
	if err := again.Done(bounded(t)); err != nil {
		t.Error(err)
	}
	if _, err := c.Open(bounded(t), key, 2, once); !errors.Is(err, seq.ErrTicketEnded) {
		t.Errorf("after the mark: got %v, want ErrTicketEnded", err)
	}
	if _, err := c.Open(bounded(t), key, 1, once); !errors.Is(err, seq.ErrIDConflict) {
		t.Errorf("another count: got %v, want ErrIDConflict", err)
	}
}

func TestTicketsAreRefusedByName(t *testing.T) {
	_, c := inbox(t)
	inbox, user := client.Key{Space: "inbox", UID: 7}, client.Key{UID: 7}
	open := func(key client.Key, n uint32, opts ...client.OpenOption) error {
		_, err := c.Open(bounded(t), key, n, opts...)
		return err
	}
	for name, row := range map[string]struct{ got, want error }{
		"a space without tickets":         {open(user, 1), seq.ErrNoTickets},
		"a life above the space's":        {open(inbox, 1, client.WithLife(time.Hour)), seq.ErrBadArgument},
		"no number":                       {open(inbox, 0), seq.ErrBadCount},
		"an unknown space":                {open(client.Key{Space: "none"}, 1), seq.ErrUnknownSpace},
		"done of a space without":         {c.Caller().Done(bounded(t), user, 1, 1, false), seq.ErrNoTickets},
		"done of no ticket":               {c.Caller().Done(bounded(t), inbox, 1, 0, false), seq.ErrBadArgument},
		"done of one never opened":        {c.Caller().Done(bounded(t), inbox, 1, 1, false), seq.ErrTicketEnded},
		"a request id of a space without": {open(inbox, 1, client.OpenedOnce(client.Request{ID: "a"})), seq.ErrIDNotKept},
		"a request without an id":         {open(inbox, 1, client.OpenedOnce(client.Request{})), seq.ErrBadArgument},
		"marks of a space without":        {func() error { m, err := c.Marks(bounded(t), inbox, user); return errors.Join(err, m[1].Err) }(), seq.ErrNoTickets},
		"marks of no key":                 {func() error { _, err := c.Marks(bounded(t)); return err }(), seq.ErrBadBatch},
		"marks of an unknown space":       {func() error { _, err := c.Marks(bounded(t), client.Key{Space: "none"}); return err }(), seq.ErrUnknownSpace},
	} {
		if !errors.Is(row.got, row.want) {
			t.Errorf("%s: got %v, want %v", name, row.got, row.want)
		}
	}
}

func TestTicketsOfManyCallersTravelTogether(t *testing.T) {
	cluster, c := inbox(t)
	const callers, rounds = 64, 20
	var taken [callers][rounds]seq.Seq
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			key := client.Key{Space: "inbox", UID: seq.UID(i % 8)}
			if i%8 == 7 {
				key = client.StringKey("inbox", "room")
			}
			for k := range rounds {
				n := uint32(1 + k%2)
				got, err := c.Open(bounded(t), key, n)
				if err != nil || got.Last != got.First+seq.Seq(n)-1 || got.Life != 2*time.Second {
					t.Errorf("got %+v, %v", got, err)
					return
				}
				end := got.Done
				if k%3 == 0 {
					end = got.Cancel
				}
				if err := end(bounded(t)); err != nil {
					t.Errorf("%v: %v", got.First, err)
				}
				taken[i][k] = got.First
			}
		})
	}
	all.Wait()
	seen := map[[2]uint64]bool{}
	for i := range taken {
		for k, n := range taken[i] {
			at := [2]uint64{uint64(i % 8), uint64(n)}
			if seen[at] || k > 0 && n <= taken[i][k-1] {
				t.Errorf("caller %d got %d after %v", i, n, taken[i][:k])
			}
			seen[at] = true
		}
	}
	for i := range 7 {
		marked(t, c, client.Key{Space: "inbox", UID: seq.UID(i)}, client.Mark{Seq: 240, Last: 240})
	}
	var messages, calls int64
	for _, n := range cluster.Nodes {
		messages, calls = messages+n.Together.Load(), calls+n.Calls.Load()
	}
	if messages > callers*rounds || messages == 0 {
		t.Errorf("%d messages for %d calls", messages, 2*callers*rounds)
	}
	if calls > callers*rounds/2 {
		t.Errorf("%d unary calls", calls)
	}
}

func TestTicketsOfAServerThatTakesNoOthersGoByThemselves(t *testing.T) {
	cluster, c := inbox(t)
	turn := func(want seq.Seq) {
		t.Helper()
		got, err := c.Open(bounded(t), client.Key{Space: "inbox", UID: 7}, 1)
		if err != nil || got.First != want {
			t.Fatalf("got %+v, %v, want %d", got, err, want)
		}
		if err := got.Done(bounded(t)); err != nil {
			t.Fatal(err)
		}
	}
	together := func() (n int64) {
		for _, node := range cluster.Nodes {
			n += node.Together.Load()
		}
		return n
	}
	for _, n := range cluster.Nodes {
		n.Older(true)
	}
	for i := range seq.Seq(5) {
		turn(1 + i)
	}
	if n := together(); n == 0 || n > 4 {
		t.Errorf("a server of before was asked %d times by a stream, want once a stream", n)
	}
	before := together()
	for _, n := range cluster.Nodes { // it is upgraded
		n.Kill()
		n.Older(false)
		n.Restart()
	}
	for i := range seq.Seq(20) {
		if _, err := c.Next(bounded(t), client.Key{Space: "inbox", UID: 7}); err != nil { // the streams open again
			t.Fatal(err)
		}
		turn(7 + 2*i)
	}
	if n := together() - before; n < 20 {
		t.Errorf("the server of now was asked %d times by a stream for 40 calls", n)
	}
}

func TestACallWithATicketWhoseAnswerIsLostIsRepeated(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "inbox", Sections: 8, Tickets: time.Minute})
	c := dial(t, cluster, client.Config{AttemptTimeout: 100 * time.Millisecond})
	key := client.Key{Space: "inbox", UID: 7}
	first, err := c.Open(bounded(t), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	cluster.Nodes[0].Lose(1)
	second, err := c.Open(bounded(t), key, 1)
	if err != nil || second.First != 3 {
		t.Fatalf("an Open whose answer was lost: got %+v, %v, want 3", second, err)
	}
	cluster.Nodes[0].Lose(1)
	if err := first.Done(bounded(t)); !errors.Is(err, seq.ErrTicketEnded) {
		t.Errorf("a Done whose answer was lost: got %v, want ErrTicketEnded", err)
	}
	if err := second.Done(bounded(t)); err != nil {
		t.Error(err)
	}
}
