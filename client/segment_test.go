package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/client"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestSegmentsFollowTheOwnerOfTheTag(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 30})
	c := dial(t, cluster, client.Config{AttemptTimeout: 50 * time.Millisecond})
	ctx, b := bounded(t), newBook(t)
	tags := []string{"order", "invoice:eu", "a.b_c-d"}
	for _, tag := range tags {
		cluster.AddTag(tag)
	}
	some := func(what string) {
		t.Helper()
		var wg sync.WaitGroup
		for i, tag := range tags {
			wg.Go(func() {
				var before seq.Seq
				for range 5 {
					first, last, err := c.TakeSegment(ctx, tag, uint32(i+1))
					if err != nil || first <= before || last-first != seq.Seq(i) {
						t.Errorf("%s: %s: got %d to %d after %d: %v", what, tag, first, last, before, err)
						return
					}
					before = last
					b.add(client.StringKey("tag", tag), first, last)
				}
			})
		}
		wg.Wait()
	}
	some("all well")
	cluster.Nodes[0].Kill()
	cluster.TakeOver(0, 1)
	some("a takeover that the table does not know")
	cluster.Publish()
	cluster.Nodes[0].Restart()
	cluster.Nodes[1].Hang()
	cluster.TakeOver(1, 2)
	some("a takeover from a silent owner")
	cluster.Nodes[1].Resume()
	cluster.Behave(false, true, nil)
	cluster.TakeOver(2, 0)
	some("a move of which nobody tells the target")
}

func TestASegmentWaitsForAQuorum(t *testing.T) {
	cluster := clienttest.Start(t, 1)
	cluster.AddTag("order")
	cluster.Behave(false, false, seq.ErrNoQuorum)
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	got := make(chan error, 1)
	go func() {
		_, _, err := c.TakeSegment(bounded(t), "order", 1)
		got <- err
	}()
	waitFor(t, "a second attempt", func() bool { return cluster.Nodes[0].Takes.Load() > 1 })
	cluster.Behave(false, false, nil)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestErrorsOfSegmentsThatNoRetryCuresComeAtOnce(t *testing.T) {
	cluster := clienttest.Start(t, 2)
	cluster.AddTag("order")
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	rows := []struct {
		name, tag string
		count     uint32
		want      error
	}{
		{"a count of 0", "order", 0, seq.ErrBadCount},
		{"a count above the limit", "order", seq.MaxCount + 1, seq.ErrBadCount},
		{"an unknown tag", "moon", 1, seq.ErrUnknownTag},
		{"no tag", "", 1, seq.ErrBadArgument},
		{"a long tag", strings.Repeat("x", 129), 1, seq.ErrBadArgument},
		{"a tag with a space", "my order", 1, seq.ErrBadArgument},
		{"a tag that is no text", "\xff", 1, seq.ErrBadArgument},
	}
	for _, row := range rows {
		if first, last, err := c.TakeSegment(bounded(t), row.tag, row.count); !errors.Is(err, row.want) || first != 0 || last != 0 {
			t.Errorf("%s: got %d to %d, %v, want %v", row.name, first, last, err, row.want)
		}
	}
}

func TestEachNodeCanBeAskedAboutItself(t *testing.T) {
	cluster := clienttest.Start(t, 3)
	cluster.AddTag("order")
	owner := cluster.TagOwner("order")
	cluster.Nodes[(owner+1)%3].Kill()
	c := dial(t, cluster, client.Config{AttemptTimeout: patience})
	ctx := bounded(t)
	if _, _, err := c.TakeSegment(ctx, "order", 1); err != nil {
		t.Fatal(err)
	}
	nodes, err := c.Caller().Nodes(ctx)
	if err != nil || len(nodes) != 3 {
		t.Fatalf("got %d nodes, %v, want 3", len(nodes), err)
	}
	for i, node := range nodes {
		got, err := pb.NewSegmentClient(node).Status(ctx, &pb.SegmentStatusRequest{})
		want := 0
		if i == owner {
			want = 1
		}
		if dead := i == (owner+1)%3; dead != errors.Is(err, client.ErrUnreachable) || len(got.GetTags()) != want {
			t.Errorf("node %d: got %v, %v, want %d tags", i, got, err, want)
		}
	}
	if _, err := c.Caller().Owner("order").NewStream(context.Background(), nil, ""); status.Code(err) != codes.Unimplemented {
		t.Errorf("a stream: got %v", err)
	}
}
