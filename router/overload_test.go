package router_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

func TestTenTimesWhatFitsIsRefusedAndNotKept(t *testing.T) {
	cluster := clienttest.Start(t, 1, seq.Space{Name: "user", Sections: 4})
	const limit = seq.MaxBatch + gate.CallCost
	const fit = (limit - limit/8) / (1 + gate.CallCost) // of one connection
	r := start(t, router.Config{Allocs: cluster.Addrs(), MaxInWork: limit, AttemptTimeout: patience, Timeout: 4 * patience})
	ctx, c := bounded(t), sequenceOf(t, r.Addr())
	one := &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: 1}, Count: 1}
	if _, err := c.Next(ctx, one); err != nil {
		t.Fatal(err)
	}
	cluster.Nodes[0].Hang() // an AllocSvr that does nothing any more
	const calls = 10 * fit
	type answer struct {
		first uint64
		err   error
	}
	answers := make(chan answer, calls)
	for range calls {
		go func() {
			reply, err := c.Next(ctx, one)
			answers <- answer{reply.GetFirst(), err}
		}()
	}
	for range calls - fit {
		if got := <-answers; !errors.Is(got.err, seq.ErrOverloaded) {
			t.Fatalf("got %d, %v while nothing is served, want %v", got.first, got.err, seq.ErrOverloaded)
		}
	}
	if code := fetch(t, ctx, http.MethodGet, "http://"+r.HTTPAddr()+"/livez", ""); code != http.StatusOK {
		t.Errorf("/livez: got %d in the middle of the load", code)
	}
	cluster.Nodes[0].Resume()
	seen := map[uint64]bool{}
	for range fit {
		got := <-answers
		if got.err != nil || got.first == 0 || seen[got.first] {
			t.Fatalf("a call that was let in: got %d, %v", got.first, got.err)
		}
		seen[got.first] = true
	}
	// A call leaves just after its answer, so there may be no room for a moment.
	for {
		if _, err := c.Next(ctx, one); err == nil {
			break
		} else if !errors.Is(err, seq.ErrOverloaded) {
			t.Fatal(err)
		}
	}
}

// fetch is one HTTP request over a connection of its own.
func fetch(t *testing.T, ctx context.Context, method, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	return reply.StatusCode
}
