package client

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Next takes one number of the key: above all that earlier calls got, from any
// client. It retries until ctx ends, or Config.Timeout if ctx has no deadline, and
// then returns the context's error wrapped with the last reason. seq.ErrNoQuorum, with
// the stores that are missing, comes once no AllocSvr that can be reached has a quorum.
// seq.ErrUnknownSpace, seq.ErrOverflow, seq.ErrOverloaded (too many callers wait in this process),
// ErrUnordered and ErrClosed come at once. After an error a number may have been
// skipped, so calling again is always safe.
func (c *Client) Next(ctx context.Context, key Key) (seq.Seq, error) {
	v, t, err := c.depart(ctx, key, 1)
	if err == nil && t.f != nil {
		// The wait stands here and not further down: all that stands above it on the stack
		// of a waiting caller has gone from the caches when it runs again.
		if ctx.Done() == nil {
			<-t.f.done
		} else if !t.f.wait(ctx) {
			return c.nextOnward(ctx, key, v, t, nil)
		}
		if n := t.plain(); n != 0 {
			return n, nil
		}
	}
	return c.nextOnward(ctx, key, v, t, err)
}

// nextOnward is Next where it was not as simple as nearly always.
func (c *Client) nextOnward(ctx context.Context, key Key, v *view, t ticket, err error) (seq.Seq, error) {
	r, err := c.arrive(ctx, key, 1, v, t, err)
	if err != nil {
		return 0, fmt.Errorf("next %v: %w", key, err)
	}
	return r.First, nil
}

// NextN takes n numbers of the key, 1 to seq.MaxCount: first to last, inclusive and
// contiguous. seq.ErrBadCount for another n; otherwise like Next.
func (c *Client) NextN(ctx context.Context, key Key, n uint32) (first, last seq.Seq, err error) {
	r, err := c.Take(ctx, key, n)
	return r.First, r.Last, err
}

// Take is NextN that also tells whether the answer is unordered. Range.Err is the
// returned error.
func (c *Client) Take(ctx context.Context, key Key, n uint32) (Range, error) {
	v, t, err := c.depart(ctx, key, n)
	r, err := c.arrive(ctx, key, n, v, t, err)
	if err != nil {
		err = fmt.Errorf("next %v: %w", key, err)
		return Range{Err: err}, err
	}
	return r, nil
}

// depart gives the key a place on its way to the owner, which nearly always answers. No
// flight and no error: the owner is not known, or suspect, or the call travels alone.
func (c *Client) depart(ctx context.Context, key Key, n uint32) (v *view, t ticket, err error) {
	if err := checkCount(n); err != nil {
		return nil, ticket{}, err
	}
	if err := ctx.Err(); err != nil {
		return nil, ticket{}, err
	}
	if v, err = c.current(ctx); err != nil {
		return nil, ticket{}, err
	}
	space, err := v.mapping.Space(key.Space)
	if err != nil {
		return nil, ticket{}, err
	}
	p := v.owner(space.SectionOf(key.UID))
	if p == nil || p.suspect.Load() || c.alone(ctx) {
		return v, ticket{}, nil
	}
	if t, err = p.enqueue(space, key.UID, n); err != nil {
		t = refused(err)
	}
	return v, t, nil
}

// arrive waits for what came of depart, and asks others if it was no answer.
func (c *Client) arrive(ctx context.Context, key Key, n uint32, v *view, t ticket, err error) (Range, error) {
	if err != nil {
		return Range{}, err
	}
	space, err := v.mapping.Space(key.Space)
	if err != nil {
		return Range{}, err
	}
	if t.f == nil && c.alone(ctx) {
		return c.takeAlone(ctx, key, n)
	}
	if t.f == nil {
		return c.travel(ctx, space, key.UID, n, &journey{})
	}
	r := c.landed(ctx, t, n)
	if r.Err == nil {
		return r, nil
	}
	j := &journey{table: v.version(), next: 1}
	if err := c.fault(ctx, j, r.Err); err != nil {
		return Range{}, err
	}
	return c.travel(ctx, space, key.UID, n, j)
}

// alone says whether the call is to travel by itself.
func (c *Client) alone(ctx context.Context) bool { return c.cfg.Alone != nil && c.cfg.Alone(ctx) }

// takeAlone takes by a batch of one, which has all attempts and errors of a call.
func (c *Client) takeAlone(ctx context.Context, key Key, n uint32) (Range, error) {
	b := &batch{c: c, uids: []seq.UID{key.UID}, counts: []uint32{n}, out: make([]Range, 1)}
	errs, err := c.spread(ctx, key.Space, b.uids, b.ask)
	if err == nil && len(errs) > 0 {
		err = errs[0]
	}
	return b.out[0], err
}

// travel asks one peer after the other until one answers or the call ends.
func (c *Client) travel(ctx context.Context, space *seq.Space, uid seq.UID, n uint32, j *journey) (Range, error) {
	id := space.SectionOf(uid)
	for {
		p, probe := c.pick(c.view.Load(), id, j, (*peer).admit)
		if p == nil {
			if err := c.nextRound(ctx, j); err != nil {
				return Range{}, err
			}
			continue
		}
		r := c.ask(ctx, p, space, uid, n)
		p.release(probe)
		if r.Err == nil {
			return r, nil
		}
		if err := c.fault(ctx, j, r.Err); err != nil {
			return Range{}, err
		}
	}
}

// ask makes one attempt at one peer, together with the calls of others.
func (c *Client) ask(ctx context.Context, p *peer, space *seq.Space, uid seq.UID, n uint32) Range {
	t, err := p.enqueue(space, uid, n)
	if err != nil {
		return Range{Err: err}
	}
	return c.landed(ctx, t, n)
}

// landed waits for the ticket's answer.
func (c *Client) landed(ctx context.Context, t ticket, n uint32) Range {
	if !t.land(ctx) {
		return Range{Err: ctx.Err()} // what comes for it is thrown away
	}
	return c.ordered(t.answer(n))
}

// ordered refuses an unordered answer unless the caller takes them.
func (c *Client) ordered(r Range) Range {
	if r.Unordered && !c.cfg.AllowUnordered {
		return Range{Err: fmt.Errorf("%w: %d to %d thrown away", ErrUnordered, r.First, r.Last)}
	}
	return r
}

func checkCount(n uint32) error {
	if n == 0 || n > seq.MaxCount {
		return fmt.Errorf("%w: count %d, expected 1 to %d", seq.ErrBadCount, n, seq.MaxCount)
	}
	return nil
}
