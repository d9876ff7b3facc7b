package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

// tellPause is before a node is told again that did not answer.
const tellPause = 50 * time.Millisecond

// InEffect says when a change of a namespace is in effect.
type InEffect struct {
	Later time.Duration // a node of a build of before takes so long at most; zero: no node does
	Lent  Mark          // up to where clients and nodes that cannot be told have windows; zero: none has
}

// Told returns when no node of this cluster that can be told makes IDs of a namespace by an older document
// than this node knows, and none will.
//
// A node that makes IDs has the promise of a worker id at W stores, so a look finds it. One that is promised
// after the look reads the document before it makes IDs, and so does one whose window ran out. A client reads nothing: its
// window lasts to its mark, and so does that of a node that is not known to live.
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
