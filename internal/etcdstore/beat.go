package etcdstore

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// beaten is what the answer to a beat says.
type beaten struct {
	life     int64
	revision int64
	routes   uint64 // version of the route table
}

// beat writes the session's key, and makes it if there is none.
func (s *Store) beat(ctx context.Context, req quorum.RenewRequest) (beaten, error) {
	for {
		s.mu.Lock()
		life := s.lifeOf(req.Session)
		s.mu.Unlock()
		var done *beaten
		var err error
		if life != 0 {
			done, err = s.beatAgain(ctx, req, life)
		} else {
			done, err = s.beatFirst(ctx, req)
		}
		if done != nil || err != nil {
			if err != nil {
				done = &beaten{}
			}
			return *done, err
		}
		if err := ctx.Err(); err != nil {
			return beaten{}, err
		}
	}
}

// after a put of the session's key, what a beat asks for.
func (s *Store) asked() []Op {
	return []Op{all(s.keys.sessions()), get(s.keys.register(seq.RoutesRegister))}
}

func (s *Store) keyOf(req quorum.RenewRequest) Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owner(req.Session)
	o.beats++
	key := s.keys.session(req.Session)
	return put(key, encode(key, session{Name: req.Name, Addr: req.Addr, Lease: o.lease, Attached: uint32(req.Attached), Beat: o.beats}))
}

// answered takes in what asked was answered with.
func (s *Store) answered(who seq.Session, life int64, a Answer, asked []Result) (*beaten, error) {
	if err := s.observe(asked[0].KVs, a.Revision, true); err != nil {
		return nil, err
	}
	out := &beaten{life: life, revision: a.Revision}
	if kvs := asked[1].KVs; len(kvs) > 0 {
		routes, err := decodeRegister(kvs[0])
		if err != nil {
			return nil, err
		}
		out.routes = routes.max
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lived(who, life, a.Revision)
	return out, nil
}

// beatAgain writes the key that has that life. nil without an error: it has not any more.
func (s *Store) beatAgain(ctx context.Context, req quorum.RenewRequest, life int64) (*beaten, error) {
	me := s.keys.session(req.Session)
	a, err := s.do(ctx, Txn{If: []Compare{s.unmoved(), created(me, life)},
		Then: append([]Op{s.keyOf(req)}, s.asked()...), Else: []Op{get(s.keys.meta()), get(me), get(s.keys.ended(req.Session))}})
	if err != nil {
		return nil, err
	}
	if a.Then {
		return s.answered(req.Session, life, a, a.Results[1:])
	}
	return nil, s.found(ctx, req.Session, a)
}

// found takes in meta, key and end of the session, in this order.
func (s *Store) found(ctx context.Context, who seq.Session, a Answer) error {
	if err := s.remeta(ctx, a); err != nil {
		return err
	}
	life := int64(0)
	var old session
	if kvs := a.Results[1].KVs; len(kvs) > 0 {
		if err := decode(kvs[0], &old); err != nil {
			return err
		}
		life = kvs[0].Created
	}
	s.mu.Lock()
	s.lived(who, life, a.Revision)
	o := s.owner(who)
	o.lease = max(o.lease, old.Lease)
	s.mu.Unlock()
	if len(a.Results[2].KVs) > 0 {
		return seq.ErrSessionEnded
	}
	return nil
}

// beatFirst makes the session's key: never one that has ended, and not while a former session of
// the node's name lives. nil without an error: look again.
func (s *Store) beatFirst(ctx context.Context, req quorum.RenewRequest) (*beaten, error) {
	me, ended, name := s.keys.session(req.Session), s.keys.ended(req.Session), s.keys.name(req.Name)
	look := []Op{get(s.keys.meta()), get(me), get(ended), get(name), all(s.keys.sessions())}
	a, err := s.do(ctx, Txn{Then: look})
	if err != nil {
		return nil, err
	}
	if err := s.found(ctx, req.Session, a); err != nil || len(a.Results[1].KVs) > 0 {
		return nil, err
	}
	t := Txn{If: []Compare{s.unmoved(), absent(me), absent(ended)}, Else: look[:3],
		Then: append([]Op{s.keyOf(req), put(name, encode(name, former{req.Session}))}, s.asked()...)}
	var before former
	rev := int64(0)
	if kvs := a.Results[3].KVs; len(kvs) > 0 {
		if err := decode(kvs[0], &before); err != nil {
			return nil, err
		}
		rev = kvs[0].Modified
	}
	t.If = append(t.If, modified(name, rev))
	if before.Session != 0 && before.Session != req.Session {
		if err := s.nameFree(ctx, before.Session, req.Name, a); err != nil {
			return nil, err
		}
		t.If = append(t.If, absent(s.keys.session(before.Session)))
	}
	if a, err = s.do(ctx, t); err != nil {
		return nil, err
	}
	if a.Then {
		return s.answered(req.Session, a.Revision, a, a.Results[2:])
	}
	return nil, s.found(ctx, req.Session, a)
}

// nameFree is seq.ErrNameTaken while the former session of a name lives. Since the caller has no
// session to renew by then, it watches the former one by other writes.
func (s *Store) nameFree(ctx context.Context, former seq.Session, name string, a Answer) error {
	if err := s.observe(a.Results[4].KVs, a.Revision, false); err != nil {
		return err
	}
	live := func() (*seen, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		b, lives := s.watch.sessions[former]
		return b, lives
	}
	if _, lives := live(); !lives {
		return nil
	}
	if err := s.Observe(ctx); err != nil {
		return err
	}
	if b, lives := live(); lives {
		return fmt.Errorf("%w: %q, by session %s at %s for %v more", seq.ErrNameTaken, name, former, b.Addr, b.left())
	}
	return nil
}

// condemn deletes the keys of sessions that were silent for too long. A beat that comes before
// defeats it.
func (s *Store) condemn(ctx context.Context) {
	s.mu.Lock()
	silent := s.watch.silent()
	beats := make([]int64, len(silent))
	for i, id := range silent {
		beats[i] = s.watch.sessions[id].beat
	}
	s.mu.Unlock()
	_ = inParallel(len(silent), func(i int) error {
		key := s.keys.session(silent[i])
		a, err := s.do(ctx, Txn{If: []Compare{s.unmoved(), modified(key, beats[i])}, Then: []Op{remove(key)}})
		if err != nil || !a.Then {
			s.cfg.Logger.Debug("silent session not ended", "session", silent[i], "error", err)
			return nil // the next answer tells again
		}
		s.cfg.Logger.Info("session taken for dead: no beat for its lease", "session", silent[i])
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watch.forget(silent[i], a.Revision)
		return nil
	})
}
