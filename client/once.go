package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Request makes a take of a space of mode=exact one that can be repeated: the first with its
// id takes numbers, every other one with the same id, key and count gets the same numbers,
// over crashes and failovers, of callers as of servers, for as long as the space keeps ids
// (seq.Space.Window, 10 minutes if nothing else was said).
//
// Take, Next, NextBatch and Begin without a Request make an id for themselves, which lasts
// for their own retries and not for a second call.
type Request struct {
	ID string // 1 to seq.MaxRequestID bytes, such as the id that a client gave its message
	// Sent is when the request was first sent. Keep it beside the id: from a time before the
	// window on a repetition gets seq.ErrIDExpired, and never other numbers. Zero: now, and then
	// one that comes after the window takes others.
	Sent time.Time
}

// TakeOnce is Take by a request that may be repeated after any error, and after a crash of this
// program. Range.Replayed says that it had its numbers before. Returned immediately are, beside
// those of Next: seq.ErrIDConflict, a *seq.IDConflict with what the id has got, when that is
// another count; seq.ErrIDExpired; seq.ErrSentAhead for a Sent that this cluster's clocks have not
// reached; seq.ErrIDNotKept in a space of another mode; seq.ErrBadArgument for an id that cannot
// be. None of these takes anything.
func (c *Client) TakeOnce(ctx context.Context, key Key, n uint32, r Request) (Range, error) {
	return c.take(ctx, key, n, &r)
}

// NextBatchOnce is NextBatch by requests[i] for uids[i], each of which may be repeated, alone or
// with others. The errors of TakeOnce are those of single uids, but for seq.ErrIDNotKept and
// seq.ErrBadArgument.
func (c *Client) NextBatchOnce(ctx context.Context, space string, uids []seq.UID, counts []uint32, requests []Request) ([]Range, error) {
	return c.nextBatch(ctx, space, keys{places: uids}, counts, requests)
}

// NextKeysOnce is NextBatchOnce for string keys.
func (c *Client) NextKeysOnce(ctx context.Context, space string, names []string, counts []uint32, requests []Request) ([]Range, error) {
	return c.nextBatch(ctx, space, keysOf(names), counts, requests)
}

// Lookup gives what a request id of the key has got, in a space of mode=exact, and false if
// that is nothing, or was longer ago than ids are kept. It takes nothing, and fails as
// TakeOnce does.
func (c *Client) Lookup(ctx context.Context, key Key, id string) (Range, bool, error) {
	got, err := c.lookup(ctx, key, id)
	if err != nil {
		err = told(fmt.Sprintf("lookup %v", key), err)
		return Range{Err: err}, false, err
	}
	return got, got.First != 0, nil
}

func (c *Client) lookup(ctx context.Context, key Key, id string) (got Range, err error) {
	if err := key.check(); err != nil {
		return got, err
	}
	if err := seq.CheckRequestID("request id", id); err != nil {
		return got, err
	}
	space, err := c.table.spaceOf(ctx, key.Space)
	if err != nil {
		return got, err
	}
	if err := space.KeepsIDs(); err != nil {
		return got, err
	}
	ask := func(ctx context.Context, a *attempt) ([]fault, error) {
		return nil, a.unary(ctx, func(ctx context.Context) error {
			req := &pb.LookupRequest{Space: a.space.Name, Id: &pb.LookupRequest_Uid{Uid: uint64(key.UID)}, RequestId: []byte(id), RouteVersion: a.version}
			if key.named {
				req.Id = &pb.LookupRequest_Key{Key: key.name}
			}
			reply, err := a.server.rpc.Lookup(ctx, req)
			if err != nil {
				return err
			}
			a.server.heard(reply.GetRouteVersion(), reply.GetRoutes())
			if got = (Range{}); !reply.GetFound() {
				return nil
			}
			count := reply.GetLast() - reply.GetFirst() + 1
			if seq.CheckCount("", count) != nil {
				return fmt.Errorf("%w: numbers %d to %d", errMalformed, reply.GetFirst(), reply.GetLast())
			}
			got = checkRange(reply.GetFirst(), reply.GetLast(), uint32(count), false)
			return got.Err
		})
	}
	errs, err := askOwners(ctx, c, key.Space, []seq.UID{key.place()}, ask)
	if err == nil && errs != nil {
		err = errs[0]
	}
	return got, err
}

// check is seq.ErrBadArgument or seq.ErrIDNotKept for a request that the space cannot have.
func (r *Request) check(space *seq.Space) error {
	if err := seq.CheckRequestID("request id", r.ID); err != nil {
		return err
	}
	return space.KeepsIDs()
}

// request is a Request as it travels. All attempts for one key repeat one.
type request struct {
	id   []byte
	sent int64 // milliseconds since 1970
}

// randomID is how many bytes an id has that a call makes for itself. They come from the system:
// a copy of a running process must not make the ids of the other.
const randomID = 16

// requestIn is the request of one key: named, or a new one.
func requestIn(space *seq.Space, named *Request) (*request, error) {
	if named == nil {
		id := make([]byte, randomID)
		_, _ = rand.Read(id) // never fails
		return &request{id, time.Now().UnixMilli()}, nil
	}
	if err := named.check(space); err != nil {
		return nil, err
	}
	r := named.travelling(time.Now())
	return &r, nil
}

func (r *Request) travelling(now time.Time) request {
	if !r.Sent.IsZero() {
		now = r.Sent
	}
	return request{[]byte(r.ID), now.UnixMilli()}
}

// requestsIn are the requests of n keys: named, or new ones in an exact space; nil in another.
func requestsIn(space *seq.Space, n int, named []Request) ([]request, error) {
	if len(named) == 0 && space.Mode != seq.Exact {
		return nil, nil
	}
	if len(named) != 0 && len(named) != n {
		return nil, fmt.Errorf("%w: %d requests for %d keys", seq.ErrBadBatch, len(named), n)
	}
	out, now := make([]request, n), time.Now()
	for i := range named {
		if err := named[i].check(space); err != nil {
			return nil, fmt.Errorf("index %d: %w", i, err)
		}
		out[i] = named[i].travelling(now)
	}
	if len(named) == 0 {
		ids := make([]byte, n*randomID)
		_, _ = rand.Read(ids)
		for i := range out {
			out[i] = request{ids[i*randomID:][:randomID:randomID], now.UnixMilli()}
		}
	}
	return out, nil
}

// namedAt are the requests at idx, for another call to repeat.
func namedAt(requests []request, idx []int) []Request {
	if requests == nil {
		return nil
	}
	out := make([]Request, len(idx))
	for k, i := range idx {
		out[k] = Request{ID: string(requests[i].id), Sent: time.UnixMilli(requests[i].sent)}
	}
	return out
}
