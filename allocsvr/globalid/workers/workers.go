package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// DefaultWindow is the default time by which a worker id's mark is confirmed ahead.
const DefaultWindow = 3 * time.Second

// Limits of a window. A longer window costs more IDs' time after a crash. A shorter window costs more
// writes, and does not outlast a short loss of the quorum. The longest is maxReach.
const (
	MinWindow = 100 * time.Millisecond
	MaxWindow = maxReach
)

// Config holds the parts of Workers. Holder, ReadPrefix and Sessions are required.
type Config struct {
	Name   string // of the node, for people
	Node   namespaces.Node
	Holder *ownership.Holder // whose leases only keep others away: what permits anything is the mark
	// ReadPrefix shows the worker ids that have a register; see quorum.Group.
	ReadPrefix func(ctx context.Context, session seq.Session, prefix string) (map[seq.Register]quorum.Outcome, error)
	// Sessions are those that the stores told of, for people.
	Sessions func() []quorum.SessionView

	// Tell makes the node of another session read the document of namespaces again. It returns when that
	// node uses it, or how long that may take at most. If nil, there is no other node.
	Tell func(ctx context.Context, session seq.Session) (later time.Duration, err error)

	// ClockAhead returns how far this node's clock is ahead of the stores' clocks, and whether that is
	// known. If nil, it is never known. See quorum.Leases.
	ClockAhead func() (ahead time.Duration, known bool)

	// Quorum returns nil while the stores can be written to, as far as this node knows, and otherwise a
	// seq.ErrNoQuorum. If Quorum is nil, requests wait, and find out.
	Quorum func() error

	Window time.Duration     // zero means DefaultWindow
	Wall   func() time.Time  // if nil, time.Now
	Sleep  snowflake.Sleeper // waits for the wall clock; if nil, a timer
	Clock  clock.Clock       // for pauses; if nil, the machine's clock
	Logger *slog.Logger      // if nil, nothing is logged
}

// WithDefaults fills in defaults and checks the other fields. It returns seq.ErrBadArgument.
func (c Config) WithDefaults() (Config, error) {
	switch {
	case c.Holder == nil || c.ReadPrefix == nil || c.Sessions == nil:
		return c, fmt.Errorf("%w: registers and sessions are needed", seq.ErrBadArgument)
	case c.Holder.Session == 0:
		return c, fmt.Errorf("%w: session 0", seq.ErrBadArgument)
	case c.Window != 0 && (c.Window < MinWindow || c.Window > MaxWindow):
		return c, fmt.Errorf("%w: window %v, expected %v to %v", seq.ErrBadArgument, c.Window, MinWindow, MaxWindow)
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Quorum == nil {
		c.Quorum = func() error { return nil }
	}
	if c.Tell == nil {
		c.Tell = func(context.Context, seq.Session) (time.Duration, error) { return 0, nil }
	}
	if c.ClockAhead == nil {
		c.ClockAhead = func() (time.Duration, bool) { return 0, false }
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = func(ctx context.Context, d time.Duration) error {
			wake.New().Wait(ctx, d)
			return ctx.Err()
		}
	}
	if c.Clock == nil {
		c.Clock = clock.Boot()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Workers are the worker ids of one node. Safe for concurrent use.
type Workers struct {
	cfg   Config
	names *namespaces.Catalog
	log   *slog.Logger

	life context.Context // of what goes on in the background; ends with Stop
	end  context.CancelFunc
	wake *wake.Signal // the keeper should look
	news news         // fired when a lease was got, extended, failed to be, or lost

	issuers sync.Map // of *Issuer by the name of the namespace

	mu      sync.Mutex // guards all below and the use of working
	leaving bool
	held    map[seq.Register]*Lease // acquired and not given up; an issuer's current is among them
	claimed map[seq.Register]bool   // an attempt to get it is under way
	random  *rand.Rand

	working sync.WaitGroup // background work
}

// New makes Workers that hold nothing yet, of the namespaces that names has; cfg is complete.
func New(cfg Config, names *namespaces.Catalog) *Workers {
	w := &Workers{
		cfg: cfg, names: names, log: cfg.Logger, wake: wake.New(),
		held: map[seq.Register]*Lease{}, claimed: map[seq.Register]bool{},
		random: rand.New(rand.NewPCG(uint64(cfg.Holder.Session), 0)),
	}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// Of returns the issuer of a namespace that is known, by its name.
func (w *Workers) Of(name string) *Issuer {
	if i, ok := w.issuers.Load(name); ok {
		return i.(*Issuer)
	}
	i, _ := w.issuers.LoadOrStore(name, &Issuer{w: w, name: name})
	return i.(*Issuer)
}

// Stop ends all background work, and refuses later requests with seq.ErrShuttingDown. The stores keep the
// registers of the node's worker ids.
func (w *Workers) Stop() {
	w.mu.Lock()
	w.leaving = true
	w.mu.Unlock()
	w.end()
	w.working.Wait() // an acquisition may still add to what is held
	for _, l := range w.leases() {
		l.gen.Seal()
	}
	w.news.fire()
}

// Release stops, and gives the worker ids back to the stores, so that no node waits for the
// lease to end. An error says that the stores did not hear of it; then the leases run out.
//
// The marks stay where they were confirmed: the next holder of a worker id starts
// above the window, not above the last ID.
func (w *Workers) Release(ctx context.Context) error {
	w.Stop()
	leases := w.leases()
	for _, l := range leases {
		l.giveUp()
	}
	return w.tell(ctx, leases)
}

// tell releases leases that were given up before.
func (w *Workers) tell(ctx context.Context, leases []*Lease) error {
	items := make([]quorum.LeaseItem, len(leases))
	for i, l := range leases {
		items[i] = quorum.LeaseItem{Register: l.Register, Round: l.Round}
	}
	if err := w.cfg.Holder.Release(ctx, items, 0); err != nil {
		return fmt.Errorf("release worker ids: %w", err)
	}
	return nil
}

// Lost must be called when a store says that a register is another session's, for
// registers of kind seq.KindWorker; others do no harm. It does not block.
func (w *Workers) Lost(reg seq.Register, round uint64) {
	w.mu.Lock()
	l := w.held[reg]
	w.mu.Unlock()
	if l != nil && l.Round == round {
		l.lose("a store has promised it to another session")
	}
}

// Adopt has every lease follow what is recorded of its namespace.
func (w *Workers) Adopt(v *namespaces.View) {
	for _, l := range w.leases() {
		if ns, err := v.Named(l.Namespace.Name); err == nil {
			l.adopt(*ns)
		}
	}
}

// Review adopts, and looks which pools get crowded and which layouts run out.
func (w *Workers) Review(ctx context.Context, v *namespaces.View) {
	w.Adopt(v)
	for _, l := range w.leases() {
		l.warnEnd()
		l.watch(ctx)
	}
}

// leases are those that are held.
func (w *Workers) leases() []*Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.held))
}

// spawn runs f in the background; false once the node is leaving.
func (w *Workers) spawn(f func(context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.leaving {
		return false
	}
	w.working.Go(func() { f(w.life) })
	return true
}

// leavingError names the node's leaving as the cause of an error, if it is.
func (w *Workers) leavingError(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil || !w.leaving {
		return err
	}
	return fmt.Errorf("%w: %w", seq.ErrShuttingDown, err)
}

func (w *Workers) now() Mark { return markOf(w.cfg.Wall()) }

// latest returns the latest mark of a worker id that this node takes: with a later one
// nothing could be handed out before the clock gets there.
func (w *Workers) latest() Mark { return w.now().add(reachOf(w.cfg.Window)) }

// news wakes all that wait, once each time.
type news struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// next is closed when something happens after the call.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *news) fire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}

// tellPause is the pause before a node that did not answer is told again.
const tellPause = 50 * time.Millisecond

// InEffect says when a change of a namespace is in effect.
type InEffect struct {
	Later time.Duration // a node of an older build takes at most so long; zero if there is none
	Lent  Mark          // the end of the windows of clients and nodes that cannot be told; zero if there are none
}

// Told returns when no node of this cluster that can be told makes, or will make, IDs of a namespace by an
// older document than this node knows.
//
// A node that makes IDs has the promise of a worker id at W stores, so a look finds it. A node reads the
// document before it makes IDs if it got the promise after the look, or if its window ran out. A client
// reads nothing, and its window lasts to its mark. The same holds for a node that is not known to live.
func (w *Workers) Told(ctx context.Context, name string) (e InEffect, err error) {
	done := map[seq.Session]bool{w.cfg.Holder.Session: true} // this node went by it when it was written
	for first := true; ; first = false {
		found, err := w.cfg.ReadPrefix(ctx, nobody, prefixOf(name))
		living := w.living()
		for _, out := range found {
			who := out.Promised.Session
			if m := Mark(out.Max); m > w.now() && m > Mark(out.Floor) && (first && out.Holder == 0 || !living[who]) {
				e.Lent = max(e.Lent, m)
			}
			if who == 0 || done[who] || !living[who] {
				continue
			}
			later, why := w.cfg.Tell(ctx, who)
			done[who], e.Later = why == nil, max(e.Later, later)
			err = errors.Join(err, why)
		}
		if err == nil {
			return e, nil
		}
		if !wake.Sleep(ctx, tellPause) {
			return e, fmt.Errorf("namespace %q: the change is recorded, and a node may not go by it yet: repeat it: %w: %w", name, context.Cause(ctx), err)
		}
	}
}

// living returns the sessions that live, as far as this node has heard.
func (w *Workers) living() map[seq.Session]bool {
	living := map[seq.Session]bool{w.cfg.Holder.Session: true}
	for _, v := range w.cfg.Sessions() {
		living[v.Session] = !v.Dead
	}
	return living
}

// ranOut reports whether a window ended before it was extended: a change of the namespace may have been
// answered meanwhile without asking this node.
func (l *Lease) ranOut(now Mark) bool { return l.Mark() <= now }
