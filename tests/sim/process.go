package sim

import (
	"fmt"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/router"
)

// processes starts and ends the processes of hosts.
type processes struct{ part }

// stopStore is an orderly stop: no request comes in any more, the commit under way ends,
// and the database is closed.
func (ps *processes) stopStore(h *host) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.trace.add("%-8s stops in order", h.name)
	h.halt(true)
}

// kill ends the process of that life of the host, if it still runs. If life is zero, it ends any process of
// the host.
func (ps *processes) kill(h *host, life int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if life == 0 || h.life == life {
		ps.trace.add("%-8s killed", h.name)
		h.halt(false)
	}
}

// lives reports whether the process of that life of the host still runs.
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
	h.guard = gate.Guard(gate.ServerConfig{Logger: ps.logger(h.name), ClusterID: api.Caller().Table().ClusterID, Incarnation: api.Caller().Table().Incarnation})
	ps.trace.add("%-8s starts, life %d", h.name, h.life)
	ps.work.Go(func() {
		<-dead
		_ = api.Close()
	})
}

// sdkOf is the SDK in the process that is up at a host. Close it in the end.
func (ps *processes) sdkOf(h *host, indirect bool, fallback *client.Fallback) *client.Client {
	var addrs []string
	to := ps.w.hosts.allocs() // with several Sets, the allocators of all
	switch {
	case indirect:
		to = ps.w.hosts.of(routerHost)
	case h.kind == routerHost: // starts before the others have joined
		to = ps.w.hosts.of(allocHost)
	}
	for _, to := range to {
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
		ps.w.back.start(h)
	case allocHost:
		ps.startAlloc(h)
	case operatorHost:
		ps.w.ops.start(h)
	case routerHost:
		ps.startRouter(h)
	case coordinatorHost:
		ps.w.moves.start(h)
	}
}
