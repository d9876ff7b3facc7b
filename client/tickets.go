package client

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Ticket is a Range whose numbers no mark passes before Done, Cancel or the Deadline. Commit the numbers
// within Context, and call Done then.
type Ticket struct {
	First, Last seq.Seq
	// ID ends the ticket, so only its holder should know it.
	ID uint64
	// Deadline is the time by which the numbers must be visible to readers, as this process counts it. The
	// clock of a process that stands still does not: docs/reading.md says what to do about that.
	Deadline time.Time
	Life     time.Duration // from the request to the Deadline
	// Replayed says that an earlier call with this Request got the numbers. It may have committed them.
	Replayed bool

	key   Key
	calls *call.Caller
}

// OpenOption changes what one Open does.
type OpenOption func(*opening)

type opening struct {
	life    uint64   // in milliseconds
	request *Request // if nil, an exact space gets one of this call
}

// WithLife gives the ticket a shorter life than the longest one of its space, in milliseconds, rounded up.
func WithLife(life time.Duration) OpenOption {
	return func(o *opening) { o.life = uint64(max(1, (life+time.Millisecond-1)/time.Millisecond)) }
}

// OpenedOnce has an Open in a space of mode=exact repeated as TakeIdempotent is. The repeated Open has the ticket
// again, for its whole life. It fails with seq.ErrTicketEnded if readers may have passed the numbers.
func OpenedOnce(r Request) OpenOption { return func(o *opening) { o.request = &r } }

// Open takes n numbers of the key as NextN does, with a ticket. seq.ErrNoTickets if the space gives none,
// seq.ErrBadArgument for a life that it does not give, seq.ErrTickets in the end if too many are open;
// otherwise it retries and fails like Next. A ticket of a lost answer stays open for its life.
func (c *Client) Open(ctx context.Context, key Key, n uint32, opts ...OpenOption) (*Ticket, error) {
	t := &Ticket{key: key, calls: c.calls}
	if err := t.open(ctx, n, opts); err != nil {
		return nil, call.Told(fmt.Sprintf("open %v", key), err)
	}
	return t, nil
}

func (t *Ticket) open(ctx context.Context, n uint32, opts []OpenOption) error {
	if err := t.key.Check(); err != nil {
		return err
	}
	if err := seq.CheckCount("count", uint64(n)); err != nil {
		return err
	}
	var o opening
	for _, opt := range opts {
		opt(&o)
	}
	once, err := t.once(ctx, o.request)
	if err != nil {
		return err
	}
	got, sent, err := t.calls.Open(ctx, t.key, n, o.life, once)
	if err != nil {
		return err
	}
	t.First, t.Last, t.ID, t.Replayed = seq.Seq(got.First), seq.Seq(got.Last), got.Ticket, got.Replayed
	t.Life = got.Life()
	if t.Deadline = sent.Add(t.Life); time.Until(t.Deadline) <= 0 {
		return fmt.Errorf("%w: it came %v after its deadline", seq.ErrTicketEnded, -time.Until(t.Deadline))
	}
	return nil
}

// once returns what all attempts of an Open repeat in an exact space, nil in another.
func (t *Ticket) once(ctx context.Context, named *Request) (*stream.Request, error) {
	if named != nil {
		if err := seq.CheckRequestID("request id", named.ID); err != nil {
			return nil, err
		}
	}
	space, err := t.calls.Table().SpaceOf(ctx, t.key.Space)
	if err != nil {
		return nil, err
	}
	if named == nil && space.Mode != seq.Exact {
		return nil, nil
	}
	return stream.RequestIn(space, named)
}

// Context returns ctx with the end by which a commit should have begun, a tenth of the ticket's life before
// its Deadline.
func (t *Ticket) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, t.Deadline.Add(-t.Life/10))
}

// Done says that the numbers are visible to readers, so that marks may pass them. It retries like Next.
// seq.ErrTicketEnded if the ticket was not open any more: if its Deadline had passed, readers may have
// missed what was committed later; after an unclear answer, an earlier attempt may have ended it.
func (t *Ticket) Done(ctx context.Context) error {
	return t.calls.Done(ctx, t.key, t.First, t.ID, false)
}

// Cancel says that the numbers will not become visible. It fails as Done does.
func (t *Ticket) Cancel(ctx context.Context) error {
	return t.calls.Done(ctx, t.key, t.First, t.ID, true)
}

// Mark tells up to where a reader may go.
type Mark struct {
	// Seq is the mark: no number at or below it becomes visible later, if writers commit before the
	// deadlines of their tickets.
	Seq seq.Seq
	// Fence is the highest number at or below the mark that may have been closed without a word of its
	// writer. A reader that uses the fence of docs/reading.md raises its floor to Seq if Fence is above it.
	Fence seq.Seq
	Last  seq.Seq // at or above the last number handed out
	// KnownIn is the time after which to ask again, because the owner is new and does not know yet which
	// numbers are open. Seq and Fence are zero then. If KnownIn is zero, the mark is known.
	KnownIn time.Duration
	Err     error
}

// Marks reads the marks of 1 to seq.MaxBatch keys, which may be of many spaces. It retries and fails as Current
// does; seq.ErrNoTickets for a key of a space that gives no tickets.
func (c *Client) Marks(ctx context.Context, keys ...Key) ([]Mark, error) {
	if err := seq.CheckKeys("keys", len(keys)); err != nil {
		return nil, call.Told("mark", err)
	}
	groups, of := []stream.Group{}, map[stream.Group][]int{}
	for i, key := range keys {
		g := stream.GroupOf(key)
		if of[g] == nil {
			groups = append(groups, g)
		}
		of[g] = append(of[g], i)
	}
	out := make([]Mark, len(keys))
	for _, g := range groups {
		batch := stream.KeysFrom(len(of[g]), func(k int) Key { return keys[of[g][k]] })
		marks, err := c.marks(ctx, g.Space, batch)
		if err != nil {
			return nil, call.Told("mark", err)
		}
		for k, i := range of[g] {
			if out[i] = marks[k]; out[i].Err != nil {
				out[i].Err = call.Told(fmt.Sprintf("mark %v", keys[i]), out[i].Err)
			}
		}
	}
	return out, nil
}

// marks reads the marks of keys of one kind.
func (c *Client) marks(ctx context.Context, space string, keys stream.Keys) ([]Mark, error) {
	if err := keys.Check(); err != nil {
		return nil, err
	}
	out := make([]Mark, len(keys.Places))
	ask := func(ctx context.Context, a *call.Attempt) (faults []call.Fault, err error) {
		b := keys.Batch(a.Space, a.Idx)
		var reply *pb.MarkReply
		err = a.Server.Largely(ctx, len(a.Idx), func() error {
			return a.Unary(ctx, func(ctx context.Context) (err error) {
				reply, err = a.Server.RPC.Mark(ctx, &pb.MarkRequest{Batches: []*pb.Batch{b}, RouteVersion: a.Version})
				if err == nil && (len(reply.GetResults()) != 1 || !whole(reply.GetResults()[0], len(a.Idx))) {
					err = fmt.Errorf("%w: not one mark for each of %d keys", stream.ErrMalformed, len(a.Idx))
				}
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		a.Server.Heard(reply.GetRouteVersion(), reply.GetRoutes())
		r := reply.GetResults()[0]
		errs := stream.KeyErrors(r.GetErrors(), len(a.Idx))
		for k, i := range a.Idx {
			if errs != nil && errs[k] != nil {
				faults = append(faults, call.Fault{K: k, Err: errs[k]})
				continue
			}
			out[i] = Mark{Seq: seq.Seq(r.Marks[k]), Fence: seq.Seq(r.Fences[k]), Last: seq.Seq(r.Last[k]), KnownIn: time.Duration(r.UnknownMs[k]) * time.Millisecond}
		}
		return faults, nil
	}
	errs, err := c.calls.AskOwners(ctx, space, keys.Places, ask)
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			out[i] = Mark{Err: err}
		}
	}
	return out, nil
}

// whole reports whether a result has n entries.
func whole(r *pb.MarkResult, n int) bool {
	return len(r.GetMarks()) == n && len(r.GetFences()) == n && len(r.GetLast()) == n && len(r.GetUnknownMs()) == n
}
