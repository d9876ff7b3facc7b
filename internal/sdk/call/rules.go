package call

import (
	"errors"
	"slices"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/seq"
)

// rules describe the differences between the calls that share the retry loop:
//
//	call                         asks                                until
//	Next, Take, NextBatch,       where NOT_OWNER pointed, the owner, ctx ends
//	Current, Raise, RaiseBatch   the standbys, an address of Config
//	TakeSegment, NextNumbers,    the same                            ctx ends, or all refuse
//	Owner, OwnerOf
//	Generate, Any                all in turn, an address of Config   ctx ends, or all refuse
//	Once                         the same, each once at most,        an answer other than a
//	                             a node that is named first          refusal for the node's own
//	                                                                 reasons
//
// With several Sets, calls for keys and OwnerOf ask the Set that has the section by the map, or the Set
// that a NOT_OWNER named. Calls for global IDs ask the nodes of all Sets. All other calls except Once ask
// only the root Set, which has the tags and changes namespaces. A call asks an address of Config only if it
// is of a Set to ask.
//
// All calls except Once also end with an error that no retry cures (errors.go). After a round they end if
// the quorum of stores is lost (outage.go).
type rules struct {
	where where
	// once limits the call to one round, in which the servers in doubt come last, because an attempt costs
	// something.
	once bool
	// unanimous ends the call after a round in which all that were asked refused it for a
	// reason of their own, or gave an answer without a name: they do not serve the call, or
	// all fail at it.
	unanimous bool
	// patient calls may wait at the server for a worker id, a tick or a takeover. So the attempts of a
	// round may take twice as long as the attempts of the round before.
	patient bool
	// ids calls go by a health of their own.
	ids bool
	// root calls are for what the root Set alone has, whichever has the section.
	root bool
	// final are the errors that end the call.
	final func(error) bool
}

// where is the order in which a round asks the servers.
type where int

const (
	atOwner where = iota // owner and standbys of a section, then an address of Config
	inTurn               // all of the table, each round from another one on, then an address of Config
)

var (
	// The space of a key was found in the mapping: a server that does not know it has not heard
	// of it yet.
	forKeys    = rules{where: atOwner, final: func(err error) bool { return Final(err) && !errors.Is(err, seq.ErrUnknownSpace) }}
	forSection = rules{where: atOwner, final: Final, unanimous: true, patient: true}
	forTag     = rules{where: atOwner, final: Final, unanimous: true, patient: true, root: true}
	forIDs     = rules{where: inTurn, final: Final, unanimous: true, patient: true, ids: true}
	forAny     = rules{where: inTurn, final: Final, unanimous: true, patient: true, ids: true, root: true}
	forOnce    = rules{where: inTurn, final: func(err error) bool {
		return !anyOf(err, ofNode) && !route.Strange(err) && !errors.Is(err, seq.ErrWorkersExhausted) && !errors.Is(err, seq.ErrNoRoute)
	}, once: true, patient: true, ids: true}
)

// health is what counts for calls of this kind.
func (k *call) health(s *Server) *health {
	if k.rules.ids {
		return &s.idsHealth
	}
	return &s.health
}

// candidate is the server at the next step of a round: nil where there is none, and more is
// false behind the last step.
func (k *call) candidate(v *route.View, i int, t *tries) (s *route.Server, more bool) {
	table, step := k.c.table, t.next
	t.next++
	switch k.rules.where {
	case atOwner:
		if step < route.Standbys+1 {
			return k.placed(v, i, t)[step], true
		}
		step -= route.Standbys + 1
		if k.turn == 0 {
			k.turn = table.Turn()
		}
		return k.seed(v, i, t, k.turn, step)
	default:
		if step == 0 {
			t.turn = table.Turn()
			if at := v.Named(k.node); at >= 0 {
				t.turn = at
			}
		}
		nodes := v.Nodes
		if k.rules.root {
			nodes = v.Root().Nodes
		}
		if step < len(nodes) {
			return nodes[(t.turn+step)%len(nodes)], true
		}
		step -= len(nodes)
		if s, more = k.seed(v, i, t, t.turn, step); slices.Contains(nodes, s) {
			s = nil
		}
		return s, more
	}
}

// seed returns an address of Config at a step of a round that ends with them, and whether the round has that
// step. The address is of the Set to ask for key i, or a router's, or of a Set whose table is not known, because
// a NOT_OWNER may lead there. The server that had the last answer for the Set comes first. If the address is
// none of these, the server is nil.
func (k *call) seed(v *route.View, i int, t *tries, turn, step int) (s *route.Server, asks bool) {
	s, asks = k.c.table.Last(turn, t.round, step)
	if k.anySet() {
		return s, asks
	}
	of, in := s.Set(), k.in(v, i, t)
	if relay := careOf(in).relay.Load(); relay != nil && k.rules.where == atOwner {
		return relay, asks
	}
	if v.Alone() || of == in || of != nil && k.rules.where == atOwner && (in.Version() == 0 || k.space != nil && v.Router(s)) {
		return s, asks
	}
	return nil, asks
}

// relayed returns the Set to ask for key i if the server is an address of Config and no node of the Set,
// such as a router. A caller that reaches no node needs such an address. But if the nodes are dead, a
// router would ask the same nodes for each caller. So one call at a time tests whether the address answers,
// until it does. relayed returns nil for a node, and for a router if there are only routers to ask.
func (k *call) relayed(v *route.View, i int, t *tries, s *route.Server) *route.Set {
	if k.rules.where != atOwner || !s.Seed || k.c.cfg.Indirect {
		return nil
	}
	in := k.in(v, i, t)
	if in.Version() == 0 && s.Set() == in || slices.Contains(v.Part(in).Nodes, s) {
		return nil
	}
	return in
}

// anySet says that the nodes of all Sets answer the call alike.
func (k *call) anySet() bool { return k.rules.where == inTurn && !k.rules.root }

// in is the Set to ask for key i.
func (k *call) in(v *route.View, i int, t *tries) *route.Set {
	switch {
	case t.in != nil:
		return t.in
	case k.rules.root || k.anySet():
		return v.Root().Of
	default:
		return v.In(k.sectionOf(i)).Of
	}
}

// placed are the owner and the standbys of key i there.
func (k *call) placed(v *route.View, i int, t *tries) [1 + route.Standbys]*route.Server {
	id := k.sectionOf(i)
	switch {
	case t.in != nil:
		return v.Part(t.in).Candidates(id)
	case k.rules.root:
		return v.Root().Candidates(id)
	default:
		return v.Candidates(id)
	}
}

// sectionOf is the section of key i.
func (k *call) sectionOf(i int) seq.SectionID {
	if k.space == nil {
		return k.section
	}
	return k.space.SectionOf(k.places[i])
}
