package stream

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// stream is a bidirectional gRPC stream to a server and the queue before it. Its sender
// (queue.go) starts with the first call, and opens the stream again where it broke.
//
// Every batch is at each moment in exactly one of: queue, unanswered, completed. It is moved
// under mu, so that it is completed once.
type stream struct {
	pair *Pair
	wake chan struct{} // cap 1: there may be something to send
	load *atomic.Int64 // keys waiting or in flight, without the keys of late batches

	mu         sync.Mutex        // guards all below, and the batches in queue
	queue      []*batch          // only the last of a kind may take more
	waiting    int               // keys in queue
	since      time.Time         // when the first of queue came
	spare      []uint64          // room for the next batch's keys
	unanswered map[uint64]*batch // in flight, by id
	lastID     uint64
	pace       pace
	hangUp     context.CancelFunc // ends the link; nil before the first link
	sending    time.Time          // when the Send that goes on began; zero: none does
	started    bool
	closed     error // the error of enqueue; nil while it accepts keys
}

func newStream(of *Pair, load *atomic.Int64) *stream {
	return &stream{pair: of, load: load, wake: make(chan struct{}, 1), unanswered: map[uint64]*batch{}}
}

// link is the gRPC stream that is open.
type link struct {
	ctx    context.Context // ends with the stream
	hangUp context.CancelFunc
	stream pb.Sequence_StreamClient
	over   chan struct{} // closed once the receiver knows why the stream ended
	why    error         // of that end; written before over is closed
}

// open makes a link and starts its receiver. If it cannot, it fails all that waits and returns
// nil.
func (s *stream) open() *link {
	ctx, hangUp := context.WithCancel(s.pair.cfg.Context)
	s.mu.Lock()
	s.hangUp = hangUp
	closed := s.closed != nil
	s.mu.Unlock()
	if closed {
		hangUp()
		return nil
	}
	stream, err := s.pair.server.Open(ctx)
	if err != nil {
		hangUp()
		s.fail(nil, err)
		return nil
	}
	s.pair.unary.Store(false) // another process may answer
	out := &link{ctx: ctx, hangUp: hangUp, stream: stream, over: make(chan struct{})}
	s.pair.cfg.Go(func() { s.receive(out) })
	return out
}

// receive completes batches until the link ends, then fails those left.
func (s *stream) receive(out *link) {
	for {
		reply, err := out.stream.Recv()
		if err != nil {
			out.why = ended(err)
			close(out.over)
			out.hangUp()
			s.fail(out, out.why)
			return
		}
		b, more := s.complete(reply.GetId(), reply.GetMore())
		s.pair.server.Answered()
		next, told := reply.GetNext(), false
		if b != nil && b.tickets != nil {
			told = true
			s.pair.server.Heard(reply.GetTickets().GetRouteVersion(), reply.GetTickets().GetRoutes())
			if !b.answerTickets(reply) {
				s.pair.unary.Store(true)
			}
		} else if b != nil {
			// A refused key needs the table in the reply first. Other keys need not wait for that.
			if told = slices.ContainsFunc(next.GetResults(), func(r *pb.BatchResult) bool { return len(r.GetErrors()) > 0 }); told {
				s.pair.server.Heard(next.GetRouteVersion(), next.GetRoutes())
			}
			b.answer(reply)
		}
		if !told {
			s.pair.server.Heard(next.GetRouteVersion(), next.GetRoutes())
		}
		if more {
			s.wakeSender() // after the callers were woken, so that they run first
		}
	}
}

// complete takes an answered batch from those in flight, nil if it was given up. If the answer
// comes in parts, the rest of the batch takes its place. more says that keys wait.
func (s *stream) complete(id uint64, parts bool) (b *batch, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, took := time.Now(), time.Duration(0)
	if b = s.unanswered[id]; b != nil {
		s.pair.balance.age(now)
		s.remove(id, b)
		if !b.late {
			took = now.Sub(b.sent)
			s.pace.replied(took, now)
		}
		if parts {
			s.unanswered[id] = b.split()
		}
	}
	s.pair.listening.heard(now, took)
	return b, s.waiting > 0
}

// remove takes a batch from those in flight. Needs s.mu.
func (s *stream) remove(id uint64, b *batch) {
	delete(s.unanswered, id)
	if !b.late {
		s.pace.ended(id, b.n)
		s.load.Add(int64(-b.n))
	}
}

// sendFailed is why a Send failed. One that found the stream ended does not say why; the receiver reads it.
func (l *link) sendFailed(err error) error {
	if errors.Is(err, io.EOF) {
		<-l.over
		err = l.why
	}
	l.hangUp()
	return err
}

// ended is the error of a stream that ended, also where it ended without one.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the server ended the stream")
	}
	return err
}

// fail completes the batches of a link with a lost attempt; without a link, all batches and
// all that waits.
func (s *stream) fail(out *link, cause error) {
	s.mu.Lock()
	gone := s.giveUp(func(b *batch) bool { return out == nil || b.link == out }, out == nil)
	err := s.closed
	s.mu.Unlock()
	if err == nil {
		err = s.pair.server.Ended(cause)
	}
	failAll(gone, err)
}

// giveUp removes the batches in flight that fit, and with queued all that waits. Needs s.mu.
func (s *stream) giveUp(fits func(*batch) bool, queued bool) (gone []*batch) {
	for id, b := range s.unanswered {
		if fits(b) {
			gone = append(gone, b)
			s.remove(id, b)
		}
	}
	if queued {
		gone = append(gone, s.queue...)
		s.load.Add(int64(-s.waiting))
		s.queue, s.waiting = nil, 0
	}
	return gone
}

// sweep gives up what has waited for too long: for a quarter longer than the server was told,
// so that what the server says of the deadline arrives first.
func (s *stream) sweep(now time.Time) {
	limit := s.pair.cfg.AttemptTimeout + s.pair.cfg.AttemptTimeout/4
	s.mu.Lock()
	late := s.giveUp(func(b *batch) bool { return now.Sub(b.sent) >= limit }, s.waiting > 0 && now.Sub(s.since) >= limit)
	// A Send that does not return means a server that reads no more: only the end of
	// the stream frees the sender.
	if !s.sending.IsZero() && now.Sub(s.sending) >= limit && s.hangUp != nil {
		s.hangUp()
	}
	s.mu.Unlock()
	if len(late) > 0 {
		failAll(late, s.pair.server.Ended(ErrTimedOut))
	}
}

// close fails everything with the cause, and whatever comes later.
func (s *stream) close(cause error) {
	s.mu.Lock()
	s.closed = cause
	if s.hangUp != nil {
		s.hangUp()
	}
	s.mu.Unlock()
	s.fail(nil, cause)
	s.wakeSender() // lets the sender end
}

// hangUpNow ends the gRPC stream that is open. Batches in flight are tried again.
func (s *stream) hangUpNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hangUp != nil {
		s.hangUp()
	}
}
