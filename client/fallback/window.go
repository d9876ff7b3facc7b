package fallback

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Times of Keep. A request for a window whose answer is lost costs a worker id until that
// window is over, so it is made with patience, and again only after a pause.
const (
	askPatience = 5 * time.Second
	askPause    = time.Second
	askPauseMax = 30 * time.Second
)

// IDs are some that were made here.
type IDs struct {
	Namespace  string
	Layout     string // its text
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Runs       []snowflake.Run
}

// window is ticks under a worker id that is this process's alone.
//
//	gen.Confirmed() == last_tick of reply, or of one that it continues
type window struct {
	reply      *pb.SnowflakeDelegateReply
	gen        *snowflake.Generator
	validUntil time.Time
}

// make makes IDs from the window: ErrNoWindow when it does not reach.
func (f *Fallback) make(ctx context.Context, count int) (*IDs, error) {
	w := f.window.Load()
	if w == nil {
		return nil, fmt.Errorf("%w: none was lent so far", ErrNoWindow)
	}
	out := &IDs{
		Namespace: w.reply.GetNamespace(), Layout: w.reply.GetLayout(),
		Datacenter: snowflake.Datacenter(w.reply.GetDatacenterId()), Worker: snowflake.Worker(w.reply.GetWorkerId()),
		Runs: make([]snowflake.Run, 0, 1),
	}
	for left := count; left > 0; {
		b, err := w.gen.Take(ctx, left)
		if err != nil {
			return nil, fmt.Errorf("%w: valid until %s: %w", ErrNoWindow, w.validUntil.Format(time.RFC3339), err)
		}
		left -= b.Len()
		for r := range b.Runs() {
			out.Runs = append(out.Runs, r)
		}
	}
	f.ids.Add(uint64(count))
	return out, nil
}

// adopt takes the window that the service lent. One that continues the one before makes it
// longer; any other begins above all ticks that its worker id ever had, and what is left of
// the one before is given up. Only Keep calls it.
func (f *Fallback) adopt(r *pb.SnowflakeDelegateReply) error {
	layout, err := snowflake.ParseLayout(r.GetLayout())
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	floor, last := snowflake.Tick(r.GetFloorTick()), snowflake.Tick(r.GetLastTick())
	if last < floor || last > layout.MaxTick() {
		return fmt.Errorf("%w: window of ticks %d to %d", errMalformed, floor, last)
	}
	w := &window{reply: r, validUntil: layout.Exhausted()}
	if last < layout.MaxTick() {
		if w.validUntil, err = layout.TimeOf(last + 1); err != nil {
			return fmt.Errorf("%w: %w", errMalformed, err)
		}
	}
	datacenter, worker := snowflake.Datacenter(r.GetDatacenterId()), snowflake.Worker(r.GetWorkerId())
	old := f.window.Load()
	if old != nil && r.GetContinues() && old.continuedBy(r) {
		w.gen = old.gen
	} else if w.gen, err = snowflake.New(layout, datacenter, worker, floor, snowflake.WithClock(f.clock)); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	w.gen.Extend(last)
	f.window.Store(w)
	f.windows.Add(1)
	return nil
}

// continuedBy compares what the service says with what is known here.
func (w *window) continuedBy(r *pb.SnowflakeDelegateReply) bool {
	return r.GetNamespace() == w.reply.GetNamespace() && r.GetLayout() == w.reply.GetLayout() &&
		r.GetDatacenterId() == w.reply.GetDatacenterId() && r.GetWorkerId() == w.reply.GetWorkerId() &&
		r.GetFloorTick() == w.reply.GetLastTick()
}

// Keep asks for a window, and for a longer one each time half of it is over, until ctx ends.
func (f *Fallback) Keep(ctx context.Context) {
	pause := askPause
	for {
		asked := time.Now()
		err := f.ask(ctx)
		wait := f.cfg.Window/2 - time.Since(asked)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			f.log.Warn("no worker id to fall back on", "namespace", f.cfg.Namespace, "error", err)
			wait = pause/2 + rand.N(pause)
			pause = min(2*pause, askPauseMax)
		} else {
			pause = askPause
		}
		if !wake.Sleep(ctx, max(wait, 0)) {
			return
		}
	}
}

// ask asks the service for a window once.
func (f *Fallback) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	req := &pb.SnowflakeDelegateRequest{Namespace: f.cfg.Namespace, Holder: f.holder, WindowMs: uint64(f.cfg.Window.Milliseconds())}
	if w := f.window.Load(); w != nil {
		req.HasWorker, req.WorkerId = true, w.reply.GetWorkerId()
		req.DatacenterId, req.ConfirmedUnixMs = w.reply.GetDatacenterId(), w.reply.GetConfirmedUnixMs()
	}
	reply, err := f.service.Delegate(ctx, req)
	if err != nil {
		return err
	}
	return f.adopt(reply)
}

// holder is what operators see of this process: visible ASCII, 64 bytes at most.
func holder(agent string) string {
	name := agent
	if name == "" {
		name = "client"
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	name = strings.Map(func(r rune) rune {
		if r < '!' || r > '~' {
			return -1
		}
		return r
	}, name)
	return name[:min(len(name), 64)]
}
