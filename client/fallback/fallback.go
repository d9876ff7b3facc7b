package fallback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/seq"
)

// Errors of this package.
var (
	// ErrNoWindow: the service did not answer, and there is no window left from which to
	// make IDs here.
	ErrNoWindow = errors.New("no window to fall back on")

	errMalformed = errors.New("malformed answer")
)

// Defaults and limits of a Config.
const (
	DefaultAfter  = 3 * time.Second
	DefaultWindow = 10 * time.Minute
	MinWindow     = time.Second
	MaxWindow     = 50 * time.Minute

	// probePause is the time between two calls to a service that was silent.
	probePause = 500 * time.Millisecond
)

// Config lets a Client make snowflake IDs by itself while the service is away: from a
// worker id that it was lent, in ticks that no other process ever has, so that they are as
// unique as all others. It holds one worker id of the namespace for as long as it runs
// and up to Window longer.
type Config struct {
	// Namespace that calls must name in this way, or by the name that it has; "" is the
	// default one.
	Namespace string
	// Also are further namespaces, each with a worker id of its own.
	Also []string
	// After bounds how long a call waits for the service. It must be less than the Client's Timeout. A call
	// with less time left fails with its context's error. Zero means DefaultAfter.
	After time.Duration
	// Window limits how long the process makes IDs after the service became unavailable: at least half of
	// it, at most all of it. Zero means DefaultWindow.
	Window time.Duration
}

// WithDefaults fills what is zero in and checks all but the namespace. seq.ErrBadArgument.
func (f Config) WithDefaults(timeout time.Duration) (Config, error) {
	if f.After == 0 {
		f.After = DefaultAfter
	}
	if f.Window == 0 {
		f.Window = DefaultWindow
	}
	switch {
	case f.After < 0 || f.After >= timeout:
		return f, fmt.Errorf("%w: Fallback.After %v, expected more than 0 and less than Timeout %v", seq.ErrBadArgument, f.After, timeout)
	case f.Window < MinWindow || f.Window > MaxWindow:
		return f, fmt.Errorf("%w: Fallback.Window %v, expected %v to %v", seq.ErrBadArgument, f.Window, MinWindow, MaxWindow)
	}
	return f, nil
}

// Stats is what a Fallback did so far, for metrics.
type Stats struct {
	IDs        uint64    // made here
	Refused    uint64    // calls that found no window
	Windows    uint64    // that were lent
	ValidUntil time.Time // when the window ends; zero: there never was one
}

// Service is what a Fallback needs of the Client. Its methods are called concurrently.
type Service interface {
	Lender
	// Probe asks the service for one ID of the namespace, which no caller gets.
	Probe(ctx context.Context, namespace string) error
	// Final says that an error is the service's answer, which no waiting changes.
	Final(err error) bool
}

// Fallback keeps a window and makes IDs from it. It is safe for concurrent use. Watch must
// run beside Keep.
type Fallback struct {
	*Windows
	cfg     Config
	service Service

	// silent: the service did not answer a call, and none waits for it until Watch has seen
	// an answer.
	silent  atomic.Bool
	quiet   *wake.Signal // silent was set
	refused atomic.Uint64
}

// New makes a Fallback without a window, which Keep gets. agent is a part of the name by
// which operators see this process; it may be empty.
func New(cfg Config, agent string, service Service, log *slog.Logger) *Fallback {
	return &Fallback{Windows: NewWindows(cfg.Namespace, cfg.Window, agent, service, log), cfg: cfg, service: service, quiet: wake.New()}
}

// Stats may be called at any time.
func (f *Fallback) Stats() Stats {
	out := Stats{Refused: f.refused.Load()}
	out.IDs, out.Windows, out.ValidUntil = f.Count()
	return out
}

// Generate lets ask get the IDs from the service, and makes count of them here when it does
// not answer within Config.After; made is nil where ask succeeded. An error that is the
// service's answer is returned. ctx has a deadline. Once the service was silent no call waits
// for it, as long as there is a window.
func (f *Fallback) Generate(ctx context.Context, count int, ask func(context.Context) error) (made *IDs, err error) {
	if !f.silent.Load() {
		short, end := context.WithTimeout(ctx, f.cfg.After)
		err := ask(short)
		// A batch of single IDs may see its deadline before short does; and a service that has
		// lost its quorum says so before it.
		late := short.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, seq.ErrNoQuorum)
		end()
		if err == nil || ctx.Err() != nil || f.service.Final(err) || !late {
			return nil, err
		}
		if !f.silent.Swap(true) {
			f.log.Warn("no answer, IDs are made here", "namespace", f.cfg.Namespace, "after", f.cfg.After, "error", err)
			f.quiet.Kick()
		}
	}
	if made, err = f.Take(ctx, count); err == nil {
		return made, nil
	}
	f.refused.Add(1)
	if late := ask(ctx); late != nil {
		return nil, fmt.Errorf("%w: %w", late, err)
	}
	f.answered()
	return nil, nil
}

// Watch asks a service that was silent until it answers, so that no call has to, until ctx
// ends.
func (f *Fallback) Watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.quiet.C():
		}
		for f.silent.Load() {
			if !wake.Sleep(ctx, min(f.cfg.After, probePause)) {
				return
			}
			short, end := context.WithTimeout(ctx, f.cfg.After)
			err := f.service.Probe(short, f.cfg.Namespace)
			end()
			if err == nil || f.service.Final(err) {
				f.answered()
			}
		}
	}
}

func (f *Fallback) answered() {
	if f.silent.Swap(false) {
		f.log.Info("the service answers again", "namespace", f.cfg.Namespace)
	}
}
