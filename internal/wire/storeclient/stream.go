package storeclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// maxQueued bounds the bytes of calls that wait for a stream. A store that is slow or far falls behind
	// by no more; calls whose callers have left are not sent.
	maxQueued = 8 << 20
	// maxMessage bounds the bytes of calls that share a message: what was handed to the transport is sent,
	// whether or not its callers have left.
	maxMessage = 1 << 20
	// callsFor is the time for which a store without streams, of a build of before, gets calls alone.
	callsFor = 10 * time.Second
)

// errCalls says that a call must go as a call of its own: the store has no streams.
var errCalls = errors.New("the store has no streams")

// lines is the stream of a seat. Steps open it, because they prove the session; reads use it while it
// is open.
type lines struct {
	mu     sync.Mutex
	now    *line
	calls  time.Time // until then there is none
	closed bool
	open   sync.WaitGroup
}

// line is a stream to a store. It ends for good at the first error of its transport.
type line struct {
	secret  seq.Secret
	session seq.Session // of the secret
	cancel  context.CancelFunc
	wake    chan struct{} // of one place: calls wait to be sent

	mu      sync.Mutex // guards all below
	last    uint64     // id
	waiting map[uint64]*asked
	queue   []*asked // not sent yet
	queued  int      // bytes of them
	err     error    // why the line has ended; nil while it lives
}

// asked is a call on a line.
type asked struct {
	call     *pb.StoreCall
	size     int
	left     bool // the caller does not wait; guarded by line.mu
	answered chan answer
}

type answer struct {
	reply *pb.ResultsReply
	err   error
}

// line returns the line of the secret to the store of that uuid. It opens one if there is none, and ends one of
// another secret.
func (s *seat) line(secret seq.Secret, uuid string) (*line, error) {
	l := &s.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil && l.now.secret == secret && l.now.alive() {
		return l.now, nil
	}
	switch {
	case l.closed:
		return nil, status.Error(codes.Canceled, "the client is closed")
	case time.Now().Before(l.calls):
		return nil, errCalls
	}
	if l.now != nil {
		l.now.cancel()
	}
	base, cancel := context.WithCancel(context.Background())
	now := &line{secret: secret, session: secret.Session(), cancel: cancel, wake: make(chan struct{}, 1), waiting: map[uint64]*asked{}}
	l.now = now
	l.open.Go(func() {
		defer cancel()
		err := now.run(meant(base, uuid), s.calls)
		if status.Code(err) == codes.Unimplemented {
			l.mu.Lock()
			l.calls, err = time.Now().Add(callsFor), errCalls
			l.mu.Unlock()
		}
		now.end(err)
	})
	return now, nil
}

// there returns the line that is open, or nil.
func (s *seat) there() *line {
	l := &s.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil && l.now.alive() {
		return l.now
	}
	return nil
}

// close ends the line, and waits until it has ended.
func (l *lines) close() {
	l.mu.Lock()
	l.closed = true
	if l.now != nil {
		l.now.cancel()
	}
	l.mu.Unlock()
	l.open.Wait()
}

func (l *line) alive() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err == nil
}

// run opens the stream, and sends calls and takes answers until it ends.
func (l *line) run(ctx context.Context, store pb.StoreClient) error {
	wire, err := store.Stream(ctx)
	if err != nil {
		return err
	}
	first := &pb.StoreCalls{Session: uint64(l.session)}
	first.Secret, first.Node, first.Seed = storewire.SecretToProto(l.secret)
	var sender sync.WaitGroup
	sender.Go(func() {
		if err := l.send(ctx, first, wire.Send); err != nil && !errors.Is(err, io.EOF) { // else Recv says why
			l.end(err)
			l.cancel()
		}
	})
	err = l.receive(wire.Recv)
	l.cancel()
	sender.Wait()
	return err
}

// send sends the first message, and calls until the stream ends.
func (l *line) send(ctx context.Context, m *pb.StoreCalls, send func(*pb.StoreCalls) error) error {
	for ; ; m = new(pb.StoreCalls) {
		if m.Calls = l.leaving(); len(m.Calls) > 0 || m.GetSession() != 0 {
			if err := send(m); err != nil {
				return err
			}
		}
		for !l.waits() {
			select {
			case <-l.wake:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// leaving returns calls for one message of those that wait to be sent, without those whose callers have left.
func (l *line) leaving() (calls []*pb.StoreCall) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size, n := 0, 0
	for ; n < len(l.queue) && (size == 0 || size+l.queue[n].size <= maxMessage); n++ {
		if a := l.queue[n]; !a.left {
			calls, size = append(calls, a.call), size+a.size
		}
		l.queued -= l.queue[n].size
	}
	l.queue = slices.Delete(l.queue, 0, n)
	return calls
}

// waits reports whether calls wait to be sent.
func (l *line) waits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0
}

// receive takes answers until the stream ends.
func (l *line) receive(next func() (*pb.StoreAnswers, error)) error {
	for {
		m, err := next()
		if err != nil {
			return err
		}
		l.mu.Lock()
		for _, one := range m.GetAnswers() {
			a := l.waiting[one.GetId()]
			if a == nil {
				continue // its caller has left
			}
			delete(l.waiting, one.GetId())
			if one.GetError() != nil {
				a.answered <- answer{err: rpc.FromKeyError(one.GetError())}
			} else {
				a.answered <- answer{reply: one.GetReply()}
			}
		}
		l.mu.Unlock()
	}
}

// end tells all that wait why the line has ended: the outcome of their steps is unknown. The first error stays.
func (l *line) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = cmp.Or(l.err, err)
	for _, a := range l.waiting {
		a.answered <- answer{err: l.err}
	}
	clear(l.waiting)
	l.queue, l.queued = nil, 0
}

// ask sends a call and waits for its answer.
func (l *line) ask(ctx context.Context, call *pb.StoreCall) (*pb.ResultsReply, error) {
	a := &asked{call: call, size: proto.Size(call), answered: make(chan answer, 1)}
	if deadline, ok := ctx.Deadline(); ok {
		call.TimeoutUs = uint64(max(1, time.Until(deadline).Microseconds()))
	}
	if err := l.add(a); err != nil {
		return nil, err
	}
	select {
	case got := <-a.answered:
		return got.reply, got.err
	case <-ctx.Done():
		l.mu.Lock()
		a.left = true
		delete(l.waiting, call.GetId())
		l.mu.Unlock()
		return nil, rpc.FromStatus(status.FromContextError(ctx.Err()).Err())
	}
}

// add queues a call.
func (l *line) add(a *asked) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.err != nil:
		return l.err
	case a.size > storewire.MaxRequest:
		return fmt.Errorf("%w: a call of %d bytes, at most %d are allowed", seq.ErrBadArgument, a.size, storewire.MaxRequest)
	case l.queued > 0 && l.queued+a.size > maxQueued:
		return fmt.Errorf("%w: %d bytes wait for the stream to the store", seq.ErrOverloaded, l.queued)
	}
	l.last++
	a.call.Id = l.last
	l.waiting[l.last] = a
	l.queue, l.queued = append(l.queue, a), l.queued+a.size
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return nil
}

// alone says which calls never go on a stream.
type alone struct {
	grpc.EmptyDialOption
	is func(ctx context.Context) bool
}

// Alone sends a call that is chosen by is as a call of its own. A traced call needs that, because a stream has
// no spans. If is is nil, no call is chosen.
func Alone(is func(ctx context.Context) bool) grpc.DialOption { return alone{is: is} }

// goesAlone reports whether a call must not go on the stream.
func (s *seat) goesAlone(ctx context.Context) bool { return s.alone != nil && s.alone(ctx) }

// read is Read on the stream. It returns errCalls if the read must go as a call.
func (s *seat) read(ctx context.Context, req quorum.ReadRequest) (*pb.ResultsReply, error) {
	if req.Copies || len(req.Registers) == 0 || s.goesAlone(ctx) {
		return nil, errCalls
	}
	l := s.there()
	if l == nil {
		return nil, errCalls
	}
	return l.ask(ctx, &pb.StoreCall{Call: &pb.StoreCall_Read{Read: storewire.ReadToProto(req)}})
}

// step is Step on the stream. It returns errCalls if the step must go as a call.
func (s *seat) step(ctx context.Context, req quorum.StepRequest, uuid string) (*pb.ResultsReply, error) {
	if s.goesAlone(ctx) {
		return nil, errCalls
	}
	l, err := s.line(req.Secret, uuid)
	if err != nil {
		return nil, err
	}
	if req.Session != l.session {
		return nil, req.Secret.Proves(req.Session)
	}
	req.Session, req.Secret = 0, seq.Secret{} // the stream's
	step := storewire.StepToProto(req)
	step.Secret = nil
	return l.ask(ctx, &pb.StoreCall{Call: &pb.StoreCall_Step{Step: step}})
}
