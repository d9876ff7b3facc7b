package owner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/arbiter"
	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/seq"
)

// tellPatience bounds how long a node waits for the table to say that it leaves: with the
// quorum lost it says so nowhere, and then there is no arbiter either.
const tellPatience = time.Second

// tellLeaving marks this session in the table as one that leaves, before anything else. Its
// lease still runs, so it looks alive; after the mark no plan of any node gives it anything.
func (g *giver) tellLeaving(ctx context.Context) {
	if g.routes.Table() == nil {
		return // not in it for all that is known here
	}
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	_, err := g.routes.Change(ctx, func(t *seq.RouteTable) ([]arbiter.Event, error) {
		i := t.Index(g.name)
		if i < 0 || t.Nodes[i].Leaving == g.session {
			return nil, arbiter.ErrUnchanged
		}
		t.Nodes[i].Leaving = g.session
		return nil, nil
	})
	if err != nil {
		g.log.Warn("leaving, but the table does not say so", "error", err)
	}
}

// handAway hands every section over, to the standbys or any other live node, and returns the receiver of
// each. Sections that no node takes stay.
func (g *giver) handAway(ctx context.Context) map[seq.SectionID]string {
	moved := make(map[seq.SectionID]string)
	another := g.handRound(ctx, moved, map[string]seq.Session{})
	if len(another) > 0 && len(g.sections.Owned()) > 0 && g.cameBack(ctx, another) {
		g.handRound(ctx, moved, another)
	}
	return moved
}

// handRound offers sections until they have gone or no node is left to offer them to; away
// are the sessions that get no offer, by the names of their nodes. It adds what went where to
// moved, and returns the nodes that are another session than was known here.
func (g *giver) handRound(ctx context.Context, moved map[seq.SectionID]string, away map[string]seq.Session) map[string]seq.Session {
	away, another := maps.Clone(away), make(map[string]seq.Session)
	for {
		v := g.successorsView(away)
		groups := g.successors(v)
		if len(groups) == 0 {
			return another
		}
		for name, ids := range groups {
			to := v.Live[name]
			_, err := g.handOverAll(ctx, to, ids)
			for _, id := range ids {
				if g.sections.Section(id).Successor() == to.Addr {
					moved[id] = name
				}
			}
			if err != nil {
				g.log.Info("successor takes no sections", "node", name, "error", err)
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
func (g *giver) cameBack(ctx context.Context, was map[string]seq.Session) bool {
	const looks = 50
	g.sessions.Kick()
	for range looks {
		for name, s := range g.nodes.View(g.clock.Now()).Live {
			if old, ok := was[name]; ok && s.Session != old {
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(g.lease / (2 * looks)):
		}
	}
	return false
}

// drained reports whether an operator wants this node to be empty.
func (g *giver) drained() bool {
	t := g.routes.Table()
	if t == nil {
		return false
	}
	i := t.Index(g.name)
	return i >= 0 && t.Nodes[i].Drained
}

// empty is a drain by the drained node itself: callers stay with it until a section
// has gone, and the table follows. The arbiter does it the other way round if the
// node does not.
func (g *giver) empty(ctx context.Context) {
	if len(g.sections.Owned()) == 0 {
		return
	}
	if err := g.tellMoved(ctx, g.handAway(ctx)); err != nil {
		g.log.Warn("drained, but the table does not say so", "error", err)
	}
}

// successorsView has the nodes that may be given sections: live, not away, and the table
// says nothing against it.
func (g *giver) successorsView(away map[string]seq.Session) nodes.View {
	v := g.nodes.View(g.clock.Now())
	delete(v.Live, g.name)
	t := g.routes.Table()
	for name, s := range v.Live {
		if away[name] == s.Session || !t.Gives(name, s.Session) {
			delete(v.Live, name)
		}
	}
	return v
}

// successors groups this node's sections by the node that should have them next.
func (g *giver) successors(v nodes.View) map[string][]seq.SectionID {
	groups := make(map[string][]seq.SectionID)
	t := g.routes.Table()
	for _, id := range g.sections.Owned() {
		if name := g.successor(t, id, v); name != "" {
			groups[name] = append(groups[name], id)
		}
	}
	return groups
}

// successor returns the first live candidate of the table, or else any live node.
func (g *giver) successor(t *arbiter.Table, id seq.SectionID, v nodes.View) string {
	if t != nil {
		for _, i := range t.Place(id).Candidates() {
			if i < 0 {
				continue
			}
			if _, ok := v.Live[t.Nodes[i].Name]; ok {
				return t.Nodes[i].Name
			}
		}
	}
	least := ""
	for name := range v.Live {
		if least == "" || name < least {
			least = name
		}
	}
	return least
}

// tellMoved writes the new owners into the table, so that callers and the arbiter
// need not find out by asking.
func (g *giver) tellMoved(ctx context.Context, moved map[seq.SectionID]string) error {
	if len(moved) == 0 {
		return nil
	}
	_, err := g.routes.Change(ctx, func(t *seq.RouteTable) ([]arbiter.Event, error) {
		changed := 0
		me := t.Index(g.name)
		for id, name := range moved {
			i := t.Index(name)
			if i < 0 || int(t.Place(id).Owner) != me {
				continue
			}
			p := &t.Sections[id]
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
			return nil, arbiter.ErrUnchanged
		}
		return []arbiter.Event{{Kind: "leave", Subject: g.name, Reason: fmt.Sprintf("%d sections handed over", changed)}}, nil
	})
	return err
}

// park seals what is left and writes its counters to the node's own disk.
func (g *giver) park(file string) error {
	var sealed []handover.Sealed
	for _, id := range g.sections.Owned() {
		if s, ok := g.seal(id); ok {
			sealed = append(sealed, s)
		}
	}
	if file == "" {
		return nil
	}
	// Counters from other nodes that were not used yet stay good, except the counters of sections that have
	// gone to another Set.
	g.moves.Settle()
	sealed = append(sealed, g.kept.All()...)
	if len(sealed) == 0 {
		return nil
	}
	g.log.Info("sections parked", "sections", len(sealed), "file", file)
	return handover.Park(file, g.cluster, sealed)
}
