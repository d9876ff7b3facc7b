package storeclient_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// counting is a store that counts how it is asked. set changes its answer to streams.
type counting struct {
	pb.UnimplementedStoreServer
	reads, steps, streams, onStreams atomic.Int64

	mu     sync.Mutex
	stream func(s pb.Store_StreamServer) error
}

var answerOfOne = &pb.ResultsReply{StoreUuid: "u-a", Results: []*pb.Result{{Verdict: pb.Verdict_VERDICT_OK}}}

func (c *counting) Read(context.Context, *pb.ReadRequest) (*pb.ResultsReply, error) {
	c.reads.Add(1)
	return answerOfOne, nil
}

func (c *counting) Step(context.Context, *pb.StepRequest) (*pb.ResultsReply, error) {
	c.steps.Add(1)
	return answerOfOne, nil
}

func (c *counting) Stream(s pb.Store_StreamServer) error {
	c.streams.Add(1)
	c.mu.Lock()
	stream := c.stream
	c.mu.Unlock()
	return stream(s)
}

func (c *counting) set(stream func(s pb.Store_StreamServer) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream = stream
}

type tracedKey struct{}

// all answers all calls.
func (c *counting) all(s pb.Store_StreamServer) error {
	for {
		m, err := s.Recv()
		if err != nil {
			return nil
		}
		for _, call := range m.GetCalls() {
			c.onStreams.Add(1)
			if err := s.Send(&pb.StoreAnswers{Answers: []*pb.StoreAnswer{{Id: call.GetId(), Reply: answerOfOne}}}); err != nil {
				return err
			}
		}
	}
}

func newCounting(t *testing.T) (*counting, *storeclient.Client) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{}
	c.set(c.all)
	srv := grpc.NewServer(grpc.MaxRecvMsgSize(2*storewire.MaxRequest),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	pb.RegisterStoreServer(srv, c)
	go func() { _ = srv.Serve(lis) }()
	client, err := storeclient.Dial(lis.Addr().String(), storeclient.Alone(func(ctx context.Context) bool { return ctx.Value(tracedKey{}) != nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close() // a test may have closed it
		srv.Stop()
	})
	return c, client
}

func stepBy(by seq.Session, log []byte) quorum.StepRequest {
	return quorum.StepRequest{Session: by, Secret: sessiontest.SecretOf(by), Items: []quorum.StepItem{{Register: section, Round: 1, Max: 1, Log: log}}}
}

var readOne = quorum.ReadRequest{Session: alice, Registers: []seq.Register{section}}

func wantCounts(t *testing.T, what string, c *counting, reads, steps, streams, onStreams int64) {
	t.Helper()
	if c.reads.Load() != reads || c.steps.Load() != steps || c.streams.Load() != streams || c.onStreams.Load() != onStreams {
		t.Errorf("%s: %d reads, %d steps, %d streams with %d calls, want %d, %d, %d with %d",
			what, c.reads.Load(), c.steps.Load(), c.streams.Load(), c.onStreams.Load(), reads, steps, streams, onStreams)
	}
}

func TestReadsAndStepsGoOnTheStreamThatASessionHasProven(t *testing.T) {
	c, client := newCounting(t)
	read := func(ctx context.Context, req quorum.ReadRequest) {
		t.Helper()
		if _, err := client.Read(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	step := func(ctx context.Context, by seq.Session) {
		t.Helper()
		if _, err := client.Step(ctx, stepBy(by, nil)); err != nil {
			t.Fatal(err)
		}
	}
	read(t.Context(), readOne)
	wantCounts(t, "before a step", c, 1, 0, 0, 0)
	step(t.Context(), alice)
	read(t.Context(), readOne)
	wantCounts(t, "after a step", c, 1, 0, 1, 2)
	read(t.Context(), quorum.ReadRequest{Prefix: "s"})
	read(t.Context(), quorum.ReadRequest{Registers: readOne.Registers, Copies: true})
	wantCounts(t, "what a stream does not carry", c, 3, 0, 1, 2)
	traced := context.WithValue(t.Context(), tracedKey{}, true)
	step(traced, alice)
	read(traced, readOne)
	wantCounts(t, "a trace", c, 4, 1, 1, 2)
	bob := sessiontest.Session(0xb)
	step(t.Context(), bob)
	wantCounts(t, "another session", c, 4, 1, 2, 3)
	forged := stepBy(bob, nil)
	forged.Session = alice
	if _, err := client.Step(t.Context(), forged); !errors.Is(err, seq.ErrNotSession) {
		t.Errorf("a secret of another session: %v, want %v", err, seq.ErrNotSession)
	}
}

func TestAStoreWithoutStreamsIsAskedByCalls(t *testing.T) {
	c, client := newCounting(t)
	c.set(func(pb.Store_StreamServer) error { return status.Error(codes.Unimplemented, "unknown method Stream") })
	for range 3 {
		if _, err := client.Step(t.Context(), stepBy(alice, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Read(t.Context(), readOne); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, "a build of before", c, 1, 3, 1, 0)
}

func TestABrokenStreamLeavesStepsUnknownAndIsOpenedAgain(t *testing.T) {
	c, client := newCounting(t)
	c.set(func(s pb.Store_StreamServer) error {
		for {
			m, err := s.Recv()
			if err != nil || len(m.GetCalls()) > 0 {
				return status.Error(codes.Unavailable, "the store goes")
			}
		}
	})
	if _, err := client.Step(t.Context(), stepBy(alice, nil)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "the store goes") {
		t.Errorf("a step on a stream that breaks: %v", err)
	}
	c.set(c.all)
	if _, err := client.Step(t.Context(), stepBy(alice, nil)); err != nil {
		t.Errorf("the next step: %v", err)
	}
	wantCounts(t, "in all", c, 0, 0, 2, 1)
}

// The calls that wait for such a store have a bound, and are dropped once their callers have left.
func TestAStoreThatIsBehindIsSentNothingThatNobodyWaitsFor(t *testing.T) {
	c, client := newCounting(t)
	goOn := make(chan struct{})
	var came atomic.Int64
	c.set(func(s pb.Store_StreamServer) error {
		if m, err := s.Recv(); err != nil || len(m.GetCalls()) > 0 && s.Send(&pb.StoreAnswers{Answers: []*pb.StoreAnswer{{Id: m.GetCalls()[0].GetId(), Reply: answerOfOne}}}) != nil {
			return err
		}
		<-goOn
		for {
			m, err := s.Recv()
			if err != nil {
				return nil
			}
			for _, call := range m.GetCalls() {
				came.Add(1)
				if err := s.Send(&pb.StoreAnswers{Answers: []*pb.StoreAnswer{{Id: call.GetId(), Reply: answerOfOne}}}); err != nil {
					return err
				}
			}
		}
	})
	if _, err := client.Step(t.Context(), stepBy(alice, nil)); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithTimeout(t.Context(), brief)
	defer leave()
	const calls = 40
	var over, late atomic.Int64
	var wg sync.WaitGroup
	for range calls { // 40 MiB, of which the connection takes some
		wg.Go(func() {
			switch _, err := client.Step(ctx, stepBy(alice, make([]byte, 1<<20))); {
			case errors.Is(err, seq.ErrOverloaded):
				over.Add(1)
			case errors.Is(err, context.DeadlineExceeded):
				late.Add(1)
			default:
				t.Errorf("a step to a store that does not read: %v", err)
			}
		})
	}
	wg.Wait()
	if over.Load() == 0 || late.Load() == 0 {
		t.Errorf("%d steps refused because others wait, %d not answered in time: want some of both", over.Load(), late.Load())
	}
	close(goOn)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := client.Step(ctx, stepBy(alice, nil)); err != nil {
		t.Errorf("once the store reads: %v", err)
	}
	if came.Load() >= late.Load() {
		t.Errorf("%d steps came of %d whose callers have left: want fewer", came.Load()-1, late.Load())
	}
}

func TestAClientThatIsClosedEndsItsStream(t *testing.T) {
	c, client := newCounting(t)
	ended := make(chan struct{})
	c.set(func(s pb.Store_StreamServer) error {
		defer close(ended)
		return c.all(s)
	})
	if _, err := client.Step(t.Context(), stepBy(alice, nil)); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the store's end goes on")
	}
	if _, err := client.Step(t.Context(), stepBy(alice, nil)); status.Code(err) != codes.Canceled {
		t.Errorf("a step after Close: %v", err)
	}
}
