package allocsvr

import (
	"context"
	"path"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
)

// Bounds of the changes that wait to be written to the log of events.
const (
	maxChanges  = 256             // more are in this process' own log only
	recordBound = 5 * time.Second // one write of all that wait
)

// changed takes a change that an operator made, for the log of events. It does not wait.
func (a *Alloc) changed(c rpc.Change) {
	select {
	case a.changes <- c:
	default:
		a.log.Warn("change not recorded, too many wait", "method", c.Method, "target", c.Target)
	}
}

// record writes changes to the log of events, those that wait in one write, until ctx ends.
func (a *Alloc) record(ctx context.Context) {
	for {
		var events []arbiter.Event
		select {
		case <-ctx.Done():
			return
		case c := <-a.changes:
			events = append(events, eventOf(c))
		}
		for range len(a.changes) {
			events = append(events, eventOf(<-a.changes))
		}
		bounded, cancel := context.WithTimeout(ctx, recordBound)
		if err := a.routes.Record(bounded, events); err != nil && ctx.Err() == nil {
			a.log.Warn("changes not recorded", "error", err, "changes", len(events))
		}
		cancel()
	}
}

// eventOf returns the event of a change, such as "Put: tag "orders"".
func eventOf(c rpc.Change) arbiter.Event {
	return arbiter.Event{Kind: "change", Subject: c.Target, Reason: c.By() + ": " + path.Base(c.Method)}
}
