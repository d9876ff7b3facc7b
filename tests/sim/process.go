package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
)

// nearFull is the room below which stores refuse writes; simulated disks have either
// more than enough or none.
const nearFull = 1 << 20

// startStore starts the process of a store that is down, once nobody has its disk in hand:
// the process before, or whoever changes it. Not if the disk is lost.
func (w *world) startStore(h *host) {
	w.mu.Lock()
	up, over := h.up, h.over
	w.mu.Unlock()
	if up {
		return
	}
	w.work.Go(func() {
		if over != nil {
			<-over
		}
		w.openStore(h, over)
	})
}

// openStore starts the process if over is still the last to have had the disk in hand.
func (w *world) openStore(h *host, over chan struct{}) {
	w.mu.Lock()
	if h.up || h.lost || w.life.Err() != nil {
		w.mu.Unlock()
		return
	}
	if h.over != over {
		w.mu.Unlock()
		w.startStore(h)
		return
	}
	h.boot()
	db := &database{d: h.disk, dead: h.fence}
	life, dead := h.life, h.dead
	over = h.over
	meta, registers := h.disk.open()
	w.mu.Unlock()

	r, err := storesvr.NewReplica(storesvr.Config{
		MaxLease: allocsvr.MaxLease, NearFull: nearFull, Logger: w.logger(h.name), Clock: h.clock, Wall: h.clock.Wall,
	}, db, meta, registers)
	if errors.Is(err, storesvr.ErrCommit) { // its first, after a restore
		if w.lives(h, life) {
			w.kill(h, life)
			w.schedule(2*time.Second, func() { w.startStore(h) })
		}
		close(over)
		return
	}
	if err != nil {
		w.check.broken("I1-I3", "%s does not start on its own disk: %v", h.name, err)
		close(over)
		return
	}
	w.mu.Lock()
	if h.life == life {
		r.Register(h)
		h.guard = chain([]grpc.UnaryServerInterceptor{rpc.Guard(rpc.ServerConfig{Logger: w.logger(h.name)}), r.Addressed()})
	}
	w.trace.add("%-8s starts, life %d, commits %d", h.name, life, meta.Commits)
	w.mu.Unlock()
	defer close(over)
	select {
	case <-r.Failed():
		w.kill(h, life)
		w.schedule(2*time.Second, func() { w.startStore(h) })
	case <-dead:
	}
	db.d.mu.Lock()
	db.closing = true
	db.d.mu.Unlock()
	_ = r.Close() // what it cannot write any more does not matter
}

// stopStore is an orderly stop: no request comes in any more, the commit under way ends,
// and the database is closed.
func (w *world) stopStore(h *host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.add("%-8s stops in order", h.name)
	h.halt(true)
}

// kill ends a process, if it is still the one of that life; 0: whichever is up.
func (w *world) kill(h *host, life int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if life == 0 || h.life == life {
		w.trace.add("%-8s killed", h.name)
		h.halt(false)
	}
}

// lives says whether the host's process is still the one of that life.
func (w *world) lives(h *host, life int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return h.up && h.life == life
}

// allocProc is the process of an allocator.
type allocProc struct {
	node    *allocsvr.Node
	life    int
	ctx     context.Context // ends with the life, as dead is closed
	dead    chan struct{}
	era     seq.Era
	secret  seq.Secret
	session seq.Session // of secret
	file    string
	over    chan struct{} // closed when all of it has ended
}

// startAlloc starts an allocator's process under a new session.
func (w *world) startAlloc(h *host) {
	w.mu.Lock()
	if h.up || h.lost {
		w.mu.Unlock()
		return
	}
	h.boot()
	life := h.life
	secret := w.newSecret(h)
	p := &allocProc{life: life, ctx: h.ctx, dead: h.dead, secret: secret, session: secret.Session(), era: w.ident.Ref.Era, over: make(chan struct{}), file: filepath.Join(w.dir, fmt.Sprintf("%s-%d.parked", h.name, h.life))}
	copyFile(h.parked, p.file)
	if w.opts.Care {
		h.alloc = nil
		w.work.Go(func() { w.connectAlloc(h, p) })
		w.mu.Unlock()
		return
	}
	stores := make([]quorum.NamedStore, len(w.ident.Members))
	for i, m := range w.ident.Members {
		c := &conn{w: w, from: h, life: life, to: m.Name}
		stores[i] = quorum.NamedStore{Name: m.Name, Store: storeclient.Over(m.Name, c, c)}
		if w.opts.still || w.astray[h] == nil && w.chance(0.7) { // it answered when the process connected
			stores[i].UUID = m.UUID
		}
	}
	w.mu.Unlock()
	w.serve(h, p, allocsvr.Wiring{Identity: w.ident, Stores: stores})
}

// serve makes the node of an allocator that knows its stores, and runs it; false if that
// is not possible any more.
func (w *world) serve(h *host, p *allocProc, wiring allocsvr.Wiring) bool {
	stopped := make(chan error, 1)
	wiring.Addr, wiring.Secret, wiring.Parked, wiring.Clock, wiring.Wall = h.name, p.secret, p.file, h.clock, h.clock.Wall
	wiring.Limits = w.limits
	wiring.Dial = func(addr string) (allocsvr.PeerConn, error) { return &conn{w: w, from: h, life: p.life, to: addr}, nil }
	wiring.Stop = func(err error) {
		select {
		case stopped <- err:
		default:
		}
	}
	node, err := allocsvr.NewNode(w.allocConfig(h), wiring)
	if err != nil {
		w.check.broken("start", "%s does not start: %v", h.name, err)
		close(p.over)
		return false
	}
	p.node = node
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.life == p.life {
		node.Register(h)
		node.RegisterAdmin(h)
		h.guard = rpc.Guard(rpc.ServerConfig{Logger: w.logger(h.name), ClusterID: node.ClusterID})
		h.alloc, h.era = p, p.era
	}
	w.check.started(h, p)
	w.trace.add("%-8s starts, life %d, session %s", h.name, p.life, p.session)
	w.work.Go(func() { w.runAlloc(h, p, stopped) })
	return true
}

func (w *world) runAlloc(h *host, p *allocProc, stopped chan error) {
	defer close(p.over)
	ended := make(chan error, 1)
	w.work.Go(func() { ended <- p.node.Run(p.ctx) })
	var err error
	select {
	case err = <-ended:
	case err = <-stopped:
		w.kill(h, p.life)
		<-ended
	case <-p.dead:
		err = <-ended
	}
	p.node.Close()
	w.tally(p)
	w.check.ended(h, p.session)
	if err != nil {
		w.kill(h, p.life)
		if !errors.Is(err, seq.ErrNameTaken) && !errors.Is(err, seq.ErrSessionEnded) {
			w.check.broken("invariant", "%s ended by itself: %v", h.name, err)
		}
		w.schedule(time.Second, func() { w.startAlloc(h) })
	}
}

// tally adds up what a process did.
func (w *world) tally(p *allocProc) {
	takeovers, handoffs, steps := p.node.Counts()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stats.Takeovers += takeovers
	w.stats.Handoffs += handoffs
	w.stats.Steps += steps
	w.stats.Folded += p.node.Memory().Folded
}

func (w *world) allocConfig(h *host) allocsvr.Config {
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Lease, cfg.ExpectAllocs = h.node(), w.opts.Lease, w.opts.Allocs
	cfg.Logger = w.logger(h.name)
	if cfg.WorkerWindow = w.opts.Ahead; w.opts.still {
		cfg.WorkerWindow = time.Second
	}
	if w.opts.Fixed {
		cfg.WorkerID = int64(h.index % w.opts.Allocs)
	}
	return cfg
}

// leaveAlloc is an orderly end: everything is handed over, and then the process ends.
func (w *world) leaveAlloc(h *host) {
	w.mu.Lock()
	p, life, ctx := h.alloc, h.life, h.ctx
	up := h.up && p != nil
	w.mu.Unlock()
	if !up {
		return
	}
	w.trace.add("%-8s leaves in order", h.name)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	p.node.Leave(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.up && h.life == life {
		h.parked = p.file
		h.halt(true)
	}
}

// endSession tells the stores that a process is dead, as a supervising parent does.
func (w *world) endSession(h *host, secret seq.Secret) {
	from := w.of(callerHost)[0]
	w.mu.Lock()
	cfg, members := w.groupConfig()
	stores := make([]quorum.NamedStore, len(members))
	for i, m := range members {
		c := &conn{w: w, from: from, life: from.life, to: m.Name}
		stores[i] = quorum.NamedStore{Name: m.Name, UUID: m.UUID, Store: storeclient.Over(m.Name, c, c)}
	}
	w.mu.Unlock()
	g, err := quorum.NewGroup(cfg, stores)
	if err != nil {
		w.check.broken("start", "group of a parent: %v", err)
		return
	}
	defer g.Close()
	ctx, cancel := context.WithTimeout(w.life, 3*time.Second)
	defer cancel()
	_ = g.EndSession(ctx, secret) // if the stores do not hear of it, the lease runs out
	w.trace.add("%-8s is told to be dead: session %s", h.name, secret.Session())
}

// copyFile gives a new process what the one before left; a missing file is none.
func copyFile(from, to string) {
	if from == "" {
		return
	}
	in, err := os.Open(from)
	if err != nil {
		return
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return
	}
	defer out.Close()
	_, _ = io.Copy(out, in) // half a file is a damaged one, which is found out
}
