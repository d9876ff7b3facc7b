package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/router/line"
	"github.com/seqsvr/seqsvr/seq"
)

// DefaultHTTPMaxBody is the largest body of an HTTP request in bytes, if nothing else is
// said: a batch of string keys.
const DefaultHTTPMaxBody = 16 << 20

// Bounds of Config.HTTPMaxBody, in bytes.
const (
	minHTTPBody = 1 << 10
	maxHTTPBody = 256 << 20
)

// checkLimits names every limit that is not sound.
func (cfg Config) checkLimits() error {
	var errs []error
	if err := gate.CheckMaxInWork(cfg.MaxInWork); err != nil {
		errs = append(errs, fmt.Errorf("MaxInWork: %w", err))
	}
	if n := cfg.HTTPMaxBody; n != 0 && (n < minHTTPBody || n > maxHTTPBody) {
		errs = append(errs, fmt.Errorf("HTTPMaxBody %d: expected 0 or %d to %d bytes", n, minHTTPBody, maxHTTPBody))
	}
	if cfg.RESPMaxConns < 0 || cfg.RESPMaxPipeline < 0 {
		errs = append(errs, fmt.Errorf("RESPMaxConns %d and RESPMaxPipeline %d: expected 0 or more", cfg.RESPMaxConns, cfg.RESPMaxPipeline))
	}
	return errors.Join(errs...)
}

// DefaultMaxInWork is the default of Config.MaxInWork in keys: 4,000 calls of few keys, or 26 of
// the largest batches. A key in work takes about 250 bytes.
const DefaultMaxInWork = 1 << 18

// SetLimits takes the limits of cfg while the router runs, and nothing else of it:
// MaxInWork, HTTPMaxBody, RESPMaxConns and RESPMaxPipeline. seq.ErrBadArgument, and
// nothing is changed. Calls and connections that were let in before stay.
func (r *Router) SetLimits(cfg Config) error {
	if err := cfg.checkLimits(); err != nil {
		return fmt.Errorf("change limits: %w: %w", seq.ErrBadArgument, err)
	}
	r.inWork.SetLimit(cmp.Or(cfg.MaxInWork, DefaultMaxInWork))
	r.maxBody.Store(int64(cmp.Or(cfg.HTTPMaxBody, DefaultHTTPMaxBody)))
	r.budget.SetMost(max(budget, 2*r.maxBody.Load()))
	r.resp.SetLimits(line.Limits{MaxConns: cfg.RESPMaxConns, MaxPipeline: cfg.RESPMaxPipeline})
	return nil
}

// maxCalls returns the number of concurrent calls of one gRPC connection to a router with inWork
// keys. It covers all calls that may wait for one Set, and the usual calls beside them. The router
// refuses calls beyond the admission. Without the room here, calls would queue behind the calls for
// a dead Set.
func maxCalls(inWork int) uint32 { return uint32(inWork/2/gate.CallCost + 256) }

// maxCancels is the number of calls that one peer may cancel before the router serves them, each
// second. The concurrent calls of one connection come on top. A cancelled call takes up to 50 us of
// a processor.
const maxCancels = 100

// maxOpen bounds the open calls of all clients without a certificate. It is twice the number of
// calls that DefaultMaxInWork admits.
const maxOpen = 2 * DefaultMaxInWork / gate.CallCost

// admitted is a client whose calls count as calls in work. All RESP calls go through it, and gRPC
// and HTTP calls for snowflake IDs and segments.
type admitted struct {
	*client.Client
	door    admission
	watches *watches
}

func newAdmitted(sdk *client.Client, inWork *gate.Admission) admitted {
	return admitted{sdk, newDoor(sdk, inWork), newWatches(sdk)}
}

// Take implements line.Numbers.
func (a admitted) Take(ctx context.Context, key client.Key, n uint32) (client.Range, error) {
	place, err := a.door.one(ctx, key.Space, key.Place(), "")
	if err != nil {
		return client.Range{Err: err}, err
	}
	defer place.Leave()
	return a.Client.Take(ctx, key, n)
}

// NextBatch implements line.Numbers.
func (a admitted) NextBatch(ctx context.Context, space string, keys stream.Keys, counts []uint32, requests []client.Request) ([]client.Range, error) {
	place, err := a.door.whole(ctx, space, keys.Places, a.door.inWork.Enter)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	return a.Caller().NextBatch(ctx, space, keys, counts, requests)
}

// Lookup implements line.Numbers.
func (a admitted) Lookup(ctx context.Context, key client.Key, id string) (client.Range, bool, error) {
	place, err := a.door.one(ctx, key.Space, key.Place(), "")
	if err != nil {
		return client.Range{Err: err}, false, err
	}
	defer place.Leave()
	return a.Client.Lookup(ctx, key, id)
}

// Open implements line.Numbers.
func (a admitted) Open(ctx context.Context, key client.Key, n uint32, opts ...client.OpenOption) (*client.Ticket, error) {
	place, err := a.door.one(ctx, key.Space, key.Place(), "")
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	return a.Client.Open(ctx, key, n, opts...)
}

// Raise implements line.Numbers.
func (a admitted) Raise(ctx context.Context, key client.Key, floor seq.Seq, opts ...client.RaiseOption) (seq.Seq, error) {
	place, err := a.door.one(ctx, key.Space, key.Place(), "")
	if err != nil {
		return 0, err
	}
	defer place.Leave()
	return a.Client.Raise(ctx, key, floor, opts...)
}

// Done implements line.Numbers.
func (a admitted) Done(ctx context.Context, key client.Key, first seq.Seq, ticket uint64, cancelled bool) error {
	place, err := a.door.one(ctx, key.Space, key.Place(), "")
	if err != nil {
		return err
	}
	defer place.Leave()
	return a.Caller().Done(ctx, key, first, ticket, cancelled)
}

// Marks implements line.Numbers. It holds the place of one space at a time, because a place may be waited for.
func (a admitted) Marks(ctx context.Context, keys ...client.Key) ([]client.Mark, error) {
	out, of := make([]client.Mark, len(keys)), map[string][]int{}
	for i, key := range keys {
		of[key.Space] = append(of[key.Space], i)
	}
	for space, at := range of {
		part, places := make([]client.Key, len(at)), make([]seq.UID, len(at))
		for k, i := range at {
			part[k], places[k] = keys[i], keys[i].Place()
		}
		place, err := a.door.whole(ctx, space, places, a.door.inWork.Enter)
		if err != nil {
			return nil, err
		}
		marks, err := a.Client.Marks(ctx, part...)
		place.Leave()
		if err != nil {
			return nil, err
		}
		for k, i := range at {
			out[i] = marks[k]
		}
	}
	return out, nil
}

// Wait implements line.Numbers.
func (a admitted) Wait(ctx context.Context, key client.Key, after seq.Seq, within time.Duration) (client.Mark, error) {
	return a.waitIn(ctx, key, after, within, nil)
}

// Begin implements line.Numbers.
func (a admitted) Begin(ctx context.Context, orders ...*stream.Order) {
	a.Caller().Begin(ctx, orders...)
}

// Admit implements line.Numbers.
func (a admitted) Admit(ctx context.Context, order *stream.Order) (line.Place, error) {
	place, err := a.door.whole(ctx, order.Space, order.UIDs, a.door.inWork.Try)
	if err != nil {
		return nil, err
	}
	return place, nil
}

// Current implements line.Numbers.
func (a admitted) Current(ctx context.Context, space string, keys stream.Keys) ([]client.Value, error) {
	place, err := a.door.whole(ctx, space, keys.Places, a.door.inWork.Enter)
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	if keys.Names != nil {
		return a.CurrentKeys(ctx, space, keys.Names)
	}
	return a.Client.Current(ctx, space, keys.Places)
}

// Generate implements line.Numbers.
func (a admitted) Generate(ctx context.Context, namespace string, count uint32) (client.IDs, error) {
	place, err := a.door.any(ctx)
	if err != nil {
		return client.IDs{}, err
	}
	defer place.Leave()
	return a.Client.Generate(ctx, namespace, count)
}

// GenerateAs is the client's, and admits the call.
func (a admitted) GenerateAs(ctx context.Context, agent, namespace string, count uint32) (client.IDs, error) {
	place, err := a.door.any(ctx)
	if err != nil {
		return client.IDs{}, err
	}
	defer place.Leave()
	return a.Client.GenerateAs(ctx, agent, namespace, count)
}

// TakeSegment implements line.Numbers.
func (a admitted) TakeSegment(ctx context.Context, tag string, count uint32) (first, last seq.Seq, err error) {
	place, err := a.door.root(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer place.Leave()
	return a.Client.TakeSegment(ctx, tag, count)
}

// Any is the client's, and admits each call.
func (a admitted) Any() grpc.ClientConnInterface {
	return admittedConn{a.Client.Caller().Any(), a.door.any}
}

// AnyOfRoot is Any for what the root Set alone has.
func (a admitted) AnyOfRoot() grpc.ClientConnInterface {
	return admittedConn{a.Client.Caller().Any(), a.door.root}
}

// Once is the client's, and admits each call.
func (a admitted) Once() grpc.ClientConnInterface {
	return admittedConn{a.Client.Caller().Once(), a.door.any}
}

// Owner is the client's, and admits each call.
func (a admitted) Owner(tag string) grpc.ClientConnInterface {
	return admittedConn{a.Client.Caller().Owner(tag), a.door.root}
}

// admittedConn admits each call as one without keys.
type admittedConn struct {
	grpc.ClientConnInterface
	enter func(context.Context) (*gate.Place, error)
}

// Invoke implements grpc.ClientConnInterface.
func (a admittedConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	place, err := a.enter(ctx)
	if err != nil {
		return err
	}
	defer place.Leave()
	return a.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}
