package router_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// byRouter is a client that reaches nothing but the router.
func byRouter(t *testing.T, r *router.Router) *client.Client {
	t.Helper()
	c, err := client.New(bounded(t), client.Config{Addrs: []string{r.Addr()}, Indirect: true, AttemptTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// lastOf reads a watch until the key has the number.
func lastOf(t *testing.T, w *client.Watch, key client.Key, want seq.Seq) {
	t.Helper()
	for {
		news, err := w.Next(bounded(t))
		if err != nil {
			t.Fatalf("%v: %v, want %d", key, err, want)
		}
		for _, u := range news {
			if u.Key == key && u.Err == nil && u.Last == want {
				return
			}
		}
	}
}

func open(c *clienttest.Cluster) (n int64) {
	for _, node := range c.Nodes {
		n += node.Watches.Load()
	}
	return n
}

func TestARouterWatchesAKeyOnceForAllItsCallers(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	c, keys := byRouter(t, r), []client.Key{{UID: 1}, {UID: 2}, {UID: 3}, client.StringKey("", "room:1")}
	var all []*client.Watch
	for range 20 {
		w, err := c.Watch(bounded(t), keys...)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		all = append(all, w)
	}
	for range 2 {
		if _, err := c.Next(bounded(t), keys[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range all {
		lastOf(t, w, keys[0], 2)
	}
	if n := open(cluster); n == 0 || n > 2 {
		t.Errorf("%d watches of AllocSvr for 20 callers, want at most one a node", n)
	}
	for _, w := range all {
		w.Close()
	}
}

func TestAWatchThroughARouterMissesNothingOverATakeover(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8})
	r := start(t, router.Config{Allocs: cluster.Addrs(), AttemptTimeout: 200 * time.Millisecond})
	c := byRouter(t, r)
	key := client.Key{Space: "user", UID: 1}
	w, err := c.Watch(bounded(t), key)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	lastOf(t, w, key, 0)
	for round := range 4 {
		cluster.TakeOver(round%2, (round+1)%2)
		n, err := c.Next(bounded(t), key)
		if err != nil {
			t.Fatal(err)
		}
		lastOf(t, w, key, n)
	}
	w.Remove(key)
	harness.Until(t, "the router watches nothing", func() bool { return open(cluster) == 0 })
}

func TestARouterTellsWhatItCannotWatchAndWatchesItLater(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w, err := pb.NewSequenceClient(conn).Watch(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := func() *pb.WatchReply {
		t.Helper()
		if err := w.Send(&pb.WatchRequest{FirstId: 7, Add: []*pb.Batch{{Space: "other", Uids: []uint64{1}}}}); err != nil {
			t.Fatal(err)
		}
		for {
			reply, err := w.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if len(reply.Ids)+len(reply.Errors) > 0 {
				return reply
			}
		}
	}
	if got := ask(); len(got.Errors) != 1 || got.Errors[0].Index != 7 || !errors.Is(rpc.FromKeyError(got.Errors[0]), seq.ErrUnknownSpace) {
		t.Fatalf("got %v", got)
	}
	if err := cluster.AddSpace(seq.Space{Name: "other", Sections: 4, Added: true}); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the new space is watched", func() bool { got := ask(); return len(got.Ids) == 1 && got.Ids[0] == 7 })
}

func TestTheEndOfARouterEndsItsWatches(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8})
	r, err := router.New(router.Config{Allocs: cluster.Addrs(), Listen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	conn, err := rpc.Dial(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w, err := pb.NewSequenceClient(conn).Watch(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Send(&pb.WatchRequest{Add: []*pb.Batch{{Uids: []uint64{1}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recv(); err != nil {
		t.Fatal(err)
	}
	polled := make(chan string, 1)
	go func() {
		reply, err := http.Get("http://" + r.HTTPAddr() + "/v1/watch?uid=5&after=0&wait=50s")
		if err != nil {
			polled <- err.Error()
			return
		}
		defer reply.Body.Close()
		polled <- reply.Status
	}()
	harness.Until(t, "both wait", func() bool { return r.Watches() == 2 })
	stop()
	for err == nil {
		_, err = w.Recv()
	}
	if !errors.Is(err, seq.ErrShuttingDown) {
		t.Errorf("the stream ended with %v", err)
	}
	if got := <-polled; !strings.HasPrefix(got, "503") {
		t.Errorf("the long poll ended with %s", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = r.Close()
}

func TestALongPollEndsWhenTheMarkPasses(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "inbox", Sections: 8, Tickets: 300 * time.Millisecond})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	base := "http://" + r.HTTPAddr() + "/v1/"
	take := func(uid int) {
		t.Helper()
		if code, _, got := do(t, "POST", base+"next", "application/json", fmt.Sprintf(`{"uid":%d}`, uid)); code != 200 {
			t.Fatalf("next: %d %v", code, got)
		}
	}
	take(1)
	code, _, got := do(t, "GET", base+"watch?uid=1", "", "")
	if code != 200 || got["mark"] != 1.0 || got["last"] != 1.0 || got["fence"] != 0.0 || got["unknown_ms"] != 0.0 || got["wait_ms"] != 30000.0 {
		t.Errorf("a mark above after: got %d %v", code, got)
	}
	code, _, got = do(t, "GET", base+"watch?uid=1&after=1&wait=20ms", "", "")
	if code != 200 || got["mark"] != 1.0 || got["wait_ms"] != 20.0 {
		t.Errorf("the end of the wait: got %d %v", code, got)
	}
	waits := make(chan map[string]any, 1)
	go func() {
		_, _, got := do(t, "GET", base+"watch?uid=1&after=1&wait=1h", "", "")
		waits <- got
	}()
	harness.Until(t, "the poll", func() bool { return r.Watches() == 1 })
	take(1)
	if got := <-waits; got["mark"] != 2.0 || got["wait_ms"] != 55000.0 {
		t.Errorf("a take, in a wait of an hour: got %v", got)
	}
	if code, _, got := do(t, "GET", base+"watch?key=room&wait=0s", "", ""); code != 200 || got["mark"] != 0.0 {
		t.Errorf("a string key: got %d %v", code, got)
	}
	for query, want := range map[string]string{
		"uid=1&after=99": "the last number of user/1 is 2",
		"uid=1&key=a":    "one of uid and key",
		"":               "one of uid and key",
		"uid=-1":         "uid",
		"uid=1&after=x":  "after",
		"uid=1&wait=30":  "wait",
		"uid=1&wait=-1s": "wait",
		"uid=1&uids=2":   "unknown query parameter",
		"key=":           "key",
		"uid=1&space=no": "no",
		"uid=1&uid=2":    "more than once",
	} {
		code, _, got := do(t, "GET", base+"watch?"+query, "", "")
		if code != 400 && code != 404 || !strings.Contains(fmt.Sprint(got["message"]), want) {
			t.Errorf("%s: got %d %v", query, code, got)
		}
	}
	harness.Until(t, "no watch is left", func() bool { return r.Watches() == 0 && open(cluster) == 0 })
}

func TestEventsBeginWithThePresent(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 8})
	r := start(t, router.Config{Allocs: cluster.Addrs()})
	base := "http://" + r.HTTPAddr() + "/v1/"
	get := func(ctx context.Context, query string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, "GET", base+"watch?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		reply, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reply.Body.Close() })
		return reply
	}
	if reply := get(bounded(t), "uid=1&after=3"); reply.StatusCode != 400 {
		t.Errorf("events after a number: got %s", reply.Status)
	}
	ctx, leave := context.WithCancel(bounded(t))
	reply := get(ctx, "uid=1")
	if kind := reply.Header.Get("Content-Type"); reply.StatusCode != 200 || kind != "text/event-stream" {
		t.Fatalf("got %s of %s", reply.Status, kind)
	}
	lines := bufio.NewScanner(reply.Body)
	for want := range 3 {
		for lines.Scan() && lines.Text() != "event: mark" {
		}
		lines.Scan()
		var got struct{ Mark, Last int }
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		if err := json.Unmarshal([]byte(text), &got); !ok || err != nil || got.Mark != want || got.Last != want {
			t.Fatalf("got %q, %v, want the mark %d", lines.Text(), err, want)
		}
		do(t, "POST", base+"next", "application/json", `{"uid":1}`)
	}
	leave()
	harness.Until(t, "no watch is left", func() bool { return r.Watches() == 0 })
}
