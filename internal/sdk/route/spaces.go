package route

import (
	"context"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// spaces asks for spaces that are not known here: they may have been added to the cluster.
type spaces struct {
	mu     sync.Mutex // guards all below
	asking bool
	next   chan struct{} // closed when the question that begins next has its answer; nil if no call waits
}

// Space finds a space by name. One that is not in the view is asked for once, by a question
// that begins after the call and that it may share with others. seq.ErrUnknownSpace.
func (t *Table) Space(ctx context.Context, v *View, name string) (*View, *seq.Space, error) {
	s, err := v.Mapping.Space(name)
	if err == nil {
		return v, s, nil
	}
	select {
	case <-t.asked():
	case <-ctx.Done():
		return v, nil, ctx.Err()
	case <-t.cfg.Context.Done():
		return v, nil, ErrClosed
	}
	v = t.view.Load()
	s, err = v.Mapping.Space(name)
	return v, s, err
}

// SpaceOf is the space of that name, by the table of now, as in Space.
func (t *Table) SpaceOf(ctx context.Context, name string) (*seq.Space, error) {
	v, err := t.Current(ctx)
	if err != nil {
		return nil, err
	}
	_, s, err := t.Space(ctx, v, name)
	return s, err
}

// asked is closed once servers have answered that were asked from now on.
func (t *Table) asked() <-chan struct{} {
	s := &t.spaces
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
		if !s.asking {
			s.asking = true
			t.cfg.Go(t.askForSpaces)
		}
	}
	return s.next
}

// askForSpaces asks as long as a call waits, with a pause between two questions.
func (t *Table) askForSpaces() {
	s := &t.spaces
	for {
		s.mu.Lock()
		answered := s.next
		s.next, s.asking = nil, answered != nil
		s.mu.Unlock()
		if answered == nil {
			return
		}
		t.learn()
		close(answered)
		select {
		case <-t.cfg.Context.Done():
			return
		case <-time.After(refreshPause):
		}
	}
}

// learn asks for a mapping with more spaces.
func (t *Table) learn() {
	old := t.view.Load()
	t.First().ask(func(error) bool {
		return len(t.view.Load().Mapping.Spaces) != len(old.Mapping.Spaces)
	})
}

// extend takes over a mapping that is the one at hand with spaces added. Needs t.mu.
func (t *Table) extend(m seq.Mapping) bool {
	if t.mapping.Extends(m) || !m.Extends(t.mapping) {
		return false
	}
	t.mapping = m
	t.cfg.Logger.Debug("spaces were added", "spaces", len(m.Spaces))
	return true
}
