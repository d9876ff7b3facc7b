package client

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Next takes one number of the key: above all that earlier calls got, from any
// client. It retries until ctx ends, or Config.Timeout if ctx has no deadline, and
// then returns the context's error wrapped with the last reason. seq.ErrUnknownSpace,
// seq.ErrOverflow, seq.ErrOverloaded (too many callers wait in this process),
// ErrUnordered and ErrClosed come at once. After an error a number may have been
// skipped, so calling again is always safe.
func (c *Client) Next(ctx context.Context, key Key) (seq.Seq, error) {
	r, err := c.Take(ctx, key, 1)
	return r.First, err
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
	r, err := c.take(ctx, key, n)
	if err != nil {
		err = fmt.Errorf("next %v: %w", key, err)
		return Range{Err: err}, err
	}
	return r, nil
}

// take tries the owner first, which nearly always answers; what it keeps on the stack
// is kept by every waiting caller, so that the rest is a function of its own.
func (c *Client) take(ctx context.Context, key Key, n uint32) (Range, error) {
	if err := checkCount(n); err != nil {
		return Range{}, err
	}
	if err := ctx.Err(); err != nil {
		return Range{}, err
	}
	v, err := c.current(ctx)
	if err != nil {
		return Range{}, err
	}
	space, err := v.mapping.Space(key.Space)
	if err != nil {
		return Range{}, err
	}
	p := v.owner(space.SectionOf(key.UID))
	if p == nil || p.suspect.Load() {
		return c.travel(ctx, space, key.UID, n, &journey{})
	}
	r := c.ask(ctx, p, space, key.UID, n)
	if r.Err == nil {
		return r, nil
	}
	j := &journey{table: v.version(), next: 1}
	if err := c.fault(ctx, j, r.Err); err != nil {
		return Range{}, err
	}
	return c.travel(ctx, space, key.UID, n, j)
}

// travel asks one peer after the other until one answers or the call ends.
func (c *Client) travel(ctx context.Context, space *seq.Space, uid seq.UID, n uint32, j *journey) (Range, error) {
	id := space.SectionOf(uid)
	for {
		p, probe := c.pick(c.view.Load(), id, j, (*peer).admit)
		if p == nil {
			if err := c.pause(ctx, j); err != nil {
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
