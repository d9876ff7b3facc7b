package call

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/seq"
)

// Next is client.Next.
func (c *Caller) Next(ctx context.Context, key seq.Key) (seq.Seq, error) {
	v, s, r, err := join(ctx, c, key, 1, nil)
	if err == nil && s.In() {
		// The wait stands here and not further down: all that stands above it on the stack
		// of a waiting caller has gone from the caches when it runs again.
		if ctx.Done() == nil {
			<-s.Done()
		} else if !s.Wait(ctx) {
			return nextOnward(ctx, take{c, key, 1, r}, v, s, nil)
		}
		if n := s.Plain(); n != 0 {
			return n, nil
		}
	}
	return nextOnward(ctx, take{c, key, 1, r}, v, s, err)
}

// Take is client.Take with a request id. If named is nil, the call makes an id for its own retries.
func (c *Caller) Take(ctx context.Context, key seq.Key, n uint32, named *seq.Request) (seq.Range, error) {
	v, s, r, err := join(ctx, c, key, n, named)
	got, err := take{c, key, n, r}.finish(ctx, v, s, err)
	if err != nil {
		err = Told(fmt.Sprintf("next %v", key), err)
		return seq.Range{Err: err}, err
	}
	return got, nil
}

// join gives the key a slot in a batch to its owner, which nearly always answers. No batch
// and no error: the owner is not known, or silent, or the call goes alone. r is what all
// attempts of the call repeat, in an exact space.
func join(ctx context.Context, c *Caller, key seq.Key, n uint32, named *seq.Request) (v *route.View, s stream.Slot, r *stream.Request, err error) {
	if err := seq.CheckCount("count", uint64(n)); err != nil {
		return nil, stream.Slot{}, nil, err
	}
	if err := key.Check(); err != nil {
		return nil, stream.Slot{}, nil, err
	}
	if named != nil { // all that stands in the call is checked before its space is looked for
		if err := seq.CheckRequestID("request id", named.ID); err != nil {
			return nil, stream.Slot{}, nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, stream.Slot{}, nil, err
	}
	if v, err = c.table.Current(ctx); err != nil {
		return nil, stream.Slot{}, nil, err
	}
	space, err := v.Mapping.Space(key.Space)
	if err != nil {
		if v, space, err = c.table.Space(ctx, v, key.Space); err != nil {
			return nil, stream.Slot{}, nil, err
		}
	}
	if named != nil || space.Mode == seq.Exact {
		if r, err = stream.RequestIn(space, named); err != nil {
			return nil, stream.Slot{}, nil, err
		}
	}
	owner := peer(v.Owner(space.SectionOf(key.Place())))
	if owner == nil || owner.health.silent.Load() || c.cfg.alone(ctx) {
		return v, stream.Slot{}, r, nil
	}
	if s, err = owner.streams.Add(space, key, n, r); err != nil {
		s = stream.Refused(err)
	}
	return v, s, r, nil
}

// nextOnward is Next where it is not as simple as nearly always.
func nextOnward(ctx context.Context, t take, v *route.View, s stream.Slot, err error) (seq.Seq, error) {
	r, err := t.finish(ctx, v, s, err)
	if err != nil {
		return 0, Told(fmt.Sprintf("next %v", t.key), err)
	}
	return r.First, nil
}

// take is a call for n numbers of one key, from where it waits on.
type take struct {
	c       *Caller
	key     seq.Key
	n       uint32
	request *stream.Request
}

// finish waits for what came of join, and asks others if it was no answer.
func (t take) finish(ctx context.Context, v *route.View, s stream.Slot, err error) (seq.Range, error) {
	if err != nil {
		return seq.Range{}, err
	}
	if !s.In() {
		return t.retry(ctx, v, nil)
	}
	if !s.Await(ctx) {
		return t.retry(ctx, v, ctx.Err()) // what comes for it is thrown away
	}
	if r := t.c.Ordered(s.Answer(t.n)); r.Err != nil {
		return t.retry(ctx, v, r.Err)
	} else {
		return r, nil
	}
}

// retry asks one server after the other until one answers or the call ends. first is why the
// owner gave no answer; nil if it was not asked.
func (t take) retry(ctx context.Context, v *route.View, first error) (seq.Range, error) {
	space, err := v.Mapping.Space(t.key.Space)
	if err != nil {
		return seq.Range{}, err
	}
	keys := &takes{c: t.c, Takes: stream.Takes{Keys: stream.Alone(t.key), Counts: []uint32{t.n}}, out: make([]seq.Range, 1), bounded: !t.c.cfg.alone(ctx)}
	if t.request != nil {
		keys.Requests = []stream.Request{*t.request}
	}
	k := call{c: t.c, rules: &forKeys, space: space, places: keys.Places, ask: keys.ask}
	if _, ok := ctx.Deadline(); !ok {
		k.until = time.Now().Add(t.c.cfg.Timeout)
	}
	if first != nil {
		k.start = tries{gen: v.Gen, next: 1}
		if end := k.failed(ctx, k.of(0), peer(v.Owner(space.SectionOf(t.key.Place()))), first); end != nil {
			return seq.Range{}, end
		}
	}
	err = k.one(ctx)
	return keys.out[0], err
}

// alone says whether the call is to go by itself.
func (cfg *Config) alone(ctx context.Context) bool { return cfg.Alone != nil && cfg.Alone(ctx) }

// Ordered refuses an unordered answer unless the caller takes them.
func (c *Caller) Ordered(r seq.Range) seq.Range {
	if r.Unordered && !c.cfg.AllowUnordered {
		return seq.Range{Err: fmt.Errorf("%w: %d to %d thrown away", ErrUnordered, r.First, r.Last)}
	}
	return r
}
