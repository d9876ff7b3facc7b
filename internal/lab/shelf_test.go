package lab

import (
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// inbox is a shelf whose ticket for number 7 of UID 1 is open, and whose marks are read up to 6.
func inbox() (*shelf, *client.Ticket) {
	s := newShelf(seq.Space{Name: "inbox", Tickets: time.Minute}, 0)
	s.marked(1, 0, client.Mark{Seq: 6, Last: 7})
	return s, &client.Ticket{First: 7, Last: 7, Deadline: time.Now().Add(time.Minute)}
}

func TestAShelfJudgesWhatReadersAreTold(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(s *shelf, t *client.Ticket)
		want Reading
	}{
		{"numbers committed in time, above the mark", func(s *shelf, t *client.Ticket) { s.commit(1, t) }, Reading{Marks: 1, Committed: 1}},
		{"numbers committed in time, below a mark", func(s *shelf, t *client.Ticket) {
			s.marked(1, 6, client.Mark{Seq: 7, Last: 7})
			s.commit(1, t)
		}, Reading{Marks: 2, Committed: 1, Lost: 1}},
		{"numbers that another writer has committed", func(s *shelf, t *client.Ticket) {
			s.commit(1, t)
			s.marked(1, 6, client.Mark{Seq: 7, Last: 7})
			s.commit(1, t)
		}, Reading{Marks: 2, Committed: 1}},
		{"a writer that is late", func(s *shelf, t *client.Ticket) {
			t.Deadline = time.Now()
			s.commit(1, t)
		}, Reading{Marks: 1, Late: 1}},
		{"a mark that falls", func(s *shelf, t *client.Ticket) { s.marked(1, 6, client.Mark{Seq: 5, Last: 7}) }, Reading{Marks: 2, Fell: 1}},
		{"a mark that was asked for before a higher one was told", func(s *shelf, t *client.Ticket) { s.marked(1, 0, client.Mark{Seq: 5, Last: 7}) }, Reading{Marks: 2}},
		{"a dead writer without a fence", func(s *shelf, t *client.Ticket) {
			s.die(1, t, false)
			s.marked(1, 6, client.Mark{Seq: 7, Fence: 6, Last: 7})
		}, Reading{Marks: 2, Dead: 1, Unfenced: 1}},
		{"a dead writer with a fence", func(s *shelf, t *client.Ticket) {
			s.die(1, t, false)
			s.marked(1, 6, client.Mark{Seq: 8, Fence: 7, Last: 8})
		}, Reading{Marks: 2, Dead: 1}},
		{"a dead writer of a ticket that others have", func(s *shelf, t *client.Ticket) {
			s.die(1, t, true)
			s.marked(1, 6, client.Mark{Seq: 7, Last: 7})
		}, Reading{Marks: 2, Dead: 1}},
	} {
		s, ticket := inbox()
		if row.do(s, ticket); s.seen != row.want {
			t.Errorf("%s: got %+v, want %+v", row.name, s.seen, row.want)
		}
		broken := row.want.Lost+row.want.Fell+row.want.Unfenced > 0
		if err := s.seen.broken(); errors.Is(err, ErrBroken) != broken || len(s.examples) > 0 != broken {
			t.Errorf("%s: got %v with examples %q", row.name, err, s.examples)
		}
	}
}

func TestAShelfEndsWithTheLastNumbersReadAndWatched(t *testing.T) {
	tell := func(m client.Mark) func(s *shelf) {
		return func(s *shelf) { s.hear([]client.Update{{Key: s.key(1), Mark: m}}) }
	}
	read := func(m client.Mark) func(s *shelf) { return func(s *shelf) { s.marked(1, 6, m) } }
	end := client.Mark{Seq: 7, Last: 7}
	for _, row := range []struct {
		name         string
		do           []func(s *shelf)
		held, missed int
	}{
		{"the mark is below the last number", nil, 1, 0},
		{"the mark is below the last number that a caller has", []func(*shelf){read(client.Mark{Seq: 6, Last: 6}), tell(end)}, 1, 0},
		{"the watch told nothing", []func(*shelf){read(end)}, 0, 1},
		{"the watch told an older mark", []func(*shelf){tell(client.Mark{Seq: 6, Last: 7}), read(end)}, 0, 1},
		{"the watch told that it does not know", []func(*shelf){read(end), tell(client.Mark{Last: 7, KnownIn: time.Second})}, 0, 1},
		{"both are at the last number", []func(*shelf){read(end), tell(end)}, 0, 0},
	} {
		s, _ := inbox()
		for _, do := range row.do {
			do(s)
		}
		l := loadOf(1)
		l.History.Add(history.Call{Key: history.Key{Space: "inbox", UID: 1}, First: 7, Last: 7})
		r, examples := s.end(l)
		if r.Held != row.held || r.Missed != row.missed || len(examples) != row.held+row.missed || errors.Is(r.broken(), ErrBroken) != (row.held+row.missed > 0) {
			t.Errorf("%s: got %d held and %d missed, %q, want %d and %d", row.name, r.Held, r.Missed, examples, row.held, row.missed)
		}
	}
}
