package integration

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// caller takes numbers of uids again and again: one call of one kind.
type caller func(ctx context.Context, uids []seq.UID) []client.Range

// load is many callers of every kind. Their UIDs overlap, over all sections.
type load struct {
	calls history.Recorder
	begun time.Time
	done  []atomic.Uint64 // calls that succeeded, by caller
	last  []atomic.Value  // the last error, by caller
	stop  context.CancelFunc
	tasks sync.WaitGroup
}

func drive(callers []caller) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{begun: time.Now(), done: make([]atomic.Uint64, len(callers)),
		last: make([]atomic.Value, len(callers)), stop: stop}
	for i, call := range callers {
		l.tasks.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.once(i, call, []seq.UID{seq.UID((i*7 + n*13) % 48 * 64), seq.UID(n % 5)})
			}
		})
	}
	return l
}

// once makes one call. It is not ended by the end of the load, so that its outcome is
// known.
func (l *load) once(i int, call caller, uids []seq.UID) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begin := time.Since(l.begun)
	got := call(ctx, uids)
	end := time.Since(l.begun)
	for k, r := range got {
		c := history.Call{Key: history.Key{UID: uint64(uids[k])}, Start: begin, End: end, Client: i}
		if r.Err != nil {
			c.Err = r.Err.Error()
			l.last[i].Store(c.Err)
		} else {
			c.First, c.Last = uint64(r.First), uint64(r.Last)
			l.done[i].Add(1)
		}
		l.calls.Add(c)
	}
}

// goesOn waits until every caller has got one more number.
func (l *load) goesOn(c *cluster, when string) {
	c.t.Helper()
	for i := range l.done {
		before := l.done[i].Load()
		deadline := time.Now().Add(patience)
		for l.done[i].Load() == before {
			if time.Now().After(deadline) {
				c.t.Fatalf("caller %d waited %v for a number %s; its last error: %v", i, patience, when, l.last[i].Load())
			}
			<-time.After(10 * time.Millisecond)
		}
	}
}

func single(c *client.Client) caller {
	return func(ctx context.Context, uids []seq.UID) []client.Range {
		r, _ := c.Take(ctx, client.Key{UID: uids[0]}, 1) // r.Err has the error
		return []client.Range{r}
	}
}

func batch(c *client.Client) caller {
	return func(ctx context.Context, uids []seq.UID) []client.Range {
		got, err := c.NextBatch(ctx, "", uids, []uint32{1, 3})
		if err != nil {
			return []client.Range{{Err: err}}
		}
		return got
	}
}

func unary(c pb.SequenceClient) caller {
	return func(ctx context.Context, uids []seq.UID) []client.Range {
		got, err := c.Next(ctx, &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: uint64(uids[0])}, Count: 1})
		return []client.Range{{First: seq.Seq(got.GetFirst()), Last: seq.Seq(got.GetLast()), Err: err}}
	}
}

func (c *cluster) sdk(indirect bool, addrs ...string) *client.Client {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := client.New(ctx, client.Config{Addrs: addrs, Indirect: indirect, AttemptTimeout: 200 * time.Millisecond, Timeout: patience})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = out.Close() })
	return out
}

func TestNothingIsRepeatedAndNothingFallsWhileLeasesExpire(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster on disks")
	}
	c := start(t)
	direct, through := c.sdk(false, c.addrs()...), c.sdk(true, c.router.Addr())
	conn, err := rpc.Dial(c.router.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var callers []caller
	for range 6 {
		callers = append(callers, single(direct), batch(direct), single(through), batch(through), unary(pb.NewSequenceClient(conn)))
	}
	l := drive(callers)
	defer l.tasks.Wait()
	defer l.stop()
	l.goesOn(c, "at first")
	c.cut(0)
	c.until("the other node serves all", func() bool { return c.served(1) == sections })
	l.goesOn(c, "without the first node")
	c.mend(0)
	c.cut(1)
	c.until("the second node's leases are over", func() bool { return c.served(1) == 0 })
	c.until("the first node serves all", func() bool { return c.served(0) == sections })
	c.cut(0)
	c.until("all leases are over", func() bool { return c.served(0)+c.served(1) == 0 })
	c.mend(0, 1)
	c.until("every section is served again", func() bool { return c.served(0)+c.served(1) == sections })
	l.goesOn(c, "with all nodes again")
	l.stop()
	l.tasks.Wait()
	report := history.Check(l.calls.Calls())
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if report.Numbers == 0 {
		t.Error("no numbers were taken")
	}
}
