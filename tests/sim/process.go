package sim

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/router"
	"github.com/seqsvr/seqsvr/storesvr"
)

// processes starts and ends the processes of hosts.
type processes struct{ part }

// nearFull is the room below which stores refuse writes; simulated disks have either
// more than enough or none.
const nearFull = 1 << 20

// startStore starts the process of a store that is down, once nobody has its disk in hand:
// the process before, or whoever changes it. Not if the disk is lost.
func (ps *processes) startStore(h *host) {
	ps.mu.Lock()
	up, over := h.up, h.over
	ps.mu.Unlock()
	if up {
		return
	}
	ps.work.Go(func() {
		if over != nil {
			<-over
		}
		ps.openStore(h, over)
	})
}

// openStore starts the process if over is still the last to have had the disk in hand.
func (ps *processes) openStore(h *host, over chan struct{}) {
	ps.mu.Lock()
	if h.up || h.lost || ps.life.Err() != nil {
		ps.mu.Unlock()
		return
	}
	if h.over != over {
		ps.mu.Unlock()
		ps.startStore(h)
		return
	}
	h.boot()
	life, dead := h.life, h.dead
	over = h.over
	meta, registers, copies := h.disk.open()
	db := &database{d: h.disk, dead: h.fence, copies: copies}
	ps.mu.Unlock()

	r, err := storesvr.NewReplica(storesvr.Config{
		MaxLease: allocsvr.MaxLease, NearFull: nearFull, Logger: ps.logger(h.name), Clock: h.clock, Wall: h.clock.Wall,
	}, db, meta, registers)
	if errors.Is(err, storesvr.ErrCommit) { // its first, after a restore
		if ps.lives(h, life) {
			ps.kill(h, life)
			ps.schedule(2*time.Second, func() { ps.startStore(h) })
		}
		close(over)
		return
	}
	if err != nil {
		ps.w.check.broken("I1-I3", "%s does not start on its own disk: %v", h.name, err)
		close(over)
		return
	}
	ps.mu.Lock()
	if h.life == life {
		r.Register(h)
		h.guard = chain([]grpc.UnaryServerInterceptor{rpc.Guard(rpc.ServerConfig{Logger: ps.logger(h.name)}), r.Addressed()})
	}
	ps.trace.add("%-8s starts, life %d, commits %d", h.name, life, meta.Commits)
	ps.mu.Unlock()
	defer close(over)
	select {
	case <-r.Failed():
		ps.kill(h, life)
		ps.schedule(2*time.Second, func() { ps.startStore(h) })
	case <-dead:
	}
	db.d.mu.Lock()
	db.closing = true
	db.d.mu.Unlock()
	_ = r.Close() // what it cannot write any more does not matter
}

// stopStore is an orderly stop: no request comes in any more, the commit under way ends,
// and the database is closed.
func (ps *processes) stopStore(h *host) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.trace.add("%-8s stops in order", h.name)
	h.halt(true)
}

// kill ends a process, if it is still the one of that life; 0: whichever is up.
func (ps *processes) kill(h *host, life int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if life == 0 || h.life == life {
		ps.trace.add("%-8s killed", h.name)
		h.halt(false)
	}
}

// lives says whether the host's process is still the one of that life.
func (ps *processes) lives(h *host, life int) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return h.up && h.life == life
}

// startRouter starts the process of a router that is down.
func (ps *processes) startRouter(h *host) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if h.up || ps.life.Err() != nil {
		return
	}
	h.boot()
	dead := h.dead
	api := ps.sdkOf(h, false, nil)
	router.Register(h, api)
	h.guard = rpc.Guard(rpc.ServerConfig{Logger: ps.logger(h.name), ClusterID: api.ClusterID})
	ps.trace.add("%-8s starts, life %d", h.name, h.life)
	ps.work.Go(func() {
		<-dead
		_ = api.Close()
	})
}

// sdkOf is the SDK in the process that is up at a host. Close it in the end.
func (ps *processes) sdkOf(h *host, indirect bool, fallback *client.Fallback) *client.Client {
	var addrs []string
	for _, to := range ps.w.hosts.of(map[bool]hostKind{true: routerHost, false: allocHost}[indirect]) {
		if to.twinOf == "" {
			addrs = append(addrs, to.name)
		}
	}
	api, err := client.New(ps.life, client.Config{Addrs: addrs, Indirect: indirect, AllowUnordered: true, Lazy: true, Fallback: fallback,
		Timeout: 2 * ps.opts.Patience, AttemptTimeout: ps.opts.Patience, Logger: ps.logger(h.name), DialOptions: ps.w.net.overNet(h, h.life)})
	if err != nil {
		panic(fmt.Sprintf("sim: config of the SDK: %v", err))
	}
	return api
}

// start brings a host back, whatever it is.
func (ps *processes) start(h *host) {
	switch h.kind {
	case storeHost:
		ps.startStore(h)
	case allocHost:
		ps.startAlloc(h)
	case operatorHost:
		ps.w.ops.start(h)
	case routerHost:
		ps.startRouter(h)
	}
}
