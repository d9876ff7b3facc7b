package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Renew implements quorum.Store: one write of the session's key, which is answered with all
// sessions and the version of the routes. It fails while etcd takes no writes. Attach writes
// only what no STEP under the present life of the key has written. Lost is always empty: what
// is kept for a session is lost only with its key, and that is a Reset.
func (s *Store) Renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	reply, err := s.renew(ctx, req)
	if err != nil {
		return quorum.RenewReply{}, fmt.Errorf("renew session %s of %q: %w", req.Session, req.Name, err)
	}
	return reply, nil
}

func (s *Store) renew(ctx context.Context, req quorum.RenewRequest) (quorum.RenewReply, error) {
	if err := s.admitRenewal(req); err != nil {
		return quorum.RenewReply{}, err
	}
	beat, err := s.beat(ctx, req)
	if err != nil {
		return quorum.RenewReply{}, err
	}
	reply := quorum.RenewReply{UUID: s.Identity().UUID, BootCount: s.boot, Commits: uint64(beat.revision), RouteVersion: beat.routes}
	s.reborn(req.Session, beat.life)
	s.condemn(ctx)
	s.repeatReleases(ctx, req)
	if reply.Refused, err = s.attachAll(ctx, req, beat.life); err != nil {
		return quorum.RenewReply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owner(req.Session)
	reply.Reset = o.diverged(req, len(reply.Refused)) || o.owed
	o.owed = false
	reply.Sessions = s.watch.infos()
	return reply, nil
}

// admitRenewal checks the request and takes in what it gives up.
func (s *Store) admitRenewal(req quorum.RenewRequest) error {
	if err := req.Secret.Proves(req.Session); err != nil {
		return err
	}
	if of := req.Secret.Node; of != "" && of != req.Name {
		return fmt.Errorf("%w: session %s is of node %q, not of %q", seq.ErrNotSession, req.Session, of, req.Name)
	}
	if err := s.admit(req.Ref); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owner(req.Session)
	switch {
	case req.Name == "":
		return fmt.Errorf("%w: node name must not be empty", seq.ErrBadArgument)
	case req.Lease <= 0 || req.Lease > s.cfg.MaxLease:
		return fmt.Errorf("%w: %v, expected above 0 and at most %v", seq.ErrBadLease, req.Lease, s.cfg.MaxLease)
	case req.Number != 0 && req.Number <= o.number:
		return fmt.Errorf("%w: renewal %d came after a later one", seq.ErrBadArgument, req.Number)
	}
	o.number, o.lease = max(o.number, req.Number), max(o.lease, req.Lease)
	for _, it := range req.Drop {
		o.giveUp(it, 0, false)
	}
	for _, it := range req.Attach {
		if w, ok := o.written[it.Register]; ok && w.round == it.Round {
			delete(o.written, it.Register) // from here on the caller drops it
		}
	}
	o.orphans(s.cfg.Clock.Now())
	return nil
}

// reborn gives up all that was attached under another life of the session's key: it protects
// nothing any more. The session is told with the next reply that it gets, whatever fails until
// then.
func (s *Store) reborn(who seq.Session, life int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owner(who)
	if o.heldLife == life {
		return
	}
	o.heldLife = life
	o.owed = o.owed || len(o.attached) > 0
	o.released = 0
	clear(o.attached)
	clear(o.written)
}

// diverged compares what the session believes attached with what is: more than there is, of what
// it has heard refused or given up itself, is a reset. The caller holds Store.mu.
func (o *own) diverged(req quorum.RenewRequest, refused int) bool {
	most := uint64(len(o.attached) + refused + o.released)
	o.released = 0
	return req.Attached > most
}

// share is which part of a lease the messages of a renewal beside the beat may take, so that the
// next beat is not late for them.
const share = 5

// repeatReleases sends what etcd has not answered yet. It is repeated by the next renewal.
func (s *Store) repeatReleases(ctx context.Context, req quorum.RenewRequest) {
	s.mu.Lock()
	due := s.owner(req.Session).due()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, req.Lease/share)
	defer cancel()
	if err := s.give(ctx, req.Session, due); err != nil {
		s.cfg.Logger.Debug("releases not answered", "registers", len(due), "error", err)
	}
}

// attachAll has the registers kept for the session under the life of its newest beat.
func (s *Store) attachAll(ctx context.Context, req quorum.RenewRequest, life int64) (refused []quorum.LeaseItem, err error) {
	if len(req.Attach) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(req.Lease/share, time.Second))
	defer cancel()
	b := &batch{who: req.Session, needs: asKnown}
	for _, it := range req.Attach {
		b.items = append(b.items, &item{register: it.Register, rule: func(r record, now int64) decision {
			if now != life {
				return decision{result: quorum.Result{Verdict: quorum.VerdictNone}}
			}
			return s.attach(it, req.Session, life, r)
		}})
	}
	if err := s.write(ctx, b); err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.owner(req.Session)
	for i, it := range req.Attach {
		switch b.items[i].result.Verdict {
		case quorum.VerdictOK:
			o.attached[it.Register] = it.Round
		case quorum.VerdictRefused:
			refused = append(refused, it)
		default:
			return nil, fmt.Errorf("attach %s: %w", it.Register, errNoLife)
		}
	}
	return refused, nil
}

// Release implements quorum.Store. What it could not write is repeated by the renewals of the
// session, if it has any.
func (s *Store) Release(ctx context.Context, req quorum.ReleaseRequest) (string, error) {
	if err := s.releaseAll(ctx, req); err != nil {
		return "", fmt.Errorf("release: %w", err)
	}
	return s.Identity().UUID, nil
}

func (s *Store) releaseAll(ctx context.Context, req quorum.ReleaseRequest) error {
	if err := req.Secret.Proves(req.Session); err != nil {
		return err
	}
	if err := s.admit(req.Ref); err != nil {
		return err
	}
	s.mu.Lock()
	o := s.owner(req.Session)
	due := make([]giving, len(req.Items))
	for i, it := range req.Items {
		o.giveUp(it, req.To, true)
		due[i] = giving{item: it, to: req.To, explicit: true}
	}
	s.mu.Unlock()
	if err := s.give(ctx, req.Session, due); err != nil {
		return err
	}
	if req.All {
		return s.end(ctx, req.Session)
	}
	return nil
}

// end deletes the session's key, by which nothing is kept for it any more, and keeps it from
// being made again by a message that is under way.
func (s *Store) end(ctx context.Context, who seq.Session) error {
	ended := s.keys.ended(who)
	for {
		a, err := s.do(ctx, Txn{If: []Compare{s.unmoved()}, Else: []Op{get(s.keys.meta())},
			Then: []Op{remove(s.keys.session(who)), put(ended, encode(ended, ending{}))}})
		if err != nil {
			return err
		}
		s.mu.Lock()
		if a.Then {
			s.lived(who, 0, a.Revision)
			s.watch.forget(who, a.Revision)
		}
		s.mu.Unlock()
		if a.Then {
			return nil
		}
		if err := s.remeta(ctx, a); err != nil {
			return err
		}
	}
}

// Observe writes a key that says nothing, for the list of sessions that is answered, and takes
// those for dead that have been silent for their lease. It is for processes that wait for
// others to go and have no session to renew: call it five times a lease.
func (s *Store) Observe(ctx context.Context) error {
	a, err := s.do(ctx, Txn{If: []Compare{s.unmoved()}, Else: []Op{get(s.keys.meta())},
		Then: []Op{put(s.keys.watch(), seal(s.keys.watch(), nil)), all(s.keys.sessions())}})
	if err == nil && !a.Then {
		return errors.Join(s.remeta(ctx, a), errRace)
	}
	if err == nil {
		err = s.observe(a.Results[1].KVs, a.Revision, true)
	}
	if err != nil {
		return fmt.Errorf("observe sessions: %w", err)
	}
	s.condemn(ctx)
	return nil
}
