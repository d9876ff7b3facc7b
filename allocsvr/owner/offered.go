package owner

import (
	"context"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/section"
	"github.com/seqsvr/seqsvr/seq"
)

// Accept keeps counters that a peer hands to this session, or says that it does.
func (o *Owner) Accept(sections []handover.Sealed) error {
	if o.leaving.Load() {
		return seq.ErrShuttingDown
	}
	sections = slices.Clone(sections) // the caller's stay as they are
	for i := range sections {
		sections[i].Mark = o.mark(sections[i].ID) // if it was another, the digest of the release differs
	}
	o.kept.Offer(sections...)
	return nil
}

// TakeOffered acquires what a peer has released for this session. It tries again
// for a moment: a look of this node's own may be at the same sections just now, and
// until they are owned the peer's callers wait. It does not for what the Set has no more.
func (o *Owner) TakeOffered(ctx context.Context, ids []seq.SectionID) []seq.SectionID {
	const (
		patience = 300 * time.Millisecond // below quorum.ReserveTime
		pause    = 2 * time.Millisecond
	)
	begin := o.clock.Now()
	kept := 0
	for {
		done, leaving := o.gain(ctx, ids, nil)
		kept += done.kept
		have := o.ownedOf(ids)
		if leaving || !lacks(o.record.Known(), ids, have) || ctx.Err() != nil || o.clock.Now()-begin > patience {
			o.log.Info("sections taken by hand", "sections", len(have), "of", len(ids), "with counters", kept,
				"took", (o.clock.Now() - begin).Round(time.Microsecond))
			return have
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// ownedOf lists which of the sections this node owns.
func (o *Owner) ownedOf(ids []seq.SectionID) []seq.SectionID {
	have := make([]seq.SectionID, 0, len(ids))
	for _, id := range ids {
		if o.sections.Section(id).State() == section.Owned {
			have = append(have, id)
		}
	}
	return have
}
