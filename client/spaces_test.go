package client_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// ways are the calls that name a space.
func ways(t *testing.T, c *client.Client) map[string]func(space string) error {
	ctx := bounded(t)
	return map[string]func(string) error{
		"next": func(space string) error { _, err := c.Next(ctx, client.Key{Space: space, UID: 7}); return err },
		"batch": func(space string) error {
			got, err := c.NextBatch(ctx, space, []seq.UID{7, 700, 7000}, nil)
			for _, r := range got {
				err = errors.Join(err, r.Err)
			}
			return err
		},
		"current": func(space string) error { _, err := c.Current(ctx, space, []seq.UID{7}); return err },
		"raise":   func(space string) error { _, err := c.Raise(ctx, client.Key{Space: space, UID: 7}, 1); return err },
		"begin": func(space string) error {
			done := make(chan struct{})
			o := &stream.Order{Space: space, UIDs: []seq.UID{7}, Done: func() { close(done) }}
			c.Caller().Begin(ctx, o)
			<-done
			return o.Ranges[0].Err
		},
	}
}

// A space that is added to a running cluster is served to clients that had a table before, by
// each way to call, and one that does not exist is refused.
func TestASpaceThatWasAddedIsFoundByTheFirstCallForIt(t *testing.T) {
	for way := range ways(t, nil) {
		cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8})
		c := dial(t, cluster, client.Config{})
		call := ways(t, c)[way]
		if err := errors.Join(call(""), call("user")); err != nil {
			t.Fatal(way, err)
		}
		if err := call("room"); !errors.Is(err, seq.ErrUnknownSpace) {
			t.Errorf("%s: before it is there: got %v", way, err)
		}
		if err := cluster.AddSpace(seq.Space{Name: "room", Sections: 8}); err != nil {
			t.Fatal(err)
		}
		if err := call("room"); err != nil {
			t.Errorf("%s: got %v", way, err)
		}
		if m, _ := c.Caller().Table().Mapping(); len(m.Spaces) != 2 || c.Caller().Table().Routes().Version != 2 {
			t.Errorf("%s: %d spaces, table %d", way, len(m.Spaces), c.Caller().Table().Routes().Version)
		}
		if err := errors.Join(call("room"), call("user")); err != nil {
			t.Errorf("%s: afterwards: %v", way, err)
		}
	}
}

// The first servers that are asked have not heard of the space, and the owner of half of its
// sections has not either, until a while later: calls wait for it.
func TestANodeThatHasNotHeardOfASpaceIsAskedAgain(t *testing.T) {
	cluster := clienttest.Start(t, 3, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{Timeout: patience})
	if err := cluster.AddSpace(seq.Space{Name: "room", Sections: 9}, 2); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := c.Next(bounded(t), client.Key{Space: "room", UID: seq.UID(i * 64)}); err != nil {
				t.Errorf("uid %d: %v", i*64, err)
			}
			if _, err := c.Next(bounded(t), client.Key{UID: seq.UID(i * 64)}); err != nil {
				t.Errorf("of another space: %v", err)
			}
		})
	}
	waitFor(t, "the space to be known", func() bool { m, _ := c.Caller().Table().Mapping(); return len(m.Spaces) == 2 })
	waitFor(t, "a node without the space to be asked for a key again", func() bool { return cluster.Nodes[0].Keys.Load()+cluster.Nodes[1].Keys.Load() > 40 })
	cluster.Tell()
	wg.Wait()
}

// Callers of a space that there is not ask the servers together, with a pause in between.
func TestUnknownSpacesAreAskedForTogether(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8})
	c := dial(t, cluster, client.Config{})
	before, begun := cluster.Nodes[0].Asked.Load(), time.Now()
	var wg sync.WaitGroup
	const callers, calls = 50, 4
	for i := range callers {
		wg.Go(func() {
			for range calls {
				if _, err := c.Next(bounded(t), client.Key{Space: fmt.Sprint("moon", i)}); !errors.Is(err, seq.ErrUnknownSpace) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	wg.Wait()
	asked := cluster.Nodes[0].Asked.Load() - before
	if most := int64(time.Since(begun)/(50*time.Millisecond)) + 1; asked < 1 || asked > most {
		t.Errorf("%d calls asked %d times, want 1 to %d", callers*calls, asked, most)
	}
}

func TestAnOlderMappingTakesNothingAway(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8})
	if err := cluster.AddSpace(seq.Space{Name: "room", Sections: 8}); err != nil {
		t.Fatal(err)
	}
	c := dial(t, cluster, client.Config{})
	if err := cluster.AddSpace(seq.Space{Name: "pts", Sections: 8}, 9); err != nil { // the node knows neither any more
		t.Fatal(err)
	}
	c.Caller().Table().Refresh()
	waitFor(t, "the newer table", func() bool { return c.Caller().Table().Routes().Version == 3 })
	if m, _ := c.Caller().Table().Mapping(); len(m.Spaces) != 2 {
		t.Errorf("the client has %d spaces", len(m.Spaces))
	}
}
