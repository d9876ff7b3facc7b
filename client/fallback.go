package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Defaults and limits of a Fallback.
const (
	DefaultFallbackAfter  = 3 * time.Second
	DefaultFallbackWindow = 10 * time.Minute
	MinFallbackWindow     = time.Second
	MaxFallbackWindow     = 50 * time.Minute
)

// Times of the keeper. A request for a window whose answer is lost costs a worker id
// until that window is over, so it is made with patience, and again only after a pause.
const (
	windowPatience = 5 * time.Second
	windowPause    = time.Second
	windowPauseMax = 30 * time.Second
)

// Fallback lets a Client make snowflake IDs by itself while the service is away: from a
// worker id that it was lent, in ticks that nobody else ever has, so that they are as
// unique as all others. It holds one worker id of the namespace for as long as it runs
// and up to Window longer.
type Fallback struct {
	// Namespace that calls must name in this way, or by the name that it has; "" is the
	// default one.
	Namespace string
	// After is how long a call waits for the service; 0: DefaultFallbackAfter. Callers
	// with less time than that get their context's error. Less than Config.Timeout.
	After time.Duration
	// Window is how long IDs can be made after the service went away: half of it at
	// least, all of it at most. 0: DefaultFallbackWindow.
	Window time.Duration
}

func (f Fallback) withDefaults(timeout time.Duration) (Fallback, error) {
	if f.After == 0 {
		f.After = DefaultFallbackAfter
	}
	if f.Window == 0 {
		f.Window = DefaultFallbackWindow
	}
	switch {
	case f.After < 0 || f.After >= timeout:
		return f, fmt.Errorf("%w: Fallback.After %v, expected more than 0 and less than Timeout %v", seq.ErrBadArgument, f.After, timeout)
	case f.Window < MinFallbackWindow || f.Window > MaxFallbackWindow:
		return f, fmt.Errorf("%w: Fallback.Window %v, expected %v to %v", seq.ErrBadArgument, f.Window, MinFallbackWindow, MaxFallbackWindow)
	}
	return f, checkIDs("", f.Namespace, 1)
}

// FallbackStats is what a Client's fallback did so far, for metrics.
type FallbackStats struct {
	IDs        uint64    // made here
	Refused    uint64    // calls that found no window
	Windows    uint64    // that were lent
	ValidUntil time.Time // when the window ends; zero: there never was one
}

// FallbackStats is zero without Config.Fallback.
func (c *Client) FallbackStats() FallbackStats {
	if c.fallback == nil {
		return FallbackStats{}
	}
	f := c.fallback
	out := FallbackStats{IDs: f.ids.Load(), Refused: f.refused.Load(), Windows: f.windows.Load()}
	if l := f.loan.Load(); l != nil {
		out.ValidUntil = l.validUntil
	}
	return out
}

// loan is a window of ticks under a worker id that is this Client's alone.
//
//	gen.Confirmed() == last_tick of reply, or of one that it continues
type loan struct {
	reply      *pb.SnowflakeDelegateReply
	gen        *snowflake.Generator
	template   IDs
	validUntil time.Time
}

// fallback keeps the loan and makes IDs from it.
type fallback struct {
	cfg   Fallback
	clock snowflake.Clock
	loan  atomic.Pointer[loan]
	// doubt is what is thought of the service: once it was silent, one call at a time
	// waits for it, and the others do not.
	doubt doubt

	ids, refused, windows atomic.Uint64
}

// covers: calls that spell the namespace as Config does, or by its name.
func (f *fallback) covers(namespace string) bool {
	if namespace == f.cfg.Namespace {
		return true
	}
	l := f.loan.Load()
	return l != nil && namespace == l.template.Namespace
}

// generateWith asks the service, and makes the IDs here when it does not answer. An
// error that no waiting cures is the service's answer.
func (c *Client) generateWith(ctx context.Context, f *fallback, remote func(context.Context) (IDs, error), count uint32) (IDs, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	if ok, probe := f.doubt.admit(); ok {
		short, end := context.WithTimeout(ctx, f.cfg.After)
		got, err := remote(short)
		// A flight of singles may see its deadline before short does; and a service that has
		// lost its quorum says so before it.
		late := short.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, seq.ErrNoQuorum)
		end()
		f.doubt.release(probe)
		if err == nil || ctx.Err() != nil || final(err) || !late {
			if err == nil {
				c.back(f)
			}
			return got, err
		}
		if !f.doubt.silent.Swap(true) {
			c.cfg.Logger.Warn("no answer, IDs are made here", "namespace", f.cfg.Namespace, "after", f.cfg.After, "error", err)
		}
	}
	got, err := f.take(ctx, int(count))
	if err == nil {
		return got, nil
	}
	f.refused.Add(1)
	got, late := remote(ctx)
	if late != nil {
		return IDs{}, fmt.Errorf("%w: %w", late, err)
	}
	c.back(f)
	return got, nil
}

func (c *Client) back(f *fallback) {
	if f.doubt.silent.Swap(false) {
		c.cfg.Logger.Info("the service answers again", "namespace", f.cfg.Namespace)
	}
}

// take makes IDs of one loan: ErrNoFallback when its window does not reach.
func (f *fallback) take(ctx context.Context, count int) (IDs, error) {
	l := f.loan.Load()
	if l == nil {
		return IDs{}, fmt.Errorf("%w: none was lent so far", ErrNoFallback)
	}
	out := l.template
	out.Runs = make([]snowflake.Run, 0, 1)
	for left := count; left > 0; {
		b, err := l.gen.Take(ctx, left)
		if err != nil {
			return IDs{}, fmt.Errorf("%w: valid until %s: %w", ErrNoFallback, l.validUntil.Format(time.RFC3339), err)
		}
		left -= b.Len()
		for r := range b.Runs() {
			out.Runs = append(out.Runs, r)
		}
	}
	f.ids.Add(uint64(count))
	return out, nil
}

// adopt takes what the service lent. A window that continues the one before makes it
// longer; any other begins above all ticks that its worker id ever had, and what is
// left of the one before is given up. Only the keeper calls it.
func (f *fallback) adopt(r *pb.SnowflakeDelegateReply) error {
	layout, err := snowflake.ParseLayout(r.GetLayout())
	if err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	floor, last := snowflake.Tick(r.GetFloorTick()), snowflake.Tick(r.GetLastTick())
	if last < floor || last > layout.MaxTick() {
		return fmt.Errorf("%w: window of ticks %d to %d", errMalformed, floor, last)
	}
	l := &loan{
		reply: r, validUntil: layout.Exhausted(),
		template: IDs{
			Namespace: r.GetNamespace(), Layout: r.GetLayout(), Fallback: true,
			Datacenter: snowflake.Datacenter(r.GetDatacenterId()), Worker: snowflake.Worker(r.GetWorkerId()),
		},
	}
	if last < layout.MaxTick() {
		if l.validUntil, err = layout.TimeOf(last + 1); err != nil {
			return fmt.Errorf("%w: %w", errMalformed, err)
		}
	}
	old := f.loan.Load()
	if old != nil && r.GetContinues() && old.continuedBy(r) {
		l.gen = old.gen
	} else if l.gen, err = snowflake.New(layout, l.template.Datacenter, l.template.Worker, floor, snowflake.WithClock(f.clock)); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	l.gen.Extend(last)
	f.loan.Store(l)
	f.windows.Add(1)
	return nil
}

// continuedBy holds the word of a peer against what is known here.
func (l *loan) continuedBy(r *pb.SnowflakeDelegateReply) bool {
	return r.GetNamespace() == l.reply.GetNamespace() && r.GetLayout() == l.reply.GetLayout() &&
		r.GetDatacenterId() == l.reply.GetDatacenterId() && r.GetWorkerId() == l.reply.GetWorkerId() &&
		r.GetFloorTick() == l.reply.GetLastTick()
}

// keepLoan asks for a window, and for a longer one each time half of it is over.
func (c *Client) keepLoan() {
	f, holder, pause := c.fallback, c.holder(), windowPause
	for {
		asked := time.Now()
		err := c.borrow(f, holder)
		wait := f.cfg.Window/2 - time.Since(asked)
		if err != nil {
			if c.ctx.Err() != nil {
				return
			}
			c.cfg.Logger.Warn("no worker id to fall back on", "namespace", f.cfg.Namespace, "error", err)
			wait = pause/2 + rand.N(pause)
			pause = min(2*pause, windowPauseMax)
		} else {
			pause = windowPause
		}
		if !c.rest(max(wait, 0)) {
			return
		}
	}
}

// borrow asks one AllocSvr once.
func (c *Client) borrow(f *fallback, holder string) error {
	ctx, cancel := context.WithTimeout(c.ctx, windowPatience)
	defer cancel()
	req := &pb.SnowflakeDelegateRequest{Namespace: f.cfg.Namespace, Holder: holder, WindowMs: uint64(f.cfg.Window.Milliseconds())}
	if l := f.loan.Load(); l != nil {
		req.HasWorker, req.WorkerId = true, l.reply.GetWorkerId()
		req.DatacenterId, req.ConfirmedUnixMs = l.reply.GetDatacenterId(), l.reply.GetConfirmedUnixMs()
	}
	return c.once(ctx, func(ctx context.Context, p *peer) error {
		reply, err := p.ids.Delegate(ctx, req)
		if err != nil {
			return err
		}
		return f.adopt(reply)
	})
}

// holder is what operators see of this process: visible ASCII, 64 bytes at most.
func (c *Client) holder() string {
	name := c.cfg.Agent
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
