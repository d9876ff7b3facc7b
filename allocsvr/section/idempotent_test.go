package section

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/logs"
	"github.com/seqsvr/seqsvr/seq"
)

// The next owner of the section reads its copy. A record that the former log sends later would be lost, or
// its number taken twice.
func TestTheLogOfASectionEndsWithItsTenure(t *testing.T) {
	for name, end := range map[string]func(o *owned){
		"sealed":  func(o *owned) { o.c.Seal() },
		"lost":    func(o *owned) { o.Lose(0, o.epoch) },
		"dropped": func(o *owned) { o.c.Drop(o.epoch, "") },
	} {
		o := newOwnedOf(t, seq.Space{Name: "orders", Sections: 1, Mode: seq.Exact})
		log := o.c.log
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := log.Take(ctx, &logs.Instant{}, 7, 1, "a", time.Time{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: before its copy was read: got %v", name, err)
		}
		cancel()
		end(o)
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := log.Take(ctx, &logs.Instant{}, 7, 1, "a", time.Time{}); !errors.Is(err, logs.ErrClosed) {
			t.Errorf("%s: got %v, want %v", name, err, logs.ErrClosed)
		}
	}
}

// A log may end of itself, a moment before its section is given up.
func TestACallOfALogThatHasEndedEndsWithItsCaller(t *testing.T) {
	o := newOwnedOf(t, seq.Space{Name: "orders", Sections: 1, Mode: seq.Exact})
	o.c.log.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := o.Lookup(ctx, o.c.space, seq.Plain(7), "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}
