package allocsvr

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// handClock is moved by the test.
type handClock struct{ now time.Duration }

func (c *handClock) Now() time.Duration { return c.now }

func TestOnlyANameThatStaysTakenEndsTheProcess(t *testing.T) {
	const renewal = time.Second
	tests := []struct {
		name  string
		drive func(c *handClock, connected *int, refuse func())
		ends  bool
	}{
		{"taken for as long as a lease can last and longer", func(c *handClock, _ *int, refuse func()) {
			for range 20 {
				refuse()
				c.now += renewal
			}
		}, true},
		{"taken until the lease of the former life has ended", func(c *handClock, _ *int, refuse func()) {
			for range 10 {
				refuse()
				c.now += renewal
			}
		}, false},
		{"taken at the start, and again by a renewal that lay about while everything was paused", func(c *handClock, connected *int, refuse func()) {
			refuse()
			*connected = 3
			c.now += namePatience - renewal
			*connected = 0
			c.now += 2 * renewal
			refuse()
		}, false},
		{"refused by one store while the others let it in", func(c *handClock, connected *int, refuse func()) {
			*connected = 2
			for range 20 {
				refuse()
				c.now += renewal
			}
		}, false},
		{"let in for a moment in the middle", func(c *handClock, connected *int, refuse func()) {
			for i := range 20 {
				*connected = 0
				if i == 10 {
					*connected = 2
				}
				refuse()
				c.now += renewal
			}
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, connected := &handClock{now: time.Hour}, 0
			var ended error
			r := &refusals{stop: func(err error) { ended = err }, clock: c, needed: 2, connected: func() int { return connected }}
			test.drive(c, &connected, func() { r.add(fmt.Errorf("renew: %w", seq.ErrNameTaken)) })
			if got := ended != nil; got != test.ends {
				t.Errorf("ended with %v, want an end: %t", ended, test.ends)
			}
			if ended != nil && !errors.Is(ended, seq.ErrNameTaken) {
				t.Errorf("ended with %v, want %v", ended, seq.ErrNameTaken)
			}
		})
	}
}

func TestALeaseThatNoStoreGrantsEndsTheProcessAtOnce(t *testing.T) {
	var ended error
	r := &refusals{stop: func(err error) { ended = err }, clock: &handClock{}, needed: 2, connected: func() int { return 3 }}
	r.add(fmt.Errorf("renew: %w", seq.ErrBadLease))
	if !errors.Is(ended, seq.ErrBadLease) {
		t.Errorf("ended with %v, want %v", ended, seq.ErrBadLease)
	}
}

func TestASessionThatWasEndedIsNotGoneOnWith(t *testing.T) {
	for _, test := range []struct {
		name            string
		enough, leaving bool
		want            error
	}{
		{"by so many stores that no quorum is left", true, false, seq.ErrSessionEnded},
		{"by one store, which forgets it with its next start", false, false, nil},
		{"by the node itself, which leaves", true, true, nil},
	} {
		var ended error
		r := &refusals{stop: func(err error) { ended = err }, clock: &handClock{}, needed: 2, connected: func() int { return 1 },
			ended: func() bool { return test.enough }, leaving: func() bool { return test.leaving }}
		r.add(fmt.Errorf("renew: %w", seq.ErrSessionEnded))
		if !errors.Is(ended, test.want) {
			t.Errorf("%s: ended with %v, want %v", test.name, ended, test.want)
		}
	}
}
