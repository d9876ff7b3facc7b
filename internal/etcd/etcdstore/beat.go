package etcdstore

import (
	"context"
	"fmt"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// beats writes, makes and ends the keys of own sessions.
type beats struct {
	cluster *cluster
	watch   *watch
	own     *ownSessions
	walls   *walls
}

// beaten is what the answer to a beat says.
type beaten struct {
	life     int64
	revision int64
	routes   uint64 // version of the route table
	made     bool   // the key, by this beat
}

// beat writes the session's key, and makes it if there is none.
func (b *beats) beat(ctx context.Context, req quorum.RenewRequest) (beaten, error) {
	for {
		var done *beaten
		var err error
		if life := b.own.lifeOf(req.Session); life != 0 {
			done, err = b.again(ctx, req, life)
		} else {
			done, err = b.first(ctx, req)
		}
		if err != nil {
			return beaten{}, err
		}
		if done != nil {
			return *done, nil
		}
		if err := ctx.Err(); err != nil {
			return beaten{}, err
		}
	}
}

// asked is what a beat asks for, after a put of the session's key.
func (b *beats) asked() []Op {
	return []Op{all(b.cluster.keys.sessions()), get(b.cluster.keys.register(seq.RoutesRegister))}
}

func (b *beats) keyOf(req quorum.RenewRequest) Op {
	key, next := b.cluster.keys.session(req.Session), b.own.nextBeat(req)
	next.Wall = b.walls.wall().UnixMilli()
	return put(key, encode(key, next))
}

// answered takes in what asked was answered with.
func (b *beats) answered(who seq.Session, life int64, a Answer, asked []Result) (*beaten, error) {
	if err := b.watch.observe(asked[0].KVs, a.Revision, true); err != nil {
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
	b.own.lived(who, life, a.Revision)
	return out, nil
}

// again writes the key that has that life. nil without an error: it has not any more.
func (b *beats) again(ctx context.Context, req quorum.RenewRequest, life int64) (*beaten, error) {
	keys := b.cluster.keys
	me := keys.session(req.Session)
	a, err := b.cluster.do(ctx, Txn{If: []Compare{b.cluster.unmoved(), created(me, life)},
		Then: append([]Op{b.keyOf(req)}, b.asked()...), Else: []Op{get(keys.meta()), get(me), get(keys.ended(req.Session))}})
	if err != nil {
		return nil, err
	}
	if a.Then {
		return b.answered(req.Session, life, a, a.Results[1:])
	}
	return nil, b.found(ctx, req.Session, a)
}

// found takes in meta, key and end of the session, in this order.
func (b *beats) found(ctx context.Context, who seq.Session, a Answer) error {
	if err := b.cluster.remeta(ctx, a); err != nil {
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
	b.own.lived(who, life, a.Revision)
	b.own.asks(who, old.Lease)
	if len(a.Results[2].KVs) > 0 {
		b.own.end(who)
		return seq.ErrSessionEnded
	}
	return nil
}

// first makes the session's key: never one that has ended, and not while a former session of
// the node's name lives. nil without an error: look again.
func (b *beats) first(ctx context.Context, req quorum.RenewRequest) (*beaten, error) {
	if b.own.over(req.Session) {
		return nil, seq.ErrSessionEnded
	}
	keys := b.cluster.keys
	me, ended, name := keys.session(req.Session), keys.ended(req.Session), keys.name(req.Name)
	look := []Op{get(keys.meta()), get(me), get(ended), get(name), all(keys.sessions()), get(keys.swept())}
	a, err := b.cluster.do(ctx, Txn{Then: look})
	if err != nil {
		return nil, err
	}
	if err := b.found(ctx, req.Session, a); err != nil || len(a.Results[1].KVs) > 0 {
		return nil, err
	}
	t := Txn{If: []Compare{b.cluster.unmoved(), absent(me), absent(ended)}, Else: look[:3],
		Then: append([]Op{b.keyOf(req), put(name, encode(name, former{req.Session}))}, b.asked()...)}
	var before former
	if kvs := a.Results[3].KVs; len(kvs) > 0 {
		if err := decode(kvs[0], &before); err != nil {
			return nil, err
		}
	}
	t.If = append(t.If, modified(name, revisionIn(a.Results[3])), modified(keys.swept(), revisionIn(a.Results[5])))
	if before.Session != 0 && before.Session != req.Session {
		if err := b.nameFree(ctx, before.Session, req.Name, a); err != nil {
			return nil, err
		}
		t.If = append(t.If, absent(keys.session(before.Session)))
	}
	if a, err = b.cluster.do(ctx, t); err != nil {
		return nil, err
	}
	if a.Then {
		done, err := b.answered(req.Session, a.Revision, a, a.Results[2:])
		if done != nil {
			done.made = true
		}
		return done, err
	}
	return nil, b.found(ctx, req.Session, a)
}

// nameFree is seq.ErrNameTaken while the former session of a name lives. Since the caller has no
// session to renew by then, it watches the former one by other writes.
func (b *beats) nameFree(ctx context.Context, former seq.Session, name string, a Answer) error {
	if err := b.watch.observe(a.Results[4].KVs, a.Revision, false); err != nil {
		return err
	}
	if _, lives := b.watch.live(former); !lives {
		return nil
	}
	if err := b.watch.write(ctx); err != nil {
		return err
	}
	if there, lives := b.watch.live(former); lives {
		return fmt.Errorf("%w: %q, by session %s at %s for %v more", seq.ErrNameTaken, name, former, there.Addr, there.left())
	}
	return nil
}

// end deletes the session's key, by which nothing is kept for it any more, and keeps it from
// being made again by a message that is under way, or by this process.
func (b *beats) end(ctx context.Context, who seq.Session) error {
	b.own.end(who)
	keys := b.cluster.keys
	ended := keys.ended(who)
	for {
		a, err := b.cluster.do(ctx, Txn{If: []Compare{b.cluster.unmoved()}, Else: []Op{get(keys.meta())},
			Then: []Op{remove(keys.session(who)), put(ended, encode(ended, ending{}))}})
		if err != nil {
			return err
		}
		if a.Then {
			b.own.lived(who, 0, a.Revision)
			b.watch.forget(who, a.Revision)
			return nil
		}
		if err := b.cluster.remeta(ctx, a); err != nil {
			return err
		}
	}
}
