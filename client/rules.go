package client

import (
	"errors"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// rules are what the calls that share the retry loop differ in:
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
//	the search for a new table   Config.Addrs, then all of the       one has a newer table
//	                             table, each once at most
//
// All but the last two also end with an error that no retry cures (errors.go) and, after a
// round, once the quorum of stores is lost (outage.go).
type rules struct {
	where where
	// once is for one round only, in which the servers in doubt come last: an attempt costs
	// something.
	once bool
	// unanimous ends the call after a round in which all that were asked refused it for a
	// reason of their own, or gave an answer without a name: they do not serve the call, or
	// all fail at it.
	unanimous bool
	// patient calls may have to wait at the server, for a worker id, a tick or a takeover. So
	// the attempts of a round may take twice as long as those of the round before.
	patient bool
	// ids calls go by a health of their own.
	ids bool
	// final are the errors that end the call.
	final func(error) bool
}

// where is the order in which a round asks the servers.
type where int

const (
	atOwner    where = iota // owner and standbys of a section, then an address of Config
	inTurn                  // all of the table, each round from another one on, then an address of Config
	addrsFirst              // all addresses of Config, then all of the table
)

var (
	// The space of a key was found in the mapping: a server that does not know it has not heard
	// of it yet.
	forKeys  = rules{where: atOwner, final: func(err error) bool { return final(err) && !errors.Is(err, seq.ErrUnknownSpace) }}
	forTag   = rules{where: atOwner, final: final, unanimous: true, patient: true}
	forAny   = rules{where: inTurn, final: final, unanimous: true, patient: true, ids: true}
	forOnce  = rules{where: inTurn, final: func(err error) bool { return !anyOf(err, ofNode) && !errors.Is(err, seq.ErrWorkersExhausted) }, once: true, patient: true, ids: true}
	forTable = rules{where: addrsFirst, final: func(error) bool { return false }, once: true}
)

// health is what counts for calls of this kind.
func (k *call) health(s *server) *health {
	if k.rules.ids {
		return &s.idsHealth
	}
	return &s.health
}

// candidate is the server at the next step of a round: nil where there is none, and more is
// false behind the last step.
func (k *call) candidate(v *view, i int, t *tries) (s *server, more bool) {
	seeds, step := &k.c.servers, t.next
	t.next++
	switch k.rules.where {
	case atOwner:
		if step < standbys+1 {
			id := k.section
			if k.space != nil {
				id = k.space.SectionOf(k.places[i])
			}
			return v.candidates(id)[step], true
		}
		step -= standbys + 1
		return seeds.last(0, t.round, step), step < seeds.perRound()
	case inTurn:
		if step == 0 {
			t.turn = int(k.c.turn.Add(1))
			if at := v.named(k.node); at >= 0 {
				t.turn = at
			}
		}
		if step < len(v.nodes) {
			return v.nodes[(t.turn+step)%len(v.nodes)], true
		}
		step -= len(v.nodes)
		if s = seeds.last(t.turn, t.round, step); slices.Contains(v.nodes, s) {
			s = nil
		}
		return s, step < seeds.perRound()
	default:
		if step == 0 {
			t.turn = int(k.c.turn.Add(1))
		}
		if step < len(seeds.seeds) {
			return seeds.seed(t.turn, step), true
		}
		step -= len(seeds.seeds)
		if v == nil || step >= len(v.nodes) {
			return nil, false
		}
		if s = v.nodes[step]; s != nil && s.seed {
			s = nil
		}
		return s, true
	}
}
