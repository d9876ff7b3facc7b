package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// exactSpace is the space in which callers give each request an id.
const exactSpace = "exact"

// onces are the requests of the exact space. X2: each has one answer, however often it is repeated. X1: at
// the end the numbers of a key belong to its requests, answered or not, and holes are only below a raise.
type onces struct {
	w *world

	mu     sync.Mutex // guards all below
	all    map[history.Key][]*once
	raised map[history.Key][]uint64 // floors that were asked for
}

// once is a request as it is repeated.
type once struct {
	key   history.Key
	id    string
	count uint32
	sent  time.Time     // by its caller's clock; zero: it does not say
	start time.Duration // when it was first sent
	era   seq.Era       // in which it was made: the next may not know it
	floor uint64        // what was handed out of its key by then
	first uint64        // its number; zero before the first answer. Guarded by onces.mu
	taken bool          // by an answer that was no replay, which may come after those that are. Likewise
}

// draw is a new request, or one of before again: mostly a late one, of any caller.
func (os *onces) draw(c *caller, key history.Key, count uint32) *once {
	w := os.w
	w.mu.Lock()
	again, back := w.chance(0.4), w.rng.IntN(12)
	w.mu.Unlock()
	os.mu.Lock()
	made := os.all[key]
	os.mu.Unlock()
	if again && len(made) > 0 {
		// A request without the time of its first sending must not be repeated after the window.
		if o := made[max(0, len(made)-1-back)]; w.opts.Keep >= seq.MaxWindow || !o.sent.IsZero() {
			return o
		}
	}
	return os.make(c, key, count)
}

// make is a new request.
func (os *onces) make(c *caller, key history.Key, count uint32) *once {
	w := os.w
	os.mu.Lock()
	defer os.mu.Unlock()
	made := os.all[key]
	o := &once{key: key, id: fmt.Sprintf("%s %d %d", c.h.name, len(made), w.check.eras.present()), count: count, start: w.now(), era: w.check.eras.present(), floor: w.check.promises.floor(key)}
	if w.opts.Keep < seq.MaxWindow { // it is not to be repeated as another after the window
		o.sent = c.h.clock.Wall()
	}
	os.all[key] = append(made[:len(made):len(made)], o)
	return o
}

// got takes in an answer to a request.
func (os *onces) got(c *caller, o *once, first, last uint64, replayed bool) {
	if last-first+1 != uint64(o.count) {
		os.w.check.broken("U", "%d numbers asked of %v by %q, got %d-%d", o.count, o.key, o.id, first, last)
	}
	os.mu.Lock()
	before, twice := o.first, o.taken && !replayed
	o.first, o.taken = first, o.taken || !replayed
	os.mu.Unlock()
	switch {
	case o.era != os.w.check.eras.present():
	case before == 0:
		c.took(o.key, o.start, o.floor, first, last, false, nil)
	case before != first:
		os.w.check.broken("X2", "%v by %q: %d, and %d before", o.key, o.id, first, before)
	case twice:
		os.w.check.broken("X2", "%v by %q: %d taken twice, and not replayed", o.key, o.id, first)
	}
}

// lift notes that a raise was asked for.
func (os *onces) lift(key history.Key, floor uint64) {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.raised[key] = append(os.raised[key], floor)
}

// newEra forgets the requests: what was assigned after the backup is lost with the disks.
func (os *onces) newEra() {
	os.mu.Lock()
	defer os.mu.Unlock()
	clear(os.all)
}

func (os *onces) firstOf(o *once) uint64 {
	os.mu.Lock()
	defer os.mu.Unlock()
	return o.first
}

func (os *onces) of(key history.Key) ([]*once, []uint64) {
	os.mu.Lock()
	defer os.mu.Unlock()
	return slices.Clone(os.all[key]), slices.Clone(os.raised[key])
}

// once sends a request to the allocators, by itself.
func (c *caller) once(ctx context.Context, o *once) error {
	return c.try(ctx, o.key, func(ctx context.Context, at *conn) error {
		req := &pb.NextRequest{Space: o.key.Space, Id: &pb.NextRequest_Uid{Uid: o.key.UID}, Count: o.count, RequestId: []byte(o.id)}
		if !o.sent.IsZero() {
			req.FirstSentMs = o.sent.UnixMilli()
		}
		reply, err := pb.NewSequenceClient(at).Next(ctx, req)
		if final(err) {
			c.w.check.onces.refused(o, o.sent, err)
			return nil
		}
		if err == nil {
			c.w.check.onces.got(c, o, reply.GetFirst(), reply.GetLast(), reply.GetReplayed())
		}
		return err
	})
}

// This method makes a new request and has it answered.
func (c *caller) anew(ctx context.Context, key history.Key, count uint32) error {
	o := c.w.check.onces.make(c, key, count)
	if o.sent = c.w.today(); c.w.check.onces.excused(o.sent, seq.ErrIDExpired) {
		o.sent = time.Time{}
	}
	return c.once(ctx, o)
}

// today is the time by a clock that is right.
func (w *world) today() time.Time { return calendar.Add(w.now()) }

// refused notes a request that was refused by the time, though clocks were right: its caller has a
// right to an answer.
func (os *onces) refused(o *once, sent time.Time, err error) {
	if !os.excused(sent, err) {
		os.w.check.broken("liveness", "%v by %q, sent at %v and refused at %v: %v", o.key, o.id, sent, os.w.today(), err)
	}
}

// tolerance bounds the difference between the time of sections and right clocks. It covers a renewal that
// was long on its way, and rates within rho until the next renewal.
const tolerance = 3 * time.Second

// excused says whether a clock explains that a request is refused: of its caller, of W stores for
// one that is old, of any store for one that is ahead, since others may have been away when the
// owner began.
func (os *onces) excused(sent time.Time, err error) bool {
	if os.w.opts.Beyond {
		return true
	}
	stores := os.w.hosts.of(storeHost)
	if len(stores) == 0 {
		return true
	}
	ahead, behind := make([]time.Duration, len(stores)), time.Duration(0)
	for i, h := range stores {
		ahead[i], behind = h.clock.furthest(), min(behind, h.clock.nearest())
	}
	slices.Sort(ahead)
	now := os.w.today()
	if errors.Is(err, seq.ErrSentAhead) {
		return sent.After(now.Add(behind + storesvr.LogAhead - tolerance))
	}
	latest := now.Add(ahead[max(0, len(ahead)-os.w.opts.W())])
	return latest.Sub(sent) >= os.w.opts.Keep-tolerance-os.w.opts.Keep/50
}

// final says whether a request is not to be repeated: by some clock it is too old or too new.
func final(err error) bool {
	return errors.Is(err, seq.ErrIDExpired) || errors.Is(err, seq.ErrSentAhead)
}

// once sends a request by the SDK.
func (s *sdk) once(ctx context.Context, o *once) error {
	sent := o.sent
	if sent.IsZero() {
		sent = s.w.today() // as the SDK does
	}
	got, err := s.api.TakeIdempotent(ctx, spaceKey(o.key), o.count, client.Request{ID: o.id, Sent: sent})
	if final(err) {
		s.w.check.onces.refused(o, sent, err)
		return nil
	}
	if err == nil {
		s.w.check.onces.got(s.caller, o, uint64(got.First), uint64(got.Last), got.Replayed)
	}
	return err
}

// audit holds the numbers of every key of the exact space against the requests for them (X1).
func (os *onces) audit(c *caller) {
	if os.w.opts.Keep < seq.MaxWindow || os.w.check.eras.present() > 1 { // ids were dropped, or lost with the disks
		return
	}
	ctx, cancel := context.WithTimeout(os.w.life, patience)
	defer cancel()
	for _, key := range c.keys {
		if key.Space != exactSpace {
			continue
		}
		if err := os.auditKey(ctx, c, key); err != nil && os.w.life.Err() == nil {
			os.w.check.broken("liveness", "%v cannot be looked up %v after healing: %v", key, patience, err)
			return
		}
	}
}

// auditKey goes by what the key stood at before its requests were listed, or the highest of them
// that was looked up: callers may still be asking for more.
func (os *onces) auditKey(ctx context.Context, c *caller, key history.Key) error {
	last, err := c.standing(ctx, key)
	if err != nil {
		return err
	}
	made, raised := os.of(key)
	log := history.Log{Last: last, Raised: raised, Found: map[string]history.Taken{}}
	var answers []history.Call
	for _, o := range made {
		if had := os.firstOf(o); had != 0 {
			answers = append(answers, history.Call{Key: key, ID: o.id, First: had, Last: had + uint64(o.count) - 1})
		}
		first, err := c.lookup(ctx, o)
		if err != nil {
			return err
		}
		if first != 0 {
			got := history.Taken{First: first, Last: first + uint64(o.count) - 1}
			log.Found[o.id], log.Last = got, max(log.Last, got.Last)
		}
	}
	for _, v := range history.CheckExact(answers, map[history.Key]history.Log{key: log}).Violations {
		kind := "X1"
		if errors.Is(v.Kind, history.ErrTwice) {
			kind = "X2"
		}
		os.w.check.broken(kind, "%v: %v", key, v)
	}
	return nil
}

// standing is the last number of a key of the exact space.
func (c *caller) standing(ctx context.Context, key history.Key) (last uint64, err error) {
	err = c.try(ctx, key, func(ctx context.Context, at *conn) error {
		reply, err := pb.NewSequenceClient(at).Current(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{{Space: key.Space, Uids: []uint64{key.UID}}}})
		if err != nil {
			return err
		}
		if errs := reply.GetResults()[0].GetErrors(); len(errs) > 0 {
			return rpc.FromKeyError(errs[0])
		}
		last = reply.GetResults()[0].GetValues()[0]
		return nil
	})
	return last, err
}

// lookup is what a request has got, 0 for nothing.
func (c *caller) lookup(ctx context.Context, o *once) (first uint64, err error) {
	err = c.try(ctx, o.key, func(ctx context.Context, at *conn) error {
		reply, err := pb.NewSequenceClient(at).Lookup(ctx, &pb.LookupRequest{Space: o.key.Space, Id: &pb.LookupRequest_Uid{Uid: o.key.UID}, RequestId: []byte(o.id)})
		first = reply.GetFirst()
		return err
	})
	return first, err
}
