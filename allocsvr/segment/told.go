package segment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// tellPause is the pause before a node that did not answer is told again.
const tellPause = 50 * time.Millisecond

// told returns when no node serves, or will serve, the tag by an older catalogue than this node knows.
//
// A node that serves the tag has its lease at W stores, so a look finds the lease. There are two
// exceptions: the lease was ready only after the look, or it was broken in between. In both cases the node
// reads the catalogue before it serves. A node that is found is told to read the catalogue. If it does not
// answer, its lease ends or it is told again. The result later is how long a node of an older build may
// take.
func (s *Service) told(ctx context.Context, entry Tag) (later time.Duration, err error) {
	done := map[seq.Session]bool{s.cfg.Holder.Session: true} // this node went by it when it was written
	for {
		holders, err := s.holders(ctx, entry)
		for _, h := range holders {
			if !done[h] {
				takes, why := s.cfg.Tell(ctx, h)
				done[h], later = why == nil, max(later, takes)
				err = errors.Join(err, why)
			}
		}
		if err == nil {
			return later, nil
		}
		if !wake.Sleep(ctx, tellPause) {
			return 0, fmt.Errorf("tag %q: the change is recorded, and a node may not go by it yet: repeat it: %w: %w", entry.Name, context.Cause(ctx), err)
		}
	}
}

// holders returns the sessions that hold the tag's registers.
func (s *Service) holders(ctx context.Context, entry Tag) (holders []seq.Session, err error) {
	found := map[seq.Register]quorum.Outcome{}
	if entry.plain() == nil {
		reg := seq.TagRegister(entry.Name)
		found[reg] = s.cfg.Holder.Look(ctx, reg)
	} else if found, err = s.cfg.ReadPrefix(ctx, s.cfg.Holder.Session, string(seq.TagRegister(entry.Name+"/"))); err != nil {
		return nil, err
	}
	for _, out := range found {
		if out.State == quorum.Unknown {
			err = errors.Join(err, out.Err)
		}
		if out.Holder != 0 {
			holders = append(holders, out.Holder)
		}
	}
	return holders, err
}
