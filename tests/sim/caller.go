package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// The tags that callers ask for, beside sequences and IDs. The first is there from the start. A caller that
// finds another one missing makes it.
var tagNames = []string{"orders", "bills", "letters", "late"}

// tagKey is a tag's place in the history, beside the UIDs.
func tagKey(name string) history.Key { return history.Key{Space: "tag:" + name} }

// register is the register that a key's numbers rest on.
func (w *world) register(key history.Key) seq.Register {
	_, id, err := w.place(key)
	if err != nil {
		return ""
	}
	return seq.SectionRegister(id)
}

// keys are the counters that callers use: a few UIDs of every section, and a few string keys.
func (w *world) keys() []history.Key {
	var out []history.Key
	for i := range w.whole.Spaces {
		s := &w.whole.Spaces[i]
		left := make(map[seq.SectionID]int)
		for id := s.First; id < s.First+seq.SectionID(s.Sections); id++ {
			left[id] = uidsPerSection
		}
		for uid := uint64(1); len(left) > 0; uid += 1 << (seq.BlockBits - 1) {
			id := s.SectionOf(seq.UID(uid))
			if left[id] == 0 {
				continue
			}
			out = append(out, history.Key{Space: s.Name, UID: uid})
			if left[id]--; left[id] == 0 {
				delete(left, id)
			}
		}
	}
	for n := range uint64(namesPerRun) {
		out = append(out, history.Key{Space: nameSpace, UID: n})
	}
	return out
}

const uidsPerSection = 2

// retryPause is the time before a caller asks the next node.
const retryPause = 200 * time.Millisecond

// caller is one client. It goes where it was told to go, as a router or the SDK does.
type caller struct {
	w     *world
	h     *host
	index int
	keys  []history.Key
	where map[history.Key]string // who answered last

	windows []*window // that it was lent
}

// asker makes the requests of a caller: directly, or through the SDK.
type asker interface {
	next(ctx context.Context, key history.Key, count uint32) error
	once(ctx context.Context, o *once) error
	current(ctx context.Context, key history.Key) error
	raise(ctx context.Context, key history.Key, by uint64) error
	tag(ctx context.Context, name string, count uint32) error
	id(ctx context.Context, space *idSpace, count int) error
}

// run asks for this and that until the run ends.
func (c *caller) run(stop <-chan struct{}) {
	by, done := c.manner()
	defer done()
	for {
		c.w.mu.Lock()
		pause := c.w.between(0, 2*c.w.opts.Think)
		op := c.w.rng.IntN(100)
		key := c.keys[c.w.rng.IntN(len(c.keys))]
		count := uint32(1)
		if c.w.chance(0.15) {
			count = uint32(1 + c.w.rng.IntN(30))
		}
		lift := uint64(c.w.rng.IntN(60))
		tag, space := tagNames[c.w.rng.IntN(len(tagNames))], idSpaces[c.w.rng.IntN(len(idSpaces))]
		c.w.mu.Unlock()
		select {
		case <-stop:
			return
		case <-time.After(pause):
		}
		ctx, cancel := context.WithTimeout(c.w.life, 2*c.w.opts.Patience)
		switch {
		case op < 25 && key.Space == exactSpace:
			_ = c.open(ctx, key, count, c.w.check.onces.draw(c, key, count))
		case op < 66 && key.Space == exactSpace:
			_ = by.once(ctx, c.w.check.onces.draw(c, key, count))
		case op < 30 && c.w.tickets(key):
			_ = c.open(ctx, key, count, nil)
		case op < 66:
			_ = by.next(ctx, key, count)
		case op < 71 && c.w.tickets(key):
			_, _ = c.mark(ctx, key)
		case op < 74:
			_ = by.current(ctx, key)
		case op < 79:
			_ = by.raise(ctx, key, lift)
		case op < 86:
			_ = by.tag(ctx, tag, count)
		case op < 92:
			_ = c.lent(ctx)
		default:
			_ = by.id(ctx, space, int(count))
		}
		cancel()
	}
}

// try asks one allocator after the other, where it is sent to first, until one answers
// or ctx ends.
func (c *caller) try(ctx context.Context, key history.Key, ask func(ctx context.Context, at *conn) error) error {
	allocs := c.w.hosts.allocs()
	at := c.where[key]
	last := errors.New("nobody asked")
	for hops := 0; ctx.Err() == nil; hops++ {
		if at == "" {
			c.w.mu.Lock()
			at = allocs[c.w.rng.IntN(len(allocs))].name
			c.w.mu.Unlock()
		}
		one, cancel := context.WithTimeout(ctx, c.w.opts.Patience)
		last = ask(one, &conn{w: c.w, from: c.h, life: c.h.life, to: at})
		cancel()
		if last == nil {
			c.where[key] = at
			return nil
		}
		at = ""
		var owner *rpc.NotOwnerError
		if errors.As(last, &owner) && owner.Addr != "" && hops%4 != 3 {
			at = owner.Addr
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
	return last
}

func (c *caller) next(ctx context.Context, key history.Key, count uint32) error {
	return c.try(ctx, key, func(ctx context.Context, at *conn) error {
		start, floor := c.w.now(), c.w.check.promises.floor(key)
		reply, err := pb.NewSequenceClient(at).Next(ctx, nextOf(key, count))
		if err == nil && reply.GetLast()-reply.GetFirst()+1 != uint64(count) {
			c.w.check.broken("U", "%d numbers asked of %v, got %d-%d", count, key, reply.GetFirst(), reply.GetLast())
		}
		c.took(key, start, floor, reply.GetFirst(), reply.GetLast(), reply.GetUnordered(), err)
		return c.addLate(ctx, key, err)
	})
}

func (c *caller) tag(ctx context.Context, name string, count uint32) error {
	key := tagKey(name)
	err := c.try(ctx, key, func(ctx context.Context, at *conn) error {
		start, floor := c.w.now(), c.w.check.promises.floor(key)
		reply, err := pb.NewSegmentClient(at).Take(ctx, &pb.SegmentTakeRequest{Tag: name, Count: count})
		c.took(key, start, floor, reply.GetFirst(), reply.GetLast(), false, err)
		return err
	})
	return c.tagAgain(ctx, name, err)
}

// tagAgain makes a tag that nobody knows, or not any more: it may be younger than the
// backup that the cluster was made of.
func (c *caller) tagAgain(ctx context.Context, name string, err error) error {
	if !errors.Is(err, seq.ErrUnknownTag) {
		return err
	}
	return c.putTag(ctx, name)
}

func (c *caller) putTag(ctx context.Context, name string) error {
	return c.try(ctx, tagKey(name), func(ctx context.Context, at *conn) error {
		_, err := pb.NewSegmentClient(at).Put(ctx, &pb.SegmentPutRequest{Tag: &pb.SegmentTag{Tag: name, MinStep: 20, MaxStep: 40, Start: 1}})
		return err
	})
}

// took records an attempt, and checks at once that it is above all that ended before it.
func (c *caller) took(key history.Key, start time.Duration, floor, first, last uint64, unordered bool, err error) {
	k := history.Call{Key: key, First: first, Last: last, Start: start, End: c.w.now(), Client: c.index, Unordered: unordered}
	if err != nil {
		k.Err, k.First, k.Last = "failed", 0, 0
	}
	c.w.check.promises.history.Add(k)
	if err != nil {
		return
	}
	c.w.mu.Lock()
	c.w.stats.Numbers += last - first + 1
	c.w.mu.Unlock()
	if first <= floor && !unordered && c.w.check.promises.ordered(key) {
		c.w.check.broken("M", "%v: %d-%d for a call that began at %.6f s, %d was handed out or raised to before",
			key, first, last, start.Seconds(), floor)
	}
	if !unordered {
		c.w.check.promises.lift(key, last)
	}
}

func (c *caller) current(ctx context.Context, key history.Key) error {
	return c.try(ctx, key, func(ctx context.Context, at *conn) error {
		floor := c.w.check.promises.floor(key)
		reply, err := pb.NewSequenceClient(at).Current(ctx, &pb.CurrentRequest{Batches: []*pb.Batch{batchOf(key)}})
		if err != nil {
			return err
		}
		if errs := reply.GetResults()[0].GetErrors(); len(errs) > 0 {
			return rpc.FromKeyError(errs[0])
		}
		c.w.check.promises.reads(key, floor, reply.GetResults()[0].GetValues()[0])
		return nil
	})
}

func (c *caller) raise(ctx context.Context, key history.Key, by uint64) error {
	return c.try(ctx, key, func(ctx context.Context, at *conn) error {
		floor := c.w.check.promises.floor(key) + by
		c.w.check.onces.lift(key, floor)
		reply, err := pb.NewSequenceClient(at).Raise(ctx, raiseOf(key, floor))
		if err != nil {
			return err
		}
		c.w.check.promises.raisedTo(key, floor, reply.GetValue())
		return nil
	})
}

func (c *caller) id(ctx context.Context, space *idSpace, count int) error {
	return c.try(ctx, history.Key{Space: "id"}, func(ctx context.Context, at *conn) error { return c.idAt(ctx, at, space, count) })
}

func (c *caller) idAt(ctx context.Context, at *conn, space *idSpace, count int) error {
	reply, err := pb.NewSnowflakeClient(at).Generate(ctx, &pb.SnowflakeGenerateRequest{Namespace: space.name, Count: uint32(count)})
	if err != nil {
		return err
	}
	for _, id := range reply.GetIds() {
		c.w.check.promises.unique(space, id, at.to)
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.stats.IDs += uint64(len(reply.GetIds()))
	return nil
}

// prepare makes the tag and the namespaces that all callers use.
func (c *caller) prepare(ctx context.Context) error {
	if err := c.putTag(ctx, tagNames[0]); err != nil {
		return fmt.Errorf("put tag: %w", err)
	}
	for _, space := range idSpaces {
		err := c.try(ctx, history.Key{Space: "id"}, func(ctx context.Context, at *conn) error {
			_, err := pb.NewSnowflakeClient(at).PutNamespace(ctx, &pb.SnowflakePutNamespaceRequest{Name: space.name, Layout: space.layout})
			if errors.Is(err, seq.ErrConflict) {
				return nil // an earlier try was written after all
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("put namespace %s: %w", space.name, err)
		}
	}
	return nil
}
