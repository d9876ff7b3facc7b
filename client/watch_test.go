package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// seen has what a watch told last of each key.
type seen struct {
	mu   sync.Mutex
	last map[client.Key]client.Update
}

func (s *seen) of(key client.Key) client.Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[key]
}

// see reads a watch until it is closed.
func see(t *testing.T, w *client.Watch) *seen {
	t.Helper()
	s := &seen{last: map[client.Key]client.Update{}}
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			got, err := w.Next(context.Background())
			if err != nil {
				if !errors.Is(err, client.ErrClosed) {
					t.Error(err)
				}
				return
			}
			s.mu.Lock()
			for _, u := range got {
				if u.Err == nil && u.Last < s.last[u.Key].Last {
					t.Errorf("%v went from %d to %d", u.Key, s.last[u.Key].Last, u.Last)
				}
				s.last[u.Key] = u
			}
			s.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		w.Close()
		reading.Wait()
	})
	return s
}

func watch(t *testing.T, c *client.Client, keys ...client.Key) *client.Watch {
	t.Helper()
	w, err := c.Watch(bounded(t), keys...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// users are keys of UIDs and string keys, of all sections.
func users(n int) (keys []client.Key) {
	for i := range n {
		keys = append(keys, client.Key{Space: "user", UID: seq.UID(i)}, client.StringKey("user", fmt.Sprint("room:", i)))
	}
	return keys
}

// takeOne takes a number of each key.
func takeOne(t *testing.T, c *client.Client, keys []client.Key, last map[client.Key]seq.Seq) {
	t.Helper()
	for _, key := range keys {
		n, err := c.Next(bounded(t), key)
		if err != nil {
			t.Fatal(err)
		}
		last[key] = n
	}
}

func (s *seen) wait(t *testing.T, last map[client.Key]seq.Seq) {
	t.Helper()
	for key, n := range last {
		waitFor(t, fmt.Sprintf("%d of %v", n, key), func() bool { u := s.of(key); return u.Err == nil && u.Last == n && u.Seq == n })
	}
}

func TestAWatchTellsThePresentAndWhatFollows(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{})
	keys, last := users(10), map[client.Key]seq.Seq{}
	takeOne(t, c, keys[:4], last)
	w := watch(t, c, keys...)
	s := see(t, w)
	s.wait(t, last)
	for range 20 {
		takeOne(t, c, keys, last)
	}
	s.wait(t, last)
	w.Remove(keys[:5]...)
	takeOne(t, c, keys[5:], last)
	more := client.Key{Space: "user", UID: 1 << 40}
	if err := w.Add(more, keys[7]); err != nil {
		t.Fatal(err)
	}
	takeOne(t, c, []client.Key{more}, last)
	removed := map[client.Key]seq.Seq{}
	takeOne(t, c, keys[:5], removed)
	for key := range removed {
		delete(last, key)
	}
	s.wait(t, last)
	for key := range removed {
		if u := s.of(key); u.Last != 20 && u.Last != 21 {
			t.Errorf("%v is told after it was removed: %+v", key, u)
		}
	}
	w.Remove(append(keys, more)...)
	waitFor(t, "no stream without keys", func() bool {
		return cluster.Nodes[0].Watches.Load()+cluster.Nodes[1].Watches.Load()+cluster.Nodes[2].Watches.Load() == 0
	})
}

func TestAWatchMissesNothingOverTakeoversAndRestarts(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{AttemptTimeout: 100 * time.Millisecond})
	keys, last := users(20), map[client.Key]seq.Seq{}
	s := see(t, watch(t, c, keys...))
	takeOne(t, c, keys, last)
	s.wait(t, last)
	for round := range 6 {
		from, to := round%3, (round+1)%3
		switch round {
		case 3:
			cluster.Nodes[from].Kill()
			cluster.TakeOver(from, to)
			cluster.Publish()
		case 4:
			cluster.Nodes[0].Restart()
			cluster.TakeOver(from, to)
			cluster.Publish()
		default:
			cluster.TakeOver(from, to)
		}
		takeOne(t, c, keys, last)
		s.wait(t, last)
	}
}

func TestAWatchOfASilentServerGoesElsewhere(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{AttemptTimeout: 100 * time.Millisecond})
	keys, last := users(5), map[client.Key]seq.Seq{}
	s := see(t, watch(t, c, keys...))
	takeOne(t, c, keys, last)
	s.wait(t, last)
	cluster.Nodes[0].Hang()
	cluster.TakeOver(0, 1)
	cluster.Publish()
	takeOne(t, c, keys, last)
	s.wait(t, last)
}

func TestAWatchTellsMarks(t *testing.T) {
	_, c := inbox(t)
	key := client.Key{Space: "inbox", UID: 7}
	s := see(t, watch(t, c, key))
	told := func(want client.Mark) {
		t.Helper()
		waitFor(t, fmt.Sprintf("%+v", want), func() bool { return s.of(key).Mark == want })
	}
	marked(t, c, key, client.Mark{}) // known
	told(client.Mark{})
	ticket, err := c.Open(bounded(t), key, 3)
	if err != nil {
		t.Fatal(err)
	}
	told(client.Mark{Last: 3})
	if err := ticket.Done(bounded(t)); err != nil {
		t.Fatal(err)
	}
	told(client.Mark{Last: 3, Seq: 3})
	if _, err := c.Open(bounded(t), key, 1, client.WithLife(100*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	told(client.Mark{Last: 4, Seq: 4, Fence: 4}) // time ends it
}

func TestAWatchNamesWhatIsWrong(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{})
	if _, err := c.Watch(bounded(t), client.StringKey("user", "")); !errors.Is(err, seq.ErrBadArgument) {
		t.Errorf("a key that cannot be: got %v", err)
	}
	if _, err := c.Watch(bounded(t), make([]client.Key, 10_000_000)...); !errors.Is(err, seq.ErrWatches) || !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("ten million keys: got %v", err)
	}
	bad := client.Key{Space: "other", UID: 1}
	w := watch(t, c, bad, client.Key{UID: 2})
	s := see(t, w)
	waitFor(t, "the error", func() bool { return errors.Is(s.of(bad).Err, seq.ErrUnknownSpace) && s.of(bad).Ended })
	waitFor(t, "the other key", func() bool { got := s.of(client.Key{UID: 2}); return got.Key.UID == 2 && got.Err == nil })
	w.Close()
	if _, err := w.Next(bounded(t)); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := watch(t, c).Next(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Watch(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAWatchTellsOfAnOutageAndGoesOn(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{Timeout: 200 * time.Millisecond, AttemptTimeout: 50 * time.Millisecond})
	key, last := client.Key{Space: "user", UID: 3}, map[client.Key]seq.Seq{}
	takeOne(t, c, []client.Key{key}, last)
	s := see(t, watch(t, c, key))
	s.wait(t, last)
	cluster.Nodes[0].Kill()
	waitFor(t, "the outage", func() bool { u := s.of(key); return u.Err != nil && !u.Ended })
	cluster.Nodes[0].Restart()
	s.wait(t, last)
}

// A gateway watches the keys of its users.
func TestAGatewayWatchesManyKeys(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 64})
	c := dial(t, cluster, client.Config{})
	const n = 30_000
	var keys []client.Key
	for i := range n {
		keys = append(keys, client.Key{Space: "user", UID: seq.UID(i)})
	}
	s := see(t, watch(t, c, keys...))
	waitFor(t, "all keys", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.last) == n })
	cluster.TakeOver(0, 1)
	last := map[client.Key]seq.Seq{}
	takeOne(t, c, keys[:50], last)
	s.wait(t, last)
}

func TestAWatchFollowsSectionsToAnotherSet(t *testing.T) {
	s := clienttest.StartSets(t, []string{"main", "b"}, 2, seq.Space{Name: "user", Sections: 4})
	c := dial(t, s.All[0], client.Config{AttemptTimeout: 100 * time.Millisecond})
	keys, last := users(10), map[client.Key]seq.Seq{}
	w := see(t, watch(t, c, keys...))
	takeOne(t, c, keys, last)
	w.wait(t, last)
	s.Move(0, 1, 1, 3)
	s.Publish()
	last = map[client.Key]seq.Seq{}
	takeOne(t, c, keys, last) // the other Set of the test counts for itself
	for key, n := range last {
		waitFor(t, fmt.Sprintf("%d of %v", n, key), func() bool { u := w.of(key); return u.Err == nil && u.Last == n })
	}
}
