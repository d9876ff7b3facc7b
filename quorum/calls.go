package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Probe looks at registers without writing: Won means that W stores would admit
// a Prepare by the session now. It comes before every Prepare, because a Prepare
// that one store promises and the others refuse deposes a live owner for nothing.
// An on-demand register that a store does not have counts as free there; its
// epochs are zero. Promised is never below a round that the session asked for and did not
// win, wherever its PREPARE has got to: ask above it. One outcome a register, in order.
// Safe to repeat.
func (g *Group) Probe(ctx context.Context, session seq.Session, regs []seq.Register) []Outcome {
	return g.probe(ctx, session, regs, false)
}

// Preempting is a Group whose Probe and Prepare ask with Preempt. Its registers must be sections of strict
// and exact spaces.
type Preempting struct{ *Group }

// Probe is Group.Probe. Won means that W stores would admit a preempting Prepare now.
func (p Preempting) Probe(ctx context.Context, session seq.Session, regs []seq.Register) []Outcome {
	return p.probe(ctx, session, regs, true)
}

// Prepare is Group.Prepare over living leases.
func (p Preempting) Prepare(ctx context.Context, session seq.Session, items []PrepareItem) []Outcome {
	return p.prepare(ctx, session, items, true)
}

func (g *Group) probe(ctx context.Context, session seq.Session, regs []seq.Register, preempt bool) []Outcome {
	regs = slices.Clone(regs) // slow stores read it after the call
	outcomes := g.run(ctx, func(v *view) (*batch, message) {
		b := &batch{op: "probe", n: v.cfg.N, w: v.cfg.W, length: len(regs), absentIsFree: true, few: !preempt,
			register: func(i int) seq.Register { return regs[i] }}
		req := ReadRequest{Ref: v.cfg.Ref, Session: session, Registers: regs, Preempt: preempt}
		return b, func(ctx context.Context, s Store) (string, []Result, error) {
			reply, err := s.Read(ctx, req)
			return reply.UUID, reply.Results, err
		}
	})
	g.aboveAsked(session, regs, outcomes)
	return outcomes
}

// Prepare asks for the promise of {Round, session} of each item. Won means that W distinct stores promised:
// Max is then at or above every number that was ever confirmed. Prepare returns one outcome for each item,
// in order. It is safe to repeat under the same round.
func (g *Group) Prepare(ctx context.Context, session seq.Session, items []PrepareItem) []Outcome {
	return g.prepare(ctx, session, items, false)
}

func (g *Group) prepare(ctx context.Context, session seq.Session, items []PrepareItem, preempt bool) []Outcome {
	items = slices.Clone(items)
	outcomes := g.run(ctx, func(v *view) (*batch, message) {
		b := &batch{op: "prepare", n: v.cfg.N, w: v.cfg.W, length: len(items),
			register: func(i int) seq.Register { return items[i].Register },
			credible: func(i int, r *Result) bool {
				return r.Promised == seq.Epoch{Round: items[i].Round, Session: session}
			}}
		req := PrepareRequest{Ref: v.cfg.Ref, Session: session, Secret: v.cfg.Secret, Items: items, Preempt: preempt}
		return b, func(ctx context.Context, s Store) (string, []Result, error) {
			reply, err := s.Prepare(ctx, req)
			v.claimed(reply, err)
			return reply.UUID, reply.Results, err
		}
	})
	g.noteAsked(session, items, outcomes)
	return outcomes
}

// noteAsked remembers the rounds of promises that were asked for and not won. Some store
// may have given one, or may still be about to; were the session to own the register under
// a lower round by then, that promise would end its lease at the store, and to the session
// it would look like its own doing.
func (g *Group) noteAsked(session seq.Session, items []PrepareItem, outcomes []Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, o := range outcomes {
		if p := (proposer{session, items[i].Register}); o.State != Won {
			g.rounds[p] = max(g.rounds[p], items[i].Round)
		}
	}
}

// aboveAsked raises what a look has shown to the rounds that the session asked for.
func (g *Group) aboveAsked(session seq.Session, regs []seq.Register, outcomes []Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range outcomes {
		if asked := (seq.Epoch{Round: g.rounds[proposer{session, regs[i]}], Session: session}); outcomes[i].Promised.Less(asked) && asked.Round > 0 {
			outcomes[i].Promised = asked
		}
	}
}

// Step asks to accept Max, and of a document its payload, under {Round, session}:
// one message a store for the whole batch. Only Won confirms it. Refused, which a
// single NACK is enough for, and Unknown may both have been written at some
// stores, or be written later: the new range must not be used. After Unknown the
// same or a larger value may be sent again under the same epoch; after ErrNack
// nothing may. Payloads must not be modified after the call.
func (g *Group) Step(ctx context.Context, session seq.Session, items []StepItem) []Outcome {
	items = slices.Clone(items)
	return g.run(ctx, func(v *view) (*batch, message) {
		b := &batch{op: "step", n: v.cfg.N, w: v.cfg.W, length: len(items), nackDecides: true,
			register: func(i int) seq.Register { return items[i].Register },
			credible: func(i int, r *Result) bool {
				return r.Accepted == seq.Epoch{Round: items[i].Round, Session: session} && r.Max >= items[i].Max
			}}
		req := StepRequest{Ref: v.cfg.Ref, Session: session, Secret: v.cfg.Secret, Items: items}
		return b, func(ctx context.Context, s Store) (string, []Result, error) {
			reply, err := s.Step(ctx, req)
			v.claimed(reply, err)
			return reply.UUID, reply.Results, err
		}
	})
}

// copyTimeout bounds the round that reads one copy: one of exact.MaxCopy took 1 s on two busy
// cores, and it is encoded, sent and waited for by all that the machine has to do.
const copyTimeout = 15 * time.Second

// Copies reads the copies of sections of exact spaces from W stores that have promised {rounds[i],
// session}. Won returns the highest copy as Payload, with its Accepted and Index. These stores accept
// nothing under a lower epoch any more, so the copy has all records that W stores ever had. Copies returns
// one outcome for each register, in order. It is safe to repeat. A single copy may be large and has
// copyTimeout.
func (g *Group) Copies(ctx context.Context, session seq.Session, regs []seq.Register, rounds []uint64) []Outcome {
	regs, rounds = slices.Clone(regs), slices.Clone(rounds)
	return g.run(ctx, func(v *view) (*batch, message) {
		b := &batch{op: "read the copy of", n: v.cfg.N, w: v.cfg.W, length: len(regs),
			register: func(i int) seq.Register { return regs[i] },
			credible: func(i int, r *Result) bool {
				return r.Promised == seq.Epoch{Round: rounds[i], Session: session}
			}}
		if len(regs) == 1 {
			b.timeout = copyTimeout
		}
		req := ReadRequest{Ref: v.cfg.Ref, Session: session, Registers: regs, Copies: true}
		return b, func(ctx context.Context, s Store) (string, []Result, error) {
			reply, err := s.Read(ctx, req)
			return reply.UUID, reply.Results, err
		}
	})
}

// run makes one round, and another where the stores turned out to have a newer member
// list: every request may be repeated, and none has counted under two lists.
func (g *Group) run(ctx context.Context, request func(v *view) (*batch, message)) []Outcome {
	var p patience
	for {
		v := g.now.Load()
		b, send := request(v)
		if b.length > 0 {
			g.round(ctx, v.within(b.timeout), b.length, b.few, send, b.take)
		}
		if !b.stale() || !g.refreshed(ctx, v, &p) {
			return b.outcomes(time.Now())
		}
	}
}

// ReadPrefix looks at all registers whose name starts with prefix, as Probe does. It needs R stores and
// returns seq.ErrNoQuorum otherwise. It waits for W stores where it can, so that the states mean something.
// No number that was confirmed before the call exceeds Max. A store without one of the registers counts as
// in Probe.
func (g *Group) ReadPrefix(ctx context.Context, session seq.Session, prefix string) (map[seq.Register]Outcome, error) {
	var p patience
	for {
		v := g.now.Load()
		found, err := g.readPrefix(ctx, v, session, prefix)
		if !errors.Is(err, seq.ErrStaleEra) || !g.refreshed(ctx, v, &p) {
			return found, err
		}
	}
}

func (g *Group) readPrefix(ctx context.Context, v *view, session seq.Session, prefix string) (map[seq.Register]Outcome, error) {
	req := ReadRequest{Ref: v.cfg.Ref, Session: session, Prefix: prefix}
	var answers []answer
	var causes []error
	g.round(ctx, v, anyLength, false, func(ctx context.Context, s Store) (string, []Result, error) {
		reply, err := s.Read(ctx, req)
		return reply.UUID, reply.Results, err
	}, func(a answer) bool {
		if a.err != nil {
			causes = append(causes, a.err)
		} else {
			answers = append(answers, a)
		}
		return len(answers) >= max(v.cfg.R, v.cfg.W)
	})
	if len(answers) < v.cfg.R {
		return nil, noQuorum("read registers by prefix", len(answers), v.cfg.R, causes)
	}
	regs := alignByRegister(answers)
	b := &batch{op: "read", n: v.cfg.N, w: v.cfg.W, length: len(regs), absentIsFree: true, shows: true, answers: answers,
		register: func(i int) seq.Register { return regs[i] }}
	found := make(map[seq.Register]Outcome, len(regs))
	for i, o := range b.outcomes(time.Now()) {
		found[regs[i]] = o
	}
	return found, nil
}

// alignByRegister gives all answers one result for each register that any of
// them names, in the order of what it returns.
func alignByRegister(answers []answer) []seq.Register {
	var regs []seq.Register
	index := map[seq.Register]int{}
	for _, a := range answers {
		for _, r := range a.results {
			if _, ok := index[r.Register]; !ok {
				index[r.Register] = len(regs)
				regs = append(regs, r.Register)
			}
		}
	}
	for k := range answers {
		aligned := make([]Result, len(regs))
		for i := range aligned {
			aligned[i].Verdict = VerdictUnknown
		}
		for _, r := range answers[k].results {
			aligned[index[r.Register]] = r
		}
		answers[k].results = aligned
	}
	return regs
}

// Release drops the session's leases on the items at all stores. It reserves them for the session to, if
// that is not 0, for ReserveTime. It returns nil once W distinct stores have done so. Otherwise it returns
// seq.ErrNoQuorum, and the leases end by themselves. The caller must have stopped serving the items before.
// Release is safe to repeat.
func (g *Group) Release(ctx context.Context, session seq.Session, items []LeaseItem, to seq.Session) error {
	if len(items) == 0 {
		return nil
	}
	return g.release(ctx, "release leases",
		ReleaseRequest{Session: session, Secret: g.Config().Secret, Items: slices.Clone(items), To: to})
}

// EndSession drops all leases of the secret's session at all stores, which then grant the session nothing
// more. It returns nil once W distinct stores have done so. Otherwise it returns seq.ErrNoQuorum, and the
// leases end by themselves. The process must have stopped serving, or be known to be dead. EndSession is
// safe to repeat.
func (g *Group) EndSession(ctx context.Context, secret seq.Secret) error {
	session := secret.Session()
	return g.release(ctx, "end session "+session.String(),
		ReleaseRequest{Session: session, Secret: secret, All: true})
}

func (g *Group) release(ctx context.Context, what string, req ReleaseRequest) error {
	var p patience
	for {
		v := g.now.Load()
		req.Ref = v.cfg.Ref
		err := g.releaseAt(ctx, v, what, req)
		if !errors.Is(err, seq.ErrStaleEra) || !g.refreshed(ctx, v, &p) {
			return err
		}
	}
}

func (g *Group) releaseAt(ctx context.Context, v *view, what string, req ReleaseRequest) error {
	acks := 0
	var causes []error
	g.round(ctx, v, anyLength, false, func(ctx context.Context, s Store) (string, []Result, error) {
		uuid, err := s.Release(ctx, req)
		return uuid, nil, err
	}, func(a answer) bool {
		if a.err != nil {
			causes = append(causes, a.err)
		} else {
			acks++
		}
		return acks >= v.cfg.W
	})
	if acks < v.cfg.W {
		return noQuorum(what, acks, v.cfg.W, causes)
	}
	return nil
}
