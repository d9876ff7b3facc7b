package client_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// lifeOf is a life of a cluster that the digit stands for; bound is the digit of its binding.
func lifeOf(cluster byte, era seq.Era, bound byte) seq.Incarnation {
	return seq.Incarnation{Cluster: seq.ClusterID{15: cluster}, Era: era, Binding: seq.ClusterID{15: bound}}
}

// living is a cluster of n nodes that tell a life.
func living(t testing.TB, n int, life seq.Incarnation) *clienttest.Cluster {
	t.Helper()
	c := clienttest.Start(t, n, seq.Space{Name: "user", Sections: sections})
	c.Live(life)
	return c
}

// kinds are calls by a stream and unary ones.
var kinds = map[string]func(context.Context, *client.Client) (seq.Seq, error){
	"stream": func(ctx context.Context, c *client.Client) (seq.Seq, error) { return c.Next(ctx, client.Key{UID: 7}) },
	"unary": func(ctx context.Context, c *client.Client) (seq.Seq, error) {
		got, err := c.Current(ctx, "", []seq.UID{7})
		if err == nil {
			err = got[0].Err
		}
		return 0, err
	},
}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

func logger() (*lines, *slog.Logger) {
	l := &lines{}
	return l, slog.New(slog.NewTextHandler(l, nil))
}

func want(t testing.TB, err error, is error, texts ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Fatalf("error %v, expected %v", err, is)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Fatalf("error %q, expected %q in it", err, text)
		}
	}
}

func TestAddressesOfTwoClustersOfOneNameAreRefused(t *testing.T) {
	a, b := living(t, 1, lifeOf(1, 0, 1)), living(t, 1, lifeOf(2, 0, 2))
	both := append(a.Addrs(), b.Addrs()...)
	_, err := client.New(bounded(t), client.Config{Addrs: both})
	want(t, err, seq.ErrForeignCluster, both[0], both[1], lifeOf(1, 0, 1).String(), lifeOf(2, 0, 2).String())

	// Also when one of them falls silent, because nothing says that the other one is meant.
	c := dial(t, a, client.Config{Addrs: both, Lazy: true})
	want(t, c.Ready(bounded(t)), seq.ErrForeignCluster)
	a.Nodes[0].Kill()
	asked := b.Nodes[0].Asked.Load()
	waitFor(t, "another question to the other one", func() bool { return b.Nodes[0].Asked.Load() > asked+2 })
	for kind, call := range kinds {
		if got, err := call(bounded(t), c); !errors.Is(err, seq.ErrForeignCluster) {
			t.Fatalf("%s: %d, %v", kind, got, err)
		}
	}
	if n := b.Nodes[0].Messages.Load() + b.Nodes[0].Calls.Load(); n != 0 {
		t.Fatalf("%d calls went to one of two clusters", n)
	}
}

func TestClustersOfTwoNamesAreRefusedUnlessOneIsMeant(t *testing.T) {
	s := clienttest.StartSets(t, []string{"main", "b"}, 1, seq.Space{Name: "user", Sections: sections})
	alone := living(t, 1, lifeOf(1, 0, 1))
	both := append(alone.Addrs(), s.All[0].Addrs()...)
	_, err := client.New(bounded(t), client.Config{Addrs: both})
	want(t, err, seq.ErrForeignCluster, both[0], both[1], alone.ID, s.All[0].ID)
	c := dial(t, alone, client.Config{Addrs: both, ClusterID: alone.ID})
	if _, err := c.Next(bounded(t), client.Key{UID: 7}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the other cluster to be left out", func() bool { return c.Caller().Table().LeftOut()[both[1]] != nil })
	want(t, c.Caller().Table().LeftOut()[both[1]], seq.ErrForeignCluster)
}

func TestAnAddressThatPassedToAnotherClusterIsLeftOut(t *testing.T) {
	for kind, call := range kinds {
		t.Run(kind, func(t *testing.T) {
			own, other := lifeOf(1, 0, 1), lifeOf(2, 0, 2)
			cluster := living(t, 2, own)
			log, to := logger()
			c := dial(t, cluster, client.Config{Addrs: cluster.Addrs(), Logger: to})
			key := uidOf(cluster, 1)
			take := func() seq.Seq {
				t.Helper()
				n, err := c.Next(bounded(t), client.Key{UID: key})
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := take()
			cluster.TakeOver(1, 0)
			stranger := cluster.Nodes[1]
			stranger.Live(other)
			for range 20 {
				if n := take(); n <= before {
					t.Fatalf("after %d came %d", before, n)
				}
			}
			if _, err := call(bounded(t), c); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the address to be left out", func() bool { return c.Caller().Table().LeftOut()[stranger.Addr()] != nil })
			want(t, c.Caller().Table().LeftOut()[stranger.Addr()], seq.ErrForeignCluster, own.String(), other.String(), stranger.Addr(), "holds to")
			if log.count("is left out") != 1 {
				t.Fatalf("%d warnings, expected one", log.count("is left out"))
			}
			if c.Caller().Table().Incarnation() != own {
				t.Fatalf("holds to %v", c.Caller().Table().Incarnation())
			}
			// It is the cluster's again.
			stranger.Live(own)
			cluster.TakeOver(0, 1)
			take()
			waitFor(t, "the address to be used again", func() bool { return c.Caller().Table().LeftOut()[stranger.Addr()] == nil })
		})
	}
}

func TestAForeignClusterAloneEndsCallsByName(t *testing.T) {
	for kind, call := range kinds {
		t.Run(kind, func(t *testing.T) {
			for name, row := range map[string]struct {
				own, other seq.Incarnation
				is         error
			}{
				"initialised again": {lifeOf(1, 0, 1), lifeOf(2, 0, 2), seq.ErrForeignCluster},
				"restored twice":    {lifeOf(1, 1, 2), lifeOf(1, 1, 3), seq.ErrForeignCluster},
				"an older era":      {lifeOf(1, 1, 2), lifeOf(1, 0, 1), seq.ErrStaleEra},
			} {
				cluster := living(t, 1, row.own)
				c := dial(t, cluster, client.Config{Timeout: time.Minute})
				if _, err := c.Next(bounded(t), client.Key{UID: 7}); err != nil {
					t.Fatal(err)
				}
				node := cluster.Nodes[0]
				node.Live(row.other)
				messages, calls := node.Messages.Load(), node.Calls.Load()
				got, err := call(context.Background(), c)
				if !errors.Is(err, row.is) {
					t.Fatalf("%s: %d, %v", name, got, err)
				}
				want(t, err, row.is, row.own.String(), row.other.String(), node.Addr())
				if node.Messages.Load() != messages || node.Calls.Load() != calls {
					t.Fatalf("%s: a call was served", name)
				}
				if err := c.Caller().Probe(bounded(t)); !errors.Is(err, row.is) {
					t.Fatalf("%s: probe: %v", name, err)
				}
			}
		})
	}
}

func TestTheNewestEraIsTakenAtTheStart(t *testing.T) {
	o, n := living(t, 1, lifeOf(1, 0, 1)), living(t, 1, lifeOf(1, 1, 2))
	for range 5 {
		c := dial(t, o, client.Config{Addrs: append(o.Addrs(), n.Addrs()...)})
		if _, err := c.Next(bounded(t), client.Key{UID: 7}); err != nil || c.Caller().Table().Incarnation() != lifeOf(1, 1, 2) {
			t.Fatalf("%v, %v", c.Caller().Table().Incarnation(), err)
		}
		// A Client serves as soon as it has taken the newest over.
		waitFor(t, "the older era to be left out", func() bool { return c.Caller().Table().LeftOut()[o.Addrs()[0]] != nil })
		want(t, c.Caller().Table().LeftOut()[o.Addrs()[0]], seq.ErrStaleEra)
	}
	if n := messages(o); n != 0 {
		t.Fatalf("%d calls of the older era", n)
	}
}

// A table that names dead nodes alone says nothing of the nodes that took their place.
func TestQuestionsToNodesFindARestoredCluster(t *testing.T) {
	o, n := living(t, 1, lifeOf(1, 0, 1)), living(t, 1, lifeOf(1, 0, 1))
	o.Publish() // so that the table of o is the newest, and n a server that has said which life it is of
	c := dial(t, o, client.Config{Addrs: append(o.Addrs(), n.Addrs()...)})
	waitFor(t, "the newest table", func() bool {
		return c.Caller().Table().Routes().Version == 2 && c.Caller().Table().Routes().Nodes[0].Addr == o.Addrs()[0]
	})
	n.Nodes[0].Kill()
	n.Live(lifeOf(1, 1, 2))
	ask := func() error {
		nodes, err := c.Caller().Nodes(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		_, err = pb.NewSequenceClient(nodes[0]).Routes(bounded(t), &pb.RoutesRequest{})
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	o.Nodes[0].Kill()
	waitFor(t, "the node to be lost", func() bool { return ask() != nil })
	n.Nodes[0].Restart()
	waitFor(t, "an answer of the new era", func() bool { return ask() == nil && c.Caller().Table().Incarnation() == lifeOf(1, 1, 2) })
}

func TestARestoredClusterIsFollowedOnceAndNeverBack(t *testing.T) {
	for name, same := range map[string]bool{"at its addresses": true, "elsewhere": false} {
		t.Run(name, func(t *testing.T) {
			o := living(t, 2, lifeOf(1, 0, 1))
			n, addrs := o, o.Addrs()
			if !same {
				n = living(t, 1, lifeOf(1, 1, 2))
				n.Nodes[0].Kill()
				addrs = append(addrs, n.Addrs()...)
			}
			for range 4 { // the tables of a restored cluster have lower versions
				o.Publish()
			}
			log, to := logger()
			c := dial(t, o, client.Config{Addrs: addrs, Logger: to})
			take := func() {
				t.Helper()
				if _, err := c.Next(bounded(t), client.Key{UID: 7}); err != nil {
					t.Fatal(err)
				}
			}
			take()
			if same {
				o.Live(lifeOf(1, 1, 2))
			} else {
				n.Nodes[0].Restart()
				c.Caller().Table().Refresh() // the old one answers as well
				waitFor(t, "the new era", func() bool { return c.Caller().Table().Incarnation() == lifeOf(1, 1, 2) })
			}
			take()
			if routes := c.Caller().Table().Routes(); c.Caller().Table().Incarnation() != lifeOf(1, 1, 2) || routes == nil || routes.Version != 1 {
				t.Fatalf("%v, table %v", c.Caller().Table().Incarnation(), routes)
			}
			if !same { // open streams to the old era have ended, and no later one begins
				old := messages(o)
				for range 20 {
					take()
					c.Caller().Table().Refresh()
				}
				if got := messages(o); got != old {
					t.Fatalf("%d calls went to the old era", got-old)
				}
			}
			if log.count("going over") != 1 {
				t.Fatalf("went over %d times", log.count("going over"))
			}
		})
	}
}

// A stream is checked at its start alone: a process of the old era must not serve by one that
// was open before.
func TestAnOpenStreamToTheOldEraServesNoMore(t *testing.T) {
	const old = 3 // no address of Config, so that its table is not asked for
	o := living(t, 4, lifeOf(1, 0, 1))
	c := dial(t, o, client.Config{Addrs: o.Addrs()[:old]})
	take := func(node int) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if node == old && c.Caller().Table().Incarnation().Era > 0 {
			ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		}
		defer cancel()
		_, err := c.Next(ctx, client.Key{UID: uidOf(o, node)})
		return err
	}
	for node := range o.Nodes {
		if err := take(node); err != nil {
			t.Fatal(err)
		}
	}
	for node := range old {
		o.Nodes[node].Live(lifeOf(1, 1, 2))
	}
	for node := range old {
		if err := take(node); err != nil {
			t.Fatal(err)
		}
	}
	if c.Caller().Table().Incarnation() != lifeOf(1, 1, 2) {
		t.Fatalf("holds to %v", c.Caller().Table().Incarnation())
	}
	before := o.Nodes[old].Messages.Load() + o.Nodes[old].Calls.Load()
	if err := take(old); err == nil {
		t.Error("a process of the old era served a call for the new one")
	}
	if n := o.Nodes[old].Messages.Load() + o.Nodes[old].Calls.Load(); n != before {
		t.Errorf("%d calls went to the old era", n-before)
	}
}

// The addresses of Config answer for the old era, and enough of them do so that a search for a
// newer table ends with them.
func TestANodeThatRefusesIsAskedForItsEra(t *testing.T) {
	const restored = 4
	o := living(t, 5, lifeOf(1, 0, 1))
	c := dial(t, o, client.Config{Addrs: o.Addrs()[:restored]})
	for range 2 {
		if _, err := c.Next(bounded(t), client.Key{UID: uidOf(o, restored)}); err != nil {
			t.Fatal(err)
		}
		o.Nodes[restored].Live(lifeOf(1, 1, 2))
	}
	if c.Caller().Table().Incarnation() != lifeOf(1, 1, 2) {
		t.Errorf("holds to %v", c.Caller().Table().Incarnation())
	}
}

func TestAServerOfTheVersionBeforeIsServedBy(t *testing.T) {
	cluster := living(t, 2, lifeOf(1, 0, 1))
	cluster.Nodes[1].Live(seq.Incarnation{})
	log, to := logger()
	c := dial(t, cluster, client.Config{Addrs: cluster.Addrs(), Logger: to})
	for range 3 {
		for node := range cluster.Nodes {
			if _, err := c.Next(bounded(t), client.Key{UID: uidOf(cluster, node)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The first table of the newer node is adopted from the older one too.
	cluster.Publish()
	waitFor(t, "the table", func() bool {
		_, _ = c.Next(bounded(t), client.Key{UID: uidOf(cluster, 1)})
		return c.Caller().Table().Routes().Version == 2
	})
	if len(c.Caller().Table().LeftOut()) != 0 || c.Caller().Table().Incarnation() != lifeOf(1, 0, 1) || log.count("does not tell its incarnation") > 1 {
		t.Fatalf("left out %v, holds to %v", c.Caller().Table().LeftOut(), c.Caller().Table().Incarnation())
	}
}

func TestASetIsHeldToTheLifeInTheMap(t *testing.T) {
	s := twoSets(t, 1)
	s.All[0].Live(lifeOf(1, 0, 1))
	s.All[1].Live(lifeOf(2, 0, 2))
	s.Publish()
	s.Hold(lifeOf(1, 0, 1), lifeOf(3, 0, 3)) // the map knows another cluster of that name
	c := dial(t, s.All[0], client.Config{AttemptTimeout: 100 * time.Millisecond})
	if _, err := c.Next(bounded(t), client.Key{UID: uidIn(s, 0)}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a call whose last attempt was at the other cluster", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.Next(ctx, client.Key{UID: uidIn(s, 1)})
		return errors.Is(err, seq.ErrForeignCluster)
	})
	if n := messages(s.All[1]); n != 0 {
		t.Fatalf("%d calls went to another cluster", n)
	}
	s.Hold(lifeOf(1, 0, 1), lifeOf(2, 0, 2))
}
