package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

// tellPause is the pause before a node that did not answer is told again.
const tellPause = 50 * time.Millisecond

// InEffect says when a change of a namespace is in effect.
type InEffect struct {
	Later time.Duration // a node of an older build takes at most so long; zero if there is none
	Lent  Mark          // the end of the windows of clients and nodes that cannot be told; zero if there are none
}

// Told returns when no node of this cluster that can be told makes, or will make, IDs of a namespace by an
// older document than this node knows.
//
// A node that makes IDs has the promise of a worker id at W stores, so a look finds it. A node reads the
// document before it makes IDs if it got the promise after the look, or if its window ran out. A client
// reads nothing, and its window lasts to its mark. The same holds for a node that is not known to live.
func (w *Workers) Told(ctx context.Context, name string) (e InEffect, err error) {
	done := map[seq.Session]bool{w.cfg.Holder.Session: true} // this node went by it when it was written
	for first := true; ; first = false {
		found, err := w.cfg.ReadPrefix(ctx, nobody, prefixOf(name))
		living := w.living()
		for _, out := range found {
			who := out.Promised.Session
			if m := Mark(out.Max); m > w.now() && m > Mark(out.Floor) && (first && out.Holder == 0 || !living[who]) {
				e.Lent = max(e.Lent, m)
			}
			if who == 0 || done[who] || !living[who] {
				continue
			}
			later, why := w.cfg.Tell(ctx, who)
			done[who], e.Later = why == nil, max(e.Later, later)
			err = errors.Join(err, why)
		}
		if err == nil {
			return e, nil
		}
		if !wake.Sleep(ctx, tellPause) {
			return e, fmt.Errorf("namespace %q: the change is recorded, and a node may not go by it yet: repeat it: %w: %w", name, context.Cause(ctx), err)
		}
	}
}

// living are the sessions that live, as far as this node has heard.
func (w *Workers) living() map[seq.Session]bool {
	living := map[seq.Session]bool{w.cfg.Holder.Session: true}
	for _, v := range w.cfg.Sessions() {
		living[v.Session] = !v.Dead
	}
	return living
}

// ranOut reports whether a window ended before it was extended: a change of the namespace may have been
// answered meanwhile without asking this node.
func (l *Lease) ranOut(now Mark) bool { return l.Mark() <= now }
