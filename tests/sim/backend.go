package sim

import (
	"context"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Engine says what keeps the registers of a run.
type Engine string

// The engines. An empty Engine is StoreEngine.
const (
	StoreEngine Engine = "store" // StoreSvr
	EtcdEngine  Engine = "etcd"
	SetsEngine  Engine = "sets" // the StoreSvr of two clusters that are Sets of one map
)

// backend keeps the registers of a run: StoreSvr (onStores) or etcd (onEtcd). Faults of the rest of the
// world apply to both in the same way. Its hosts have the kind storeHost.
type backend interface {
	// assemble makes the hosts and says which cluster it is. Called once, before all else.
	assemble(m seq.Mapping)
	// begin starts the hosts, and what goes on beside until the run ends.
	begin()
	// start starts the process of one of the hosts, if it is down.
	start(h *host)
	// launch finds the registers for the process of an allocator and runs it.
	launch(h *host, p *allocProc)
	// group returns the Group through which a process at a host uses the registers. done closes it.
	group(ctx context.Context, from *host) (g *quorum.Group, done func(), err error)
	// kept checks I5: the register has what is handed out of it.
	kept(h *host, r seq.Register, value uint64)
	// heal ends the effects of faults, except those that no host can heal by itself.
	heal()
	// recover has operators do what is left, and sees that moves is true of every counter by
	// then.
	recover(moves func())
}

func newBackend(p part) backend {
	if p.opts.Engine == EtcdEngine {
		return newOnEtcd(p)
	}
	return &onStores{part: p}
}
