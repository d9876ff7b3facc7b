package client_test

import (
	"errors"
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
