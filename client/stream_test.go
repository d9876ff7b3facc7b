package client

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/clienttest"
)

// bare is a Client that takes a wish for a newer table, and nothing else.
func bare() *Client {
	c := &Client{}
	c.table.open(c)
	return c
}

// idle is a stream without a sender: what is queued stays.
func idle(p *server) *stream {
	l := newStream(p, new(atomic.Int64))
	l.started = true
	return l
}

func TestAFullQueueRefuses(t *testing.T) {
	l := idle(nil)
	space := &seq.Space{Name: "user", Sections: 1}
	if _, full, err := l.enqueue(space, Key{UID: 1}, 1, nil, 1); full || err != nil {
		t.Fatalf("first: got %v, %v", full, err)
	}
	_, full, err := l.enqueue(space, Key{UID: 2}, 1, nil, 1)
	if !full || !errors.Is(err, seq.ErrOverloaded) || !final(err) {
		t.Errorf("second: got %v, %v, want a final %v", full, err, seq.ErrOverloaded)
	}
	if final(seq.ErrOverloaded) {
		t.Error("a server's own overload must be retried")
	}
}

func TestAMessageHoldsOneBatchASpace(t *testing.T) {
	user, pts := &seq.Space{Name: "user", Sections: 4}, &seq.Space{Name: "pts", First: 4, Sections: 4}
	f := newBatch(nil)
	for _, k := range []struct {
		space *seq.Space
		uid   seq.UID
		count uint32
	}{{pts, 1, 1}, {user, 2, 1}, {pts, 3, 5}, {user, 4, 1}, {pts, 5, 1}} {
		f.add(k.space, Key{UID: k.uid}, k.count, nil)
	}
	got := f.request(7, 3, 1500*time.Microsecond)
	want := &pb.StreamRequest{Id: 7, TimeoutMs: 2, Parts: true, Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{
		RouteVersion: 3,
		Batches: []*pb.Batch{
			{Space: "pts", Uids: []uint64{1, 3, 5}, Counts: []uint32{1, 5, 1}},
			{Space: "user", Uids: []uint64{2, 4}},
		},
	}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAMalformedAnswerNeverBecomesANumber(t *testing.T) {
	space := &seq.Space{Name: "user", Sections: 4}
	rows := []struct {
		name   string
		result *pb.BatchResult
	}{
		{"no result", nil},
		{"no number", &pb.BatchResult{}},
		{"the number 0", &pb.BatchResult{First: []uint64{0}, Last: []uint64{1}}},
		{"too few numbers", &pb.BatchResult{First: []uint64{5}}},
		{"too many numbers", &pb.BatchResult{First: []uint64{5}, Last: []uint64{9}}},
		{"an end before the start", &pb.BatchResult{First: []uint64{5}, Last: []uint64{4}}},
		{"numbers past the limit", &pb.BatchResult{First: []uint64{1 << 53}, Last: []uint64{1<<53 + 1}}},
		{"an error of another index", &pb.BatchResult{First: []uint64{0}, Errors: []*pb.KeyError{{Index: 9}}}},
	}
	for _, row := range rows {
		f := newBatch(nil)
		slot := f.add(space, Key{UID: 1}, 2, nil)
		reply := &pb.BatchNextReply{}
		if row.result != nil {
			reply.Results = []*pb.BatchResult{row.result}
		}
		f.answer(&pb.StreamReply{Result: &pb.StreamReply_Next{Next: reply}})
		<-f.done
		if got := slot.answer(2); !errors.Is(got.Err, errMalformed) || got.First != 0 {
			t.Errorf("%s: got %+v, want %v", row.name, got, errMalformed)
		}
	}
}

func TestAKeyThatWaitsAtTheServerHoldsUpNoOther(t *testing.T) {
	l := idle(&server{})
	space := &seq.Space{Name: "user", Sections: 4}
	quick, _, _ := l.enqueue(space, Key{UID: 1}, 1, nil, 9)
	slow, _, _ := l.enqueue(space, Key{UID: 2}, 1, nil, 9)
	_, id, _ := l.first(nil)
	reply := func(more bool, first ...uint64) {
		t.Helper()
		f, _ := l.complete(id, more)
		if f == nil {
			t.Fatal("the batch is gone")
		}
		f.answer(&pb.StreamReply{Id: id, More: more, Result: &pb.StreamReply_Next{
			Next: &pb.BatchNextReply{Results: []*pb.BatchResult{{First: first}}}}})
	}
	reply(true, 5, 0)
	<-quick.b.done
	if got := quick.answer(1); got.First != 5 || quick.open() {
		t.Errorf("the key that did not wait: got %+v, open %v", got, quick.open())
	}
	if !slow.open() {
		t.Fatal("a key without an answer is not open")
	}
	if l.pace.out != 0 || l.pace.keys != 0 {
		t.Errorf("keys that wait at the server hold others: %+v", l.pace)
	}
	slow.b = slow.b.rest
	select {
	case <-slow.b.done:
		t.Fatal("answered before the answer")
	default:
	}
	reply(false, 5, 7)
	<-slow.b.done
	if got := slow.answer(1); got.First != 7 || slow.open() {
		t.Errorf("the key that waited: got %+v, open %v", got, slow.open())
	}
	if len(l.unanswered) != 0 || l.pace.out != 0 {
		t.Errorf("%d batches and %+v are left", len(l.unanswered), l.pace)
	}
}

func TestAKeyThatWaitsAtTheServerIsGivenUpLikeAnyOther(t *testing.T) {
	l := idle(&server{c: bare()})
	l.server.c.cfg, _ = Config{Addrs: []string{"a"}}.withDefaults()
	slow, _, _ := l.enqueue(&seq.Space{Name: "user", Sections: 4}, Key{UID: 2}, 1, nil, 9)
	_, id, _ := l.first(nil)
	f, _ := l.complete(id, true)
	f.answer(&pb.StreamReply{Id: id, More: true, Result: &pb.StreamReply_Next{
		Next: &pb.BatchNextReply{Results: []*pb.BatchResult{{First: []uint64{0}}}}}})
	l.sweep(time.Now().Add(time.Hour))
	slow.b = slow.b.rest
	<-slow.b.done
	if err := slow.answer(1).Err; !errors.Is(err, ErrUnreachable) || slow.open() {
		t.Errorf("got %v, open %v, want %v", err, slow.open(), ErrUnreachable)
	}
	if l.pace.out != 0 || l.pace.keys != 0 {
		t.Errorf("counted twice: %+v", l.pace)
	}
}

func TestWhatWaitsTooLongIsGivenUp(t *testing.T) {
	c := bare()
	c.cfg, _ = Config{Addrs: []string{"a"}, AttemptTimeout: 4 * time.Hour}.withDefaults()
	p := &server{c: c, addr: "a"}
	l := idle(p)
	space := &seq.Space{Name: "user", Sections: 1}
	sent, _, err := l.enqueue(space, Key{UID: 1}, 1, nil, 9)
	if err != nil {
		t.Fatal(err)
	}
	l.first(nil)
	queued, _, err := l.enqueue(space, Key{UID: 2}, 1, nil, 9)
	if err != nil {
		t.Fatal(err)
	}
	l.sweep(time.Now().Add(4 * time.Hour))
	for _, k := range []slot{sent, queued} {
		select {
		case <-k.b.done:
			t.Error("given up before the limit")
		default:
		}
	}
	if p.health.silent.Load() {
		t.Error("in doubt before the limit")
	}
	l.sweep(time.Now().Add(6 * time.Hour))
	for _, k := range []slot{sent, queued} {
		<-k.b.done
		if err := k.answer(1).Err; !errors.Is(err, ErrUnreachable) || final(err) {
			t.Errorf("got %v, want %v, to be retried", err, ErrUnreachable)
		}
	}
	if !p.health.silent.Load() {
		t.Error("the silent server is not in doubt")
	}
	if ok, probe := p.health.admit(); !ok || probe != &p.health {
		t.Error("the first call to a server in doubt is its probe")
	}
	if ok, _ := p.health.admit(); ok {
		t.Error("a second call went to a server in doubt beside the probe")
	}
	p.health.release()
	p.answered()
	if ok, probe := p.health.admit(); !ok || probe != nil {
		t.Error("a server that answered is still in doubt")
	}
}

func TestTheSenderLetsCallersWhoComeBackJoin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const callers = 100
	space := &seq.Space{Name: "user", Sections: 1}
	// Now and then the scheduler gives a turn to the sender itself.
	for range 30 {
		l := idle(nil)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() { _, _, _ = l.enqueue(space, Key{UID: seq.UID(i)}, 1, nil, callers) }) // there is room
		}
		before := l.keysWaiting()
		l.giveWay(before)
		all := before < callers && l.keysWaiting() == callers
		wg.Wait()
		if all {
			return
		}
	}
	t.Errorf("never did all of %d callers join", callers)
}

func TestAnOrderIsDoneWhenItsLastKeyIs(t *testing.T) {
	c := bare()
	c.cfg, _ = Config{Addrs: []string{"a"}}.withDefaults()
	l := idle(&server{c: c})
	space := &seq.Space{Name: "user", Sections: 4}
	done := make(chan string, 2)
	order := func(name string, uids ...seq.UID) *Order {
		o := &Order{UIDs: uids, Ranges: make([]Range, len(uids)), Done: func() { done <- name }, c: c, space: space}
		o.left.Store(int32(len(uids)))
		keys := make([]ordered, len(uids))
		for i := range keys {
			keys[i] = ordered{order: o, i: int32(i)}
		}
		if rest, err := l.enqueueOrdered(keys, 9); len(rest) > 0 || err != nil {
			t.Fatalf("%s: %d keys without room, %v", name, len(rest), err)
		}
		return o
	}
	slow, quick := order("slow", 1, 2), order("quick", 3)
	if rest, err := l.enqueueOrdered(make([]ordered, 1, 1)[:0], 9); len(rest) > 0 || err != nil {
		t.Errorf("no keys: got %d, %v", len(rest), err)
	}
	_, id, _ := l.first(nil)
	reply := func(more bool, first ...uint64) {
		b, _ := l.complete(id, more)
		b.answer(&pb.StreamReply{Id: id, More: more, Result: &pb.StreamReply_Next{
			Next: &pb.BatchNextReply{Results: []*pb.BatchResult{{First: first}}}}})
	}
	reply(true, 5, 0, 6)
	if got := <-done; got != "quick" || quick.Ranges[0].First != 6 {
		t.Errorf("first done: got %s, %+v", got, quick.Ranges)
	}
	select {
	case got := <-done:
		t.Fatalf("%s is done before its last answer", got)
	default:
	}
	reply(false, 5, 7, 6)
	if got := <-done; got != "slow" || slow.Ranges[0].First != 5 || slow.Ranges[1].First != 7 {
		t.Errorf("then: got %s, %+v", got, slow.Ranges)
	}
	if rest, err := l.enqueueOrdered([]ordered{{order: slow}, {order: slow, i: 1}}, 1); len(rest) != 2 || !errors.Is(err, errQueueFull) {
		t.Errorf("an order without room for all its keys: %d keys are left, %v, want 2, %v", len(rest), err, errQueueFull)
	}
}

// What a reply says of the table is learned after its answers are given out, and before its refusals are:
// who was refused goes on by the new table.
func TestAnswersDoNotWaitForTheTableThatComesWithThem(t *testing.T) {
	cluster := clienttest.Start(t, 2, seq.Space{Name: "user", Sections: 2})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := New(ctx, Config{Addrs: cluster.Addrs(), AttemptTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	of := c.table.first()
	space, err := c.table.spaceOf(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	var uid seq.UID // of node 0
	for space.SectionOf(uid) != 0 {
		uid += 1 << seq.BlockBits
	}
	cluster.Publish()
	c.table.mu.Lock()
	_, err = c.Next(ctx, Key{UID: uid})
	held := of.version.Load()
	c.table.mu.Unlock()
	if err != nil || held != 1 {
		t.Fatalf("got %v with table %d, want an answer while the table cannot be learned", err, held)
	}
	for of.version.Load() != 2 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	cluster.TakeOver(0, 1)
	cluster.Publish()
	owner := c.table.view.Load().owner(0)
	c.table.mu.Lock()
	refused, err := owner.queue(space, Key{UID: uid}, 1, nil)
	inFlight := func() (n int) {
		for _, st := range owner.streams {
			st.mu.Lock()
			n += len(st.unanswered) + st.waiting
			st.mu.Unlock()
		}
		return n
	}
	for inFlight() > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond) // for what is not to come
	select {
	case <-refused.b.done:
		t.Error("refused before the table was learned")
	default:
	}
	c.table.mu.Unlock()
	if !refused.await(ctx) || refused.answer(1).Err == nil || of.version.Load() != 3 {
		t.Errorf("got %+v with table %d, want a refusal that comes with table 3", refused.answer(1), of.version.Load())
	}
}
