package segment

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/numbers"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// idlePeriod is the time that a finished period stays owned in memory after its last number. If a clock
// goes back, it finds the period unchanged, without a takeover's gap.
const idlePeriod = 10 * time.Minute

// Numbers answers NextNumbers. It has the counts of Range as texts, all of one period.
type Numbers struct {
	Range
	Period string
	Texts  []string
}

// NextNumbers takes count business numbers of a tag with a template, 1 to seq.MaxNumbers. The time of the
// call chooses the period. Each period is a register of its own, so no number comes twice, whatever a clock
// does. NextNumbers returns the errors of Take except seq.ErrOverflow. It returns seq.ErrNumbersUsedUp if
// the period has no more numbers: do not retry in this period.
func (s *Service) NextNumbers(ctx context.Context, name string, count uint32) (Numbers, error) {
	if err := seq.CheckTag(name); err != nil {
		return Numbers{}, err
	}
	if err := seq.CheckNumbers("count", uint64(count)); err != nil {
		return Numbers{}, fmt.Errorf("take of tag %q: %w", name, err)
	}
	at := s.cfg.Wall()
	out, err := s.nextNumbers(ctx, name, uint64(count), at)
	s.count(count, err)
	if err != nil {
		return Numbers{}, fmt.Errorf("take %d numbers of tag %q: %w", count, name, err)
	}
	return out, nil
}

func (s *Service) nextNumbers(ctx context.Context, name string, n uint64, at time.Time) (Numbers, error) {
	entry, form, err := s.form(ctx, name)
	if err != nil {
		return Numbers{}, err
	}
	out := Numbers{}
	for {
		out.Period = form.Period(at)
		if out.Range, err = s.take(ctx, place{name, out.Period}, n); err != nil {
			return Numbers{}, err
		}
		was := entry.Format
		if entry, form, err = s.form(ctx, name); err != nil {
			return Numbers{}, err
		}
		if entry.Format == was {
			break
		}
		// The template has changed meanwhile. The numbers taken are skipped, because they may be of another
		// period.
	}
	out.Texts = make([]string, n)
	for i := range out.Texts {
		out.Texts[i] = form.Text(at, out.First+uint64(i))
	}
	return out, nil
}

// form is a tag of business numbers that this node should serve, and its template.
func (s *Service) form(ctx context.Context, name string) (Tag, *numbers.Template, error) {
	if err := s.admit(s.cfg.Mapping.SectionOfName(name)); err != nil {
		return Tag{}, nil, err
	}
	entry, err := s.catalog.find(ctx, name)
	if err != nil {
		return Tag{}, nil, err
	}
	if entry.plain() == nil {
		return Tag{}, nil, fmt.Errorf("%w: tag %q has no template: expected Take, or a tag that was made with one", seq.ErrBadArgument, name)
	}
	if known, ok := s.forms.Load(entry.Format); ok {
		return entry, known.(*numbers.Template), nil
	}
	form, err := entry.Format.Parse()
	if err == nil {
		s.forms.Store(entry.Format, form)
	}
	return entry, form, err
}

// Preview is the state of a tag of business numbers.
type Preview struct {
	Tag    Tag
	Period string
	Text   string // of Count; "" if the period is used up
	Count  uint64
	Left   uint64 // counts of the period, from Count on
}

// ShowNumber returns the number that NextNumbers would give now. It takes and reserves nothing. If this
// node does not hold the period, ShowNumber asks the stores. It returns the errors of NextNumbers.
func (s *Service) ShowNumber(ctx context.Context, name string) (Preview, error) {
	if err := seq.CheckTag(name); err != nil {
		return Preview{}, err
	}
	if _, err := s.catalog.Read(ctx); err != nil {
		return Preview{}, fmt.Errorf("show number %q: %w", name, err)
	}
	entry, form, err := s.form(ctx, name)
	if err != nil {
		return Preview{}, fmt.Errorf("show number %q: %w", name, err)
	}
	at := s.cfg.Wall()
	p := Preview{Tag: entry, Period: form.Period(at)}
	low, err := s.stands(ctx, entry, place{name, p.Period})
	if err != nil {
		return Preview{}, fmt.Errorf("show number %q: %w", name, err)
	}
	if p.Count = low + 1; p.Count <= form.Last() {
		p.Text, p.Left = form.Text(at, p.Count), form.Last()-low
	}
	return p, nil
}

// stands returns the number above which the next one of a place is.
func (s *Service) stands(ctx context.Context, entry Tag, at place) (uint64, error) {
	s.mu.Lock()
	c := s.cells[at.String()]
	s.mu.Unlock()
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.state == owned && c.leased(s.cfg.Clock.Now()) {
			return c.buffers.low(), nil
		}
	}
	found := s.cfg.Holder.Look(ctx, seq.TagRegister(at.String()))
	if found.State != quorum.Won {
		return 0, fmt.Errorf("%w: not known at the stores: %w", seq.ErrNoLease, found.Err)
	}
	return max(found.Max, entry.above(found.Floor)), nil
}

// over reports whether a cell is of a period that is over, and not asked for.
func (s *Service) over(c *cell) bool {
	if c.period == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiters > 0 || s.cfg.Clock.Now()-c.used < idlePeriod {
		return false
	}
	form, err := c.limits.Format.Parse()
	return err == nil && form.Period(s.cfg.Wall()) != c.period
}

// forget drops the cells of periods that are over and not owned any more, so that a tag
// does not leave one a day in memory. Their registers stay.
func (s *Service) forget() {
	for _, c := range s.all() {
		if !s.over(c) {
			continue
		}
		s.mu.Lock()
		c.mu.Lock()
		if c.state == absent && c.waiters == 0 {
			c.gone = true
			delete(s.cells, c.name)
		}
		c.mu.Unlock()
		s.mu.Unlock()
	}
}
