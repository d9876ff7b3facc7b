package client

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
	next   chan struct{} // closed when the question that begins next has its answer; nil: no call waits
}

// space finds a space by name. One that is not in the view is asked for once, by a question
// that begins after the call and that it may share with others. seq.ErrUnknownSpace.
func (t *table) space(ctx context.Context, v *view, name string) (*view, *seq.Space, error) {
	s, err := v.mapping.Space(name)
	if err == nil {
		return v, s, nil
	}
	select {
	case <-t.asked():
	case <-ctx.Done():
		return v, nil, ctx.Err()
	case <-t.c.ctx.Done():
		return v, nil, ErrClosed
	}
	v = t.view.Load()
	s, err = v.mapping.Space(name)
	return v, s, err
}

// spaceOf is the space of that name, by the table of now, as in space.
func (t *table) spaceOf(ctx context.Context, name string) (*seq.Space, error) {
	v, err := t.current(ctx)
	if err != nil {
		return nil, err
	}
	_, s, err := t.space(ctx, v, name)
	return s, err
}

// asked is closed once servers have answered that were asked from now on.
func (t *table) asked() <-chan struct{} {
	s := &t.spaces
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
		if !s.asking {
			s.asking = true
			t.c.tasks.Go(t.askForSpaces)
		}
	}
	return s.next
}

// askForSpaces asks as long as a call waits, with a pause between two questions.
func (t *table) askForSpaces() {
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
		case <-t.c.ctx.Done():
			return
		case <-time.After(refreshPause):
		}
	}
}

// learn asks for a mapping with more spaces.
func (t *table) learn() {
	old := t.view.Load()
	t.first().ask(time.Now().Add(t.c.cfg.Timeout), func(error) bool {
		return len(t.view.Load().mapping.Spaces) != len(old.mapping.Spaces)
	})
}

// extend takes over a mapping that is the one at hand with spaces added. Needs t.mu.
func (t *table) extend(m seq.Mapping) bool {
	if t.mapping.Extends(m) || !m.Extends(t.mapping) {
		return false
	}
	t.mapping = m
	t.c.cfg.Logger.Debug("spaces were added", "spaces", len(m.Spaces))
	return true
}
