package etcdstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// own is a session that speaks through this Store, guarded by Store.mu.
//
// For each register in attached, as long as the session's key has the create revision heldLife:
// its promise is {attached[r], session} and its life heldLife, so that no other session is
// promised it.
type own struct {
	life   int64 // create revision of its key by the newest answer; 0: there is none, or it is not known
	lifeAt int64 // revision of that answer

	attached map[seq.Register]uint64
	heldLife int64
	owed     bool // a Reset that no reply has told yet
	// written are registers that may carry the life by a STEP and are not attached. One that
	// does not come to be is to be released: no other could take it while the session lives.
	written map[seq.Register]written
	// giving are the releases that etcd has not answered yet. What it shows of their epochs is
	// not taken for the session's any more.
	giving map[slot]giving

	number   uint64        // of the newest renewal
	beats    uint64        // writes of the key
	lease    time.Duration // the longest that was asked for
	released int           // attachments given up since the last renewal
}

type written struct {
	round uint64
	at    time.Duration // of the newest STEP
}

type slot struct {
	register seq.Register
	round    uint64
}

type giving struct {
	item     quorum.LeaseItem
	to       seq.Session
	explicit bool // by a Release, which may change what an earlier one said
}

// owner is the session's, made if need be. The caller holds mu.
func (s *Store) owner(id seq.Session) *own {
	o := s.sessions[id]
	if o == nil {
		o = &own{attached: map[seq.Register]uint64{}, written: map[seq.Register]written{}, giving: map[slot]giving{}}
		s.sessions[id] = o
	}
	return o
}

// lifeOf is the session's life as far as is known. The caller holds mu.
func (s *Store) lifeOf(id seq.Session) int64 {
	if o := s.sessions[id]; o != nil {
		return o.life
	}
	return 0
}

// lived takes in the life that an answer has shown. The caller holds mu.
func (s *Store) lived(id seq.Session, life, revision int64) {
	if o := s.owner(id); revision >= o.lifeAt {
		o.life, o.lifeAt = life, revision
	}
}

// giveUp notes that an item is to be released. The caller holds mu.
func (o *own) giveUp(it quorum.LeaseItem, to seq.Session, explicit bool) {
	if round, held := o.attached[it.Register]; held && round == it.Round {
		delete(o.attached, it.Register)
		o.released++
	}
	if w, ok := o.written[it.Register]; ok && w.round == it.Round {
		delete(o.written, it.Register)
	}
	of := slot{it.Register, it.Round}
	if before, ok := o.giving[of]; ok && before.explicit && !explicit {
		return
	}
	o.giving[of] = giving{item: it, to: to, explicit: explicit}
}

// stepping notes, before and after a STEP, which registers may come to be kept for its session.
func (s *Store) stepping(req quorum.StepRequest) {
	now := s.cfg.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.sessions[req.Session]
	if o == nil {
		return
	}
	for _, it := range req.Items {
		if round, held := o.attached[it.Register]; !it.Register.Leased() || held && round == it.Round {
			continue
		}
		o.written[it.Register] = written{round: it.Round, at: now}
	}
}

// vacated notes that the session itself was promised a higher round of what it had.
func (s *Store) vacated(req quorum.PrepareRequest, results []quorum.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.sessions[req.Session]
	if o == nil {
		return
	}
	for i, it := range req.Items {
		if round, held := o.attached[it.Register]; held && round < it.Round && results[i].Verdict == quorum.VerdictOK {
			delete(o.attached, it.Register)
			o.released++
		}
	}
}

// orphans moves what was stepped and never attached to what is to be released. The caller holds
// mu.
func (o *own) orphans(now time.Duration) {
	for r, w := range o.written {
		if round, held := o.attached[r]; held && round == w.round {
			delete(o.written, r)
		} else if now-w.at > o.lease+quorum.DefaultTimeout {
			o.giveUp(quorum.LeaseItem{Register: r, Round: w.round}, 0, false)
		}
	}
}

// due are the releases to be sent, in the order of the registers. The caller holds mu.
func (o *own) due() []giving {
	out := make([]giving, 0, len(o.giving))
	for _, g := range o.giving {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b giving) int {
		return cmp.Or(cmp.Compare(a.item.Register, b.item.Register), cmp.Compare(a.item.Round, b.item.Round))
	})
	return out
}

// give sends releases of a session. What etcd has answered is not sent again.
func (s *Store) give(ctx context.Context, who seq.Session, due []giving) error {
	if len(due) == 0 {
		return nil
	}
	b := &batch{who: who, items: make([]*item, len(due))}
	for i, g := range due {
		b.items[i] = &item{register: g.item.Register, rule: func(r record, _ int64) decision { return s.release(g, who, r) }}
	}
	err := s.write(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owner(who)
	for i, g := range due {
		if of := (slot{g.item.Register, g.item.Round}); b.items[i].done && o.giving[of] == g {
			delete(o.giving, of)
		}
	}
	return err
}
