package storesvr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of what one stream has under way: calls that came and whose answers are not sent. A stream at one
// of them is not read.
const (
	streamCalls = 256
	streamBytes = storewire.MaxRequest
)

// stream is one Stream. The goroutine that receives answers reads. The writer answers steps, and all steps of
// one transaction leave together.
type stream struct {
	s       *server
	wire    grpc.BidiStreamingServer[pb.StoreCalls, pb.StoreAnswers]
	session seq.Session
	node    string

	sending sync.Mutex // held over a send
	over    bool       // the handler has returned; guarded by sending

	wake chan struct{} // of one place: answers wait

	mu    sync.Mutex    // guards all below
	ready []ended       // not sent yet
	calls int           // under way
	bytes int           // of their messages
	room  chan struct{} // closed when calls or bytes fall; nil while the stream is read
}

// ended is a call with its answer.
type ended struct {
	id      uint64
	size    int // of the call
	step    bool
	results []quorum.Result
	err     error
	begun   time.Time
}

// Stream implements the service.
func (s *server) Stream(wire grpc.BidiStreamingServer[pb.StoreCalls, pb.StoreAnswers]) error {
	if err := meant(wire.Context(), s.replica.core.identity.UUID); err != nil {
		return err
	}
	first, err := wire.Recv()
	if err != nil {
		return err
	}
	secret, session := storewire.SecretOf(first), seq.Session(first.GetSession())
	if err := errors.Join(secret.Proves(session), s.guard.Speaks(rpc.WhoOf(wire.Context()), pb.Store_Stream_FullMethodName, secret.Node)); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	t := &stream{s: s, wire: wire, session: session, node: secret.Node, wake: make(chan struct{}, 1)}
	received := make(chan error, 1)
	go func() { received <- t.receive(first) }()
	defer t.end()
	for {
		select {
		case <-t.wake:
			if err := t.flush(); err != nil {
				return err
			}
		case err := <-received:
			return err
		case <-s.leaving:
			return fmt.Errorf("stream: %w", seq.ErrShuttingDown)
		}
	}
}

// end keeps answers from a stream whose handler returns.
func (t *stream) end() {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.over = true
}

// receive takes calls until the stream ends.
func (t *stream) receive(m *pb.StoreCalls) error {
	for {
		reads := false
		for _, call := range m.GetCalls() {
			size := proto.Size(call)
			if err := t.admit(size); err != nil {
				return err
			}
			one := ended{id: call.GetId(), size: size, begun: time.Now()}
			if step := call.GetStep(); step != nil {
				one.step = true
				t.step(one, step, time.Duration(call.GetTimeoutUs())*time.Microsecond)
				continue
			}
			one.results, one.err = t.read(call.GetRead())
			t.add(one)
			reads = true
		}
		if reads {
			if err := t.flush(); err != nil {
				return err
			}
		}
		var err error
		if m, err = t.wire.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// admit waits until a call of that size may be under way.
func (t *stream) admit(size int) error {
	for {
		t.mu.Lock()
		if t.calls == 0 || t.calls < streamCalls && t.bytes+size <= streamBytes {
			t.calls++
			t.bytes += size
			t.mu.Unlock()
			return nil
		}
		if t.room == nil {
			t.room = make(chan struct{})
		}
		room := t.room
		t.mu.Unlock()
		select {
		case <-room:
		case <-t.wire.Context().Done():
			return context.Cause(t.wire.Context())
		}
	}
}

var errStreamRead = fmt.Errorf("%w: a stream reads registers by their names, without copies: call Read", seq.ErrBadArgument)

// read answers a read.
func (t *stream) read(in *pb.ReadRequest) ([]quorum.Result, error) {
	if in == nil {
		return nil, fmt.Errorf("%w: a call of no known kind", seq.ErrBadArgument)
	}
	req, err := storewire.ReadFromProto(in)
	if err != nil {
		return nil, err
	}
	if req.Copies || len(req.Registers) == 0 {
		return nil, errStreamRead
	}
	reply, err := t.s.replica.Read(t.wire.Context(), req)
	return reply.Results, err
}

// step has the writer answer a step.
func (t *stream) step(one ended, in *pb.StepRequest, timeout time.Duration) {
	req, err := storewire.StepFromProto(in)
	if err == nil && req.Session != 0 {
		err = fmt.Errorf("%w: a step on the stream of session %s names %s: expected none", seq.ErrNotSession, t.session, req.Session)
	}
	req.Session, req.Secret.Node = t.session, t.node
	if err == nil {
		ctx := t.wire.Context()
		w := t.s.replica.stepping(ctx, req)
		if timeout > 0 {
			w.until = one.begun.Add(timeout)
		}
		w.answer = func() {
			one.results, one.err = w.results, w.err
			t.add(one)
		}
		if err = t.s.replica.writer.enqueue(ctx, w); err == nil {
			return
		}
	}
	one.err = err
	t.add(one)
}

// add has an answer sent. It does not wait.
func (t *stream) add(one ended) {
	t.s.observe(one)
	t.mu.Lock()
	t.ready = append(t.ready, one)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// flush sends the answers that wait, in one message.
func (t *stream) flush() error {
	t.sending.Lock()
	defer t.sending.Unlock()
	t.mu.Lock()
	ready := t.ready
	t.ready = nil
	t.mu.Unlock()
	if len(ready) == 0 || t.over {
		return nil
	}
	if err := t.wire.Send(t.answers(ready)); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls -= len(ready)
	for _, one := range ready {
		t.bytes -= one.size
	}
	if t.room != nil {
		close(t.room)
		t.room = nil
	}
	return nil
}

// answers encodes answers. All steps among them have one claim: what the disk has by now.
func (t *stream) answers(ready []ended) *pb.StoreAnswers {
	out := &pb.StoreAnswers{Answers: make([]*pb.StoreAnswer, len(ready))}
	var claim quorum.Claim
	for i, one := range ready {
		answer := &pb.StoreAnswer{Id: one.id}
		out.Answers[i] = answer
		if one.err != nil {
			answer.Error = rpc.ToKeyError(0, one.err)
			continue
		}
		reply := quorum.Reply{UUID: t.s.replica.core.identity.UUID, Results: one.results}
		if one.step {
			if claim.Store == "" {
				claim = t.s.replica.core.claim()
			}
			reply.Claim = claim
		}
		answer.Reply = storewire.ReplyToProto(reply)
	}
	return out
}

// observe counts a call of a stream as one of its method.
func (s *server) observe(one ended) {
	if s.count == nil {
		return
	}
	method := pb.Store_Read_FullMethodName
	if one.step {
		method = pb.Store_Step_FullMethodName
	}
	s.count(method, time.Since(one.begun), one.err)
}
