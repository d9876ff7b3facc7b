package segment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// lookAgain is how often a request that waits looks whether its wait has a point still.
const lookAgain = 250 * time.Millisecond

// Range answers a Take: First..Last inclusive. Numbers up to Max are on the disks of
// W stores.
type Range struct {
	First, Last, Max uint64
}

// Take takes count contiguous numbers of a tag, 1 to seq.MaxCount. It waits, as long
// as ctx lasts, only while the tag is acquired or when the numbers run out faster
// than the stores write; the error then is the reason, as far as it is known
// (seq.ErrNoQuorum, seq.ErrStoreFull), and the end of ctx.
//
// Errors: seq.ErrBadArgument, seq.ErrBadCount, seq.ErrUnknownTag, seq.ErrRetired,
// seq.ErrOverflow: do not retry. What Config.Owner gives: retry there. seq.ErrShuttingDown: retry
// elsewhere. seq.ErrNoLease and those of waiting: retry later. A call that is repeated
// skips numbers, it never gets one twice.
func (s *Service) Take(ctx context.Context, name string, count uint32) (Range, error) {
	if err := seq.CheckTag(name); err != nil {
		return Range{}, err
	}
	if err := seq.CheckCount("count", uint64(count)); err != nil {
		return Range{}, fmt.Errorf("take of tag %q: %w", name, err)
	}
	r, err := s.take(ctx, name, uint64(count))
	s.count(count, err)
	if err != nil {
		return Range{}, fmt.Errorf("take %d of tag %q: %w", count, name, err)
	}
	return r, nil
}

func (s *Service) take(ctx context.Context, name string, n uint64) (Range, error) {
	section := s.cfg.Mapping.SectionOfName(name)
	if err := s.admit(section); err != nil {
		return Range{}, err
	}
	c, err := s.cell(ctx, name, section)
	if err != nil {
		return Range{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r, done, err := s.try(c, n, 0)
	if done || err != nil {
		return r, err
	}
	c.waiters, c.asked = c.waiters+1, c.asked+n
	defer func() { c.waiters, c.asked = c.waiters-1, c.asked-n }()
	for {
		// Every round, before it waits, sees to it that what it waits for is under way.
		if r, done, err = s.try(c, n, c.asked); done || err != nil {
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
		err = s.admit(section)
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
	b := &c.buffers
	if !b.fits(n) {
		return Range{}, false, fmt.Errorf("stands at %d: %w", b.low(), seq.ErrOverflow)
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

// late is the error of a request whose time ended while it waited. Needs c.mu.
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

// Buffer is one reserved segment, First..Last inclusive, of which Left numbers are
// not handed out yet.
type Buffer struct {
	First, Last, Left uint64
}

// Status is how a tag stands on this node; the numbers are 0 unless it is owned.
type Status struct {
	Tag     Tag
	State   string // absent, acquiring or owned
	Leased  bool   // numbers are served right now
	Current uint64 // last number handed out or skipped
	Max     uint64 // numbers up to here are on the disks of W stores
	Step    uint64 // of the segment to be reserved next
	Buffers []Buffer
	Loading bool // a segment is being reserved
}

// Statuses are those of all tags that this node serves, by name.
func (s *Service) Statuses() []Status {
	var out []Status
	for _, c := range s.all() {
		if mine, _ := s.cfg.Owner(c.section); mine {
			out = append(out, s.status(c))
		}
	}
	sortStatuses(out)
	return out
}

// Status is that of one tag that this node should serve. Errors as in Take.
func (s *Service) Status(ctx context.Context, name string) (Status, error) {
	if err := seq.CheckTag(name); err != nil {
		return Status{}, err
	}
	section := s.cfg.Mapping.SectionOfName(name)
	err := s.admit(section)
	if err == nil {
		var c *cell
		if c, err = s.cell(ctx, name, section); err == nil {
			return s.status(c), nil
		}
	}
	return Status{}, fmt.Errorf("status of tag %q: %w", name, err)
}

func (s *Service) status(c *cell) Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := Status{Tag: c.limits, State: c.state.String()}
	if c.state != owned {
		return st
	}
	b := c.buffers
	st.Leased = c.leased(s.cfg.Clock.Now())
	st.Current, st.Max, st.Step, st.Loading = b.low(), b.confirmed, b.step, b.target > b.confirmed
	st.Buffers = append(st.Buffers, Buffer{First: b.from + 1, Last: b.end, Left: b.end - min(b.low(), b.end)})
	if b.confirmed > b.end {
		st.Buffers = append(st.Buffers, Buffer{First: b.end + 1, Last: b.confirmed, Left: b.confirmed - max(b.end, min(b.low(), b.confirmed))})
	}
	return st
}

func sortStatuses(all []Status) {
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Tag.Name, b.Tag.Name) })
}

// Put creates a tag or alters one; fields that are 0 keep what they were, or get
// their default. It is on the disks of W stores before the answer. A new limit or
// start is taken in by the node that serves the tag within 5 s. Idempotent; safe to
// retry. seq.ErrBadArgument: limits that are not sound, a start that would fall.
func (s *Service) Put(ctx context.Context, want Tag) (entry Tag, created bool, err error) {
	return s.catalog.put(ctx, want)
}

// Retire has a tag hand out nothing more, at the node that serves it within 5 s; undo
// brings it back, above all its numbers. It is on the disks of W stores before the answer.
// Idempotent; safe to retry. seq.ErrUnknownTag, seq.ErrBadArgument.
func (s *Service) Retire(ctx context.Context, name string, undo bool) (Tag, error) {
	if undo {
		return s.catalog.retire(ctx, name, 0)
	}
	return s.catalog.retire(ctx, name, time.Now().UnixMilli())
}

// List gives all tags by name, as they are in the stores now.
func (s *Service) List(ctx context.Context) ([]Tag, error) {
	t, err := s.catalog.Read(ctx)
	return t.list(), err
}
