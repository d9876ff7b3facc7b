package client

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// deed is one attempt of a unary call at one peer. It may be made many times.
type deed func(ctx context.Context, p *peer) error

// doubt is what is thought of a peer that gave a call of this kind no answer: others
// are asked before it, and it gets one call at a time to show that it is back.
type doubt struct {
	silent  atomic.Bool
	probing atomic.Bool
}

func (d *doubt) admit() (ok, probe bool) {
	if !d.silent.Load() {
		return true, false
	}
	ok = d.probing.CompareAndSwap(false, true)
	return ok, ok
}

// order is 0 for a peer that is thought to answer, 2 for one that is not, and 1 for one
// that could be tried.
func (d *doubt) order() int {
	switch {
	case !d.silent.Load():
		return 0
	case !d.probing.Load():
		return 1
	}
	return 2
}

func (d *doubt) release(probe bool) {
	if probe {
		d.probing.Store(false)
	}
}

// within gives a call without a deadline that of Config.
func (c *Client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// patience is how long a peer may take in a round. These calls may have to wait at the
// peer, for a worker id, a tick or a takeover, so it grows: what a first attempt is too
// short for, a later one is not. A router waits for others in its turn.
func (c *Client) patience(round int) time.Duration {
	d := 2 * c.cfg.AttemptTimeout
	if c.cfg.Indirect {
		d *= 4
	}
	return d << min(round, 6)
}

// attempt makes the call once and sorts its error: the caller's context's, one with a
// name, a final one, a *namelessError or a *lostError.
func (p *peer) attempt(ctx context.Context, limit time.Duration, do deed) error {
	try, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(try, p)
	code := rpc.CodeOf(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case try.Err() != nil && (code == 0 || code == pb.ErrorCode_ERROR_CODE_DEADLINE):
		return &lostError{p.addr, errTimedOut}
	case code != 0 || errors.Is(err, errMalformed) || final(err):
		return err
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return &lostError{p.addr, err}
	case codes.InvalidArgument, codes.OutOfRange, codes.ResourceExhausted:
		return callError(try, p.addr, err)
	}
	return &namelessError{p.addr, err}
}

// round counts the answers of a round. One is the last in which all that were asked
// refused for a reason of their own, or answered without a name, since they do not serve
// the call or all fail at it.
type round struct{ asked, refused int }

func (r *round) note(err error) {
	r.asked++
	if _, ok := err.(*namelessError); ok || anyOf(err, ofNode) {
		r.refused++
	}
}

func (r *round) hopeless() bool { return r.asked > 0 && r.asked == r.refused }

// anywhere makes the call at one AllocSvr after the other, beginning at another each
// time, until one answers, the error is final, or ctx or Config.Timeout ends.
func (c *Client) anywhere(ctx context.Context, do deed) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := c.current(ctx); err != nil {
		return err
	}
	var j journey
	for {
		if done, err := c.lap(ctx, &j, do); done {
			return err
		}
		if err := c.nextRound(ctx, &j); err != nil {
			return err
		}
	}
}

// once makes the call at one AllocSvr that is thought to answer, for calls whose
// repetition costs something; at the next one if it refuses for a reason of its own,
// which costs nothing.
func (c *Client) once(ctx context.Context, do deed) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if _, err := c.current(ctx); err != nil {
		return err
	}
	order := c.tour(c.view.Load(), 0)
	// Those that are in doubt come last: one of them is asked if there is no other.
	slices.SortStableFunc(order, func(a, b *peer) int { return a.doubt.order() - b.doubt.order() })
	var err error
	for _, p := range order {
		_, probe := p.doubt.admit()
		left := c.cfg.Timeout
		if deadline, ok := ctx.Deadline(); ok {
			left = time.Until(deadline)
		}
		err = p.attempt(ctx, left, do)
		c.judge(ctx, p, err)
		p.doubt.release(probe)
		if !anyOf(err, ofNode) {
			return err
		}
	}
	return err
}

// lap asks each peer once at most; done is false when another lap is worth while.
func (c *Client) lap(ctx context.Context, j *journey, do deed) (done bool, err error) {
	order := c.tour(c.view.Load(), j.round)
	trusted := len(order) // behind it stand those put off: asked whatever is thought of them
	var r round
	for i := 0; i < len(order); i++ {
		p := order[i]
		ok, probe := p.doubt.admit()
		if !ok && i < trusted {
			order = append(order, p)
			continue
		}
		err := p.attempt(ctx, c.patience(j.round), do)
		c.judge(ctx, p, err)
		p.doubt.release(probe)
		if err == nil {
			return true, nil
		}
		r.note(err)
		if end := c.fault(ctx, j, err); end != nil {
			return true, end
		}
	}
	if r.hopeless() {
		return true, j.last
	}
	return false, nil
}

// judge notes what an attempt says of the peer: nothing if the caller left. Silence
// may be the wait of a namespace that is short of IDs, or of a caller in a hurry, so
// the calls for sequences do not hear of it.
func (c *Client) judge(ctx context.Context, p *peer, err error) {
	lost, ok := err.(*lostError)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
	case !ok:
		p.doubt.silent.Store(false)
		p.answered()
	case lost.cause == errTimedOut:
		p.doubt.silent.Store(true)
	default:
		p.doubt.silent.Store(true)
		p.lost(lost.cause)
	}
}

// tour is all AllocSvr of the table, each call's from another one on, and then
// addresses of Config.
func (c *Client) tour(v *view, round int) []*peer {
	out := make([]*peer, 0, 2*(len(v.nodes)+c.seedsPerRound()))
	turn := int(c.turn.Add(1))
	for i := range v.nodes {
		if p := v.nodes[(turn+i)%len(v.nodes)]; p != nil {
			out = append(out, p)
		}
	}
	for i := range c.seedsPerRound() {
		if p := c.seeds[(c.seedFirst+turn+round+i)%len(c.seeds)]; !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// owned makes the call at the owner of the section, or wherever a NOT_OWNER points,
// by the rules of Next.
func (c *Client) owned(ctx context.Context, name string, do deed) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	v, err := c.current(ctx)
	if err != nil {
		return err
	}
	id := v.mapping.SectionOfName(name)
	var j journey
	var r round
	for {
		p, probe := c.pick(v, id, &j, (*peer).admit)
		if p == nil {
			if r.hopeless() {
				return j.last
			}
			r = round{}
			if err := c.nextRound(ctx, &j); err != nil {
				return err
			}
			v = c.view.Load()
			continue
		}
		err := p.attempt(ctx, c.patience(j.round), do)
		switch lost, ok := err.(*lostError); {
		case ctx.Err() != nil: // says nothing of the peer
		case ok:
			p.lost(lost.cause)
		default:
			p.answered()
		}
		p.release(probe)
		if err == nil {
			return nil
		}
		r.note(err)
		if end := c.fault(ctx, &j, err); end != nil {
			return end
		}
		v = c.view.Load()
	}
}
