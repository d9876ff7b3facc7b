package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seqsvr/seqsvr/seq"
)

// lookAgain is the time after which a waiting request checks again whether it should wait.
const lookAgain = 250 * time.Millisecond

// Range answers a Take with First..Last inclusive. Numbers up to Max are on the disks of W stores.
type Range struct {
	First, Last, Max uint64
}

// Take takes count contiguous numbers of a tag, 1 to seq.MaxCount. It waits, as long as ctx lasts, only
// while the tag is acquired, or when the numbers run out faster than the stores write. The error of a wait
// is the reason, if known (seq.ErrNoQuorum, seq.ErrStoreFull), and the error of ctx.
//
//   - Do not retry seq.ErrBadArgument, seq.ErrBadCount, seq.ErrUnknownTag, seq.ErrRetired
//     and seq.ErrOverflow.
//   - For an error of Config.Owner, retry at the owner.
//   - For seq.ErrShuttingDown, retry at another node.
//   - For seq.ErrNoLease and the errors of a wait, retry later.
//
// A repeated call skips numbers and never gets a number twice.
func (s *Service) Take(ctx context.Context, name string, count uint32) (Range, error) {
	if err := seq.CheckTag(name); err != nil {
		return Range{}, err
	}
	if err := seq.CheckCount("count", uint64(count)); err != nil {
		return Range{}, fmt.Errorf("take of tag %q: %w", name, err)
	}
	r, err := s.take(ctx, place{tag: name}, uint64(count))
	s.count(count, err)
	if err != nil {
		return Range{}, fmt.Errorf("take %d of tag %q: %w", count, name, err)
	}
	return r, nil
}

func (s *Service) take(ctx context.Context, at place, n uint64) (Range, error) {
	c, err := s.locked(ctx, at)
	if err != nil {
		return Range{}, err
	}
	defer c.mu.Unlock()
	r, done, err := s.try(c, n, 0)
	if errors.Is(err, errStale) || errors.Is(err, seq.ErrRetired) { // it may be so no more
		if err := s.reread(ctx, c); err != nil {
			return Range{}, err
		}
		r, done, err = s.try(c, n, 0)
	}
	if done || err != nil {
		return r, err
	}
	c.waiters, c.asked = c.waiters+1, c.asked+n
	defer func() { c.waiters, c.asked = c.waiters-1, c.asked-n }()
	for {
		// Every round, before it waits, sees to it that what it waits for is under way.
		if r, done, err = s.try(c, n, c.asked); errors.Is(err, errStale) {
			if err := s.reread(ctx, c); err != nil {
				return Range{}, err
			}
			continue
		}
		if done || err != nil {
			return r, err
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(lookAgain):
		case <-ctx.Done():
			c.mu.Lock()
			return Range{}, c.late(ctx)
		}
		err = s.admit(c.section)
		c.mu.Lock()
		if err != nil {
			return Range{}, err
		}
	}
}

// try takes n numbers if that can be done now. If not, and asked is not 0, it asks
// for what is missing: the tag, or the numbers of all that wait. Needs c.mu.
func (s *Service) try(c *cell, n, asked uint64) (r Range, done bool, err error) {
	if err := c.limits.inUse(); err != nil {
		return Range{}, false, err
	}
	if c.state != owned {
		if s.leaving.Load() {
			return Range{}, false, seq.ErrShuttingDown
		}
		if err := s.cfg.Quorum(); err != nil {
			return Range{}, false, err // nothing is acquired without
		}
		if c.state == absent && asked > 0 {
			s.acquirer.add(c.begin())
		}
		return Range{}, false, nil
	}
	// Read for each request, after it has arrived: a flag from before would not do.
	now := s.cfg.Clock.Now()
	if !c.leased(now) {
		if err := s.cfg.Quorum(); err != nil {
			return Range{}, false, err
		}
		return Range{}, false, seq.ErrNoLease
	}
	if !c.isFresh(now) {
		return Range{}, false, errStale
	}
	b := &c.buffers
	c.used = now
	if !b.fits(n) {
		return Range{}, false, c.full()
	}
	first, last, ok := b.take(n, now)
	if !ok {
		if asked > 0 {
			b.want(b.low() + asked)
			s.raise(c, true)
		}
		return Range{}, false, nil
	}
	c.high = last
	if b.due() && b.want(b.confirmed) {
		s.raise(c, false)
	}
	return Range{First: first, Last: last, Max: b.confirmed}, true, nil
}

// errStale says that the lease was broken since the catalogue was read. It does not leave this package.
var errStale = errors.New("the catalogue is to be read again")

// reread reads the catalogue within the lease that the cell has. Needs c.mu, which it gives up meanwhile.
func (s *Service) reread(ctx context.Context, c *cell) error {
	epoch, until := c.epoch, time.Duration(0)
	if c.state == owned {
		until = c.hold.Until()
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	if _, err := s.catalog.Read(ctx); err != nil {
		return err
	}
	c.refreshed(epoch, until)
	return nil
}

// locked returns the cell of a place, with its mu held.
func (s *Service) locked(ctx context.Context, at place) (*cell, error) {
	for {
		c, err := s.cell(ctx, at)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		if !c.gone {
			return c, nil
		}
		c.mu.Unlock()
	}
}

// full returns the error for numbers that do not fit. Needs c.mu.
func (c *cell) full() error {
	if c.period == "" {
		return fmt.Errorf("stands at %d: %w", c.buffers.low(), seq.ErrOverflow)
	}
	return fmt.Errorf("period %s stands at %d of %d: %w", c.period, c.buffers.low(), c.buffers.last, seq.ErrNumbersUsedUp)
}

// late returns the error of a request whose time ended while it waited. Needs c.mu.
func (c *cell) late(ctx context.Context) error {
	what := "waiting for the next segment"
	if c.state != owned {
		what = "being acquired"
	}
	if c.trouble != nil {
		return fmt.Errorf("%s: %w: %w", what, c.trouble, context.Cause(ctx))
	}
	return fmt.Errorf("%s: %w", what, context.Cause(ctx))
}

// Put creates a tag or alters one. Zero fields keep their old values, or get their defaults. The change is
// on the disks of W stores before the answer, and every node that serves the tag from then on uses it. Put
// is idempotent, so it may be retried. It returns seq.ErrBadArgument for invalid limits, or for a start
// that would fall. It returns an rpc.NotOwnerError with a Set if another Set has the tags. Then nothing was
// changed.
func (s *Service) Put(ctx context.Context, want Tag) (entry Tag, created bool, err error) {
	if err := s.elsewhere(); err != nil {
		return Tag{}, false, err
	}
	if entry, created, err = s.catalog.put(ctx, want); err != nil {
		return entry, created, err
	}
	entry.Later, err = s.told(ctx, entry)
	return entry, created, err
}

// MaxPut bounds the tags of one PutAll.
const MaxPut = 2_000

// tellers bounds the tags whose nodes PutAll tells at a time.
const tellers = 32

// PutAll is Put of 1 to MaxPut tags in one change. If one of them is refused, it puts none, and the results
// say which are refused. With check it puts none in any case. It is idempotent, as Put is.
func (s *Service) PutAll(ctx context.Context, wants []Tag, check bool) ([]putResult, error) {
	if err := s.elsewhere(); err != nil {
		return nil, err
	}
	if len(wants) > MaxPut {
		return nil, fmt.Errorf("%w: %d tags, expected at most %d", seq.ErrBadArgument, len(wants), MaxPut)
	}
	results, err := s.catalog.putAll(ctx, wants, check)
	if err != nil || check || slices.ContainsFunc(results, func(r putResult) bool { return r.err != nil }) {
		return results, err
	}
	tell := errgroup.Group{}
	tell.SetLimit(tellers)
	for _, r := range results {
		if r.fresh {
			continue
		}
		tell.Go(func() error {
			_, err := s.told(ctx, r.entry)
			return err
		})
	}
	return results, tell.Wait()
}

// Retire makes a tag hand out nothing more. With undo the tag comes back, above all its numbers. The change
// is on the disks of W stores before the answer, and every node that serves the tag from then on uses it.
// Retire is idempotent, so it may be retried. It returns seq.ErrUnknownTag, seq.ErrBadArgument, and the
// errors of Put.
func (s *Service) Retire(ctx context.Context, name string, undo bool) (Tag, error) {
	if err := s.elsewhere(); err != nil {
		return Tag{}, err
	}
	now := time.Now().UnixMilli()
	if undo {
		now = 0
	}
	entry, err := s.catalog.retire(ctx, name, now)
	if err != nil {
		return Tag{}, err
	}
	entry.Later, err = s.told(ctx, entry)
	return entry, err
}

// Refresh reads the catalogue again, and this node uses it when it returns.
func (s *Service) Refresh(ctx context.Context) error {
	_, err := s.catalog.Read(ctx)
	return err
}

// List returns all tags by name, as they are in the stores now. It returns the errors of the stores and of
// Put.
func (s *Service) List(ctx context.Context) ([]Tag, error) {
	if err := s.elsewhere(); err != nil {
		return nil, err
	}
	t, err := s.catalog.Read(ctx)
	return t.list(), err
}
