package sim

import (
	"cmp"
	"context"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// sdk is a caller that asks by the SDK: numbers travel on its streams, by the table of
// routes, or through routers; IDs come from a window of its own when nobody answers.
type sdk struct {
	*caller
	api *client.Client
}

// next implements asker: now and then for several keys at once.
func (s *sdk) next(ctx context.Context, key history.Key, count uint32) error {
	if count > 1 && count%3 == 0 && key.Space != nameSpace {
		return s.batch(ctx, key.Space)
	}
	start, floor := s.w.now(), s.w.check.promises.floor(key)
	got, err := s.api.Take(ctx, spaceKey(key), count)
	if err == nil && uint64(got.Last-got.First)+1 != uint64(count) {
		s.w.check.broken("U", "%d numbers asked of %v, got %d-%d", count, key, got.First, got.Last)
	}
	s.took(key, start, floor, uint64(got.First), uint64(got.Last), got.Unordered, err)
	return s.addLate(ctx, key, err)
}

// batch takes one number of each key of a space.
func (s *sdk) batch(ctx context.Context, space string) error {
	var keys []history.Key
	var uids []seq.UID
	var floors []uint64
	for _, key := range s.keys {
		if key.Space == space {
			keys, uids, floors = append(keys, key), append(uids, seq.UID(key.UID)), append(floors, s.w.check.promises.floor(key))
		}
	}
	start := s.w.now()
	got, err := s.api.NextBatch(ctx, space, uids, nil)
	for i, key := range keys {
		one := client.Range{Err: err}
		if err == nil {
			one = got[i]
		}
		s.took(key, start, floors[i], uint64(one.First), uint64(one.Last), one.Unordered, one.Err)
	}
	return err
}

// current implements asker.
func (s *sdk) current(ctx context.Context, key history.Key) error {
	floor := s.w.check.promises.floor(key)
	var got []client.Value
	var err error
	if key.Space == nameSpace {
		got, err = s.api.CurrentKeys(ctx, "", []string{nameOf(key)})
	} else {
		got, err = s.api.Current(ctx, key.Space, []seq.UID{seq.UID(key.UID)})
	}
	if err == nil {
		err = got[0].Err
	}
	if err == nil {
		s.w.check.promises.reads(key, floor, uint64(got[0].Seq))
	}
	return err
}

// raise implements asker.
func (s *sdk) raise(ctx context.Context, key history.Key, by uint64) error {
	floor := s.w.check.promises.floor(key) + by
	s.w.check.onces.lift(key, floor)
	got, err := s.api.Raise(ctx, spaceKey(key), seq.Seq(floor))
	if err == nil {
		s.w.check.promises.raisedTo(key, floor, uint64(got))
	}
	return err
}

// tag implements asker.
func (s *sdk) tag(ctx context.Context, name string, count uint32) error {
	key := tagKey(name)
	start, floor := s.w.now(), s.w.check.promises.floor(key)
	first, last, err := s.api.TakeSegment(ctx, name, count)
	s.took(key, start, floor, uint64(first), uint64(last), false, err)
	return s.tagAgain(ctx, name, err)
}

// id implements asker.
func (s *sdk) id(ctx context.Context, space *idSpace, count int) error {
	got, err := s.api.Generate(ctx, space.name, uint32(count))
	if err != nil {
		return err
	}
	for id := range got.All() {
		s.w.check.promises.unique(space, uint64(id), s.h.name)
		if got.Fallback {
			s.w.check.promises.alone(space, uint64(id), s.caller)
		}
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.stats.IDs += uint64(got.Len())
	if got.Fallback {
		s.w.stats.Lent += uint64(got.Len())
	}
	return nil
}

// manner chooses by the seed how a caller asks. The first caller always asks directly, because it makes
// what all others use.
func (c *caller) manner() (asker, func()) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	pick, window := w.rng.IntN(6), w.between(2*time.Second, 5*time.Minute)
	if c.index == 0 || w.opts.still || pick < 2 {
		return c, func() {}
	}
	indirect := pick == 2 && len(w.hosts.of(routerHost)) > 0
	var fallback *client.Fallback
	if pick >= 4 {
		after := min(w.opts.Patience, client.DefaultFallbackAfter)
		fallback = &client.Fallback{Namespace: lentSpace.name, After: cmp.Or(after, time.Second), Window: window}
	}
	api := w.procs.sdkOf(c.h, indirect, fallback)
	return &sdk{c, api}, func() { _ = api.Close() }
}
