package stream

import (
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
)

// listening is what a server said last, on either stream or in answer to a question.
type listening struct {
	born time.Time

	mu       sync.Mutex // guards all below
	patience wake.Patience
	word     time.Time
	late     time.Duration // for how long this process has stood still since then
	gone     bool          // its keys were given up, and it has said nothing since
}

func (l *listening) begin(least time.Duration) { l.born, l.patience.Least = time.Now(), least }

// heard notes a word of the server. A batch took so long; took is 0 if the word says nothing of that.
func (l *listening) heard(now time.Time, took time.Duration) {
	if l.patience.Least == 0 {
		return // nothing goes by it: each reply would pay for it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if took > 0 && !l.word.IsZero() { // the first answer took a connection
		l.patience.Answered(min(took, 3*l.patience.Least)) // more if the key waited for a step or a takeover
	}
	l.word, l.late = now, 0
	if l.gone {
		l.gone = false
		l.patience.Wrong(now.Sub(l.born))
	}
}

// Heard notes an answer of the server to a question that was not asked on its streams.
func (p *Pair) Heard(now time.Time) { p.listening.heard(now, 0) }

// Late notes that this process itself stood still for so long, and may have answers that it has not read. That
// time does not count.
func (p *Pair) Late(by time.Duration) {
	l := &p.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late += by
}

// Owing tells what to think of a server that owes answers for keys of strict and exact spaces. In doubt: half
// of the time that it has is over without a word from it. Silent: all of that time is over. Neither is a server
// that has said nothing yet: its first answer takes a connection.
func (p *Pair) Owing(now time.Time) (doubt, silent bool) {
	var since time.Time
	for _, s := range p.streams {
		if sent := s.owing(); since.IsZero() || !sent.IsZero() && sent.Before(since) {
			since = sent
		}
	}
	l := &p.listening
	l.mu.Lock()
	defer l.mu.Unlock()
	if since.IsZero() || l.word.IsZero() {
		l.late = 0
		return false, false
	}
	if l.word.After(since) {
		since = l.word
	}
	has, waited := l.patience.At(now.Sub(l.born)), now.Sub(since)-l.late
	l.gone = l.gone || waited >= has
	return waited >= has/2, waited >= has
}

// GiveUp ends what waits for answers for keys of strict and exact spaces, so that other servers are asked.
func (p *Pair) GiveUp() {
	var gone []*batch
	for _, s := range p.streams {
		gone = append(gone, s.giveUpLeaseless()...)
	}
	if len(gone) > 0 {
		failAll(gone, p.server.Ended(ErrTimedOut))
	}
}

// owing returns when the oldest batch in flight was sent that has keys of a strict or exact space; zero if
// there is none.
func (s *stream) owing() (since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.unanswered {
		if b.leaseless && (since.IsZero() || b.sent.Before(since)) {
			since = b.sent
		}
	}
	return since
}

func (s *stream) giveUpLeaseless() []*batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	leaseless := func(b *batch) bool { return b.leaseless }
	return s.giveUp(leaseless, slices.ContainsFunc(s.queue, leaseless))
}
