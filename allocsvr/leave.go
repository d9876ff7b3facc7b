package allocsvr

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Leave hands every section over, with its counters, to the standbys or any other
// live node; what nobody takes is sealed and parked in file, for the next start on
// this machine. Afterwards the session is ended at the stores, so that nobody
// waits for its lease. Call it before Run's context ends, once. An error tells
// what was not handed over; the lease then runs out by itself.
func (a *Alloc) Leave(ctx context.Context, file string) error {
	ctx, span := a.traces.Rare(ctx, "alloc.leave")
	defer span.End(nil)
	a.leaving.Store(true)
	if err := a.gaining.Acquire(ctx, gainers); err == nil {
		a.gaining.Release(gainers) // what was being acquired is owned now, or was not won
	}
	a.tellLeaving(ctx)
	a.arbiter.lease.release(ctx)
	moved := a.handAway(ctx)
	a.gone.Store(true)
	parkErr := a.park(file)
	tableErr := a.tellMoved(ctx, moved)
	endErr := a.holder.End(ctx, a.secret)
	if err := errors.Join(parkErr, tableErr, endErr); err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}

// tellPatience bounds how long a node waits for the table to say that it leaves: with the
// quorum lost it says so nowhere, and then there is no arbiter either.
const tellPatience = time.Second

// tellLeaving marks this session in the table as one that leaves, before anything else. Its
// lease still runs, so it looks alive; after the mark no plan of any node gives it anything.
func (a *Alloc) tellLeaving(ctx context.Context) {
	if a.routes.table() == nil {
		return // not in it for all that is known here
	}
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	_, err := a.changeRoutes(ctx, func(t *seq.RouteTable) ([]event, error) {
		i := t.Index(a.name)
		if i < 0 || t.Nodes[i].Leaving == a.session {
			return nil, errUnchanged
		}
		t.Nodes[i].Leaving = a.session
		return nil, nil
	})
	if err != nil {
		a.log.Warn("leaving, but the table does not say so", "error", err)
	}
}

// handAway hands every section over, to the standbys or any other live node, and
// tells what went where. What nobody takes stays.
func (a *Alloc) handAway(ctx context.Context) map[seq.SectionID]string {
	moved := make(map[seq.SectionID]string)
	another := a.handRound(ctx, moved, map[string]seq.Session{})
	if len(another) > 0 && len(a.owned()) > 0 && a.cameBack(ctx, another) {
		a.handRound(ctx, moved, another)
	}
	return moved
}

// handRound offers sections until they have gone or nobody is left to offer them to, not
// to the sessions that are away, by the names of their nodes. It adds what went where to
// moved, and returns the nodes that are another session than was known here.
func (a *Alloc) handRound(ctx context.Context, moved map[seq.SectionID]string, away map[string]seq.Session) map[string]seq.Session {
	away, another := maps.Clone(away), make(map[string]seq.Session)
	for {
		v := a.successorsView(away)
		groups := a.successors(v)
		if len(groups) == 0 {
			return another
		}
		for name, ids := range groups {
			to := v.live[name]
			_, err := a.handOverAll(ctx, to, ids)
			for _, id := range ids {
				if c := a.cells[id]; a.successorOf(c) == to.Addr {
					moved[id] = name
				}
			}
			if err != nil {
				a.log.Info("successor takes no sections", "node", name, "error", err)
				away[name] = to.Session
			}
			if errors.Is(err, seq.ErrNodeUnfit) {
				another[name] = to.Session
			}
		}
	}
}

// cameBack waits a moment until a node that said that it is another session is known as
// what it is now: it has restarted, and the stores have not told yet.
func (a *Alloc) cameBack(ctx context.Context, was map[string]seq.Session) bool {
	const looks = 50
	a.leases.Kick()
	for range looks {
		for name, s := range a.view(a.clock.Now()).live {
			if old, ok := was[name]; ok && s.Session != old {
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(a.lease / (2 * looks)):
		}
	}
	return false
}

// drained says whether an operator wants this node to be empty.
func (a *Alloc) drained() bool {
	t := a.routes.table()
	if t == nil {
		return false
	}
	i := t.Index(a.name)
	return i >= 0 && t.Nodes[i].Drained
}

// empty is a drain by the drained node itself: callers stay with it until a section
// has gone, and the table follows. The arbiter does it the other way round if the
// node does not.
func (a *Alloc) empty(ctx context.Context) {
	if len(a.owned()) == 0 {
		return
	}
	if err := a.tellMoved(ctx, a.handAway(ctx)); err != nil {
		a.log.Warn("drained, but the table does not say so", "error", err)
	}
}

func (a *Alloc) successorOf(c *cell) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.successor
}

// successorsView is who may be given sections: live, not away, and the table says nothing
// against it.
func (a *Alloc) successorsView(away map[string]seq.Session) view {
	v := a.view(a.clock.Now())
	delete(v.live, a.name)
	t := a.routes.table()
	for name, s := range v.live {
		if away[name] == s.Session || !t.takes(name, s.Session) {
			delete(v.live, name)
		}
	}
	return v
}

// successors groups this node's sections by who should have them next.
func (a *Alloc) successors(v view) map[string][]seq.SectionID {
	groups := make(map[string][]seq.SectionID)
	t := a.routes.table()
	for _, id := range a.owned() {
		if name := a.successor(t, id, v); name != "" {
			groups[name] = append(groups[name], id)
		}
	}
	return groups
}

// successor is the first live candidate of the table, or else any live node.
func (a *Alloc) successor(t *table, id seq.SectionID, v view) string {
	if t != nil && int(id) < len(t.Sections) {
		for _, i := range t.Sections[id].Candidates() {
			if i < 0 {
				continue
			}
			if _, ok := v.live[t.Nodes[i].Name]; ok {
				return t.Nodes[i].Name
			}
		}
	}
	least := ""
	for name := range v.live {
		if least == "" || name < least {
			least = name
		}
	}
	return least
}

// tellMoved writes the new owners into the table, so that callers and the arbiter
// need not find out by asking.
func (a *Alloc) tellMoved(ctx context.Context, moved map[seq.SectionID]string) error {
	if len(moved) == 0 {
		return nil
	}
	_, err := a.changeRoutes(ctx, func(t *seq.RouteTable) ([]event, error) {
		changed := 0
		me := t.Index(a.name)
		for id, name := range moved {
			i := t.Index(name)
			p := &t.Sections[id]
			if i < 0 || int(p.Owner) != me {
				continue
			}
			old := *p
			p.Owner, changed = int16(i), changed+1
			if old.Standby == p.Owner {
				p.Standby = old.Standby2
				p.Standby2 = seq.NoNode
			} else if old.Standby2 == p.Owner {
				p.Standby2 = seq.NoNode
			}
		}
		if changed == 0 {
			return nil, errUnchanged
		}
		return []event{{Kind: "leave", Subject: a.name, Reason: fmt.Sprintf("%d sections handed over", changed)}}, nil
	})
	return err
}

// park seals what is left and writes its counters to the node's own disk.
func (a *Alloc) park(file string) error {
	var sealed []sealedSection
	for _, id := range a.owned() {
		if s, ok := a.cells[id].seal(); ok {
			sealed = append(sealed, s)
		}
	}
	if file == "" {
		return nil
	}
	// Counters that came from elsewhere and were not used yet stay good.
	sealed = append(sealed, a.heirs.all()...)
	if len(sealed) == 0 {
		return nil
	}
	a.log.Info("sections parked", "sections", len(sealed), "file", file)
	return writeParked(file, a.cluster, sealed)
}

// Adopt makes parked counters available to the acquisitions to come.
func (a *Alloc) Adopt(file string) error {
	sealed, err := readParked(file, a.cluster)
	a.heirs.keep(sealed...)
	return err
}
