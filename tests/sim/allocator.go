package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/seq"
)

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
func (ps *processes) startAlloc(h *host) {
	ps.mu.Lock()
	if h.up || h.lost {
		ps.mu.Unlock()
		return
	}
	h.boot()
	life := h.life
	secret := ps.newSecret(h)
	p := &allocProc{life: life, ctx: h.ctx, dead: h.dead, secret: secret, session: secret.Session(), era: ps.w.ident.Ref.Era, over: make(chan struct{}), file: filepath.Join(ps.w.dir, fmt.Sprintf("%s-%d.parked", h.name, h.life))}
	copyFile(h.parked, p.file)
	h.alloc = nil
	ps.mu.Unlock()
	ps.w.back.launch(h, p)
}

// serve makes the node of an allocator that knows its stores, and runs it; false if that
// is not possible any more.
func (ps *processes) serve(h *host, p *allocProc, wiring allocsvr.Wiring) bool {
	stopped := make(chan error, 1)
	wiring.Limits = ps.w.limits
	wiring.Addr, wiring.Secret, wiring.Parked, wiring.Clock, wiring.Wall = h.name, p.secret, p.file, h.clock, h.clock.Wall
	wiring.Dial = func(addr string) (api.PeerConn, error) {
		return &conn{w: ps.w, from: h, life: p.life, to: addr}, nil
	}
	wiring.Stop = func(err error) {
		select {
		case stopped <- err:
		default:
		}
	}
	node, err := allocsvr.NewNode(ps.allocConfig(h), wiring)
	if err != nil {
		ps.w.check.broken("start", "%s does not start: %v", h.name, err)
		close(p.over)
		return false
	}
	p.node = node
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if h.life == p.life {
		node.Register(h)
		node.RegisterAdmin(h)
		h.guard = gate.Guard(gate.ServerConfig{Logger: ps.logger(h.name), ClusterID: node.ClusterID, Incarnation: node.Incarnation})
		h.alloc, h.era = p, p.era
	}
	ps.w.check.sections.started(h, p)
	ps.trace.add("%-8s starts, life %d, session %s", h.name, p.life, p.session)
	ps.work.Go(func() { ps.runAlloc(h, p, stopped) })
	return true
}

func (ps *processes) runAlloc(h *host, p *allocProc, stopped chan error) {
	defer close(p.over)
	ended := make(chan error, 1)
	ps.work.Go(func() { ended <- p.node.Run(p.ctx) })
	var err error
	select {
	case err = <-ended:
	case err = <-stopped:
		ps.kill(h, p.life)
		<-ended
	case <-p.dead:
		err = <-ended
	}
	p.node.Close()
	ps.tally(p)
	ps.w.check.sections.ended(h, p.session)
	if err != nil {
		ps.kill(h, p.life)
		if !errors.Is(err, seq.ErrNameTaken) && !errors.Is(err, seq.ErrSessionEnded) {
			ps.w.check.broken("invariant", "%s ended by itself: %v", h.name, err)
		}
		ps.schedule(time.Second, func() { ps.startAlloc(h) })
	}
}

// tally adds up what a process did.
func (ps *processes) tally(p *allocProc) {
	takeovers, handoffs, steps := p.node.Counts()
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.stats.Takeovers += takeovers
	ps.stats.Preempted += p.node.Preempted()
	ps.stats.Handoffs += handoffs
	ps.stats.Steps += steps
	ps.stats.Folded += p.node.Memory().Folded
}

func (ps *processes) allocConfig(h *host) allocsvr.Config {
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Lease, cfg.ExpectAllocs = h.node(), ps.opts.Lease, ps.opts.Allocs
	cfg.Logger = ps.logger(h.name)
	if cfg.WorkerWindow = ps.opts.Ahead; ps.opts.still {
		cfg.WorkerWindow = time.Second
	}
	if ps.opts.Fixed {
		cfg.WorkerID = int64(h.index % ps.opts.Allocs)
	}
	return cfg
}

// leaveAlloc is an orderly end: everything is handed over, and then the process ends.
func (ps *processes) leaveAlloc(h *host) {
	ps.mu.Lock()
	p, life, ctx := h.alloc, h.life, h.ctx
	up := h.up && p != nil
	ps.mu.Unlock()
	if !up {
		return
	}
	ps.trace.add("%-8s leaves in order", h.name)
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	p.node.Leave(ctx)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if h.up && h.life == life {
		h.parked = p.file
		h.halt(true)
	}
}

// endSession tells the registers that a process is dead, as a supervising parent does.
func (ps *processes) endSession(h *host, secret seq.Secret) {
	from := ps.w.hosts.of(callerHost)[0]
	ctx, cancel := context.WithTimeout(ps.life, 3*time.Second)
	defer cancel()
	g, done, err := ps.w.back.group(ctx, from)
	if err != nil {
		ps.trace.add("%-8s cannot be told to be dead: %v", h.name, err)
		return
	}
	defer done()
	_ = g.EndSession(ctx, secret) // if nobody hears of it, the lease runs out
	ps.trace.add("%-8s is told to be dead: session %s", h.name, secret.Session())
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

// newSecret draws an incarnation. Needs w.mu.
func (ps *processes) newSecret(h *host) (s seq.Secret) {
	v := ps.rng.Uint64()
	if ps.opts.still {
		v = uint64(1000*h.life + h.index + 1)
	}
	binary.BigEndian.PutUint64(s.Seed[:], v)
	return s
}
