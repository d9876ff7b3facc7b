package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Numbers is where the numbers come from. Package client says what each call promises. Safe
// for concurrent use.
type Numbers interface {
	Take(ctx context.Context, key client.Key, n uint32) (client.Range, error)
	NextBatch(ctx context.Context, space string, keys stream.Keys, counts []uint32, requests []client.Request) ([]client.Range, error)
	Lookup(ctx context.Context, key client.Key, id string) (client.Range, bool, error)
	Current(ctx context.Context, space string, keys stream.Keys) ([]client.Value, error)
	Generate(ctx context.Context, namespace string, count uint32) (client.IDs, error)
	TakeSegment(ctx context.Context, tag string, count uint32) (first, last seq.Seq, err error)
	Open(ctx context.Context, key client.Key, n uint32, opts ...client.OpenOption) (*client.Ticket, error)
	Done(ctx context.Context, key client.Key, first seq.Seq, ticket uint64, cancelled bool) error
	Raise(ctx context.Context, key client.Key, floor seq.Seq, opts ...client.RaiseOption) (seq.Seq, error)
	Marks(ctx context.Context, keys ...client.Key) ([]client.Mark, error)
	// Wait returns the mark of a key once it is above a number, and after a time in any case.
	Wait(ctx context.Context, key client.Key, after seq.Seq, within time.Duration) (client.Mark, error)

	// Begin starts orders that were admitted one by one. The loop calls Admit, which must not block.
	Begin(ctx context.Context, orders ...*stream.Order)
	Admit(ctx context.Context, order *stream.Order) (Place, error)
}

// Place is what an admitted order has until it is done.
type Place interface{ Leave() }

// maxParallel is the number of calls that a pipeline makes in parallel.
const maxParallel = 16

// errBehind ends the wait of a caller that sends so much behind it that its end might not be seen.
var errBehind = fmt.Errorf("%w: more than %d bytes of commands came behind this one, which waits", seq.ErrOverloaded, freely)

// errLeft ends the wait of a caller that left, or that sends no more.
var errLeft = errors.New("the caller closed the connection, or its half of it")

// errGone is an answer that lacks numbers; package client gives none such.
var errGone = errors.New("answer is incomplete")

// class is what ops must have in common to go side by side: reads, takes by requests, other takes, and each
// kind of work with tickets, and raises. Requests are refused together where their space keeps none.
func (k Kind) class() Kind {
	switch k {
	case Lookup:
		return Read
	case TakeTag, TakeID:
		return Take
	}
	return k
}

// run gets what all ops want. Reads see what the takes before them took, and not what
// those behind them do; within takes, and within reads, order matters only for one key,
// where a batch keeps it.
func run(ctx context.Context, from Numbers, ops []Op) {
	for i := 0; i < len(ops); {
		if ops[i].Kind == Local {
			i++
			continue
		}
		class, end := ops[i].Kind.class(), i+1
		for end < len(ops) && (ops[end].Kind == Local || ops[end].Kind.class() == class) {
			end++
		}
		plan := &plan{from: from}
		switch class {
		case Read:
			plan.reads(ops[i:end])
			plan.lookups(ops[i:end])
		case Open, Done, Raise:
			plan.byKey(ops[i:end], class)
		case Mark:
			plan.marks(ops[i:end])
		case Wait:
			plan.waits(ops[i:end])
		default:
			plan.takes(ops[i:end])
		}
		plan.run(ctx)
		i = end
	}
}

// plan is calls that may be made at the same time: none has a key of another's.
type plan struct {
	from  Numbers
	calls []func(context.Context)
}

func (p *plan) run(ctx context.Context) {
	if len(p.calls) == 1 {
		p.calls[0](ctx)
		return
	}
	var all errgroup.Group
	all.SetLimit(maxParallel)
	for _, call := range p.calls {
		all.Go(func() error { call(ctx); return nil })
	}
	_ = all.Wait() // ops have their errors
}

// groups puts ops together that one call can serve, in order.
func groups[By comparable](ops []Op, of Kind, by func(*Op) By) [][]*Op {
	var out [][]*Op
	at := map[By]int{}
	for i := range ops {
		o := &ops[i]
		if o.Kind != of {
			continue
		}
		k, known := at[by(o)]
		if !known {
			k = len(out)
			at[by(o)] = k
			out = append(out, nil)
		}
		out[k] = append(out[k], o)
	}
	return out
}

func sequence(o *Op) stream.Group { return stream.GroupOf(o.Key) }
func name(o *Op) string           { return o.Name }

// namespace is one of however many texts.
func namespace(o *Op) string { return auth.NamespaceName(o.Name) }

func (p *plan) takes(ops []Op) {
	for _, g := range groups(ops, Take, sequence) {
		p.calls = append(p.calls, func(ctx context.Context) { p.sequences(ctx, g) })
	}
	for _, g := range groups(ops, TakeOnce, sequence) {
		p.calls = append(p.calls, func(ctx context.Context) { p.sequences(ctx, g) })
	}
	for _, g := range groups(ops, TakeTag, name) {
		p.calls = append(p.calls, func(ctx context.Context) { p.tag(ctx, g) })
	}
	for _, g := range groups(ops, TakeID, namespace) {
		p.calls = append(p.calls, func(ctx context.Context) { p.ids(ctx, g) })
	}
}

// sequences takes numbers for ops of one group. A single op joins the batch of other connections.
func (p *plan) sequences(ctx context.Context, g []*Op) {
	named := g[0].Kind == TakeOnce
	if len(g) == 1 && !named {
		r, err := p.from.Take(ctx, g[0].Key, g[0].Count)
		g[0].takes(r, err)
		return
	}
	for len(g) > 0 {
		part := g[:min(len(g), seq.MaxBatch)]
		g = g[len(part):]
		counts := make([]uint32, len(part))
		for i, o := range part {
			counts[i] = o.Count
		}
		var requests []client.Request
		for _, o := range part {
			if named {
				requests = append(requests, o.Once.Request)
			}
		}
		got, err := p.from.NextBatch(ctx, part[0].Key.Space, stream.KeysFrom(len(part), func(i int) client.Key { return part[i].Key }), counts, requests)
		for i, o := range part {
			switch {
			case err != nil:
				o.Err = err
			case i >= len(got):
				o.Err = errGone
			default:
				o.takes(got[i], got[i].Err)
			}
		}
	}
}

// takes notes what a take of a sequence got.
func (o *Op) takes(r client.Range, err error) {
	if o.N, o.Err = uint64(r.Last), err; o.Once != nil {
		o.Once.Got = r
	}
}

// tag takes for ops of one tag: as few calls as their counts fit into.
func (p *plan) tag(ctx context.Context, g []*Op) {
	for len(g) > 0 {
		count, n := uint32(0), 0
		for n < len(g) && uint64(count)+uint64(g[n].Count) <= seq.MaxCount {
			count += g[n].Count
			n++
		}
		first, _, err := p.from.TakeSegment(ctx, g[0].Name, count)
		next := uint64(first)
		for _, o := range g[:n] {
			next += uint64(o.Count)
			o.N, o.Err = next-1, err
		}
		g = g[n:]
	}
}

// ids takes for ops of one namespace.
func (p *plan) ids(ctx context.Context, g []*Op) {
	for len(g) > 0 {
		part := g[:min(len(g), seq.MaxIDs)]
		g = g[len(part):]
		got, err := p.from.Generate(ctx, part[0].Name, uint32(len(part)))
		if errors.Is(err, seq.ErrTickUsedUp) && len(part) > 1 { // each by itself might not be refused
			half := len(part) / 2
			p.ids(ctx, part[:half])
			p.ids(ctx, part[half:])
			continue
		}
		if err == nil && got.Len() != len(part) {
			err = errGone
		}
		if err != nil {
			for _, o := range part {
				o.Err = err
			}
			continue
		}
		i := 0
		got.All()(func(id snowflake.ID) bool {
			part[i].N = uint64(id)
			i++
			return i < len(part)
		})
	}
}

// reads asks for all keys of all ops, a group at a time.
func (p *plan) reads(ops []Op) {
	type place struct{ op, at int }
	places := map[stream.Group][]place{}
	for i := range ops {
		if ops[i].Kind != Read {
			continue
		}
		ops[i].Values = make([]client.Value, len(ops[i].Keys))
		for k, key := range ops[i].Keys {
			places[stream.GroupOf(key)] = append(places[stream.GroupOf(key)], place{i, k})
		}
	}
	for of, all := range places {
		p.calls = append(p.calls, func(ctx context.Context) {
			for len(all) > 0 {
				part := all[:min(len(all), seq.MaxBatch)]
				all = all[len(part):]
				got, err := p.from.Current(ctx, of.Space, stream.KeysFrom(len(part), func(i int) client.Key { return ops[part[i].op].Keys[part[i].at] }))
				if err == nil && len(got) != len(part) {
					err = errGone
				}
				for i, at := range part {
					v := client.Value{Err: err}
					if err == nil {
						v = got[i]
					}
					ops[at.op].Values[at.at] = v
				}
			}
		})
	}
}

// byKey opens or ends tickets, or raises. It works on the ops of one key one after the other.
func (p *plan) byKey(ops []Op, of Kind) {
	for _, g := range groups(ops, of, func(o *Op) string { return o.Key.String() }) {
		p.calls = append(p.calls, func(ctx context.Context) {
			for _, o := range g {
				switch of {
				case Open:
					o.open(ctx, p.from)
				case Raise:
					o.raise(ctx, p.from)
				default:
					o.Err = p.from.Done(ctx, o.Key, o.Once.Ticket.First, o.Once.Ticket.ID, o.Once.Cancelled)
				}
			}
		})
	}
}

func (o *Op) open(ctx context.Context, from Numbers) {
	var options []client.OpenOption
	if o.Once.Life > 0 {
		options = append(options, client.WithLife(o.Once.Life))
	}
	if o.Once.Request.ID != "" {
		options = append(options, client.OpenedOnce(o.Once.Request))
	}
	t, err := from.Open(ctx, o.Key, o.Count, options...)
	if o.Err = err; err == nil {
		o.Once.Ticket = *t
	}
}

func (o *Op) raise(ctx context.Context, from Numbers) {
	var options []client.RaiseOption
	if o.Once.MaxJump > 0 {
		options = append(options, client.Within(o.Once.MaxJump))
	}
	o.Once.Got.Last, o.Err = from.Raise(ctx, o.Key, o.Once.Floor, options...)
}

// marks asks for the marks of all keys of all ops, each op by itself.
func (p *plan) marks(ops []Op) {
	for i := range ops {
		if o := &ops[i]; o.Kind == Mark {
			p.calls = append(p.calls, func(ctx context.Context) { o.mark(ctx, p.from) })
		}
	}
}

// waits waits for the marks of all ops. If ctx ends, its cause is their error.
func (p *plan) waits(ops []Op) {
	for i := range ops {
		if o := &ops[i]; o.Kind == Wait {
			p.calls = append(p.calls, func(ctx context.Context) {
				m, err := p.from.Wait(ctx, o.Key, o.Once.After, o.Once.Within)
				if err != nil && ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				o.Once.Marks, o.Err = []client.Mark{m}, err
			})
		}
	}
}

func (o *Op) mark(ctx context.Context, from Numbers) {
	got, err := from.Marks(ctx, o.Keys...)
	if err == nil && len(got) != len(o.Keys) {
		err = errGone
	}
	for _, m := range got {
		err = cmp.Or(err, m.Err)
	}
	o.Once.Marks, o.Err = got, err
}

// lookups asks for what requests have got, each by itself.
func (p *plan) lookups(ops []Op) {
	for i := range ops {
		if o := &ops[i]; o.Kind == Lookup {
			p.calls = append(p.calls, func(ctx context.Context) {
				var found bool
				o.Once.Got, found, o.Err = p.from.Lookup(ctx, o.Key, o.Once.Request.ID)
				if !found {
					o.Once.Got = client.Range{}
				}
			})
		}
	}
}
