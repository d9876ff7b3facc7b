package lab

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// loadOf calls known UIDs alone.
func loadOf(known ...seq.UID) *Load { return &Load{known: known} }

func TestALoadThatIsOlderThanTheWindowIsNotAudited(t *testing.T) {
	o := NewOnces(seq.Space{Name: "orders", Window: time.Minute}, time.Second)
	q := o.draw(Job{Load: loadOf(1), Random: 1})
	q.sent = q.sent.Add(-2 * time.Minute)
	if logs, err := o.Audit(context.Background(), &Load{}); !errors.Is(err, ErrUnaudited) || logs != nil {
		t.Errorf("got %v, %v, want no logs and %v", logs, err, ErrUnaudited)
	}
}

func TestARequestWithoutAnAnswerIsDrawnAgain(t *testing.T) {
	o := NewOnces(seq.Space{Name: "orders"}, time.Second)
	l := loadOf(1, 2)
	lost, got := o.draw(Job{Load: l, Random: 1}), o.draw(Job{Load: l, Random: 1})
	if lost.id == got.id {
		t.Fatalf("two requests with id %s", got.id)
	}
	o.open, o.answered = append(o.open, lost), append(o.answered, got)
	if q := o.draw(Job{Load: l, Random: 2}); q != lost || len(o.open) != 0 {
		t.Errorf("drew %+v with %d open ones left, want %+v and none", q, len(o.open), lost)
	}
	if q := o.draw(Job{Load: l, Random: 1}); q != got {
		t.Errorf("drew %+v, want %+v again", q, got)
	}
}

// Requests that are repeated take no UID's turn.
func TestEveryUIDHasItsTurnAmongRequestsThatAreRepeated(t *testing.T) {
	o, l := NewOnces(seq.Space{Name: "orders"}, time.Second), loadOf(1, 2, 3, 4, 5, 6, 7)
	for i := uint64(0); len(o.made) < len(l.known); i++ {
		q := o.draw(Job{Load: l, Random: i<<8 | 1})
		o.answered = append(o.answered, q)
	}
	for i, q := range o.made {
		if q.uid != l.known[i] {
			t.Errorf("request %d is for %d, want %d", i, q.uid, l.known[i])
		}
	}
}

func TestABrokenExactSpaceIsAnError(t *testing.T) {
	for _, r := range []*Result{{Exact: &Exact{Holes: 1}}, {Exact: &Exact{Twice: 1}}, {Duplicates: 1, Exact: &Exact{}}} {
		if err := r.broken(); !errors.Is(err, ErrBroken) {
			t.Errorf("%+v: got %v, want %v", *r.Exact, err, ErrBroken)
		}
	}
	for _, r := range []*Result{{}, {Exact: &Exact{IDs: 3, Unanswered: 1}}} {
		if err := r.broken(); err != nil {
			t.Errorf("got %v, want nothing", err)
		}
	}
}
