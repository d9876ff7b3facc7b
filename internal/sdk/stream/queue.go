package stream

import (
	"runtime"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// The sender gives way before it takes what waits: for so many turns of the scheduler at most,
// and not at all once so many keys wait.
const (
	turns  = 8
	enough = 512
)

// enqueue gives the key a slot unless limit keys wait already: then full is true, and err is
// ErrFull.
func (s *stream) enqueue(space *seq.Space, key seq.Key, count uint32, r *Request, limit int) (t Slot, full bool, err error) {
	s.mu.Lock()
	b, err := s.roomFor(1, limit)
	if err != nil {
		s.mu.Unlock()
		return Slot{}, err == ErrFull, err
	}
	t = b.add(space, key, count, r)
	s.unlockAndWake(1)
	return t, false, nil
}

// enqueueAll gives the keys at idx, at most seq.MaxBatch, slots in one batch.
func (s *stream) enqueueAll(space *seq.Space, keys *Takes, idx []int, limit int) (t Slot, full bool, err error) {
	s.mu.Lock()
	b, err := s.roomFor(len(idx), limit)
	if err != nil {
		s.mu.Unlock()
		return Slot{}, err == ErrFull, err
	}
	t = b.addAll(space, keys, idx)
	s.unlockAndWake(len(idx))
	return t, false, nil
}

// roomFor finds or makes the batch for n more keys. Needs s.mu.
func (s *stream) roomFor(n, limit int) (*batch, error) {
	if err := s.accepts(n, limit); err != nil {
		return nil, err
	}
	last := len(s.queue) - 1
	if last > 0 && s.queue[last].tickets != nil {
		last--
	}
	if last < 0 || s.queue[last].tickets != nil || s.queue[last].n+n > seq.MaxBatch {
		s.queue = append(s.queue, newBatch(s.spare))
		s.spare = nil
		last = len(s.queue) - 1
	}
	return s.queue[last], nil
}

// accepts returns why n more keys may not wait, nil if they may. Needs s.mu.
func (s *stream) accepts(n, limit int) error {
	if s.closed != nil {
		return s.closed
	}
	if s.waiting+n > limit {
		return ErrFull
	}
	if s.waiting == 0 {
		s.since = time.Now()
	}
	return nil
}

// unlockAndWake counts n more keys, unlocks s.mu, and wakes the sender if they may be what it
// waits for.
func (s *stream) unlockAndWake(n int) {
	before := s.waiting
	s.waiting += n
	s.load.Add(int64(n))
	wake := before == 0 || s.waiting/beside != before/beside
	if !s.started {
		s.started = true
		s.pair.cfg.Go(s.run)
	}
	s.mu.Unlock()
	if wake {
		s.wakeSender()
	}
}

// wakeSender lets the sender look again.
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
	timer := time.NewTimer(holdLimit)
	defer timer.Stop()
	for {
		var stuck <-chan time.Time
		if s.sendAll(&out) {
			timer.Reset(holdLimit)
			stuck = timer.C
		}
		select {
		case <-s.pair.cfg.Context.Done():
			return
		case <-s.wake:
		case <-stuck:
			s.holdNoLonger()
		}
		if s.isClosed() {
			return
		}
	}
}

// sendAll sends one batch after the other until none waits, or what waits is held for a reply.
// It opens the link when there is something to send.
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
		err := (*out).stream.Send(b.request(id, s.pair.server.Version(), s.pair.cfg.AttemptTimeout))
		s.sent(b)
		if err != nil {
			// The receiver may have failed the batches before this one was among them, so
			// both do it.
			s.fail(*out, (*out).sendFailed(err))
		}
	}
}

// giveWay lets other goroutines run as long as that brings more keys: the last reply woke
// many callers, and each turn of the scheduler lets some of them make their next call.
func (s *stream) giveWay(n int) {
	for range turns {
		if n >= enough {
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

// holdNoLonger lets what waits go: the replies for which it waits do not come.
func (s *stream) holdNoLonger() {
	s.mu.Lock()
	s.pace.stuck(s.lastID)
	s.mu.Unlock()
}

// first moves the first batch of the queue to those in flight. nil if none waits, or if it is
// held: then a reply, or more callers, wake the sender.
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

// sent ends the Send of a batch. Its keys are on the wire: the next batch may use their
// memory.
func (s *stream) sent(b *batch) {
	s.mu.Lock()
	s.sending = time.Time{}
	if len(b.groups) > 0 {
		s.spare = b.groups[0].uids[:0]
	}
	s.mu.Unlock()
}
