package fallback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Times of Keep. A request for a window whose answer is lost costs a worker id until that
// window is over, so it is made with patience, and again only after a pause.
const (
	askPatience = 5 * time.Second
	askPause    = time.Second
	askPauseMax = 30 * time.Second
	// looks counts the checks of Keep in a window whether IDs have run ahead of the clock.
	looks = 16
)

// defaultNamespace is the name that the empty string stands for.
const defaultNamespace = "default"

// IDs are snowflake IDs that this process made.
type IDs struct {
	Namespace  string
	Layout     string // its text
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Runs       []snowflake.Run
}

// Lender is the service that lends windows. Its methods are called concurrently.
type Lender interface {
	// Delegate asks for a window, with one attempt until ctx ends: a request whose answer is
	// lost costs a worker id until its window is over.
	Delegate(ctx context.Context, r *pb.SnowflakeDelegateRequest) (*pb.SnowflakeDelegateReply, error)
	// GiveBack gives one back, to the node that the request names.
	GiveBack(ctx context.Context, r *pb.SnowflakeGiveBackRequest) error
}

// Windows are what one process is lent of one namespace, the newest at a time, and makes IDs
// from. Keep must run for there to be any. Safe for concurrent use.
type Windows struct {
	namespace string
	length    time.Duration
	holder    string
	lender    Lender
	log       *slog.Logger
	clock     snowflake.Clock // if nil, the generator's own clock
	window    atomic.Pointer[window]
	due       *wake.Signal  // more is needed than time alone says
	lentOnce  chan struct{} // closed with the first window

	ids, windows atomic.Uint64
}

// NewWindows returns Windows of a namespace, each of the given length. agent becomes part of the name by
// which operators see this process. It may be empty.
func NewWindows(namespace string, length time.Duration, agent string, l Lender, log *slog.Logger) *Windows {
	return &Windows{namespace: namespace, length: length, holder: holder(agent), lender: l, log: log, due: wake.New(), lentOnce: make(chan struct{})}
}

// window is ticks under a worker id that is this process's alone.
//
//	gen.Confirmed() == last_tick of reply, or of one that it continues
type window struct {
	reply      *pb.SnowflakeDelegateReply
	gen        *snowflake.Generator
	validUntil time.Time
}

// Lent is closed once there was a window.
func (f *Windows) Lent() <-chan struct{} { return f.lentOnce }

// Count is the IDs made here and the windows lent so far, and when the last of these ends:
// zero if there never was one.
func (f *Windows) Count() (ids, windows uint64, validUntil time.Time) {
	if w := f.window.Load(); w != nil {
		validUntil = w.validUntil
	}
	return f.ids.Load(), f.windows.Load(), validUntil
}

// Covers says whether the windows are of that namespace: it is spelt as at first, or by the
// name that it has.
func (f *Windows) Covers(namespace string) bool {
	if namespace == f.namespace {
		return true
	}
	w := f.window.Load()
	return w != nil && (namespace == w.reply.GetNamespace() || namespace == "" && w.reply.GetNamespace() == defaultNamespace)
}

// Next makes one ID. It returns ErrNoWindow alone if the service lent no window. Otherwise it returns an
// error of snowflake.Generator.Next, wrapped beside ErrNoWindow.
func (f *Windows) Next(ctx context.Context) (snowflake.ID, error) {
	w := f.window.Load()
	if w == nil {
		return 0, f.noWindow(nil, nil)
	}
	id, err := w.gen.Next(ctx)
	if err != nil {
		return 0, f.noWindow(w, err)
	}
	f.ids.Add(1)
	return id, nil
}

// Take makes count IDs, or none. Errors are as of Next.
func (f *Windows) Take(ctx context.Context, count int) (*IDs, error) {
	w := f.window.Load()
	if w == nil {
		return nil, f.noWindow(nil, nil)
	}
	out := &IDs{
		Namespace: w.reply.GetNamespace(), Layout: w.reply.GetLayout(),
		Datacenter: snowflake.Datacenter(w.reply.GetDatacenterId()), Worker: snowflake.Worker(w.reply.GetWorkerId()),
		Runs: make([]snowflake.Run, 0, 1),
	}
	for left := count; left > 0; {
		b, err := w.gen.Take(ctx, left)
		if err != nil {
			return nil, f.noWindow(w, err)
		}
		left -= b.Len()
		for r := range b.Runs() {
			out.Runs = append(out.Runs, r)
		}
	}
	f.ids.Add(uint64(count))
	return out, nil
}

func (f *Windows) noWindow(w *window, err error) error {
	if w == nil {
		return fmt.Errorf("%w: none was lent so far", ErrNoWindow)
	}
	if errors.Is(err, snowflake.ErrNoWindow) {
		f.due.Kick()
	}
	return fmt.Errorf("%w: valid until %s: %w", ErrNoWindow, w.validUntil.Format(time.RFC3339), err)
}

// adopt takes the window that the service lent. One that continues the one before makes it
// longer; any other begins above all ticks that its worker id ever had, and what is left of
// the one before is given up. Only Keep calls it.
func (f *Windows) adopt(r *pb.SnowflakeDelegateReply) error {
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
	} else if w.gen, err = snowflake.New(layout, datacenter, worker, floor, f.options()...); err != nil {
		return fmt.Errorf("%w: %w", errMalformed, err)
	}
	w.gen.Extend(last)
	f.window.Store(w)
	if f.windows.Add(1) == 1 {
		close(f.lentOnce)
	}
	return nil
}

func (f *Windows) options() []snowflake.Option {
	if f.clock == nil {
		return nil
	}
	return []snowflake.Option{snowflake.WithClock(f.clock)}
}

// continuedBy compares what the service says with what is known here.
func (w *window) continuedBy(r *pb.SnowflakeDelegateReply) bool {
	return r.GetNamespace() == w.reply.GetNamespace() && r.GetLayout() == w.reply.GetLayout() &&
		r.GetDatacenterId() == w.reply.GetDatacenterId() && r.GetWorkerId() == w.reply.GetWorkerId() &&
		r.GetFloorTick() == w.reply.GetLastTick()
}

// left returns the part of the window that neither the clock nor an ID has reached.
func (w *window) left() time.Duration {
	used, err := w.gen.Layout().TimeOf(w.gen.Last())
	if now := time.Now(); err != nil || used.Before(now) {
		used = now
	}
	return w.validUntil.Sub(used)
}

// Keep asks for a window, and for a longer one each time half of it is over or used up,
// until ctx ends.
func (f *Windows) Keep(ctx context.Context) {
	pause := askPause
	for {
		asked := time.Now()
		if err := f.ask(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			f.log.Warn("no worker id for this process", "namespace", f.namespace, "error", err)
			if !wake.Sleep(ctx, pause/2+rand.N(pause)) {
				return
			}
			pause = min(2*pause, askPauseMax)
			continue
		}
		pause = askPause
		if !f.await(ctx, asked) {
			return
		}
	}
}

// await ends when a longer window is due; false when ctx has ended. A window that was just
// lent is not made longer at once, however fast it is used up: it cannot end later than a
// length from now.
func (f *Windows) await(ctx context.Context, asked time.Time) bool {
	w := f.window.Load()
	for wait := f.length / looks; ; {
		if !f.due.Wait(ctx, min(wait, max(0, f.length/2-time.Since(asked)))) {
			return false
		}
		since := time.Since(asked)
		if since >= f.length/2 || since >= f.length/looks && w.left() < f.length/2 {
			return true
		}
		if short := f.length/looks - since; short > 0 && !wake.Sleep(ctx, short) {
			return false
		}
	}
}

// ask asks the service for a window once.
func (f *Windows) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	req := &pb.SnowflakeDelegateRequest{Namespace: f.namespace, Holder: f.holder, WindowMs: uint64(f.length.Milliseconds())}
	if w := f.window.Load(); w != nil {
		req.HasWorker, req.WorkerId = true, w.reply.GetWorkerId()
		req.DatacenterId, req.ConfirmedUnixMs = w.reply.GetDatacenterId(), w.reply.GetConfirmedUnixMs()
		req.Node, req.Ticket = w.reply.GetNode(), w.reply.GetTicket()
	}
	reply, err := f.lender.Delegate(ctx, req)
	if err != nil {
		return err
	}
	return f.adopt(reply)
}

// GiveBack ends the making of IDs for good, and tells the service, so that the worker id is
// lent to others before the window is over. Call it after Keep has returned. An error says
// that the window has to run out; nothing follows for the caller.
func (f *Windows) GiveBack(ctx context.Context) error {
	w := f.window.Load()
	if w == nil {
		return nil
	}
	used := w.gen.Seal() // before anything is said: no ID comes after
	if w.reply.GetTicket() == 0 || !time.Now().Before(w.validUntil) {
		return nil
	}
	return f.lender.GiveBack(ctx, &pb.SnowflakeGiveBackRequest{
		Namespace: w.reply.GetNamespace(), DatacenterId: w.reply.GetDatacenterId(), WorkerId: w.reply.GetWorkerId(),
		ConfirmedUnixMs: w.reply.GetConfirmedUnixMs(), Node: w.reply.GetNode(), Ticket: w.reply.GetTicket(), LastTickUsed: uint64(used),
	})
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
