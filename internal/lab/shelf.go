package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// Fates of writers in percent, and times.
const (
	dyingWriters   = 2                     // never commit and say nothing
	givingUp       = 5                     // cancel
	slowWriters    = 20                    // commit at any time of the ticket's life
	commitWithin   = 20 * time.Millisecond // all others
	readEvery      = 10 * time.Millisecond
	shelfExamples  = 10
	ticketsPercent = 50 // of the calls, where a number can be taken without one
)

// Reading is what writers with tickets, readers who go by marks, and a watch saw of a space with tickets.
type Reading struct {
	Tickets   int     `json:"tickets"`
	Committed int     `json:"committed"`
	Late      int     `json:"late"`       // writers that could not commit before the deadline, and did not
	Dead      int     `json:"dead"`       // writers that said nothing any more
	Marks     int     `json:"marks"`      // that were read
	Unknown   int     `json:"unknown"`    // marks that a new owner did not know yet
	Updates   int     `json:"updates"`    // that the watch told
	Lost      int     `json:"lost"`       // R1: tickets whose numbers were committed in time, below a mark
	Unfenced  int     `json:"unfenced"`   // R1: marks above a dead writer's numbers with a fence below them
	Fell      int     `json:"fell"`       // R2: marks below one that was read before
	Held      int     `json:"held"`       // R3: UIDs whose mark did not reach their last number
	Missed    int     `json:"missed"`     // R4: UIDs whose newest number and mark the watch did not tell
	SettledMS float64 `json:"settled_ms"` // from the end of the load until each mark was at the last number
}

func (r *Reading) broken() error {
	if r == nil || r.Lost+r.Unfenced+r.Fell+r.Held+r.Missed == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d tickets passed by a mark and %d not fenced (R1), %d marks fell (R2), %d UIDs held (R3), %d missed by the watch (R4)",
		ErrBroken, r.Lost, r.Unfenced, r.Fell, r.Held, r.Missed)
}

// shelf is the database of the writers with tickets of a load. Its readers go by the marks of the known UIDs
// on all paths, and one watches them.
type shelf struct {
	space    seq.Space
	patience time.Duration // of the end

	stop             context.CancelFunc
	writers, readers sync.WaitGroup

	mu       sync.Mutex // guards all below
	keys     map[seq.UID]*rows
	seen     Reading
	examples []string
}

// rows is what the database and its readers know of a UID.
type rows struct {
	there   map[seq.Seq]bool // first numbers of what is committed
	dead    seq.Seq          // the last number of dead writers
	mark    client.Mark      // the highest
	watched client.Mark      // the newest
	told    bool             // anything by the watch
}

func newShelf(space seq.Space, patience time.Duration) *shelf {
	return &shelf{space: space, patience: patience, stop: func() {}, keys: map[seq.UID]*rows{}}
}

// warm is the time after which owners that are as old as the load know all marks.
func (s *shelf) warm() time.Duration {
	if s == nil {
		return 0
	}
	return s.space.Tickets + s.space.Tickets/10
}

// kind is calls for numbers, with and without tickets.
func (s *shelf) kind() Kind {
	return Kind{Name: "ticket", Percent: 100, Call: func(ctx context.Context, j Job) {
		if j.Random%100 >= ticketsPercent {
			j.Take(ctx, 1)
			return
		}
		uid, began := j.NextUID(), j.Clock.Now()
		r, err := s.open(ctx, j.Path, uid, 1+uint32(j.Random>>8%3))
		j.Record(history.Key{Space: s.space.Name, UID: uint64(uid)}, began, r, err)
	}}
}

// open takes numbers with a ticket, and leaves them to a writer.
func (s *shelf) open(ctx context.Context, p Path, uid seq.UID, count uint32, opts ...client.OpenOption) (client.Range, error) {
	t, err := p.Client.Open(ctx, s.key(uid), count, opts...)
	if err != nil {
		return client.Range{}, err
	}
	s.mu.Lock()
	s.seen.Tickets++
	s.mu.Unlock()
	s.writers.Go(func() { s.write(uid, t, len(opts) > 0) })
	return client.Range{First: t.First, Last: t.Last, Replayed: t.Replayed}, nil
}

func (s *shelf) key(uid seq.UID) client.Key { return client.Key{Space: s.space.Name, UID: uid} }

// write is one writer, from its ticket to its end. A shared ticket may have other writers, too.
func (s *shelf) write(uid seq.UID, t *client.Ticket, shared bool) {
	fate, pause := rand.IntN(100), rand.N(commitWithin)
	if fate >= 100-slowWriters {
		pause = rand.N(t.Life)
	}
	time.Sleep(min(pause, time.Until(t.Deadline)))
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	switch {
	case fate < dyingWriters:
		s.die(uid, t, shared)
	case fate < dyingWriters+givingUp && !shared:
		_ = t.Cancel(ctx) // otherwise it ends by itself
	case s.commit(uid, t):
		_ = t.Done(ctx) // likewise
	}
}

// of returns the rows of a UID. Needs s.mu.
func (s *shelf) of(uid seq.UID) *rows {
	r := s.keys[uid]
	if r == nil {
		r = &rows{there: map[seq.Seq]bool{}}
		s.keys[uid] = r
	}
	return r
}

func (s *shelf) die(uid seq.UID, t *client.Ticket, shared bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Dead++
	if r := s.of(uid); !shared {
		r.dead = max(r.dead, t.Last)
	}
}

// commit makes the numbers visible if it is not too late, and reports whether they are.
func (s *shelf) commit(uid seq.UID, t *client.Ticket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of(uid)
	switch {
	case r.there[t.First]:
		return true
	case time.Until(t.Deadline) <= 0:
		s.seen.Late++
		return false
	case t.First <= r.mark.Seq:
		s.broke(&s.seen.Lost, "R1: %d-%d of %v are committed %v before the deadline, and a reader has passed %d", t.First, t.Last, s.key(uid),
			time.Until(t.Deadline), r.mark.Seq)
	}
	r.there[t.First] = true
	s.seen.Committed++
	return true
}

// broke counts a broken promise. Needs s.mu.
func (s *shelf) broke(count *int, format string, args ...any) {
	*count++
	if len(s.examples) < shelfExamples {
		s.examples = append(s.examples, fmt.Sprintf(format, args...))
	}
}

// start begins to read the known UIDs of a load.
func (s *shelf) start(l *Load) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	watch, err := l.paths[0].Client.Watch(ctx, s.all(l.known)...)
	if err != nil {
		return err
	}
	for _, p := range l.paths {
		s.readers.Go(func() {
			for ctx.Err() == nil {
				s.readAll(ctx, l, p)
				_ = rest(ctx, readEvery)
			}
		})
	}
	s.readers.Go(func() {
		defer watch.Close()
		for {
			news, err := watch.Next(ctx)
			if err != nil {
				return
			}
			s.hear(news)
		}
	})
	return nil
}

func (s *shelf) all(uids []seq.UID) []client.Key {
	keys := make([]client.Key, len(uids))
	for i, uid := range uids {
		keys[i] = s.key(uid)
	}
	return keys
}

func (s *shelf) readAll(ctx context.Context, l *Load, p Path) {
	for part := range slices.Chunk(l.known, seq.MaxBatch) {
		s.read(ctx, l.cfg.Timeout, p, part)
	}
}

// read reads marks once.
func (s *shelf) read(ctx context.Context, timeout time.Duration, p Path, uids []seq.UID) {
	before := make([]seq.Seq, len(uids))
	s.mu.Lock()
	for i, uid := range uids {
		before[i] = s.of(uid).mark.Seq
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	marks, err := p.Client.Marks(ctx, s.all(uids)...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range marks {
		switch m := marks[i]; {
		case err != nil || m.Err != nil:
		case m.KnownIn > 0:
			s.seen.Unknown++
		default:
			s.marked(uids[i], before[i], m)
		}
	}
}

// marked judges a mark that was asked for when another had been told before. Needs s.mu.
func (s *shelf) marked(uid seq.UID, before seq.Seq, m client.Mark) {
	s.seen.Marks++
	r := s.of(uid)
	if m.Seq < before {
		s.broke(&s.seen.Fell, "R2: mark %d of %v after %d", m.Seq, s.key(uid), before)
	}
	if m.Seq >= r.dead && m.Fence < r.dead {
		s.broke(&s.seen.Unfenced, "R1: mark %d of %v with fence %d, and a writer of %d has died", m.Seq, s.key(uid), m.Fence, r.dead)
	}
	if m.Seq >= r.mark.Seq {
		r.mark = m
	}
}

// hear takes in what the watch tells.
func (s *shelf) hear(news []client.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range news {
		if u.Err == nil && u.KnownIn == 0 {
			r := s.of(u.Key.UID)
			r.watched, r.told = u.Mark, true
			s.seen.Updates++
		}
	}
}

// end comes when the load has ended and the cluster serves. It waits until the marks have reached the last
// numbers, and the watch has told them. A nil shelf has nothing to tell.
func (s *shelf) end(l *Load) (*Reading, []string) {
	if s == nil {
		return nil, nil
	}
	s.writers.Wait()
	began, last := time.Now(), map[seq.UID]seq.Seq{}
	for _, c := range l.History.Calls() {
		last[seq.UID(c.UID)] = max(last[seq.UID(c.UID)], seq.Seq(c.Last))
	}
	for held, missed := 1, 1; held+missed > 0 && time.Since(began) < s.patience; {
		time.Sleep(readEvery)
		if held, missed = s.behind(l.known, last, nil); held > 0 {
			s.seen.SettledMS = ms(time.Since(began))
		}
	}
	s.stop()
	s.readers.Wait()
	s.seen.Held, s.seen.Missed = s.behind(l.known, last, &s.examples)
	return &s.seen, s.examples
}

// behind counts the UIDs whose mark is not at the last number, and the UIDs whose last number the watch has not told.
// Some of them become examples, if those are wanted.
func (s *shelf) behind(uids []seq.UID, last map[seq.UID]seq.Seq, examples *[]string) (held, missed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, uid := range uids {
		r, broken := s.of(uid), ""
		switch {
		case r.mark.Seq < max(r.mark.Last, last[uid]):
			held, broken = held+1, "R3"
		case !r.told || r.watched.Seq < r.mark.Seq || r.watched.Last < last[uid]:
			missed, broken = missed+1, "R4"
		}
		if broken != "" && examples != nil && len(*examples) < shelfExamples {
			*examples = append(*examples, fmt.Sprintf("%s: %v: last number %d, mark %d of %d, by the watch %d of %d", broken, s.key(uid), last[uid],
				r.mark.Seq, r.mark.Last, r.watched.Seq, r.watched.Last))
		}
	}
	return held, missed
}
