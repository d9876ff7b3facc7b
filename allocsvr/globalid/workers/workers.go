package workers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

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

// Of is the issuer of a namespace that is known, by its name.
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

// latest is the latest mark of a worker id that this node takes: with a later one
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
