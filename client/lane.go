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
// Every flight is at each moment in exactly one of: queue, flights, completed. Who
// moves it does so under mu, which makes completion happen once.
type lane struct {
	p    *peer
	wake chan struct{} // cap 1: there may be something to send
	load *atomic.Int64 // keys waiting or under way, but for those of tails

	mu      sync.Mutex         // guards all below, and the flights in queue
	queue   []*flight          // only the last may take more
	waiting int                // keys in queue
	since   time.Time          // when the first of queue came
	spare   []uint64           // room for the next flight's keys
	flights map[uint64]*flight // under way, by id
	lastID  uint64
	pace    pace
	hangup  context.CancelFunc // ends the open stream; nil: none is open
	sending time.Time          // when the Send under way began; zero: none is
	started bool
	closed  error // why enqueue refuses; nil: it does not
}

func newLane(p *peer, load *atomic.Int64) *lane {
	return &lane{p: p, load: load, wake: make(chan struct{}, 1), flights: map[uint64]*flight{}}
}

// enqueue gives the key a place unless limit keys wait already: then full is true, and
// the error says so for those who have no other place to go.
func (l *lane) enqueue(space *seq.Space, uid seq.UID, count uint32, limit int) (t ticket, full bool, err error) {
	l.mu.Lock()
	f, err := l.board(1, limit)
	if err != nil {
		l.mu.Unlock()
		return ticket{}, err == errQueueFull, err
	}
	t = f.add(space, uid, count)
	l.unlockAndRouse(1)
	return t, false, nil
}

// enqueueAll gives the keys of a batch at idx, at most seq.MaxBatch, places in one
// flight.
func (l *lane) enqueueAll(space *seq.Space, b *batch, idx []int, limit int) (t ticket, full bool, err error) {
	l.mu.Lock()
	f, err := l.board(len(idx), limit)
	if err != nil {
		l.mu.Unlock()
		return ticket{}, err == errQueueFull, err
	}
	t = f.addAll(space, b, idx)
	l.unlockAndRouse(len(idx))
	return t, false, nil
}

// board finds the flight for n more keys. Needs l.mu.
func (l *lane) board(n, limit int) (*flight, error) {
	if l.closed != nil {
		return nil, l.closed
	}
	if l.waiting+n > limit {
		return nil, errQueueFull
	}
	if l.waiting == 0 {
		l.since = time.Now()
	}
	last := len(l.queue) - 1
	if last < 0 || l.queue[last].n+n > seq.MaxBatch {
		l.queue = append(l.queue, newFlight(l.spare))
		l.spare = nil
		last++
	}
	return l.queue[last], nil
}

// unlockAndRouse counts n more keys, unlocks l.mu, and wakes the sender where they may
// make a difference to it.
func (l *lane) unlockAndRouse(n int) {
	before := l.waiting
	l.waiting += n
	l.load.Add(int64(n))
	rouse := before == 0 || l.waiting/beside != before/beside
	if !l.started {
		l.started = true
		l.p.c.tasks.Go(l.run)
	}
	l.mu.Unlock()
	if rouse {
		l.rouse()
	}
}

// rouse lets the sender look again.
func (l *lane) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run is the sender.
func (l *lane) run() {
	var out *outlet
	defer func() {
		if out != nil {
			out.hangup()
		}
	}()
	lapse := time.NewTimer(holdLimit)
	defer lapse.Stop()
	for {
		var stuck <-chan time.Time
		if l.sendAll(&out) {
			lapse.Reset(holdLimit)
			stuck = lapse.C
		}
		select {
		case <-l.p.c.ctx.Done():
			return
		case <-l.wake:
		case <-stuck:
			l.lapse()
		}
		if l.isClosed() {
			return
		}
	}
}

// sendAll sends what waits, again the moment the former send is done. It opens the
// stream when there is something to send. held says that the rest waits for a reply.
func (l *lane) sendAll(out **outlet) (held bool) {
	for {
		n := l.keysWaiting()
		if n == 0 {
			return false
		}
		if *out == nil || (*out).ctx.Err() != nil {
			if *out = l.open(); *out == nil {
				return false
			}
		}
		l.gather(n)
		f, id, held := l.take(*out)
		if f == nil {
			return held
		}
		err := (*out).stream.Send(f.request(id, l.p.c.view.Load().version(), l.p.c.cfg.AttemptTimeout))
		l.sent(f)
		if err != nil {
			// The receiver may have failed the flights before this one was there, so
			// both do it.
			(*out).hangup()
			l.fail(*out, ended(err))
		}
	}
}

// gather lets other goroutines run as long as callers get on meanwhile: those whom the
// last reply woke are many, and a turn of the scheduler lets some of them run.
func (l *lane) gather(n int) {
	for range turns {
		if n >= crowd {
			return
		}
		runtime.Gosched()
		now := l.keysWaiting()
		if now <= n {
			return
		}
		n = now
	}
}

func (l *lane) keysWaiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting
}

func (l *lane) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed != nil
}

func (l *lane) lapse() {
	l.mu.Lock()
	l.pace.lapse(l.lastID)
	l.mu.Unlock()
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

// take moves the first flight of the queue to those under way. nil if none waits, or
// if it is held: then a reply, or more callers, wake the sender.
func (l *lane) take(out *outlet) (f *flight, id uint64, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == 0 {
		return nil, 0, false
	}
	if l.pace.hold(l.waiting) {
		return nil, 0, true
	}
	f = l.queue[0]
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	l.waiting -= f.n
	now := time.Now()
	l.since, l.sending = now, now
	f.sent, f.outlet = now, out
	l.lastID++
	l.flights[l.lastID] = f
	l.pace.sent(f.n)
	return f, l.lastID, false
}

// sent ends the Send of a flight. Its keys are on the wire: the next flight may have
// their room.
func (l *lane) sent(f *flight) {
	l.mu.Lock()
	l.sending = time.Time{}
	l.spare = f.parts[0].uids[:0]
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
		f, more := l.land(reply.GetId(), reply.GetMore())
		l.p.answered()
		if next := reply.GetNext(); next != nil {
			l.p.c.heard(next.GetRouteVersion(), next.GetRoutes())
		}
		if f != nil {
			f.answer(reply)
		}
		if more {
			l.rouse() // after the callers were woken, so that they get on
		}
	}
}

// land takes an answered flight from those under way, nil if it was given up. In parts
// its rest goes on under the same id. more says that keys wait.
func (l *lane) land(id uint64, parts bool) (f *flight, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f = l.flights[id]; f != nil {
		now := time.Now()
		l.p.balance.age(now)
		l.remove(id, f)
		if !f.tail {
			l.pace.replied(now.Sub(f.sent), now)
		}
		if parts {
			l.flights[id] = f.split()
		}
	}
	return f, l.waiting > 0
}

// remove takes a flight from those under way. Needs l.mu.
func (l *lane) remove(id uint64, f *flight) {
	delete(l.flights, id)
	if !f.tail {
		l.pace.landed(id, f.n)
		l.load.Add(int64(-f.n))
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
	l.mu.Lock()
	gone := l.giveUp(func(f *flight) bool { return out == nil || f.outlet == out }, out == nil)
	err := l.closed
	l.mu.Unlock()
	if err == nil {
		err = l.p.streamEnded(cause)
	}
	failAll(gone, err)
}

// giveUp takes the flights under way that fit, and with queued all that waits. Needs
// l.mu.
func (l *lane) giveUp(fits func(*flight) bool, queued bool) (gone []*flight) {
	for id, f := range l.flights {
		if fits(f) {
			gone = append(gone, f)
			l.remove(id, f)
		}
	}
	if queued {
		gone = append(gone, l.queue...)
		l.load.Add(int64(-l.waiting))
		l.queue, l.waiting = nil, 0
	}
	return gone
}

// sweep gives up what has waited for too long. A quarter more than the peer was told
// lets its own word on the deadline arrive first.
func (l *lane) sweep(now time.Time) {
	limit := l.p.c.cfg.AttemptTimeout + l.p.c.cfg.AttemptTimeout/4
	l.mu.Lock()
	late := l.giveUp(func(f *flight) bool { return now.Sub(f.sent) >= limit }, l.waiting > 0 && now.Sub(l.since) >= limit)
	// A Send that does not return means a peer that reads no more: only the end of
	// the stream frees the sender.
	if !l.sending.IsZero() && now.Sub(l.sending) >= limit && l.hangup != nil {
		l.hangup()
	}
	l.mu.Unlock()
	if len(late) > 0 {
		l.p.lost(errTimedOut)
		failAll(late, &lostError{l.p.addr, errTimedOut})
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
	l.rouse() // lets the sender end
}
