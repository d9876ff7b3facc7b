package nodes

import (
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Config holds the parts of Nodes. All fields are required.
type Config struct {
	Self quorum.SessionView // this node: its session, name and address
	// Sessions returns all sessions that the stores reported. This node's session is among them.
	Sessions func() []quorum.SessionView
	Lease    time.Duration
	Clock    clock.Clock
}

// Nodes remembers which nodes were ever seen alive by this process, and how steadily. Safe
// for concurrent use.
type Nodes struct {
	cfg     Config
	started time.Duration

	mu       sync.Mutex // guards names, addrs and flapping
	names    map[string]bool
	addrs    map[string]string // of those that were alive at the last look
	flapping flapping
}

// New makes Nodes that have seen no other node yet.
func New(cfg Config) *Nodes {
	return &Nodes{cfg: cfg, started: cfg.Clock.Now(), names: make(map[string]bool), flapping: newFlapping(cfg.Lease)}
}

// Addr is where the node is if it was alive at the last look, "" if it has died:
// no caller should be sent there. Of one that was not seen yet, the table knows best.
func (n *Nodes) Addr(node seq.Node) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.names[node.Name] {
		return node.Addr
	}
	return n.addrs[node.Name]
}

// patience returns how long after its start a node waits for owners of the table that it has not seen yet.
// If the cluster starts again, they may hold parked counters.
func (n *Nodes) patience() time.Duration { return max(3*time.Second, 2*n.cfg.Lease) }

// View holds the nodes that are alive at one moment.
type View struct {
	Live map[string]quorum.SessionView // by node name, this one included
	Next time.Duration                 // when the first of the other sessions' leases may end; 0 if there are none
	// Sure means that enough stores have reported within half a lease, so that a node that is missing is
	// really absent.
	Sure bool
}

// View reads the sessions. A node counts as alive while its session's lease runs.
func (n *Nodes) View(now time.Duration) View {
	v := View{Live: map[string]quorum.SessionView{n.cfg.Self.Name: n.cfg.Self}}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.cfg.Sessions()
	v.Sure = n.fresh(all, now)
	n.flapping.observe(all, v.Sure, now)
	for _, s := range all {
		if s.Session == n.cfg.Self.Session || s.Dead || s.FreeAt <= now {
			continue
		}
		n.latest(v.Live, s)
		n.names[s.Name] = true
		if v.Next == 0 || s.FreeAt < v.Next {
			v.Next = s.FreeAt
		}
	}
	n.addrs = make(map[string]string, len(v.Live))
	for name, s := range v.Live {
		n.addrs[name] = s.Addr
	}
	return v
}

// fresh reports whether N-W+1 stores have renewed this node's own session within half a lease, because then
// the W-th smallest of its ends is that late. Every W stores include one of these stores. So the W-th
// smallest of another session's ends is no older.
func (n *Nodes) fresh(all []quorum.SessionView, now time.Duration) bool {
	for _, s := range all {
		if s.Session == n.cfg.Self.Session {
			return !s.Dead && s.FreeAt >= now+n.cfg.Lease/2
		}
	}
	return false
}

// Present is like View, but counts a node as alive until the stores have said that
// its session is gone. A node whose own renewals are late sees all others' leases run
// out; it may then look at the stores, but must not take any for lost.
func (n *Nodes) Present() map[string]quorum.SessionView {
	live := map[string]quorum.SessionView{n.cfg.Self.Name: n.cfg.Self}
	for _, s := range n.cfg.Sessions() {
		if s.Session != n.cfg.Self.Session && !s.Dead {
			n.latest(live, s)
		}
	}
	return live
}

// latest puts a session in place of one of the same name that was renewed less lately:
// a node that has just restarted has two for as long as its former one is not known to
// have ended, which by a store that has restarted as well takes a lease.
func (n *Nodes) latest(live map[string]quorum.SessionView, s quorum.SessionView) {
	if s.Name == n.cfg.Self.Name {
		return
	}
	if other, ok := live[s.Name]; !ok || other.FreeAt < s.FreeAt {
		live[s.Name] = s
	}
}

// Awaited says that a node of the table was not seen yet and may still come, or is late
// once more and is likely to come back.
func (n *Nodes) Awaited(name string, now time.Duration) bool {
	if name == n.cfg.Self.Name {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.names[name] && now < n.started+n.patience() || n.flapping.spared(name, now)
}

// Steady reports whether a live session may be given sections.
func (n *Nodes) Steady(id seq.Session, now time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.flapping.steady(id, now)
}

// Inherited notes that sections of the node were taken over by this one.
func (n *Nodes) Inherited(name string, now time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.flapping.inherit(name, now)
}
