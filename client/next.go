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
	id := space.SectionOf(key.UID)
	var j journey
	for {
		p, probe := c.pick(v, id, &j, (*peer).admit)
		if p == nil {
			if err := c.pause(ctx, &j); err != nil {
				return Range{}, err
			}
			v = c.view.Load()
			continue
		}
		r := c.ask(ctx, p, space, key.UID, n)
		p.release(probe)
		if r.Err == nil {
			return r, nil
		}
		if err := c.fault(ctx, &j, r.Err); err != nil {
			return Range{}, err
		}
		v = c.view.Load()
	}
}

// ask makes one attempt at one peer, together with the calls of others.
func (c *Client) ask(ctx context.Context, p *peer, space *seq.Space, uid seq.UID, n uint32) Range {
	s := slots.Get().(*slot)
	s.space, s.uid, s.count = space, uid, n
	if err := p.enqueue(s); err != nil {
		slots.Put(s)
		return Range{Err: err}
	}
	if leave := ctx.Done(); leave == nil {
		<-s.done
	} else {
		select {
		case <-s.done:
		case <-leave:
			return Range{Err: ctx.Err()} // the slot stays with the lane
		}
	}
	r := s.out
	s.space, s.out = nil, Range{}
	slots.Put(s)
	return c.ordered(r)
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
