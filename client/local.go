package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client/fallback"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// DefaultLocalWindow is LocalConfig.Window if nothing else is said. A process that dies keeps
// its worker id from others for as long, and one whose service is away goes on for half of it
// at least.
const DefaultLocalWindow = 2 * time.Minute

// giveBackBound bounds how long Close waits until the service has its worker id back.
const giveBackBound = time.Second

// LocalConfig is what a Local makes IDs of.
type LocalConfig struct {
	// Namespace by its name or its number in digits; "" is the default one.
	Namespace string
	// Window limits how long the process makes IDs while the service is unavailable: at least half of it,
	// at most all of it. It is between MinFallbackWindow and MaxFallbackWindow. Zero means
	// DefaultLocalWindow.
	Window time.Duration
}

// Local makes snowflake IDs in this process without a call for each. The service lends it a worker id for a
// window of time, and lends it the next window before that ends. So the IDs are as unique as the IDs of the
// service, whatever happens to clocks, processes and messages. Without a window, Local asks the service for
// IDs. Local is safe for concurrent use. Close it, or the Client, so that other processes get its worker
// id.
type Local struct {
	c       *Client
	cfg     LocalConfig
	windows *fallback.Windows
	kept    *kept
}

// NewLocal makes a Local, which gets its first window in the background. seq.ErrBadArgument,
// seq.ErrUnknownNamespace for what cannot be a name, ErrClosed.
func (c *Client) NewLocal(cfg LocalConfig) (*Local, error) {
	cfg.Window = cmp.Or(cfg.Window, DefaultLocalWindow)
	err := checkIDs("", cfg.Namespace, 1)
	if err == nil && (cfg.Window < MinFallbackWindow || cfg.Window > MaxFallbackWindow) {
		err = fmt.Errorf("%w: LocalConfig.Window %v, expected %v to %v", seq.ErrBadArgument, cfg.Window, MinFallbackWindow, MaxFallbackWindow)
	}
	if err != nil {
		return nil, fmt.Errorf("new local: %w", err)
	}
	l := &Local{c: c, cfg: cfg, windows: fallback.NewWindows(cfg.Namespace, cfg.Window, c.cfg.Agent, lender{c}, c.cfg.Logger)}
	if l.kept = c.lent.keep(c, l.windows); l.kept == nil {
		return nil, fmt.Errorf("new local: %w", ErrClosed)
	}
	return l, nil
}

// Ready waits for the first window until ctx ends, for programs that do not want to begin with
// the service's pace. ErrClosed.
func (l *Local) Ready(ctx context.Context) error {
	select {
	case <-l.windows.Lent():
		return nil
	case <-l.kept.ended:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for a worker id: %w", ctx.Err())
	}
}

// Next is one ID. Where the namespace's policy is to wait it waits as long as ctx lives.
// Without a window it is Client.NextID, and its errors. Else seq.ErrTickUsedUp where the
// policy is to refuse, seq.ErrTimeExhausted, ErrClosed, or ctx's error.
func (l *Local) Next(ctx context.Context) (snowflake.ID, error) {
	id, err := l.windows.Next(ctx)
	if err == nil {
		return id, nil
	}
	if err := l.own(ctx, err); err != nil {
		return 0, err
	}
	return l.c.NextID(ctx, l.cfg.Namespace)
}

// Take is count IDs, 1 to MaxIDs; IDs.Fallback says that they were made here. Errors are
// as of Next, and seq.ErrBadCount.
func (l *Local) Take(ctx context.Context, count uint32) (IDs, error) {
	if err := seq.CheckIDs("count", uint64(count)); err != nil {
		return IDs{}, fmt.Errorf("take: %w", err)
	}
	made, err := l.windows.Take(ctx, int(count))
	if err == nil {
		return madeHere(made), nil
	}
	if err := l.own(ctx, err); err != nil {
		return IDs{}, err
	}
	return l.c.Generate(ctx, l.cfg.Namespace, count)
}

// own returns the error with which a call ends here. If nil, the caller asks the service, which may still
// have a window or a working clock.
func (l *Local) own(ctx context.Context, err error) error {
	select {
	case <-l.kept.ended: // it may never have had a window
		return ErrClosed
	default:
	}
	switch {
	case errors.Is(err, snowflake.ErrSealed):
		return ErrClosed
	case errors.Is(err, snowflake.ErrOverflow):
		return fmt.Errorf("local: namespace %q: %w: %w", l.cfg.Namespace, seq.ErrTickUsedUp, err)
	case errors.Is(err, snowflake.ErrTimeExhausted):
		return fmt.Errorf("local: namespace %q: %w: %w", l.cfg.Namespace, seq.ErrTimeExhausted, err)
	}
	return ctx.Err()
}

// Stats is what the Local did so far, for metrics; calls that went to the service are not in it.
func (l *Local) Stats() FallbackStats {
	var out FallbackStats
	out.IDs, out.Windows, out.ValidUntil = l.windows.Count()
	return out
}

// Close ends the making of IDs and gives the worker id back; it waits for that for a second at
// most. Calls after it fail with ErrClosed. It is safe to call twice.
func (l *Local) Close() error {
	l.c.lent.end(l.c, l.kept)
	return nil
}

func madeHere(m *fallback.IDs) IDs {
	return IDs{m.Namespace, m.Layout, m.Datacenter, m.Worker, true, m.Runs}
}

// lent are the windows that a Client keeps, for its fallbacks and Locals.
type lent struct {
	mu     sync.Mutex // guards all below
	all    map[*kept]bool
	closed bool
}

// kept is one of them, from its start to its return.
type kept struct {
	windows *fallback.Windows
	stop    context.CancelFunc
	done    chan struct{} // closed when nothing asks for a longer one any more
	ended   chan struct{} // closed with the return
	once    sync.Once
}

// keep begins to keep windows; nil if the Client is closed.
func (l *lent) keep(c *Client, w *fallback.Windows) *kept {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	ctx, stop := context.WithCancel(c.calls.Context())
	k := &kept{windows: w, stop: stop, done: make(chan struct{}), ended: make(chan struct{})}
	if l.all == nil {
		l.all = map[*kept]bool{}
	}
	l.all[k] = true
	c.calls.Go(func() {
		defer close(k.done)
		w.Keep(ctx)
	})
	return k
}

// end stops one and gives it back.
func (l *lent) end(c *Client, k *kept) {
	k.once.Do(func() {
		l.mu.Lock()
		delete(l.all, k)
		l.mu.Unlock()
		k.stop()
		<-k.done
		ctx, cancel := context.WithTimeout(c.calls.Context(), giveBackBound)
		defer cancel()
		if err := k.windows.GiveBack(ctx); err != nil {
			c.cfg.Logger.Debug("worker id not given back, it is free when its window is over", "error", err)
		}
		close(k.ended)
	})
}

// close ends all, at the same time.
func (l *lent) close(c *Client) {
	l.mu.Lock()
	l.closed = true
	all := l.all
	l.all = nil
	l.mu.Unlock()
	var wg sync.WaitGroup
	for k := range all {
		wg.Go(func() { l.end(c, k) })
	}
	wg.Wait()
}
