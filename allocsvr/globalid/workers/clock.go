package workers

import (
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// maxBehind bounds how far this node's clock may be behind the stores' clocks. If it is farther behind,
	// the node takes no worker id, because its IDs would have times long past.
	maxBehind = 10 * time.Minute
	// maxOff bounds how far a clock that counts as right may be off.
	maxOff = time.Minute
)

// behind says that this node's clock is too far behind: seq.ErrClockOff. It is nil if that is not known.
// Only clocks count. The mark of a worker id tells of the clock of the node that wrote it,
// and one wrong clock must not stop the other nodes.
func (w *Workers) behind() error {
	if ahead, known := w.cfg.ClockAhead(); known && -ahead > maxBehind {
		return fmt.Errorf("%w: it is %v behind the clocks that the stores go by, expected at most %v", seq.ErrClockOff, -ahead.Round(time.Second), maxBehind)
	}
	return nil
}

// early says that it is the epoch of a layout that is wrong, and not this node's clock, if that is known:
// builds of before recorded such namespaces. seq.ErrBadLayout.
func (w *Workers) early(ns namespaces.Namespace, err error) error {
	if ahead, known := w.cfg.ClockAhead(); !known || ahead.Abs() > maxOff || !errors.Is(err, seq.ErrClockOff) {
		return err
	}
	return fmt.Errorf("%w: its epoch is %s, and nothing is handed out before: expected another namespace", seq.ErrBadLayout, ns.Layout.Epoch().UTC().Format(time.RFC3339))
}

// strand gives up a lease whose IDs are further ahead of the clock than the node may borrow, because
// the clock was ahead and is right again. It reports whether it did: Issuer.Lease then draws another
// worker id. A node bound to one id waits for the clock, and so does a node in a crowded pool, since
// the id stays unusable until the clock reaches its mark.
func (l *Lease) strand() bool {
	w, i := l.issuer.w, l.issuer
	far := max(l.last(), l.Mark()).ahead(w.now())
	if far <= reachOf(w.cfg.Window)+w.cfg.Window || w.cfg.Node.Worker != nil {
		return false
	}
	if ahead, known := w.cfg.ClockAhead(); !known || ahead.Abs() > maxOff {
		return false // it may be the clock that is wrong now
	}
	// The pool was last seen before this worker id was taken, and another one is to be.
	if p := i.Pool(); (Pool{Held: p.Held + 2, Size: p.Size}).Crowded() {
		return false
	}
	if l.giveUp() {
		w.log.Warn("worker id given up: the clock was ahead and came back; nobody can use the id before its mark", "namespace", l.Namespace.Name,
			"datacenter", l.Datacenter, "worker", l.Worker, "mark", l.Mark().Time(), "ahead", far)
		w.releases(l)
	}
	return true
}
