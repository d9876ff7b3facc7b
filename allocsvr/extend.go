package allocsvr

import (
	"context"
	"fmt"
	"maps"

	"github.com/seqsvr/seqsvr/allocsvr/documents"
	"github.com/seqsvr/seqsvr/seq"
)

// Extend uses a mapping of the stores to which spaces were added. The node keeps its sections, and the
// string keys of the other spaces are hashed as before. Extend returns the errors of
// documents.Keys.Begin. It returns seq.ErrBadMapping for a mapping that is not the node's own with spaces
// added. After an error nothing has changed.
func (n *Node) Extend(ctx context.Context, m seq.Mapping) error {
	if done, err := n.grown(m); done || err != nil {
		return err
	}
	all, err := documents.NewKeys(ctx, n.group, n.alloc.session, m).Begin(ctx)
	if err != nil {
		return fmt.Errorf("read how string keys of added spaces are hashed: %w", err)
	}
	n.growing.Lock() // not over the messages above
	defer n.growing.Unlock()
	if done, err := n.grown(m); done || err != nil {
		return err
	}
	own := n.alloc.sections.Mapping()
	keys := maps.Clone(*n.keys.Load())
	if keys == nil {
		keys = documents.KeyEntries{}
	}
	for _, s := range m.Spaces[len(own.Spaces):] {
		if one, there := all[s.Name]; there {
			keys[s.Name] = one
		}
	}
	if err := keys.Check(m); err != nil {
		return err
	}
	n.keys.Store(&keys)
	if err := n.alloc.extend(m, keys.Hashers()); err != nil {
		return err
	}
	n.cfg.Logger.Info("went over to spaces that were added", "spaces", len(m.Spaces), "sections", m.Sections())
	return nil
}

// grown reports whether the node uses the mapping already. It returns seq.ErrBadMapping if the node never
// can.
func (n *Node) grown(m seq.Mapping) (bool, error) {
	own := n.alloc.sections.Mapping()
	switch {
	case own.Extends(m):
		return true, nil
	case !m.Extends(*own):
		return false, fmt.Errorf("%w: it is not that of node %s with spaces added", seq.ErrBadMapping, n.cfg.Name)
	}
	return false, nil
}
