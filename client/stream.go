package client

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// The sender gives way before it takes what waits: at most so many turns, and none once
// a crowd waits.
const (
	turns = 8
	crowd = 512
)

// lane is one bidirectional stream to a peer with the queue before it. Its goroutines
// start with the first call.
//
// Every batch is at each moment in exactly one of: queue, batches, completed. Who
// moves it does so under mu, which makes completion happen once.
type stream struct {
	server *server
	wake   chan struct{} // cap 1: there may be something to send
	load   *atomic.Int64 // keys waiting or under way, but for those of tails

	mu         sync.Mutex        // guards all below, and the batches in queue
	queue      []*batch          // only the last may take more
	waiting    int               // keys in queue
	since      time.Time         // when the first of queue came
	spare      []uint64          // room for the next batch's keys
	unanswered map[uint64]*batch // under way, by id
	lastID     uint64
	pace       pace
	hangUp     context.CancelFunc // ends the open stream; nil: none is open
	sending    time.Time          // when the Send under way began; zero: none is
	started    bool
	closed     error // why enqueue refuses; nil: it does not
}

func newStream(to *server, load *atomic.Int64) *stream {
	return &stream{server: to, load: load, wake: make(chan struct{}, 1), unanswered: map[uint64]*batch{}}
}

// enqueue gives the key a place unless limit keys wait already: then full is true, and
// the error says so for those who have no other place to go.
func (s *stream) enqueue(space *seq.Space, uid seq.UID, count uint32, limit int) (t slot, full bool, err error) {
	s.mu.Lock()
	b, err := s.roomFor(1, limit)
	if err != nil {
		s.mu.Unlock()
		return slot{}, err == errQueueFull, err
	}
	t = b.add(space, uid, count)
	s.unlockAndWake(1)
	return t, false, nil
}

// enqueueAll gives the keys of a batch at idx, at most seq.MaxBatch, places in one
// batch.
func (s *stream) enqueueAll(space *seq.Space, keys *takes, idx []int, limit int) (t slot, full bool, err error) {
	s.mu.Lock()
	b, err := s.roomFor(len(idx), limit)
	if err != nil {
		s.mu.Unlock()
		return slot{}, err == errQueueFull, err
	}
	t = b.addAll(space, keys, idx)
	s.unlockAndWake(len(idx))
	return t, false, nil
}

// board finds the batch for n more keys. Needs s.mu.
func (s *stream) roomFor(n, limit int) (*batch, error) {
	if s.closed != nil {
		return nil, s.closed
	}
	if s.waiting+n > limit {
		return nil, errQueueFull
	}
	if s.waiting == 0 {
		s.since = time.Now()
	}
	last := len(s.queue) - 1
	if last < 0 || s.queue[last].n+n > seq.MaxBatch {
		s.queue = append(s.queue, newBatch(s.spare))
		s.spare = nil
		last++
	}
	return s.queue[last], nil
}

// unlockAndWake counts n more keys, unlocks s.mu, and wakes the sender where they may
// make a difference to it.
func (s *stream) unlockAndWake(n int) {
	before := s.waiting
	s.waiting += n
	s.load.Add(int64(n))
	rouse := before == 0 || s.waiting/beside != before/beside
	if !s.started {
		s.started = true
		s.server.c.tasks.Go(s.run)
	}
	s.mu.Unlock()
	if rouse {
		s.wakeSender()
	}
}

// rouse lets the sender look again.
func (s *stream) wakeSender() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run is the sender.
func (s *stream) run() {
	var out *link
	defer func() {
		if out != nil {
			out.hangUp()
		}
	}()
	lapse := time.NewTimer(holdLimit)
	defer lapse.Stop()
	for {
		var stuck <-chan time.Time
		if s.sendAll(&out) {
			lapse.Reset(holdLimit)
			stuck = lapse.C
		}
		select {
		case <-s.server.c.ctx.Done():
			return
		case <-s.wake:
		case <-stuck:
			s.lapse()
		}
		if s.isClosed() {
			return
		}
	}
}

// sendAll sends what waits, again the moment the former send is done. It opens the
// stream when there is something to send. held says that the rest waits for a reply.
func (s *stream) sendAll(out **link) (held bool) {
	for {
		n := s.keysWaiting()
		if n == 0 {
			return false
		}
		if *out == nil || (*out).ctx.Err() != nil {
			if *out = s.open(); *out == nil {
				return false
			}
		}
		s.giveWay(n)
		b, id, held := s.first(*out)
		if b == nil {
			return held
		}
		err := (*out).stream.Send(b.request(id, s.server.c.table.view.Load().version(), s.server.c.cfg.AttemptTimeout))
		s.sent(b)
		if err != nil {
			// The receiver may have failed the batches before this one was there, so
			// both do it.
			(*out).hangUp()
			s.fail(*out, ended(err))
		}
	}
}

// gather lets other goroutines run as long as callers get on meanwhile: those whom the
// last reply woke are many, and a turn of the scheduler lets some of them run.
func (s *stream) giveWay(n int) {
	for range turns {
		if n >= crowd {
			return
		}
		runtime.Gosched()
		now := s.keysWaiting()
		if now <= n {
			return
		}
		n = now
	}
}

func (s *stream) keysWaiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed != nil
}

func (s *stream) lapse() {
	s.mu.Lock()
	s.pace.stuck(s.lastID)
	s.mu.Unlock()
}

// link is an open stream.
type link struct {
	ctx    context.Context // ends with the stream
	hangUp context.CancelFunc
	stream pb.Sequence_StreamClient
}

// open makes a stream and starts its receiver. On failure all that waits is failed,
// and nil comes back.
func (s *stream) open() *link {
	ctx, hangUp := context.WithCancel(s.server.c.ctx)
	s.mu.Lock()
	s.hangUp = hangUp
	closed := s.closed != nil
	s.mu.Unlock()
	if closed {
		hangUp()
		return nil
	}
	stream, err := s.server.rpc.Stream(ctx)
	if err != nil {
		hangUp()
		s.fail(nil, err)
		return nil
	}
	out := &link{ctx, hangUp, stream}
	s.server.c.tasks.Go(func() { s.receive(out) })
	return out
}

// take moves the first batch of the queue to those under way. nil if none waits, or
// if it is held: then a reply, or more callers, wake the sender.
func (s *stream) first(out *link) (b *batch, id uint64, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == 0 {
		return nil, 0, false
	}
	if s.pace.hold(s.waiting) {
		return nil, 0, true
	}
	b = s.queue[0]
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	s.waiting -= b.n
	now := time.Now()
	s.since, s.sending = now, now
	b.sent, b.link = now, out
	s.lastID++
	s.unanswered[s.lastID] = b
	s.pace.sent(b.n)
	return b, s.lastID, false
}

// sent ends the Send of a batch. Its keys are on the wire: the next batch may have
// their room.
func (s *stream) sent(b *batch) {
	s.mu.Lock()
	s.sending = time.Time{}
	s.spare = b.groups[0].uids[:0]
	s.mu.Unlock()
}

// receive completes batches until the stream ends, then fails those left.
func (s *stream) receive(out *link) {
	for {
		reply, err := out.stream.Recv()
		if err != nil {
			out.hangUp()
			s.fail(out, ended(err))
			return
		}
		b, more := s.complete(reply.GetId(), reply.GetMore())
		s.server.answered()
		if next := reply.GetNext(); next != nil {
			s.server.c.table.heard(next.GetRouteVersion(), next.GetRoutes())
		}
		if b != nil {
			b.answer(reply)
		}
		if more {
			s.wakeSender() // after the callers were woken, so that they get on
		}
	}
}

// land takes an answered batch from those under way, nil if it was given up. In parts
// its rest goes on under the same id. more says that keys wait.
func (s *stream) complete(id uint64, parts bool) (b *batch, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b = s.unanswered[id]; b != nil {
		now := time.Now()
		s.server.balance.age(now)
		s.remove(id, b)
		if !b.late {
			s.pace.replied(now.Sub(b.sent), now)
		}
		if parts {
			s.unanswered[id] = b.split()
		}
	}
	return b, s.waiting > 0
}

// remove takes a batch from those under way. Needs s.mu.
func (s *stream) remove(id uint64, b *batch) {
	delete(s.unanswered, id)
	if !b.late {
		s.pace.ended(id, b.n)
		s.load.Add(int64(-b.n))
	}
}

// ended gives the end of a stream without an error a text.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the peer ended the stream")
	}
	return err
}

// fail completes the batches of an link with a lost attempt; with nil, all batches
// and all that waits.
func (s *stream) fail(out *link, cause error) {
	s.mu.Lock()
	gone := s.giveUp(func(b *batch) bool { return out == nil || b.link == out }, out == nil)
	err := s.closed
	s.mu.Unlock()
	if err == nil {
		err = s.server.streamEnded(cause)
	}
	failAll(gone, err)
}

// giveUp takes the batches under way that fit, and with queued all that waits. Needs
// s.mu.
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

// sweep gives up what has waited for too long. A quarter more than the peer was told
// lets its own word on the deadline arrive first.
func (s *stream) sweep(now time.Time) {
	limit := s.server.c.cfg.AttemptTimeout + s.server.c.cfg.AttemptTimeout/4
	s.mu.Lock()
	late := s.giveUp(func(b *batch) bool { return now.Sub(b.sent) >= limit }, s.waiting > 0 && now.Sub(s.since) >= limit)
	// A Send that does not return means a peer that reads no more: only the end of
	// the stream frees the sender.
	if !s.sending.IsZero() && now.Sub(s.sending) >= limit && s.hangUp != nil {
		s.hangUp()
	}
	s.mu.Unlock()
	if len(late) > 0 {
		s.server.lost(errTimedOut)
		failAll(late, &lostError{s.server.addr, errTimedOut})
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
