package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// standing is what a write asks of its own session, beside what each register asks.
type standing uint8

const (
	anyStanding standing = iota
	notEnded             // the session was not ended
	asKnown              // it has the life that the decisions were made under; without one, it was not ended
)

// item is one register of a batch. Two of one register are decided one after the other.
type item struct {
	register seq.Register
	// rule decides on the state as far as it is known, under Store.mu; life is that of the
	// batch's session.
	rule   func(r record, life int64) decision
	result quorum.Result
	done   bool

	made decision // in this round
	on   record   // that it was made on
}

// batch is a request: items that are decided each by itself.
type batch struct {
	who   seq.Session
	needs standing
	life  int64 // of the session, in this round
	items []*item

	// fresh are the registers that an answer to this request has shown, and stale says that the
	// sessions are to be looked at again: a refusal rests only on what is fresh.
	fresh map[seq.Register]bool
	stale bool
}

// errNoLife: the session that a register is to be kept for has no key any more.
var errNoLife = errors.New("the session's key is gone")

// write has each item decided on its newest state, and each decision put into effect on just that
// state. After an error the outcome of all is unknown.
func (s *Store) write(ctx context.Context, b *batch) error {
	b.fresh = make(map[seq.Register]bool, len(b.items))
	for {
		wave := b.wave()
		if len(wave) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		unread := s.decide(b, wave)
		if len(unread) == 0 && !b.stale {
			if err := s.put(ctx, b, wave); err != nil {
				return err
			}
			continue
		}
		if err := s.read(ctx, unread); err != nil {
			return err
		}
		b.stale = false
		for _, r := range unread {
			b.fresh[r] = true
		}
	}
}

// wave is the next undone item of each register, in order.
func (b *batch) wave() []*item {
	var wave []*item
	busy := make(map[seq.Register]bool, len(b.items))
	for _, it := range b.items {
		if !it.done && !busy[it.register] {
			busy[it.register] = true
			wave = append(wave, it)
		}
	}
	return wave
}

// decide applies the rules to what is known, and names the registers that must be read first.
// What is to be written can rest on anything: it is compared.
func (s *Store) decide(b *batch, wave []*item) (unread []seq.Register) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.life = s.lifeOf(b.who)
	for _, it := range wave {
		r, known := s.records[it.register]
		it.on, it.made = r, it.rule(r, b.life)
		switch {
		case !known, !it.made.write && !b.fresh[it.register]:
			unread = append(unread, it.register)
		case !it.made.write && !b.stale:
			it.result, it.done = it.made.result, true
		}
	}
	return unread
}

// put writes what was decided, in as many transactions as it takes.
func (s *Store) put(ctx context.Context, b *batch, wave []*item) error {
	var parts [][]*item
	size := 0
	for _, it := range wave {
		if it.done {
			continue
		}
		n := 3*len(s.keys.register(it.register)) + 256 + len(it.made.body)
		if len(parts) == 0 || len(parts[len(parts)-1]) == maxItems || size+n > maxBytes {
			parts, size = append(parts, nil), 0
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], it)
		size += n
	}
	return inParallel(len(parts), func(i int) error { return s.putPart(ctx, b, parts[i]) })
}

func (s *Store) putPart(ctx context.Context, b *batch, part []*item) error {
	t := Txn{If: append([]Compare{s.unmoved()}, s.standing(b)...),
		Else: []Op{get(s.keys.meta()), get(s.keys.session(b.who)), get(s.keys.ended(b.who))}}
	for _, it := range part {
		t.Then = append(t.Then, Op{Kind: Nested, Txn: s.change(it)})
	}
	a, err := s.do(ctx, t)
	if err != nil {
		return err
	}
	if !a.Then {
		return s.stopped(ctx, b, part, a)
	}
	for i, it := range part {
		if err := s.changed(ctx, b, it, a.Revision, a.Results[i].Nested); err != nil {
			return err
		}
	}
	return nil
}

// standing is what the whole transaction asks of the session. That a register is kept for it
// needs the life to be so as the register is written.
func (s *Store) standing(b *batch) []Compare {
	switch {
	case b.needs == anyStanding:
		return nil
	case b.needs == asKnown && b.life != 0:
		return []Compare{created(s.keys.session(b.who), b.life)}
	}
	return []Compare{absent(s.keys.ended(b.who))}
}

// change writes one register if it is as the decision was made on.
func (s *Store) change(it *item) *Txn {
	key, d := s.keys.register(it.register), it.made
	t := &Txn{If: []Compare{modified(key, it.on.modified)}, Then: []Op{put(key, d.next.encode(key))}, Else: s.show(it.register)}
	if d.guardLife != 0 {
		t.If = append(t.If, Compare{Key: s.keys.session(d.guard), Created: true, Not: true, Rev: d.guardLife})
	}
	if d.setBody {
		body := s.keys.body(it.register)
		t.Then = append(t.Then, put(body, seal(body, d.body)))
	}
	return t
}

// changed takes in what became of one item.
func (s *Store) changed(ctx context.Context, b *batch, it *item, revision int64, a *Answer) error {
	if a == nil {
		return fmt.Errorf("%w: no answer on %s", quorum.ErrBadReply, it.register)
	}
	if !a.Then {
		err := s.taken(ctx, it.register, revision, a.Results)
		s.mu.Lock()
		defer s.mu.Unlock()
		b.fresh[it.register], b.stale = true, true
		return err
	}
	r := record{register: it.made.next, exists: true, modified: revision, body: it.on.body, at: revision}
	if it.made.setBody {
		r.body = it.made.body
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	it.result, it.done = it.made.result, true
	b.fresh[it.register] = true
	return s.note(it.register, r)
}

// stopped finds out what the compares of the whole met: the meta, or the session.
func (s *Store) stopped(ctx context.Context, b *batch, part []*item, a Answer) error {
	if err := s.remeta(ctx, a); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	life := int64(0)
	if kvs := a.Results[1].KVs; len(kvs) > 0 {
		life = kvs[0].Created
	}
	s.lived(b.who, life, a.Revision)
	if ended := len(a.Results[2].KVs) > 0; ended && b.needs != anyStanding {
		for _, it := range part {
			it.result, it.done = s.refused(it.register, s.records[it.register], "the session has ended").result, true
		}
	}
	return nil
}

// Prepare implements quorum.Store.
func (s *Store) Prepare(ctx context.Context, req quorum.PrepareRequest) (quorum.Reply, error) {
	items := make([]*item, len(req.Items))
	for i, it := range req.Items {
		items[i] = &item{register: it.Register, rule: func(r record, _ int64) decision { return s.prepare(it, req.Session, r) }}
	}
	reply, err := s.ballot(ctx, req.Ref, req.Secret, &batch{who: req.Session, needs: notEnded, items: items})
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("prepare: %w", err)
	}
	s.vacated(req, reply.Results)
	return reply, nil
}

// Step implements quorum.Store. It needs the promise of exactly the epoch. Records of exact
// sections are ErrNoExact.
func (s *Store) Step(ctx context.Context, req quorum.StepRequest) (quorum.Reply, error) {
	items := make([]*item, len(req.Items))
	for i, it := range req.Items {
		if len(it.Log) > 0 {
			return quorum.Reply{}, fmt.Errorf("step %s: %w", it.Register, ErrNoExact)
		}
		items[i] = &item{register: it.Register, rule: func(r record, life int64) decision { return s.step(it, req.Session, life, r) }}
	}
	s.stepping(req)
	defer s.stepping(req)
	reply, err := s.ballot(ctx, req.Ref, req.Secret, &batch{who: req.Session, needs: asKnown, items: items})
	if err != nil {
		return quorum.Reply{}, fmt.Errorf("step: %w", err)
	}
	return reply, nil
}

// ballot makes a PREPARE or STEP.
func (s *Store) ballot(ctx context.Context, ref quorum.Ref, secret seq.Secret, b *batch) (quorum.Reply, error) {
	if err := secret.Proves(b.who); err != nil {
		return quorum.Reply{}, err
	}
	if err := s.admit(ref); err != nil {
		return quorum.Reply{}, err
	}
	if err := s.write(ctx, b); err != nil {
		return quorum.Reply{}, err
	}
	reply := quorum.Reply{UUID: s.Identity().UUID, Results: make([]quorum.Result, len(b.items))}
	for i, it := range b.items {
		reply.Results[i] = it.result
	}
	return reply, nil
}
