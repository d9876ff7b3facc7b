package client

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// lowLoad is the batch size below which the sender lets other goroutines run once
// before it takes the queue: more callers get on.
const lowLoad = 64

// slot is one caller's place in a batch. The caller fills it and hands it to a lane;
// the lane fills the answer and puts one token into done. A caller that leaves early
// leaves its slot behind for good, so no slot is ever used by two.
type slot struct {
	space *seq.Space
	uid   seq.UID
	count uint32
	out   Range
	done  chan struct{} // cap 1: completing never waits for the caller
}

var slots = sync.Pool{New: func() any { return &slot{done: make(chan struct{}, 1)} }}

func (s *slot) finish(r Range) {
	s.out = r
	s.done <- struct{}{}
}

// flight is a batch that was sent and not answered.
type flight struct {
	slots  []*slot
	sent   time.Time
	outlet *outlet // the stream that it went by
}

// lane is one bidirectional stream to a peer with the queue before it. Its goroutines
// start with the first call.
//
// Every slot is at each moment in exactly one of: queue, one flight, completed. Who
// moves it does so under mu, which makes completion happen once.
type lane struct {
	p    *peer
	wake chan struct{} // cap 1: the queue was empty and is not

	mu      sync.Mutex // guards all below
	queue   []*slot
	since   time.Time // when the first of queue came
	flights map[uint64]*flight
	lastID  uint64
	hangup  context.CancelFunc // ends the open stream; nil: none is open
	sending time.Time          // when the Send under way began; zero: none is
	started bool
	closed  error // why enqueue refuses; nil: it does not
}

func newLane(p *peer) *lane {
	return &lane{p: p, wake: make(chan struct{}, 1), flights: map[uint64]*flight{}}
}

// enqueue appends the slot unless the queue has limit slots already: then full is
// true, and the error says so for those who have no other place to go.
func (l *lane) enqueue(s *slot, limit int) (full bool, err error) {
	l.mu.Lock()
	if l.closed != nil {
		err := l.closed
		l.mu.Unlock()
		return false, err
	}
	if len(l.queue) >= limit {
		l.mu.Unlock()
		return true, errQueueFull
	}
	first := len(l.queue) == 0
	if first {
		l.since = time.Now()
	}
	l.queue = append(l.queue, s)
	if !l.started {
		l.started = true
		l.p.c.tasks.Go(l.run)
	}
	l.mu.Unlock()
	if first {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
	return false, nil
}

// run is the sender: it opens the stream when there is something to send, and sends
// again the moment the former send is done.
func (l *lane) run() {
	var out *outlet
	defer func() {
		if out != nil {
			out.hangup()
		}
	}()
	for {
		select {
		case <-l.p.c.ctx.Done():
			return
		case <-l.wake:
		}
		for l.waiting() > 0 {
			if out == nil || out.ctx.Err() != nil {
				if out = l.open(); out == nil {
					break
				}
			}
			if l.waiting() < lowLoad {
				runtime.Gosched()
			}
			if req := l.take(out); req != nil {
				err := out.stream.Send(req)
				l.sent()
				if err != nil {
					// The receiver may have failed the flights before this one was
					// there, so both do it.
					out.hangup()
					l.fail(out, ended(err))
				}
			}
		}
		if l.isClosed() {
			return
		}
	}
}

func (l *lane) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

func (l *lane) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed != nil
}

// outlet is an open stream.
type outlet struct {
	ctx    context.Context // ends with the stream
	hangup context.CancelFunc
	stream pb.Sequence_StreamClient
}

// open makes a stream and starts its receiver. On failure all that waits is failed,
// and nil comes back.
func (l *lane) open() *outlet {
	ctx, hangup := context.WithCancel(l.p.c.ctx)
	l.mu.Lock()
	l.hangup = hangup
	closed := l.closed != nil
	l.mu.Unlock()
	if closed {
		hangup()
		return nil
	}
	stream, err := l.p.rpc.Stream(ctx)
	if err != nil {
		hangup()
		l.fail(nil, err)
		return nil
	}
	out := &outlet{ctx, hangup, stream}
	l.p.c.tasks.Go(func() { l.receive(out) })
	return out
}

// take turns the queue, or the first seq.MaxBatch of it, into a request and a flight.
func (l *lane) take(out *outlet) *pb.StreamRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.queue)
	if n == 0 {
		return nil
	}
	batch := l.queue
	l.queue = nil
	if n > seq.MaxBatch {
		batch, l.queue = batch[:seq.MaxBatch:seq.MaxBatch], append([]*slot(nil), batch[seq.MaxBatch:]...)
	} else {
		l.queue = make([]*slot, 0, n)
	}
	now := time.Now()
	l.since, l.sending = now, now
	l.lastID++
	l.flights[l.lastID] = &flight{slots: batch, sent: now, outlet: out}
	return request(l.lastID, batch, l.p.c.view.Load().version(), l.p.c.cfg.AttemptTimeout)
}

func (l *lane) sent() {
	l.mu.Lock()
	l.sending = time.Time{}
	l.mu.Unlock()
}

// receive completes flights until the stream ends, then fails those left.
func (l *lane) receive(out *outlet) {
	for {
		reply, err := out.stream.Recv()
		if err != nil {
			out.hangup()
			l.fail(out, ended(err))
			return
		}
		l.mu.Lock()
		f := l.flights[reply.GetId()]
		delete(l.flights, reply.GetId())
		l.mu.Unlock()
		l.p.answered()
		if next := reply.GetNext(); next != nil {
			l.p.c.heard(next.GetRouteVersion(), next.GetRoutes())
		}
		if f != nil {
			f.answer(reply)
		}
	}
}

// ended gives the end of a stream without an error a text.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the peer ended the stream")
	}
	return err
}

// fail completes the flights of an outlet with a lost attempt; with nil, all flights
// and all that waits.
func (l *lane) fail(out *outlet, cause error) {
	var gone []*slot
	l.mu.Lock()
	for id, f := range l.flights {
		if out == nil || f.outlet == out {
			gone = append(gone, f.slots...)
			delete(l.flights, id)
		}
	}
	if out == nil {
		gone, l.queue = append(gone, l.queue...), nil
	}
	err := l.closed
	l.mu.Unlock()
	if err == nil {
		err = &lostError{l.p.addr, cause}
		l.p.lost(cause)
	}
	finishAll(gone, err)
}

// sweep gives up what has waited for too long. A quarter more than the peer was told
// lets its own word on the deadline arrive first.
func (l *lane) sweep(now time.Time) {
	limit := l.p.c.cfg.AttemptTimeout + l.p.c.cfg.AttemptTimeout/4
	var late []*slot
	l.mu.Lock()
	for id, f := range l.flights {
		if now.Sub(f.sent) >= limit {
			late = append(late, f.slots...)
			delete(l.flights, id)
		}
	}
	if len(l.queue) > 0 && now.Sub(l.since) >= limit {
		late = append(late, l.queue...)
		l.queue = nil
	}
	// A Send that does not return means a peer that reads no more: only the end of
	// the stream frees the sender.
	if !l.sending.IsZero() && now.Sub(l.sending) >= limit && l.hangup != nil {
		l.hangup()
	}
	l.mu.Unlock()
	if len(late) > 0 {
		l.p.lost(errTimedOut)
		finishAll(late, &lostError{l.p.addr, errTimedOut})
	}
}

// close fails everything with the cause, and whatever comes later.
func (l *lane) close(cause error) {
	l.mu.Lock()
	l.closed = cause
	if l.hangup != nil {
		l.hangup()
	}
	l.mu.Unlock()
	l.fail(nil, cause)
	select {
	case l.wake <- struct{}{}: // lets the sender end
	default:
	}
}

func finishAll(slots []*slot, err error) {
	for _, s := range slots {
		s.finish(Range{Err: err})
	}
}
