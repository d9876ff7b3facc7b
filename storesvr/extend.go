package storesvr

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/disk"
)

// sectionSize bounds the disk space of a section, including the pages that bbolt rewrites for it.
const sectionSize = 256

// extend adopts a decided mapping that is the store's own with spaces added.
// Their registers are made in the same transaction, at zero: the store never had them, and
// until then it has answered every question about them that it knows none. So zero here is as
// good as in a store that missed every write, and no register is ever made twice. Durable
// when it returns nil. Errors: seq.ErrForeignCluster, seq.ErrStaleEra, seq.ErrStoreFull,
// seq.ErrBadMapping for one that is no extension.
func (ch *change) extend(ctx context.Context, cluster string, era seq.Era, m seq.Mapping) error {
	c := ch.core
	taken, size := false, 0
	for i := range m.Spaces {
		if s := &m.Spaces[i]; s.Added {
			size += sectionSize * int(s.Sections)
		}
	}
	err := ch.writer.submit(ctx, &write{size: size,
		apply: func(_ time.Duration, full bool, u *disk.Update) error {
			if err := c.members.sameCluster(cluster, era); err != nil {
				return err
			}
			own := c.mapping
			if u.Mapping != nil { // by another request of the same group
				own = *u.Mapping
			}
			switch {
			case own.Extends(m):
				return nil
			case !m.Extends(own):
				return fmt.Errorf("%w: it is not that of the store with spaces added", seq.ErrBadMapping)
			case full:
				return seq.ErrStoreFull
			}
			if err := c.acceptor.Extend(seq.SectionID(own.Sections()), seq.SectionID(m.Sections())); err != nil {
				return err
			}
			u.Mapping, taken = &m, true
			return nil
		},
		committed: func() {
			if taken && !c.mapping.Extends(m) {
				c.mapping = m
				c.log.Info("took spaces over that were added", "spaces", len(m.Spaces), "sections", m.Sections())
			}
		},
	})
	if err != nil {
		return fmt.Errorf("extend the mapping of store %s: %w", c.identity.Name, err)
	}
	return nil
}
