package segment

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/allocsvr/numbers"
	"github.com/seqsvr/seqsvr/seq"
)

// Limits of the catalogue. MaxTags keeps its document far below what a store takes.
const (
	MaxTags        = 20_000
	DefaultMinStep = 1_000
	DefaultMaxStep = 1_000_000
	// People see the business numbers that a takeover skips, so the steps are small.
	numbersMinStep = 10
	numbersMaxStep = 1_000
)

// Tag is one entry of the catalogue: 1 <= MinStep <= MaxStep <= seq.MaxStep and
// 1 <= Start <= seq.MaxSeq.
type Tag struct {
	Name    string `json:"tag"`
	MinStep uint64 `json:"min_step"` // numbers; the step's lower limit and where it starts
	MaxStep uint64 `json:"max_step"` // numbers
	Start   uint64 `json:"start"`    // no number below it is handed out; never falls
	// Retired is when the tag was retired, in Unix milliseconds. Zero means that it is in use. A retired
	// tag hands out nothing. Its register stays, so that the tag can go on above all its numbers.
	Retired int64 `json:"retired_ms,omitempty"`
	// Format is the format of business numbers. If zero, the numbers are plain. A tag with a format has a
	// register for each period, and counts nothing under its own name.
	Format numbers.Format `json:"format,omitzero"`
	// Later is, in the answer to a change, how long a node of an older build may use the former entry. Zero
	// means that no node does.
	Later time.Duration `json:"-"`
}

// plain is seq.ErrBadArgument for a tag of business numbers.
func (t Tag) plain() error {
	if t.Format == (numbers.Format{}) {
		return nil
	}
	return fmt.Errorf("%w: tag %q has the template %q: expected a call for numbers", seq.ErrBadArgument, t.Name, t.Format.Template)
}

// last returns the largest number of the tag.
func (t Tag) last() uint64 {
	if form, err := t.Format.Parse(); err == nil {
		return form.Last()
	}
	return uint64(seq.MaxSeq)
}

// inUse returns nil, or a seq.ErrRetired with the time.
func (t Tag) inUse() error {
	if t.Retired == 0 {
		return nil
	}
	return fmt.Errorf("tag %q: %w on %s", t.Name, seq.ErrRetired, time.UnixMilli(t.Retired).UTC().Format(time.RFC3339))
}

// Validate checks the formulas at the type. seq.ErrBadArgument otherwise.
func (t Tag) Validate() error {
	if err := seq.CheckTag(t.Name); err != nil {
		return err
	}
	switch {
	case t.MinStep == 0 || t.MaxStep > seq.MaxStep || t.MinStep > t.MaxStep:
		return fmt.Errorf("%w: tag %q: steps %d to %d, expected 1 <= min <= max <= %d",
			seq.ErrBadArgument, t.Name, t.MinStep, t.MaxStep, uint64(seq.MaxStep))
	case t.Start == 0 || t.Start > uint64(seq.MaxSeq):
		return fmt.Errorf("%w: tag %q: start %d, expected 1 to %d", seq.ErrBadArgument, t.Name, t.Start, uint64(seq.MaxSeq))
	}
	if t.plain() == nil {
		return nil
	}
	if _, err := t.Format.Parse(); err != nil {
		return fmt.Errorf("tag %q: %w", t.Name, err)
	}
	if most := t.last(); t.Start > most {
		return fmt.Errorf("%w: tag %q: start %d, expected at most %d, as its template has digits for", seq.ErrBadArgument, t.Name, t.Start, most)
	}
	return nil
}

// over applies t to an existing tag. A zero field of t keeps the old value.
func (t Tag) over(old Tag, exists bool) (Tag, error) {
	if err := old.inUse(); err != nil {
		return Tag{}, err
	}
	format := t.Format.Over(old.Format)
	if !exists {
		least, most := uint64(DefaultMinStep), uint64(DefaultMaxStep)
		if t.plain() != nil {
			least, most = numbersMinStep, numbersMaxStep
		}
		old = Tag{Name: t.Name, MinStep: least, MaxStep: max(most, t.MinStep), Start: 1, Format: format}
		if t.MinStep == 0 && t.MaxStep > 0 {
			old.MinStep = min(least, t.MaxStep)
		}
	} else if format != old.Format {
		if old.plain() == nil {
			return Tag{}, fmt.Errorf("%w: tag %q has plain numbers, expected no template, or another tag", seq.ErrUnsafeChange, t.Name)
		}
		if err := format.Follows(old.Format); err != nil {
			return Tag{}, fmt.Errorf("tag %q: %w", t.Name, err)
		}
	}
	next := old
	next.Format = format
	if t.MinStep > 0 {
		next.MinStep = t.MinStep
	}
	if t.MaxStep > 0 {
		next.MaxStep = t.MaxStep
	}
	if t.Start > 0 {
		next.Start = t.Start
	}
	if next.Start < old.Start {
		return Tag{}, fmt.Errorf("%w: tag %q: start %d, expected at least %d, which it was", seq.ErrBadArgument, t.Name, next.Start, old.Start)
	}
	return next, next.Validate()
}

// tags is the catalogue, by name. Tags are never removed from it: a tag that is known
// here is known for ever.
type tags map[string]Tag

// body is the JSON in seq.TagsRegister.
type body struct {
	Tags []Tag `json:"tags"` // by name
}

func (t tags) list() []Tag {
	return slices.SortedFunc(maps.Values(t), func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
}

// with returns the catalogue with one entry put in.
func (t tags) with(entry Tag) (tags, error) {
	next := maps.Clone(t)
	next[entry.Name] = entry
	if len(next) > MaxTags {
		return nil, fmt.Errorf("%w: %d tags exist, expected at most %d", seq.ErrBadArgument, len(t), MaxTags)
	}
	return next, nil
}

func (t tags) encode() ([]byte, error) { return json.Marshal(body{Tags: t.list()}) }

func parseTags(text []byte) (tags, error) {
	t := tags{}
	if len(text) == 0 {
		return t, nil
	}
	var b body
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	for _, entry := range b.Tags {
		if err := entry.Validate(); err != nil {
			return nil, err
		}
		t[entry.Name] = entry
	}
	return t, nil
}

// catalog is the catalogue on the stores.
type catalog struct{ *documents.Document[tags] }

// find is a tag by name; a name that is not known here is looked up in the stores.
// seq.ErrUnknownTag if it is not known there either.
func (c catalog) find(ctx context.Context, name string) (Tag, error) {
	if entry, ok := c.Known()[name]; ok {
		return entry, nil
	}
	t, err := c.Read(ctx)
	if err != nil {
		return Tag{}, err
	}
	if entry, ok := t[name]; ok {
		return entry, nil
	}
	return Tag{}, fmt.Errorf("%w: %q", seq.ErrUnknownTag, name)
}

// put creates a tag or alters one.
func (c catalog) put(ctx context.Context, want Tag) (entry Tag, created bool, err error) {
	return c.change(ctx, want.Name, want.over)
}

// retire has a tag hand out nothing from the moment on, or undoes that: now is 0.
func (c catalog) retire(ctx context.Context, name string, now int64) (Tag, error) {
	entry, _, err := c.change(ctx, name, func(old Tag, exists bool) (Tag, error) {
		if !exists {
			return Tag{}, fmt.Errorf("%w: %q", seq.ErrUnknownTag, name)
		}
		if old.Retired == 0 || now == 0 { // a retired one keeps its moment
			old.Retired = now
		}
		return old, nil
	})
	return entry, err
}

// putResult is what became of one tag of putAll.
type putResult struct {
	entry            Tag
	err              error // why no tag was put
	created, changed bool
	fresh            bool // no entry was there before, so no node serves the tag by another
}

// putAll creates or alters tags in one change: all, or none if one is refused or if check is true.
func (c catalog) putAll(ctx context.Context, wants []Tag, check bool) (results []putResult, err error) {
	results = make([]putResult, len(wants))
	_, err = c.Change(ctx, func(t tags, doubt bool) (tags, bool, error) {
		next, changed, bad := maps.Clone(t), false, false
		if next == nil {
			next = tags{}
		}
		named := map[string]bool{}
		for i, want := range wants {
			old, exists := next[want.Name]
			entry, err := want.checked(old, exists, named[want.Name])
			named[want.Name] = true
			was := results[i]
			results[i] = putResult{entry: entry, err: err, fresh: !exists, created: !exists || doubt && was.created,
				changed: exists && entry != old || doubt && was.changed}
			if bad = bad || err != nil; err == nil && (!exists || entry != old) {
				next[want.Name], changed = entry, true
			}
		}
		if len(next) > MaxTags {
			return t, false, fmt.Errorf("%w: %d tags exist, and %d would, expected at most %d", seq.ErrBadArgument, len(t), len(next), MaxTags)
		}
		return next, changed && !bad && !check, nil
	})
	if err != nil {
		return nil, fmt.Errorf("put %d tags: %w", len(wants), err)
	}
	return results, nil
}

// checked is over for one of several tags. again says that one before has the same name.
func (t Tag) checked(old Tag, exists, again bool) (Tag, error) {
	if err := seq.CheckTag(t.Name); err != nil {
		return Tag{}, err
	}
	if again {
		return Tag{}, fmt.Errorf("%w: tag %q is named twice", seq.ErrBadArgument, t.Name)
	}
	return t.over(old, exists)
}

// change writes one entry. Writing the same entry twice changes nothing, so an outcome that
// is not known is settled by trying again.
func (c catalog) change(ctx context.Context, name string, edit func(old Tag, exists bool) (Tag, error)) (entry Tag, created bool, err error) {
	if err := seq.CheckTag(name); err != nil {
		return Tag{}, false, err
	}
	_, err = c.Change(ctx, func(t tags, doubt bool) (tags, bool, error) {
		old, exists := t[name]
		created = !exists || created && doubt
		if entry, err = edit(old, exists); err != nil || exists && entry == old {
			return t, false, err
		}
		next, err := t.with(entry)
		return next, true, err
	})
	if err != nil {
		return Tag{}, false, fmt.Errorf("put tag %q: %w", name, err)
	}
	return entry, created, nil
}
