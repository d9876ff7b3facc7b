package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// idSpace is a namespace of IDs, with so few bits that worker ids and sequences are used
// again and again.
type idSpace struct {
	name, layout     string
	worker, sequence uint
}

// idEpoch is the epoch of all layouts, before the time at which the bubbles of runs begin.
const idEpoch = 883612800000

func newIDSpace(name string, worker, sequence uint, policy string) *idSpace {
	return &idSpace{name, fmt.Sprintf("time:41,worker:%d,sequence:%d;epoch=%d;%s", worker, sequence, idEpoch, policy), worker, sequence}
}

// Nodes use the first one. Windows are delegated of the second, and the third is one whose
// IDs run ahead of the clock.
var (
	nodeSpace   = newIDSpace("sim", 2, 10, "rollback=wait:5s")
	lentSpace   = newIDSpace("lent", 4, 6, "rollback=wait:5s")
	borrowSpace = newIDSpace("borrow", 3, 2, "overflow=borrow;rollback=borrow")
	idSpaces    = []*idSpace{nodeSpace, lentSpace, borrowSpace}
)

// workerOf is the worker id in an ID.
func (s *idSpace) workerOf(id uint64) uint64 { return id >> s.sequence & (1<<s.worker - 1) }

// markOf is the moment of an ID, which the high-water mark of its worker must not be below.
func (s *idSpace) markOf(id uint64) uint64 { return id>>(s.worker+s.sequence) + idEpoch }

func (s *idSpace) register(worker uint64) seq.Register { return seq.WorkerRegister(s.name, 0, worker) }

func idSpaceOf(name string) *idSpace {
	i := slices.IndexFunc(idSpaces, func(s *idSpace) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return idSpaces[i]
}

// window is what a client was lent: ticks of a worker id that are its own until they are
// over, whatever becomes of whoever lent it.
type window struct {
	gen   *snowflake.Generator
	reply *pb.SnowflakeDelegateReply
}

// mostWindows bounds the windows that a caller holds at a time.
const mostWindows = 3

// lent makes IDs of the windows that the caller holds, and asks for one more, or a longer
// one. An answer that is lost is not asked for again: its window is used by nobody.
func (c *caller) lent(ctx context.Context) error {
	c.w.mu.Lock()
	ask := len(c.windows) == 0 || c.w.chance(0.4)
	extend := len(c.windows) > 0 && (len(c.windows) >= mostWindows || c.w.chance(0.6))
	which, count := c.w.rng.IntN(1+len(c.windows)), 1+c.w.rng.IntN(20)
	x := c.w.rng.Float64()
	long := time.Second + time.Duration(x*x*x*float64(c.w.opts.Window))
	allocs := c.w.hosts.of(allocHost)
	at := &conn{w: c.w, from: c.h, life: c.h.life, to: allocs[c.w.rng.IntN(len(allocs))].name}
	c.w.mu.Unlock()
	var err error
	if ask {
		req := &pb.SnowflakeDelegateRequest{Namespace: lentSpace.name, Holder: c.h.name, WindowMs: uint64(long.Milliseconds())}
		if extend {
			old := c.windows[which%len(c.windows)].reply
			req.HasWorker, req.WorkerId, req.DatacenterId, req.ConfirmedUnixMs = true, old.GetWorkerId(), old.GetDatacenterId(), old.GetConfirmedUnixMs()
		}
		err = c.borrow(ctx, at, req)
	}
	c.windows = slices.DeleteFunc(c.windows, func(l *window) bool { return !c.use(ctx, l, count) })
	return err
}

func (c *caller) borrow(ctx context.Context, at *conn, req *pb.SnowflakeDelegateRequest) error {
	ctx, cancel := context.WithTimeout(ctx, c.w.opts.Patience)
	defer cancel()
	r, err := pb.NewSnowflakeClient(at).Delegate(ctx, req)
	if err != nil {
		return err
	}
	c.w.trace.add("%-8s is lent worker %d of %s, ticks %d to %d", c.h.name, r.GetWorkerId(), r.GetNamespace(), r.GetFloorTick(), r.GetLastTick())
	for _, l := range c.windows {
		if r.GetContinues() && l.reply.GetWorkerId() == r.GetWorkerId() && l.reply.GetLastTick() == r.GetFloorTick() {
			l.reply = r
			l.gen.Extend(snowflake.Tick(r.GetLastTick()))
			return nil
		}
	}
	layout, err := snowflake.ParseLayout(r.GetLayout())
	if err != nil {
		return err
	}
	gen, err := snowflake.New(layout, snowflake.Datacenter(r.GetDatacenterId()), snowflake.Worker(r.GetWorkerId()), snowflake.Tick(r.GetFloorTick()),
		snowflake.WithClock(func() int64 { return c.h.clock.Wall().UnixMilli() }))
	if err != nil {
		return err
	}
	gen.Extend(snowflake.Tick(r.GetLastTick()))
	c.windows = append(c.windows, &window{gen, r})
	return nil
}

// use makes some IDs of a window; false when it is over by the caller's clock.
func (c *caller) use(ctx context.Context, l *window, count int) bool {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if b, err := l.gen.Take(ctx, count); err == nil {
		for i := range b.Len() {
			id := uint64(b.At(i))
			c.w.check.promises.unique(lentSpace, id, c.h.name)
			c.w.check.promises.alone(lentSpace, id, c)
		}
		c.w.mu.Lock()
		c.w.stats.Lent += uint64(b.Len())
		c.w.mu.Unlock()
	}
	end, err := l.gen.Layout().TimeOf(l.gen.Confirmed())
	return err == nil && !c.h.clock.Wall().After(end)
}
