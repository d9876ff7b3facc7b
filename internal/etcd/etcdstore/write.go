package etcdstore

import (
	"context"
	"fmt"
	"sync"

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
	// rule decides on the state as far as it is known, under Store.mu. life is the life of the batch's
	// session.
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

	mu sync.Mutex // guards fresh and stale while transactions are under way
	// fresh are the registers that an answer to this request has shown, and stale says that the
	// sessions are to be looked at again: a refusal rests only on what is fresh.
	fresh map[seq.Register]bool
	stale bool
}

// writer carries out decisions.
type writer struct {
	cluster *cluster
	own     *ownSessions
	records *records
	rules   *rules
}

// write has each item decided on its newest state, and each decision put into effect on just that
// state. After an error the outcome of all is unknown.
func (w *writer) write(ctx context.Context, b *batch) error {
	b.fresh = make(map[seq.Register]bool, len(b.items))
	for {
		wave := b.wave()
		if len(wave) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		unread := w.decide(b, wave)
		if len(unread) == 0 && !b.stale {
			if err := w.put(ctx, b, wave); err != nil {
				return err
			}
			continue
		}
		if err := w.records.read(ctx, unread); err != nil {
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

// decide applies the rules to the known records, and returns the registers that must be read first. A
// decision to write may rest on an old record, because the write compares it.
func (w *writer) decide(b *batch, wave []*item) (unread []seq.Register) {
	b.life = w.own.lifeOf(b.who)
	for _, it := range wave {
		var known bool
		it.on, known, it.made = w.records.decide(it.register, func(r record) decision { return it.rule(r, b.life) })
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
func (w *writer) put(ctx context.Context, b *batch, wave []*item) error {
	var parts [][]*item
	size := 0
	for _, it := range wave {
		if it.done {
			continue
		}
		n := 3*len(w.cluster.keys.register(it.register)) + 256 + len(it.made.body)
		if len(parts) == 0 || len(parts[len(parts)-1]) == maxItems || size+n > maxBytes {
			parts, size = append(parts, nil), 0
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], it)
		size += n
	}
	return inParallel(len(parts), func(i int) error { return w.putPart(ctx, b, parts[i]) })
}

func (w *writer) putPart(ctx context.Context, b *batch, part []*item) error {
	keys := w.cluster.keys
	t := Txn{If: append([]Compare{w.cluster.unmoved()}, w.standing(b)...),
		Else: []Op{get(keys.meta()), get(keys.session(b.who)), get(keys.ended(b.who))}}
	for _, it := range part {
		t.Then = append(t.Then, Op{Kind: Nested, Txn: w.change(it)})
	}
	a, err := w.cluster.do(ctx, t)
	if err != nil {
		return err
	}
	if !a.Then {
		return w.stopped(ctx, b, part, a)
	}
	for i, it := range part {
		if err := w.changed(ctx, b, it, a.Revision, a.Results[i].Nested); err != nil {
			return err
		}
	}
	return nil
}

// standing is what the whole transaction asks of the session. That a register is kept for it
// needs the life to be so as the register is written.
func (w *writer) standing(b *batch) []Compare {
	switch {
	case b.needs == anyStanding:
		return nil
	case b.needs == asKnown && b.life != 0:
		return []Compare{created(w.cluster.keys.session(b.who), b.life)}
	}
	return []Compare{absent(w.cluster.keys.ended(b.who))}
}

// change writes one register if it is as the decision was made on.
func (w *writer) change(it *item) *Txn {
	key, d := w.cluster.keys.register(it.register), it.made
	t := &Txn{If: []Compare{modified(key, it.on.modified)}, Then: []Op{put(key, d.next.encode(key))}, Else: w.records.show(it.register)}
	if d.guardLife != 0 {
		t.If = append(t.If, Compare{Key: w.cluster.keys.session(d.guard), Created: true, Not: true, Rev: d.guardLife})
	}
	if d.setBody {
		body := w.cluster.keys.body(it.register)
		t.Then = append(t.Then, put(body, seal(body, d.body)))
	}
	return t
}

// changed takes in what became of one item.
func (w *writer) changed(ctx context.Context, b *batch, it *item, revision int64, a *Answer) error {
	if a == nil {
		return fmt.Errorf("%w: no answer on %s", quorum.ErrBadReply, it.register)
	}
	if !a.Then {
		err := w.records.taken(ctx, it.register, revision, a.Results)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.fresh[it.register], b.stale = true, true
		return err
	}
	r := record{register: it.made.next, exists: true, modified: revision, body: it.on.body, at: revision}
	if it.made.setBody {
		r.body = it.made.body
	}
	it.result, it.done = it.made.result, true
	b.mu.Lock()
	b.fresh[it.register] = true
	b.mu.Unlock()
	return w.records.note(it.register, r)
}

// stopped finds out what the compares of the whole met: the meta, or the session.
func (w *writer) stopped(ctx context.Context, b *batch, part []*item, a Answer) error {
	if err := w.cluster.remeta(ctx, a); err != nil {
		return err
	}
	life := int64(0)
	if kvs := a.Results[1].KVs; len(kvs) > 0 {
		life = kvs[0].Created
	}
	w.own.lived(b.who, life, a.Revision)
	if ended := len(a.Results[2].KVs) > 0; ended && b.needs != anyStanding {
		for _, it := range part {
			r, _ := w.records.of(it.register)
			it.result, it.done = w.rules.refused(it.register, r, "the session has ended").result, true
		}
	}
	return nil
}
