package call

import (
	"context"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/seq"
)

// Attempt is what one server is asked in one message or unary call.
type Attempt struct {
	Server  *Server
	probe   *health    // that the attempt probes; nil if it is no probe
	relayed *route.Set // that a router is asked for; nil if the server is a node of the Set
	rules   *rules
	Space   *seq.Space
	Version uint64 // of the route table
	round   int
	Idx     []int // the keys
	faults  []Fault
	err     error
}

// Fault is the error of Idx[K].
type Fault struct {
	K   int
	Err error
}

func (k *call) attempt(s *Server, probe *health, round int) *Attempt {
	return &Attempt{Server: s, probe: probe, rules: k.rules, Space: k.space, Version: s.Version(), round: round}
}

// Unary makes the attempt by a unary call.
func (a *Attempt) Unary(ctx context.Context, do func(context.Context) error) error {
	return a.Server.attempt(ctx, a.rules, a.round, do)
}

// plan sorts the pending keys by the server to ask; idle are those whose round is over.
func (k *call) plan(v *route.View, pending []int) (attempts []*Attempt, idle []int) {
	for _, i := range pending {
		a := k.pick(v, i, attempts)
		if a == nil {
			idle = append(idle, i)
			continue
		}
		if len(a.Idx) == 0 {
			attempts = append(attempts, a)
		}
		a.Idx = append(a.Idx, i)
	}
	return attempts, idle
}

// pick is the attempt at the next server to ask for a key, a new one or one of those; nil when
// its round is over.
func (k *call) pick(v *route.View, i int, attempts []*Attempt) *Attempt {
	t := k.of(i)
	if t.gen != v.Gen {
		t.gen, t.in, t.next, t.late = v.Gen, nil, 0, nil
	}
	if t.hint != "" {
		s, err := k.c.table.At(t.hint, t.of)
		t.hint = ""
		if err == nil {
			if a := k.admit(peer(s), nil, t.round, attempts); a != nil {
				return a
			}
		}
	}
	for {
		s, more := k.candidate(v, i, t)
		if !more {
			break
		}
		if s == nil {
			continue
		}
		relayed := k.relayed(v, i, t, s)
		if a := k.admit(peer(s), relayed, t.round, attempts); a != nil {
			return a
		}
		switch {
		case k.rules.where != atOwner:
			t.late = append(t.late, peer(s))
		case relayed == nil:
			t.asked++ // and it did not refuse
			if why := s.Other(); why != nil {
				t.strange++
				t.last = why
			}
		}
	}
	if len(t.late) == 0 {
		return nil
	}
	return k.atLate(t, attempts)
}

// atLate is the attempt at the next of the servers that were put off, whatever is thought of it: one
// that has said something by then, and then one that is mute, which gets no more time for a later round.
// Such an attempt lasts for too long to be the one call that sees.
func (k *call) atLate(t *tries, attempts []*Attempt) *Attempt {
	round := t.round
	next := slices.IndexFunc(t.late, func(s *Server) bool { return !k.rules.ids || !s.idsHealth.mute() })
	if next < 0 {
		next, round = 0, 0
	}
	s := t.late[next]
	t.late = slices.Delete(t.late, next, next+1)
	if a := attemptAt(s, attempts); a != nil {
		return a
	}
	return k.attempt(s, nil, round)
}

// attemptAt returns the attempt at a server, or nil if there is none.
func attemptAt(s *Server, attempts []*Attempt) *Attempt {
	for _, a := range attempts {
		if a.Server == s {
			return a
		}
	}
	return nil
}

// admit returns an attempt at the server, or nil if none may be made now. Keys may share an attempt that is
// a probe. relayed is as in attempt.
func (k *call) admit(s *Server, relayed *route.Set, round int, attempts []*Attempt) *Attempt {
	if a := attemptAt(s, attempts); a != nil {
		return a
	}
	h := k.health(s)
	if k.rules.once {
		if h.silent.Load() {
			return nil
		}
		return k.attempt(s, nil, round)
	}
	if k.rules.ids && h.mute() {
		return nil
	}
	ok, probe := false, (*health)(nil)
	if relayed != nil && careOf(relayed).relay.Load() != s.Server {
		probe = &careOf(relayed).relays
		ok = probe.probe(time.Now())
	} else {
		ok, probe = h.admit()
	}
	if !ok {
		return nil
	}
	a := k.attempt(s, probe, round)
	a.relayed = relayed
	return a
}

// note keeps whether the attempt had an answer for a Set that its server is no node of: for some key, or an
// error that no other server's answer cures.
func (a *Attempt) note() {
	if a.relayed == nil {
		return
	}
	switch r := careOf(a.relayed); {
	case len(a.faults) < len(a.Idx) || slices.ContainsFunc(a.faults, func(f Fault) bool { return a.rules.final(f.Err) }):
		r.relay.Store(a.Server.Server)
	default:
		r.relay.CompareAndSwap(a.Server.Server, nil)
	}
}
