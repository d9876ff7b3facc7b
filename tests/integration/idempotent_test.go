package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// taken is what callers got of an exact space, by UID.
type taken struct {
	mu      sync.Mutex // guards all below
	numbers map[seq.UID][]uint64
	named   map[string]client.Range // by request
	uids    map[string]seq.UID      // of the requests
	faults  []error
}

func (k *taken) got(uid seq.UID, id string, r client.Range) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Err != nil {
		k.faults = append(k.faults, fmt.Errorf("uid %d, request %q: %w", uid, id, r.Err))
		return
	}
	for n := r.First; n <= r.Last; n++ {
		k.numbers[uid] = append(k.numbers[uid], uint64(n))
	}
	if id != "" {
		k.named[id], k.uids[id] = r, uid
	}
}

// count returns how many numbers were taken so far.
func (k *taken) count() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, all := range k.numbers {
		n += len(all)
	}
	return n
}

// Nodes lose their leases in the middle of calls, which the SDK and the router repeat: every
// number that was assigned was handed to a caller, once, and a request finds its own again.
func TestAnExactSpaceHasNoHoleAndNoRetryTakesTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster on disks")
	}
	const space, uids = "orders", 24
	c := start(t, seq.Space{Name: space, Sections: 8, Mode: seq.Exact})
	direct, through := c.sdk(false, c.addrs()...), c.sdk(true, c.router.Addr())
	conn, err := rpc.Dial(c.router.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	k := &taken{numbers: map[seq.UID][]uint64{}, named: map[string]client.Range{}, uids: map[string]seq.UID{}}
	unnamed := pb.NewSequenceClient(conn)
	var stop = make(chan struct{})
	var tasks sync.WaitGroup
	for i := range 24 {
		tasks.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				sdk := []*client.Client{direct, through}[i%2]
				uid, count := seq.UID((i+n)%uids*64), uint32(1+n%3)
				key := client.Key{Space: space, UID: uid}
				switch i % 4 {
				case 0:
					r, _ := sdk.Take(ctx, key, count)
					k.got(uid, "", r)
				case 1:
					id := fmt.Sprintf("request %d of %d", n, i)
					r, _ := sdk.TakeIdempotent(ctx, key, count, client.Request{ID: id, Sent: time.Now()})
					k.got(uid, id, r)
				case 2:
					all, err := sdk.NextBatch(ctx, space, []seq.UID{uid, uid + 1}, nil)
					if err != nil {
						all = []client.Range{{Err: err}}
					}
					for j, r := range all {
						k.got(uid+seq.UID(j), "", r)
					}
				default:
					r, err := unnamed.Next(ctx, &pb.NextRequest{Space: space, Id: &pb.NextRequest_Uid{Uid: uint64(uid)}, Count: count})
					k.got(uid, "", client.Range{First: seq.Seq(r.GetFirst()), Last: seq.Seq(r.GetLast()), Err: err})
				}
				cancel()
			}
		})
	}
	more := func(when string) {
		t.Helper()
		before := k.count()
		c.until("numbers are taken "+when, func() bool { return k.count() > before+100 })
	}
	func() {
		defer tasks.Wait()
		defer close(stop)
		more("at first")
		c.cut(0)
		c.until("the other node serves all", func() bool { return c.served(1) == c.all })
		more("without the first node")
		c.mend(0)
		c.cut(1)
		c.until("the first node serves all", func() bool { return c.served(0) == c.all })
		more("without the second node")
		c.mend(1)
		more("with all nodes again")
	}()
	for _, err := range k.faults[:min(len(k.faults), 5)] {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for uid, numbers := range k.numbers {
		slices.Sort(numbers)
		now, err := direct.Current(ctx, space, []seq.UID{uid})
		if err != nil || now[0].Err != nil || now[0].UpperBound {
			t.Fatalf("uid %d: %v, %+v", uid, err, now)
		}
		for i, n := range numbers {
			if n != uint64(i)+1 {
				t.Fatalf("uid %d: number %d stands at place %d: a hole, or one that was handed out twice", uid, n, i+1)
			}
		}
		if uint64(now[0].Seq) != uint64(len(numbers)) {
			t.Errorf("uid %d: stands at %d, and %d were handed out", uid, now[0].Seq, len(numbers))
		}
	}
	t.Logf("%d numbers, %d requests of callers", k.count(), len(k.named))
	checked := 0
	for id, was := range k.named {
		if checked++; checked > 200 {
			break
		}
		key, count := client.Key{Space: space, UID: k.uids[id]}, uint32(was.Last-was.First+1)
		again, err := through.TakeIdempotent(ctx, key, count, client.Request{ID: id})
		if err != nil || !again.Replayed || again.First != was.First || again.Last != was.Last {
			t.Errorf("%s: got %d to %d, repeated %+v, %v", id, was.First, was.Last, again, err)
		}
		if found, ok, err := direct.Lookup(ctx, key, id); err != nil || !ok || found.First != was.First || found.Last != was.Last {
			t.Errorf("%s: got %d to %d, lookup %+v, %v, %v", id, was.First, was.Last, found, ok, err)
		}
		if _, err := direct.TakeIdempotent(ctx, key, count+1, client.Request{ID: id}); !errors.Is(err, seq.ErrIDConflict) {
			t.Errorf("%s with another count: %v", id, err)
		}
	}
}
