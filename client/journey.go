package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// Pauses between rounds of one call. A takeover lasts for a second or two, so the
// pauses stay short beside it.
const (
	pauseFirst = 5 * time.Millisecond
	pauseMax   = 30 * time.Millisecond
)

// maxHops is how many times a round follows a NOT_OWNER: two nodes that name each
// other must not be asked without a pause.
const maxHops = 3

// journey is the way of one key through its attempts. A round tries where a
// NOT_OWNER pointed, then owner, standbys and a configured address, then pauses.
type journey struct {
	hint    string    // address that a NOT_OWNER named, not tried yet
	table   uint64    // version that the round goes by
	next    int       // candidates of the round already tried
	hops    int       // hints followed in the round
	round   int       // rounds that ended
	last    error     // why the last attempt failed
	quorum  error     // the newest answer if it was NO_QUORUM; attempts without one say nothing
	waiting time.Time // end of the first round, for calls without a deadline
}

// pick is the next peer to ask, by what admit lets through; nil when the round is over.
func (c *Client) pick(v *view, id seq.SectionID, j *journey, admit func(*peer) (ok, probe bool)) (p *peer, probe bool) {
	if j.table != v.version() {
		j.table, j.next = v.version(), 0
	}
	if j.hint != "" {
		p, err := c.peerAt(j.hint)
		j.hint = ""
		if err == nil {
			if ok, probe := admit(p); ok {
				return p, probe
			}
		}
	}
	for first := v.candidates(id); j.next < len(first); {
		p := first[j.next]
		j.next++
		if p == nil {
			continue
		}
		if ok, probe := admit(p); ok {
			return p, probe
		}
	}
	for j.next < 3+c.seedsPerRound() {
		p := c.seeds[(c.seedFirst+j.round+j.next)%len(c.seeds)]
		j.next++
		if ok, probe := admit(p); ok {
			return p, probe
		}
	}
	return nil, false
}

// seedsPerRound: the addresses of Config are all there is to an indirect client, and
// one a round is enough for others.
func (c *Client) seedsPerRound() int {
	if c.cfg.Indirect {
		return len(c.seeds)
	}
	return 1
}

// fault notes a failed attempt; final errors come back, to be given to the caller.
func (c *Client) fault(ctx context.Context, j *journey, err error) error {
	if final(err) {
		return err
	}
	j.note(c, err)
	if end := ctx.Err(); end != nil {
		if j.last == nil && !errors.Is(err, end) {
			j.last = err
		}
		return c.timedOut(end, j)
	}
	c.counts.retries.Add(1)
	j.last = err
	var moved *rpc.NotOwnerError
	switch {
	case errors.As(err, &moved):
		if j.hops < maxHops && !c.cfg.Indirect {
			j.hint = moved.Addr
			j.hops++
		}
		if moved.RouteVersion > j.table {
			c.Refresh()
		}
	case errors.Is(err, seq.ErrOverloaded), errors.Is(err, seq.ErrStoreFull):
		// No other node does better now. Without a quorum one may: the owner may be cut
		// off alone, and a standby have taken over.
		j.next = 1 << 16
	}
	return nil
}

// note keeps what an attempt says of the quorum.
func (j *journey) note(c *Client, err error) {
	switch lost := (*lostError)(nil); {
	case errors.Is(err, seq.ErrNoQuorum):
		j.quorum = err
		c.outage.hear(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &lost):
		// The end of somebody's time says nothing.
	default:
		j.quorum = nil
	}
}

// hopeless is why no further round is worth while: the journey met no quorum, and no
// AllocSvr has one.
func (c *Client) hopeless(j *journey) error {
	if j.quorum == nil || c.outage.reason() == nil {
		return nil
	}
	return j.quorum
}

// nextRound pauses if another round is worth while, and says otherwise why the call ends.
func (c *Client) nextRound(ctx context.Context, j *journey) error {
	if err := c.hopeless(j); err != nil {
		return err
	}
	return c.pause(ctx, j)
}

// pause ends a round: it waits a little, or says that the call's time is over.
func (c *Client) pause(ctx context.Context, j *journey) error {
	c.counts.pauses.Add(1)
	c.Refresh()
	d := min(pauseFirst<<min(j.round, 10), pauseMax)
	j.round++
	j.next, j.hops, j.hint = 0, 0, ""
	if j.last == nil {
		j.last = seq.ErrNoRoute
	}
	if _, ok := ctx.Deadline(); !ok {
		// Counted from the first round's end: the clock is not read for calls that
		// succeed at once, and no attempt takes long.
		if j.waiting.IsZero() {
			j.waiting = time.Now()
		} else if time.Since(j.waiting) >= c.cfg.Timeout {
			return c.timedOut(context.DeadlineExceeded, j)
		}
	}
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return c.timedOut(ctx.Err(), j)
	case <-c.ctx.Done():
		return ErrClosed
	case <-timer.C:
		return nil
	}
}

// timedOut is the end of a call by its context, with the reason why it took so long.
func (c *Client) timedOut(end error, j *journey) error {
	last := j.last
	if j.quorum != nil {
		last = j.quorum // what came after it were attempts without an answer
	}
	if last == nil {
		return end
	}
	return fmt.Errorf("%w: last attempt: %w", end, last)
}
