package router_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// hung is a router before two Sets, of which one takes calls, says that it is well, and answers none
// until the test ends.
func hung(t *testing.T, set int, cfg router.Config) (*clienttest.Sets, *router.Router, grpc.ClientConnInterface) {
	t.Helper()
	s := clienttest.StartSets(t, []string{"main", "b"}, 1, seq.Space{Name: "user", Sections: 4})
	s.All[0].AddTag("order")
	s.Move(0, 1, 1, 3)
	s.Publish()
	cfg.Allocs, cfg.Timeout = s.All[1-set].Addrs(), 8*patience
	r := start(t, cfg)
	until(t, "the router to be ready", func() bool { return r.Ready() == nil })
	until(t, "the router to know both Sets", func() bool { return len(setsAway(t, r)) == 2 })
	s.All[set].Nodes[0].Hang()
	t.Cleanup(s.All[set].Nodes[0].Resume)
	return s, r, connOf(t, r.Addr())
}

func nextOf(uid seq.UID) *pb.NextRequest {
	return &pb.NextRequest{Id: &pb.NextRequest_Uid{Uid: uint64(uid)}, Count: 1}
}

func batchesOf(uids ...seq.UID) (all []*pb.Batch) {
	b := &pb.Batch{}
	for _, uid := range uids {
		b.Uids = append(b.Uids, uint64(uid))
	}
	return append(all, b)
}

func TestMessagesForASetThatHangsHoldUpNoOthersOfTheStream(t *testing.T) {
	s, _, conn := hung(t, 1, router.Config{})
	stream, err := pb.NewSequenceClient(conn).Stream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	const waiting = 300 // more than a stream has under way at once
	for id := range uint64(waiting + 1) {
		uid := inSet(s, 1)
		if id == waiting {
			uid = inSet(s, 0)
		}
		err := stream.Send(&pb.StreamRequest{Id: id, Parts: true, TimeoutMs: 8 * uint32(patience.Milliseconds()),
			Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: batchesOf(uid)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if reply, err := stream.Recv(); err != nil || reply.GetId() != waiting || reply.GetNext().GetResults()[0].GetFirst()[0] == 0 {
		t.Errorf("the first reply is %v, %v, want that of the Set that answers", reply, err)
	}
}

// Pieces of one Set are asked for some at a time, which holds up none of another's.
func TestManyBatchesOfASetThatHangsHoldUpNoOthersOfTheMessage(t *testing.T) {
	s, _, conn := hung(t, 1, router.Config{})
	stream, err := pb.NewSequenceClient(conn).Stream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	var batches []*pb.Batch
	for range 40 {
		batches = append(batches, batchesOf(inSet(s, 1))...)
	}
	batches = append(batches, batchesOf(inSet(s, 0))...)
	err = stream.Send(&pb.StreamRequest{Parts: true, TimeoutMs: 8 * uint32(patience.Milliseconds()),
		Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: batches}}})
	if err != nil {
		t.Fatal(err)
	}
	if early, err := stream.Recv(); err != nil || !early.GetMore() || early.GetNext().GetResults()[40].GetFirst()[0] == 0 {
		t.Errorf("got %v, %v, want the key of the Set that answers", early, err)
	}
}

// One connection has more calls for a Set that hangs than are usual on one, and one for another.
func TestCallsForASetThatHangsHoldUpNoOthersOfTheConnection(t *testing.T) {
	s, r, conn := hung(t, 1, router.Config{})
	c, ctx := pb.NewSequenceClient(conn), bounded(t)
	const waiting = 400
	for range waiting {
		go func() { _, _ = c.Next(ctx, nextOf(inSet(s, 1))) }() // it ends with the test
	}
	until(t, "all are in work", func() bool { return gauge(t, r, "seq_admission_in_work_keys") == waiting*(gate.CallCost+1) })
	if _, err := c.Next(ctx, nextOf(inSet(s, 0))); err != nil {
		t.Errorf("a key of the Set that answers: %v", err)
	}
}

// atLimit is a router at which as many calls wait for a Set that hangs as one caller may have there.
// The others are refused. Each has so many keys.
func atLimit(t *testing.T, set, keys int, cfg router.Config, call func(*clienttest.Sets, context.Context, grpc.ClientConnInterface) error) (*clienttest.Sets, *router.Router, grpc.ClientConnInterface) {
	t.Helper()
	cfg.MaxInWork = gate.MinInWork
	s, r, conn := hung(t, set, cfg)
	ctx, cancel := context.WithCancel(bounded(t))
	t.Cleanup(cancel)
	var refused atomic.Int64
	const calls = 140 // more than half of what may be in work, and less than all
	for range calls {
		go func() {
			if err := call(s, ctx, conn); errors.Is(err, seq.ErrOverloaded) && strings.Contains(err.Error(), "Set "+[]string{"main", "b"}[set]) {
				refused.Add(1)
			}
		}()
	}
	const half = gate.MinInWork / 2
	fit := (half - half/8) / (gate.CallCost + keys)
	until(t, "all are in work or refused", func() bool {
		return refused.Load() == int64(calls-fit) && gauge(t, r, "seq_admission_in_work_keys") == float64(fit*(gate.CallCost+keys))
	})
	return s, r, conn
}

func nextAt(set int) func(*clienttest.Sets, context.Context, grpc.ClientConnInterface) error {
	return func(s *clienttest.Sets, ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewSequenceClient(conn).Next(ctx, nextOf(inSet(s, set)))
		return err
	}
}

func TestCallersOfOtherSetsAreServedWhileAsManyAsMayWaitForOne(t *testing.T) {
	s, r, conn := atLimit(t, 1, 1, router.Config{RESPListen: "127.0.0.1:0"}, nextAt(1))
	c, here, there := pb.NewSequenceClient(conn), inSet(s, 0), inSet(s, 1)
	for range 20 {
		if err := nextAt(0)(s, bounded(t), conn); err != nil {
			t.Fatalf("the Set that answers: %v", err)
		}
	}
	if err := nextAt(1)(s, bounded(t), conn); !errors.Is(err, seq.ErrOverloaded) || !strings.Contains(err.Error(), "Set b") {
		t.Errorf("the Set that hangs: %v", err)
	}
	one := func(what string, first uint64, errs []*pb.KeyError, err error) {
		t.Helper()
		if err != nil || first == 0 || len(errs) != 1 || errs[0].GetIndex() != 0 || errs[0].GetCode() != pb.ErrorCode_ERROR_CODE_OVERLOADED || !strings.Contains(errs[0].GetMessage(), "Set b") {
			t.Errorf("%s of a key of each: %d, %v, %v", what, first, errs, err)
		}
	}
	next, err := c.BatchNext(bounded(t), &pb.BatchNextRequest{Batches: batchesOf(there, here)})
	one("BatchNext", next.GetResults()[0].GetFirst()[1], next.GetResults()[0].GetErrors(), err)
	current, err := c.Current(bounded(t), &pb.CurrentRequest{Batches: batchesOf(there, here)})
	one("Current", current.GetResults()[0].GetValues()[1], current.GetResults()[0].GetErrors(), err)
	raised, err := c.BatchRaise(bounded(t), &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{{Uids: []uint64{uint64(there), uint64(here)}, AtLeast: []uint64{5, 500}}}})
	one("BatchRaise", raised.GetResults()[0].GetValues()[1], raised.GetResults()[0].GetErrors(), err)
	if got := raised.GetResults()[0].GetValues()[1]; got < 500 {
		t.Errorf("raised to %d", got)
	}
	// Other callers have what is left of the half, a call each.
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	had := gauge(t, r, "seq_admission_in_work_keys")
	for range 10 {
		conn := connOf(t, r.Addr())
		go func() { _ = nextAt(1)(s, ctx, conn) }()
	}
	until(t, "these are in work", func() bool { return gauge(t, r, "seq_admission_in_work_keys") == had+10*(gate.CallCost+1) })
	redis, err := net.Dial("tcp", r.RESPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	replies := bufio.NewReader(redis)
	for _, row := range []struct{ command, want string }{
		{fmt.Sprintf("INCR seq:%d", here), ":"}, {fmt.Sprintf("GET seq:%d", here), "$"}, {"INCR tag:order", ":"},
		{fmt.Sprintf("INCR seq:%d", there), "-TRYAGAIN OVERLOADED: Set b"}, {fmt.Sprintf("MGET seq:%d seq:%d", here, there), "-TRYAGAIN OVERLOADED: Set b"},
	} {
		if _, err := fmt.Fprintf(redis, "%s\r\n", row.command); err != nil {
			t.Fatal(err)
		}
		got, err := replies.ReadString('\n')
		if strings.HasPrefix(got, "$") {
			_, err = replies.ReadString('\n')
		}
		if err != nil || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: got %q, %v, want %s", row.command, got, err, row.want)
		}
	}
	s.All[1].Nodes[0].Resume()
	until(t, "the Set is served again", func() bool { return nextAt(1)(s, bounded(t), conn) == nil })
	until(t, "nothing is in work", func() bool { return gauge(t, r, "seq_admission_in_work_keys") == 0 })
}

// Messages have keys of both Sets, and wait for one: they count nothing against the other.
func TestMessagesThatWaitForOneOfTheirSetsCountThere(t *testing.T) {
	s, r, conn := hung(t, 1, router.Config{MaxInWork: gate.MinInWork})
	stream, err := pb.NewSequenceClient(conn).Stream(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	const half, messages = gate.MinInWork / 2, 66
	for id := range uint64(messages) {
		err := stream.Send(&pb.StreamRequest{Id: id, Parts: true, TimeoutMs: 8 * uint32(patience.Milliseconds()),
			Call: &pb.StreamRequest_Next{Next: &pb.BatchNextRequest{Batches: batchesOf(inSet(s, 0), inSet(s, 1))}}})
		if err != nil {
			t.Fatal(err)
		}
		if early, err := stream.Recv(); err != nil || !early.GetMore() || early.GetNext().GetResults()[0].GetFirst()[0] == 0 {
			t.Fatalf("message %d: %v, %v", id, early, err)
		}
	}
	if n := gauge(t, r, "seq_admission_in_work_keys"); n != messages*(gate.CallCost+2) || n < half-half/8-2*(gate.CallCost+2) {
		t.Fatalf("%v in work", n)
	}
	if _, err := pb.NewSequenceClient(conn).BatchNext(bounded(t), &pb.BatchNextRequest{Batches: batchesOf(slices.Repeat([]seq.UID{inSet(s, 0)}, half-2*gate.CallCost)...)}); err != nil {
		t.Errorf("a large batch of the Set that answers: %v", err)
	}
}

// Tags are the root's, and wait for it as its sections do.
func TestCallersOfOtherSetsAreServedWhileAsManyAsMayWaitForTags(t *testing.T) {
	s, _, conn := atLimit(t, 0, 0, router.Config{}, func(_ *clienttest.Sets, ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewSegmentClient(conn).Take(ctx, &pb.SegmentTakeRequest{Tag: "order", Count: 1})
		return err
	})
	if err := nextAt(1)(s, bounded(t), conn); err != nil {
		t.Errorf("the Set that answers: %v", err)
	}
	if err := nextAt(0)(s, bounded(t), conn); !errors.Is(err, seq.ErrOverloaded) {
		t.Errorf("sequences of the root: %v", err)
	}
}

// The answers of one Set reach the caller before its deadline, even if another Set does not answer.
func TestKeysOfASetThatHangsCostNoAnswersOfOthersInACall(t *testing.T) {
	for dead := range 2 {
		s, _, conn := hung(t, dead, router.Config{})
		c, here, there := pb.NewSequenceClient(conn), inSet(s, 1-dead), inSet(s, dead)
		for what, call := range map[string]func(context.Context) (uint64, []*pb.KeyError, error){
			"BatchNext": func(ctx context.Context) (uint64, []*pb.KeyError, error) {
				got, err := c.BatchNext(ctx, &pb.BatchNextRequest{Batches: batchesOf(there, here)})
				if err != nil {
					return 0, nil, err
				}
				return got.Results[0].First[1], got.Results[0].Errors, nil
			},
			"Current": func(ctx context.Context) (uint64, []*pb.KeyError, error) {
				got, err := c.Current(ctx, &pb.CurrentRequest{Batches: batchesOf(there, here)})
				if err != nil {
					return 0, nil, err
				}
				return got.Results[0].Values[1] + 1, got.Results[0].Errors, nil
			},
			"BatchRaise": func(ctx context.Context) (uint64, []*pb.KeyError, error) {
				got, err := c.BatchRaise(ctx, &pb.BatchRaiseRequest{Batches: []*pb.RaiseBatch{{Uids: []uint64{uint64(there), uint64(here)}, AtLeast: []uint64{5, 5}}}})
				if err != nil {
					return 0, nil, err
				}
				return got.Results[0].Values[1], got.Results[0].Errors, nil
			},
		} {
			for wait := 500 * time.Millisecond; ; wait *= 2 { // a machine may have no time for us for that long
				ctx, cancel := context.WithTimeout(context.Background(), wait)
				first, errs, err := call(ctx)
				cancel()
				if err == nil && first > 0 && len(errs) == 1 && errs[0].GetIndex() == 0 && errs[0].GetCode() == pb.ErrorCode_ERROR_CODE_DEADLINE {
					break
				}
				if wait > patience/4 {
					t.Fatalf("Set %d hangs: %s: got %d, %v, %v", dead, what, first, errs, err)
				}
			}
		}
	}
}
