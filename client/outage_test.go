package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

var errMissing = fmt.Errorf("%w: 1 of 3 answered, missing store-2, store-3", seq.ErrNoQuorum)

// asks are all kinds of calls.
func asks(c *client.Client) map[string]func(context.Context) error {
	key := client.Key{UID: 7}
	return map[string]func(context.Context) error{
		"next": func(ctx context.Context) error { _, err := c.Next(ctx, key); return err },
		"batch": func(ctx context.Context) error {
			got, err := c.NextBatch(ctx, "", []seq.UID{1, 2, 3, 4, 5}, nil)
			for _, r := range got {
				err = errors.Join(err, r.Err)
			}
			return err
		},
		"current": func(ctx context.Context) error {
			got, err := c.Current(ctx, "", []seq.UID{1, 2, 3})
			for _, v := range got {
				err = errors.Join(err, v.Err)
			}
			return err
		},
		"raise":   func(ctx context.Context) error { _, err := c.Raise(ctx, key, 5); return err },
		"one id":  func(ctx context.Context) error { _, err := c.NextID(ctx, ""); return err },
		"ids":     func(ctx context.Context) error { _, err := c.Generate(ctx, "", 3); return err },
		"segment": func(ctx context.Context) error { _, _, err := c.TakeSegment(ctx, "order", 1); return err },
	}
}

func refuse(cluster *clienttest.Cluster, err error) {
	for _, n := range cluster.Nodes {
		n.Refuse(err)
	}
}

func TestEveryCallEndsWithNoQuorumOnceEveryAllocSvrSaysSo(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 6})
	cluster.AddTag("order")
	c := dial(t, cluster, client.Config{Timeout: 4 * patience, AttemptTimeout: patience})
	for range 2 { // the quorum comes back, and is lost again
		refuse(cluster, errMissing)
		for name, ask := range asks(c) {
			err := ask(bounded(t))
			if !errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), "missing store-2, store-3") {
				t.Errorf("%s: got %v, want %v before the deadline", name, err, errMissing)
			}
		}
		if c.Caller().QuorumLost() == nil {
			t.Error("the client does not say that the quorum is lost")
		}
		refuse(cluster, nil)
		waitFor(t, "the quorum to be back", func() bool { return c.Caller().QuorumLost() == nil })
		for name, ask := range asks(c) {
			if err := ask(bounded(t)); err != nil {
				t.Errorf("%s with the quorum back: %v", name, err)
			}
		}
	}
}

func TestAnAllocSvrThatIsCutOffAloneIsWaitedFor(t *testing.T) {
	cluster := clienttest.Start(t, 4, seq.Space{Name: "user", Sections: 4})
	// It is cut off, and so are both standbys: the fourth takes over in the end.
	c := dial(t, cluster, client.Config{Timeout: 4 * patience, AttemptTimeout: patience})
	key := client.Key{UID: 7}
	owner := int(cluster.Owner(cluster.Mapping.Spaces[0].SectionOf(key.UID)))
	for i := range 3 {
		cluster.Nodes[(owner+i)%4].Refuse(errMissing)
	}
	got := make(chan error, 1)
	go func() {
		_, err := c.Next(bounded(t), key)
		got <- err
	}()
	before := cluster.Nodes[owner].Messages.Load()
	begun := time.Now()
	waitFor(t, "rounds beyond the patience with all", func() bool {
		return cluster.Nodes[owner].Messages.Load() > before+20 && time.Since(begun) > time.Second
	})
	select {
	case err := <-got:
		t.Fatalf("the call ended with %v while one AllocSvr has a quorum", err)
	default:
	}
	if err := c.Caller().QuorumLost(); err != nil {
		t.Errorf("the client takes the quorum for lost: %v", err)
	}
	cluster.TakeOver(owner, (owner+3)%4)
	cluster.Publish()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestAnAllocSvrThatCannotBeReachedHasNoSayInWhetherTheQuorumIsLost(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 6})
	cluster.AddTag("order")
	c := dial(t, cluster, client.Config{Timeout: 4 * patience, AttemptTimeout: patience})
	cluster.Nodes[0].Refuse(errMissing)
	cluster.Nodes[1].Kill()
	cluster.Nodes[2].Kill()
	for name, ask := range asks(c) {
		if err := ask(bounded(t)); !errors.Is(err, seq.ErrNoQuorum) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want %v before the deadline", name, err, seq.ErrNoQuorum)
		}
	}
}

func TestACallWhoseTimeEndsBeforeNamesTheQuorum(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 6})
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	cluster.Nodes[1].Kill()
	refuse(cluster, errMissing)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	for _, uid := range []seq.UID{1, 2, 3, 4, 5, 6} {
		if _, err := c.Next(ctx, client.Key{UID: uid}); ctx.Err() == nil && !errors.Is(err, seq.ErrNoQuorum) {
			t.Errorf("uid %d: got %v, want %v", uid, err, seq.ErrNoQuorum)
		}
	}
}

func TestARefusalOfOneNodesOwnIsAnsweredByAnother(t *testing.T) {
	for _, own := range []error{seq.ErrDatacenterTaken, seq.ErrNodeUnfit, seq.ErrOverloaded} {
		cluster := clienttest.Start(t, 3)
		c := dial(t, cluster, client.Config{Timeout: patience, AttemptTimeout: patience})
		cluster.Nodes[1].Refuse(fmt.Errorf("at this node: %w", own))
		for range 6 {
			if _, err := c.Generate(bounded(t), "", 2); err != nil {
				t.Errorf("%v at one of three: %v", own, err)
			}
			if _, err := c.NextID(bounded(t), ""); err != nil {
				t.Errorf("%v at one of three, a single id: %v", own, err)
			}
		}
	}
}

func TestARefusalOfEveryNodesOwnEndsTheCallAfterOneRound(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{Timeout: 4 * patience, AttemptTimeout: patience})
	for _, own := range []error{seq.ErrDatacenterTaken, seq.ErrNodeUnfit} {
		refuse(cluster, own)
		before := generates(cluster)
		if _, err := c.Generate(bounded(t), "", 2); !errors.Is(err, own) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, own)
		}
		if n := generates(cluster) - before; n != 3 {
			t.Errorf("%v: %d attempts, want one at each of three", own, n)
		}
	}
}

func TestADelegationIsAskedForElsewhereAfterARefusalOfTheNodesOwn(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{Timeout: patience})
	cluster.Nodes[0].Refuse(seq.ErrNodeUnfit)
	cluster.Nodes[1].Refuse(seq.ErrDatacenterTaken)
	for range 3 {
		req := &pb.SnowflakeDelegateRequest{Holder: "me", WindowMs: 600_000}
		if _, err := pb.NewSnowflakeClient(c.Caller().Once()).Delegate(bounded(t), req); err != nil {
			t.Error(err)
		}
	}
}

func TestARefusalByPolicyComesAtOnce(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{Timeout: 4 * patience, AttemptTimeout: patience})
	cluster.AtOnce(4)
	before := generates(cluster)
	if _, err := c.Generate(bounded(t), "", 5); !errors.Is(err, seq.ErrTickUsedUp) || !errors.Is(err, seq.ErrOverloaded) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, seq.ErrTickUsedUp)
	}
	if n := generates(cluster) - before; n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

func TestALostQuorumIsStoodInForBeforeThePatienceOfTheFallbackEnds(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	c := dial(t, cluster, client.Config{Timeout: 4 * patience, AttemptTimeout: patience, Fallback: &client.Fallback{After: 2 * patience}})
	waitFor(t, "a window", func() bool { return c.Stats().Fallback.Windows > 0 })
	refuse(cluster, errMissing)
	for _, count := range []uint32{1, 10} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if ids, err := c.Generate(ctx, "", count); err != nil || !ids.Fallback {
			t.Errorf("%d ids: got %+v, %v, want them made here", count, ids, err)
		}
		cancel()
	}
}
