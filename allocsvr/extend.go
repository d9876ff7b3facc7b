package allocsvr

import (
	"context"
	"fmt"
	"maps"

	"github.com/seqsvr/seqsvr/allocsvr/keyhash"
	"github.com/seqsvr/seqsvr/seq"
)

// Extend goes over to a mapping that some store has, to which spaces were added. Nothing is let
// go for it, and the string keys of the other spaces are hashed as before. Errors: those of
// keyhash.Document.Begin, seq.ErrBadMapping for a mapping that is not the node's own with
// spaces added; nothing was changed then.
func (n *Node) Extend(ctx context.Context, m seq.Mapping) error {
	n.growing.Lock()
	defer n.growing.Unlock()
	own := n.alloc.sections.Mapping()
	switch {
	case own.Extends(m):
		return nil
	case !m.Extends(*own):
		return fmt.Errorf("%w: it is not that of node %s with spaces added", seq.ErrBadMapping, n.cfg.Name)
	}
	all, err := keyhash.New(ctx, n.group, n.alloc.session, m).Begin(ctx)
	if err != nil {
		return fmt.Errorf("read how string keys of added spaces are hashed: %w", err)
	}
	keys := maps.Clone(*n.keys.Load())
	if keys == nil {
		keys = keyhash.Entries{}
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
