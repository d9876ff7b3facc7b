package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// hosts are all machines of a run.
type hosts struct {
	part
	all   []*host                            // in the order of their creation
	kinds [hostKinds]atomic.Pointer[[]*host] // the same by kind; written under mu
}

type hostKind uint8

const (
	storeHost hostKind = iota
	allocHost
	callerHost
	operatorHost
	routerHost
	coordinatorHost
	binderHost // binds new stores, or has a store that was made twice or copied
	hostKinds  = iota
)

// host is a machine with at most one process. life fences the former process: messages and writes of
// another life than the present one count for nothing. The fields below clock are guarded by world.mu.
type host struct {
	w     *world
	name  string
	kind  hostKind
	index int
	clock *hostClock
	disk  *simDisk // of stores
	alloc *allocProc

	life    int           // counts the starts; of the process that is up, or was up last
	born    time.Duration // when it began, by its clock
	up      bool
	paused  bool
	held    []func()        // what a paused host would have received or sent
	dead    chan struct{}   // closed when the life ends
	fence   chan struct{}   // closed when it ends without order: nothing gets to the disk any more
	over    chan struct{}   // closed when all goroutines of the process have ended; nil before the first
	ctx     context.Context // of the process
	cancel  context.CancelFunc
	methods map[string]method
	guard   grpc.UnaryServerInterceptor // all of them in their order
	inbound map[*call]struct{}          // not answered yet
	streams map[string]bothWays
	lines   map[*line]struct{} // open, from here or to here
	shut    bool               // of a store: nothing that is about registers gets in
	lost    bool               // for good: the disk is gone, corrupt or old
	twinOf  string             // name of the node of which this is a second process; lost while there is none
	seen    map[saw]uint64     // by this life
	parked  string             // file of the last orderly leave
	forfeit bool               // what was on the disk is gone, whatever is on it now
	blank   bool               // a machine without a store, so far
	era     seq.Era            // of the cluster that an allocator is in
	queue   []*order           // of an operator
}

// bothWays is a method whose messages go both ways.
type bothWays struct {
	desc *grpc.StreamDesc
	impl any
}

type method struct {
	desc *grpc.MethodDesc
	impl any
}

func (hs *hosts) add(kind hostKind, name string, index int) *host {
	h := &host{w: hs.w, name: name, kind: kind, index: index, inbound: map[*call]struct{}{}, lines: map[*line]struct{}{}}
	rate := 1 + hs.opts.drift()*(2*hs.rng.Float64()-1)
	h.clock = newHostClock(hs.w, rate, hs.between(1e9, 1e12))
	hs.all = append(hs.all, h)
	all := append(slices.Clone(hs.of(kind)), h)
	hs.kinds[kind].Store(&all)
	return h
}

// boot begins a life. Needs w.mu.
func (h *host) boot() {
	h.life++
	h.up, h.paused, h.held = true, false, nil
	h.clock.freeze(false)
	h.born = h.clock.Now()
	h.dead, h.fence = make(chan struct{}), make(chan struct{})
	h.over = make(chan struct{})
	h.ctx, h.cancel = context.WithCancel(h.w.life)
	h.methods, h.streams = map[string]method{}, map[string]bothWays{}
	h.seen = map[saw]uint64{}
	h.guard = chain(nil)
}

// RegisterService implements grpc.ServiceRegistrar.
func (h *host) RegisterService(desc *grpc.ServiceDesc, impl any) {
	for i := range desc.Methods {
		h.methods["/"+desc.ServiceName+"/"+desc.Methods[i].MethodName] = method{&desc.Methods[i], impl}
	}
	for i := range desc.Streams {
		name := "/" + desc.ServiceName + "/" + desc.Streams[i].StreamName
		if desc.Streams[i].ClientStreams {
			h.streams[name] = bothWays{&desc.Streams[i], impl}
		} else {
			h.methods[name] = method{streamed(&desc.Streams[i], name), impl}
		}
	}
}

// halt ends the life at this moment: nothing that the process does from here on gets
// out, and those who wait for its answers hear of a lost connection, or nothing for a
// while. In order, the disk still takes what is under way. Needs w.mu.
func (h *host) halt(inOrder bool) {
	if !h.up {
		return
	}
	h.up, h.paused, h.held = false, false, nil
	if !inOrder {
		close(h.fence)
	}
	close(h.dead)
	h.cancel()
	waiting := make([]*call, 0, len(h.inbound))
	for c := range h.inbound {
		waiting = append(waiting, c)
	}
	slices.SortFunc(waiting, func(a, b *call) int { return int(a.id) - int(b.id) })
	for _, c := range waiting {
		delete(h.inbound, c)
		if h.w.chance(0.8) {
			h.w.net.fail(c, h.w.links.latency(), "connection lost")
		} else {
			h.w.net.fail(c, keepalive, "keepalive timeout")
		}
	}
	open := slices.SortedFunc(maps.Keys(h.lines), func(a, b *line) int { return int(a.id) - int(b.id) })
	for _, l := range open {
		if h.w.chance(0.8) {
			l.lost(h.w.links.latency(), "connection lost")
		} else {
			l.lost(keepalive, "keepalive timeout")
		}
	}
}

// pause stops the process: nothing comes in, nothing goes out, and it sees no time pass
// if frozen. Needs w.mu.
func (h *host) pause(frozen bool) {
	h.paused = true
	h.clock.freeze(frozen)
}

// resume lets everything out and in that was held, in its order. Needs w.mu.
func (h *host) resume() {
	if !h.paused {
		return
	}
	h.paused = false
	h.clock.freeze(false)
	held := h.held
	h.held = nil
	for _, do := range held {
		h.w.after(h.w.between(0, 1e6), do)
	}
}

// eraNow is the era of the cluster that an allocator has connected to.
func (h *host) eraNow() seq.Era {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.era
}

// host finds a host by name.
func (hs *hosts) named(name string) *host {
	for _, w := range hs.w.sets {
		for _, h := range w.hosts.all {
			if h.name == name {
				return h
			}
		}
	}
	return nil
}

// of are the hosts of a kind in the cluster, or those that are of none; the slice is not to be
// changed.
func (hs *hosts) of(kind hostKind) []*host {
	if kind == callerHost || kind == routerHost || kind == coordinatorHost {
		hs = hs.w.root().hosts
	}
	if all := hs.kinds[kind].Load(); all != nil {
		return *all
	}
	return nil
}

// spares are the machines of a run with operators that have no store at first.
const spares = 24

// spare makes a machine on which a store can be made later.
func (hs *hosts) spare(i int) {
	h := hs.add(storeHost, storeName(i)+hs.w.tag(), i)
	h.disk = newDisk(hs.w, h)
	h.blank, h.lost = true, true
}

// fresh takes the next machine that has no store yet; nil if none is left. Needs w.mu.
func (hs *hosts) fresh() *host {
	for _, h := range hs.all {
		if h.blank {
			h.blank = false
			return h
		}
	}
	return nil
}

// servers returns the hosts of stores and allocators.
func (hs *hosts) servers() []*host {
	return append(append([]*host{}, hs.of(storeHost)...), hs.of(allocHost)...)
}

// node is the name under which an allocator is known.
func (h *host) node() string { return cmp.Or(h.twinOf, h.name) }

func (hs *hosts) everyone() []*host {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.everywhere()
}

// everywhere are all hosts of the run. Needs w.mu.
func (hs *hosts) everywhere() (out []*host) {
	for _, w := range hs.w.sets {
		out = append(out, w.hosts.all...)
	}
	return out
}

// allocs are the allocators of all clusters.
func (hs *hosts) allocs() (out []*host) {
	for _, w := range hs.w.sets {
		out = append(out, w.hosts.of(allocHost)...)
	}
	return out
}

// saw says by whom a process was told of transactions: the disk, and the version of the
// member list.
type saw struct {
	uuid    string
	members uint64
}

// told takes in what a store told of its disk. A process that takes one store for another
// believes neither. Needs world.mu.
func (h *host) told(req *pb.RenewRequest, reply *pb.RenewReply) {
	if h.w.links.astray[h] != nil || h.w.opts.Care { // stores are filled again and restored there
		return
	}
	k := saw{reply.GetStoreUuid(), req.GetRef().GetMembersVersion()}
	h.seen[k] = max(h.seen[k], reply.GetCommits())
}

func allocName(i int) string { return fmt.Sprintf("a%d", i+1) }

func storeName(i int) string { return fmt.Sprintf("s%d", i+1) }
