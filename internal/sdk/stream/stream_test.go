package stream

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// errLost is what the end of a stream means in these tests.
var errLost = errors.New("lost")

// peer is a server that opens the streams that it is given, and notes what it is told.
type peer struct {
	mu       sync.Mutex // guards all below
	opens    pb.Sequence_StreamClient
	ended    []error
	answered int
	heard    func(version uint64)
}

// Open implements Server.
func (p *peer) Open(context.Context) (pb.Sequence_StreamClient, error) { return p.opens, nil }

// Version implements Server.
func (p *peer) Version() uint64 { return 1 }

// Heard implements Server.
func (p *peer) Heard(version uint64, _ *pb.RouteTable) {
	if p.heard != nil {
		p.heard(version)
	}
}

// Answered implements Server.
func (p *peer) Answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered++
}

// Ended implements Server.
func (p *peer) Ended(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = append(p.ended, cause)
	return errLost
}

// pair is the streams to a peer, whose attempts last for as long.
func pair(ctx context.Context, to *peer, attempt time.Duration) *Pair {
	return NewPair(&Config{Context: ctx, Go: func(f func()) { go f() }, AttemptTimeout: attempt, MaxQueue: 100}, to)
}

// idle is a stream without a sender: what is queued stays.
func idle(p *Pair) *stream {
	l := newStream(p, new(atomic.Int64))
	l.started = true
	return l
}

func TestAFullQueueRefuses(t *testing.T) {
	l := idle(nil)
	space := &seq.Space{Name: "user", Sections: 1}
	if _, full, err := l.enqueue(space, seq.Key{UID: 1}, 1, nil, 1); full || err != nil {
		t.Fatalf("first: got %v, %v", full, err)
	}
	_, full, err := l.enqueue(space, seq.Key{UID: 2}, 1, nil, 1)
	if !full || !errors.Is(err, seq.ErrOverloaded) || err != ErrFull {
		t.Errorf("second: got %v, %v, want %v", full, err, ErrFull)
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
		f.add(k.space, seq.Key{UID: k.uid}, k.count, nil)
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
		slot := f.add(space, seq.Key{UID: 1}, 2, nil)
		reply := &pb.BatchNextReply{}
		if row.result != nil {
			reply.Results = []*pb.BatchResult{row.result}
		}
		f.answer(&pb.StreamReply{Result: &pb.StreamReply_Next{Next: reply}})
		<-f.done
		if got := slot.Answer(2); !errors.Is(got.Err, ErrMalformed) || got.First != 0 {
			t.Errorf("%s: got %+v, want %v", row.name, got, ErrMalformed)
		}
	}
}

func TestAKeyThatWaitsAtTheServerHoldsUpNoOther(t *testing.T) {
	l := idle(pair(t.Context(), &peer{}, time.Hour))
	space := &seq.Space{Name: "user", Sections: 4}
	quick, _, _ := l.enqueue(space, seq.Key{UID: 1}, 1, nil, 9)
	slow, _, _ := l.enqueue(space, seq.Key{UID: 2}, 1, nil, 9)
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
	if got := quick.Answer(1); got.First != 5 || quick.Open() {
		t.Errorf("the key that did not wait: got %+v, open %v", got, quick.Open())
	}
	if !slow.Open() {
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
	if got := slow.Answer(1); got.First != 7 || slow.Open() {
		t.Errorf("the key that waited: got %+v, open %v", got, slow.Open())
	}
	if len(l.unanswered) != 0 || l.pace.out != 0 {
		t.Errorf("%d batches and %+v are left", len(l.unanswered), l.pace)
	}
}

func TestAKeyThatWaitsAtTheServerIsGivenUpLikeAnyOther(t *testing.T) {
	l := idle(pair(t.Context(), &peer{}, time.Second))
	slow, _, _ := l.enqueue(&seq.Space{Name: "user", Sections: 4}, seq.Key{UID: 2}, 1, nil, 9)
	_, id, _ := l.first(nil)
	f, _ := l.complete(id, true)
	f.answer(&pb.StreamReply{Id: id, More: true, Result: &pb.StreamReply_Next{
		Next: &pb.BatchNextReply{Results: []*pb.BatchResult{{First: []uint64{0}}}}}})
	l.sweep(time.Now().Add(time.Hour))
	slow.b = slow.b.rest
	<-slow.b.done
	if err := slow.Answer(1).Err; err != errLost || slow.Open() {
		t.Errorf("got %v, open %v, want %v", err, slow.Open(), errLost)
	}
	if l.pace.out != 0 || l.pace.keys != 0 {
		t.Errorf("counted twice: %+v", l.pace)
	}
}

func TestWhatWaitsTooLongIsGivenUp(t *testing.T) {
	p := &peer{}
	l := idle(pair(t.Context(), p, 4*time.Hour))
	space := &seq.Space{Name: "user", Sections: 1}
	sent, _, err := l.enqueue(space, seq.Key{UID: 1}, 1, nil, 9)
	if err != nil {
		t.Fatal(err)
	}
	l.first(nil)
	queued, _, err := l.enqueue(space, seq.Key{UID: 2}, 1, nil, 9)
	if err != nil {
		t.Fatal(err)
	}
	l.sweep(time.Now().Add(4 * time.Hour))
	for _, k := range []Slot{sent, queued} {
		select {
		case <-k.b.done:
			t.Error("given up before the limit")
		default:
		}
	}
	if len(p.ended) > 0 {
		t.Error("in doubt before the limit")
	}
	l.sweep(time.Now().Add(6 * time.Hour))
	for _, k := range []Slot{sent, queued} {
		<-k.b.done
		if err := k.Answer(1).Err; err != errLost {
			t.Errorf("got %v, want %v", err, errLost)
		}
	}
	if !slices.Equal(p.ended, []error{ErrTimedOut}) {
		t.Errorf("the silent server is told %v, want %v once", p.ended, ErrTimedOut)
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
			wg.Go(func() { _, _, _ = l.enqueue(space, seq.Key{UID: seq.UID(i)}, 1, nil, callers) }) // there is room
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

// all takes what comes.
type all struct{ Taker }

// Ordered implements Taker.
func (all) Ordered(r seq.Range) seq.Range { return r }

func TestAnOrderIsDoneWhenItsLastKeyIs(t *testing.T) {
	l := idle(pair(t.Context(), &peer{}, time.Second))
	space := &seq.Space{Name: "user", Sections: 4}
	done := make(chan string, 2)
	order := func(name string, uids ...seq.UID) *Order {
		o := &Order{UIDs: uids, Ranges: make([]seq.Range, len(uids)), Done: func() { done <- name }, by: all{}, space: space}
		o.left.Store(int32(len(uids)))
		keys := make([]Ordered, len(uids))
		for i := range keys {
			keys[i] = Ordered{Order: o, I: int32(i)}
		}
		if rest, err := l.enqueueOrdered(keys, 9); len(rest) > 0 || err != nil {
			t.Fatalf("%s: %d keys without room, %v", name, len(rest), err)
		}
		return o
	}
	slow, quick := order("slow", 1, 2), order("quick", 3)
	if rest, err := l.enqueueOrdered(make([]Ordered, 1, 1)[:0], 9); len(rest) > 0 || err != nil {
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
	if rest, err := l.enqueueOrdered([]Ordered{{Order: slow}, {Order: slow, I: 1}}, 1); len(rest) != 2 || !errors.Is(err, ErrFull) {
		t.Errorf("an order without room for all its keys: %d keys are left, %v, want 2, %v", len(rest), err, ErrFull)
	}
}

// road is a gRPC stream: what is sent, and what comes.
type road struct {
	grpc.ClientStream
	sent    chan *pb.StreamRequest
	replies chan *pb.StreamReply
}

// Send implements pb.Sequence_StreamClient.
func (r *road) Send(m *pb.StreamRequest) error {
	r.sent <- m
	return nil
}

// Recv implements pb.Sequence_StreamClient.
func (r *road) Recv() (*pb.StreamReply, error) {
	m, ok := <-r.replies
	if !ok {
		return nil, io.EOF
	}
	return m, nil
}

// The table in a reply is learned after its answers and before its refusals, because a refused caller goes
// on by the new table.
func TestAnswersDoNotWaitForTheTableThatComesWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		learn, learned := make(chan struct{}), uint64(0)
		way := &road{sent: make(chan *pb.StreamRequest, 1), replies: make(chan *pb.StreamReply)}
		p := pair(t.Context(), &peer{opens: way, heard: func(version uint64) {
			<-learn
			learned = version
		}}, time.Hour)
		// ask gives back the slot of a key whose reply has come, and a table with it.
		ask := func(version uint64, result *pb.BatchResult) Slot {
			s, err := p.Add(&seq.Space{Name: "user", Sections: 1}, seq.Key{UID: 1}, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			sent := <-way.sent
			way.replies <- &pb.StreamReply{Id: sent.GetId(), Result: &pb.StreamReply_Next{Next: &pb.BatchNextReply{RouteVersion: version, Results: []*pb.BatchResult{result}}}}
			synctest.Wait()
			return s
		}
		answered := func(s Slot) bool {
			select {
			case <-s.Done():
				return true
			default:
				return false
			}
		}
		if s := ask(2, &pb.BatchResult{First: []uint64{7}}); !answered(s) || s.Answer(1).First != 7 {
			t.Error("no answer while the table cannot be learned")
		}
		learn <- struct{}{}
		refused := ask(3, &pb.BatchResult{First: []uint64{0}, Errors: []*pb.KeyError{{Code: pb.ErrorCode_ERROR_CODE_NOT_OWNER}}})
		if answered(refused) {
			t.Error("refused before the table was learned")
		}
		learn <- struct{}{}
		synctest.Wait()
		if !answered(refused) || refused.Answer(1).Err == nil || learned != 3 {
			t.Errorf("got %+v with table %d, want a refusal that comes with table 3", refused.Answer(1), learned)
		}
		p.Close(errLost)
		close(way.replies)
	})
}

func TestAMessageOfTicketsIsAnsweredByPosition(t *testing.T) {
	inbox, pts := &seq.Space{Name: "inbox", Sections: 4}, &seq.Space{Name: "pts", First: 4, Sections: 4}
	calls := []*TicketCall{
		{Key: seq.Key{UID: 1}, space: inbox, Count: 1},
		{Key: seq.Key{UID: 2}, space: inbox, Done: true, First: 5, Ticket: 50},
		{Key: seq.StringKey("pts", "a"), space: pts, Count: 1, LifeMs: 9},
		{Key: seq.Key{UID: 3}, space: inbox, Count: 4},
		{Key: seq.Key{UID: 4}, space: inbox, Done: true, First: 6, Ticket: 60, Cancelled: true},
		{Key: seq.Key{UID: 5}, space: inbox, Count: 1},
		{Key: seq.Key{UID: 6}, space: pts, Done: true, First: 7, Ticket: 70},
		{Key: seq.Key{UID: 7}, space: inbox, Count: 1, Request: &Request{ID: []byte("x"), Sent: 8}},
		{Key: seq.Key{UID: 8}, space: inbox, Count: 1},
	}
	b := &batch{done: make(chan struct{}), tickets: calls, n: len(calls)}
	want := &pb.StreamRequest{Id: 7, TimeoutMs: 2, Call: &pb.StreamRequest_Tickets{Tickets: &pb.TicketsRequest{
		RouteVersion: 3,
		Opens: []*pb.OpenBatch{
			{Keys: &pb.Batch{Space: "inbox", Uids: []uint64{1, 3, 5, 8}, Counts: []uint32{1, 4, 1, 1}}},
			{Keys: &pb.Batch{Space: "pts", Keys: []string{"a"}}, LifeMs: 9},
			{Keys: &pb.Batch{Space: "inbox", Uids: []uint64{7}, RequestIds: [][]byte{[]byte("x")}, FirstSentMs: []int64{8}}},
		},
		Dones: []*pb.DoneBatch{
			{Keys: &pb.Batch{Space: "inbox", Uids: []uint64{2, 4}}, First: []uint64{5, 6}, Tickets: []uint64{50, 60}, Cancelled: []bool{false, true}},
			{Keys: &pb.Batch{Space: "pts", Uids: []uint64{6}}, First: []uint64{7}, Tickets: []uint64{70}},
		},
	}}}
	if diff := cmp.Diff(want, b.request(7, 3, 1500*time.Microsecond), protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	full, over := pb.ErrorCode_ERROR_CODE_TOO_MANY_TICKETS, pb.ErrorCode_ERROR_CODE_TICKET_ENDED
	b.answerTickets(&pb.StreamReply{Result: &pb.StreamReply_Tickets{Tickets: &pb.TicketsReply{
		Opens: []*pb.OpenResult{
			{Numbers: &pb.BatchResult{First: []uint64{10, 20, 0}, Last: []uint64{10, 23, 0}, Errors: []*pb.KeyError{{Index: 2, Code: full}}}, Tickets: []uint64{100, 200, 0}, LifeMs: 1000},
			{Apart: true},
			{Numbers: &pb.BatchResult{First: []uint64{30}, Replayed: []bool{true}}, Tickets: []uint64{0}, LifeMs: 1000},
		},
		Dones: []*pb.DoneResult{{Errors: []*pb.KeyError{{Index: 1, Code: over}}}},
	}}})
	for i, want := range []error{nil, nil, ErrUnary, nil, seq.ErrTicketEnded, seq.ErrTickets, ErrMalformed, ErrMalformed, ErrMalformed} {
		if got := calls[i].err; !errors.Is(got, want) || want == nil && got != nil {
			t.Errorf("call %d: got %v, want %v", i, got, want)
		}
	}
	for i, want := range map[int][4]uint64{0: {10, 10, 100, 1000}, 3: {20, 23, 200, 1000}} {
		if c := calls[i]; want != [4]uint64{c.First, c.Last, c.Ticket, c.LifeMs} {
			t.Errorf("call %d: got %+v, want %v", i, c, want)
		}
	}
}

func TestTicketsAndNumbersWaitInMessagesOfTheirOwn(t *testing.T) {
	l := idle(nil)
	l.pair = &Pair{}
	space := &seq.Space{Name: "inbox", Sections: 1}
	for i := range 3 {
		if _, full, err := l.enqueue(space, seq.Key{UID: 1}, 1, nil, 6); full || err != nil {
			t.Fatal(i, full, err)
		}
		if _, err := l.enqueueTicket(&TicketCall{Key: seq.Key{UID: 1}, Count: 1, space: space}, 6); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := l.enqueueTicket(&TicketCall{Key: seq.Key{UID: 1}, Count: 1, space: space}, 6); err != ErrFull {
		t.Errorf("got %v, want %v", err, ErrFull)
	}
	if len(l.queue) != 2 || l.queue[0].n != 3 || l.queue[1].n != 3 || len(l.queue[1].tickets) != 3 {
		t.Errorf("got %d batches of %d keys", len(l.queue), l.waiting)
	}
}
