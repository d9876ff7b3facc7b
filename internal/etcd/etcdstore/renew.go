package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Renew implements quorum.Store. It writes the session's key once, and the answer has all sessions and the
// version of the routes. It fails while etcd takes no writes. Attach writes only registers that no STEP
// under the present life of the key has written. Lost is always empty, because a session loses its
// registers only together with its key, which is a Reset.
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
	beat, err := s.beats.beat(ctx, req)
	if err != nil {
		return quorum.RenewReply{}, err
	}
	reply := quorum.RenewReply{UUID: s.cluster.uuid(), BootCount: s.cluster.boot, Commits: uint64(beat.revision), RouteVersion: beat.routes}
	s.own.reborn(req.Session, beat.life)
	s.watch.condemn(ctx)
	s.repeatReleases(ctx, req)
	if beat.made {
		s.sweep(ctx, req)
	}
	if reply.Refused, err = s.attachAll(ctx, req, beat.life); err != nil {
		return quorum.RenewReply{}, err
	}
	reply.Reset = s.own.reset(req, len(reply.Refused))
	reply.Sessions = s.watch.infos()
	reply.Time = s.walls.time(req.Session)
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
	if err := s.cluster.admit(req.Ref); err != nil {
		return err
	}
	switch {
	case req.Name == "":
		return fmt.Errorf("%w: node name must not be empty", seq.ErrBadArgument)
	case req.Lease <= 0 || req.Lease > s.maxLease:
		return fmt.Errorf("%w: %v, expected above 0 and at most %v", seq.ErrBadLease, req.Lease, s.maxLease)
	}
	return s.own.renewing(req)
}

// share is which part of a lease the messages of a renewal beside the beat may take, so that the
// next beat is not late for them.
const share = 5

// repeatReleases sends what etcd has not answered yet. It is repeated by the next renewal.
func (s *Store) repeatReleases(ctx context.Context, req quorum.RenewRequest) {
	due := s.own.due(req.Session)
	ctx, cancel := context.WithTimeout(ctx, req.Lease/share)
	defer cancel()
	if err := s.give(ctx, req.Session, due); err != nil {
		s.logger.Debug("releases not answered", "registers", len(due), "error", err)
	}
}

// sweep follows the making of a session: who makes what is to be removed removes what others left.
func (s *Store) sweep(ctx context.Context, req quorum.RenewRequest) {
	ctx, cancel := context.WithTimeout(ctx, req.Lease/share)
	defer cancel()
	if err := s.beats.sweep(ctx); err != nil {
		s.logger.Debug("left-overs of former sessions not removed: the next session that is made tries again", "error", err)
	}
}

// give sends the releases of a session that etcd has not answered yet.
func (s *Store) give(ctx context.Context, who seq.Session, due []giving) error {
	if len(due) == 0 {
		return nil
	}
	b := &batch{who: who, items: make([]*item, len(due))}
	for i, g := range due {
		b.items[i] = &item{register: g.item.Register, rule: func(r record, _ int64) decision { return s.rules.release(g, who, r) }}
	}
	err := s.writer.write(ctx, b)
	for i, g := range due {
		if b.items[i].done {
			s.own.given(who, g)
		}
	}
	return err
}

// errNoLife: the session that a register is to be kept for has no key any more.
var errNoLife = errors.New("the session's key is gone")

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
			return s.rules.attach(it, req.Session, life, r)
		}})
	}
	if err := s.writer.write(ctx, b); err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	var kept []quorum.LeaseItem
	defer func() { s.own.keep(req.Session, kept) }()
	for i, it := range req.Attach {
		switch b.items[i].result.Verdict {
		case quorum.VerdictOK:
			kept = append(kept, it)
		case quorum.VerdictRefused:
			refused = append(refused, it)
		default:
			return nil, fmt.Errorf("attach %s: %w", it.Register, errNoLife)
		}
	}
	return refused, nil
}

// Release implements quorum.Store. If a write fails, the renewals of the session repeat it, if it has any.
func (s *Store) Release(ctx context.Context, req quorum.ReleaseRequest) (string, error) {
	if err := s.release(ctx, req); err != nil {
		return "", fmt.Errorf("release: %w", err)
	}
	return s.cluster.uuid(), nil
}

func (s *Store) release(ctx context.Context, req quorum.ReleaseRequest) error {
	if err := req.Secret.Proves(req.Session); err != nil {
		return err
	}
	if err := s.cluster.admit(req.Ref); err != nil {
		return err
	}
	if err := s.give(ctx, req.Session, s.own.releasing(req)); err != nil {
		return err
	}
	if req.All {
		return s.beats.end(ctx, req.Session)
	}
	return nil
}
