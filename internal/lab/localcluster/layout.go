package localcluster

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
)

// Role is what a process of the cluster is.
type Role string

// The roles, in the order in which they are started; they are stopped in the other.
const (
	RoleStore  Role = "store"
	RoleAlloc  Role = "alloc"
	RoleRouter Role = "router"
)

// Node is one member of the cluster with the addresses that it keeps.
type Node struct {
	Role    Role   `json:"role"`
	Name    string `json:"name"`              // store-1, alloc-1, router-1 ...
	Addr    string `json:"addr"`              // gRPC, host:port
	HTTP    string `json:"http,omitempty"`    // only routers
	RESP    string `json:"resp,omitempty"`    // only the first router, if it was asked for
	Console string `json:"console,omitempty"` // likewise
	Gossip  string `json:"gossip"`            // membership, host:port
	Zone    string `json:"zone,omitempty"`
	Set     string `json:"set,omitempty"` // the further Set of the node; empty for the first Set
	Dir     string `json:"-"`             // its data directory below Config.Dir
}

// Layout is a cluster's directory, locked, with its addresses reserved. Nodes are
// fixed once Open returned. Close it when nothing of the cluster runs any more.
type Layout struct {
	ClusterID string
	Nodes     []Node // stores, then allocators, then routers
	Dir       string
	Secured   *Secured         // if nil, everything is plaintext and every caller may do everything
	Set       string           // its name, of a Set that was added to another cluster; else empty
	Others    []*Layout        // the further Sets, without routers
	Etcd      etcdclient.Flags // that it keeps its registers in, if it is Given

	state state
	lock  *os.File
	guard net.Listener
	spare []Node // stores that AddStore makes; their addresses are reserved too
}

// state is the file cluster.json.
type state struct {
	ClusterID   string `json:"cluster_id"`
	Stores      int    `json:"stores"`
	Block       int    `json:"port_block"`       // ports [128*block, 128*block+128)
	Initialised bool   `json:"initialised"`      // every store's database was made; never goes back
	Shared      bool   `json:"shared,omitempty"` // of a further Set: it was given its share of the sections
	Nodes       []Node `json:"nodes"`            // as of the last start; for people and tools

	Etcd *inEtcd `json:"etcd,omitempty"` // that it keeps its registers in; nil if they are in stores
}

const stateFile = "cluster.json"

// Open locks the directory, and reads its layout or makes a new one. Errors:
// ErrConfig, ErrInUse, ErrState, ErrAddrInUse, ErrNoPorts.
func Open(cfg Config) (*Layout, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: directory %q: %w", ErrConfig, cfg.Dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cluster's directory: %w", err)
	}
	l := &Layout{Dir: dir, Set: cfg.set, Etcd: cfg.Etcd}
	if l.lock, err = lockFile(filepath.Join(dir, "lock")); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInUse, dir, err)
	}
	err = l.load(cfg)
	if err == nil {
		err = l.openOthers(cfg)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Layout) load(cfg Config) error {
	if err := l.readState(cfg); err != nil {
		return err
	}
	if err := l.reserve(); err != nil {
		return err
	}
	l.ClusterID = l.state.ClusterID
	l.place(cfg)
	for _, n := range l.Nodes {
		for _, addr := range []string{n.Addr, n.HTTP, n.RESP, n.Console, n.Gossip} {
			if addr == "" || cfg.Host != nil {
				continue // the addresses of a namespace cannot be tried from here
			}
			if err := waitFree(addr); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
	}
	if cfg.Secure {
		var err error
		if l.Secured, err = secure(l, cfg.root); err != nil {
			return fmt.Errorf("certificates and policy: %w", err)
		}
	}
	return l.save()
}

func (l *Layout) readState(cfg Config) error {
	path := filepath.Join(l.Dir, stateFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if found, _ := filepath.Glob(filepath.Join(l.Dir, strings.TrimSuffix(cfg.nodeName(RoleStore, 0), "1")+"*")); len(found) > 0 {
			return fmt.Errorf("%w: %s is missing beside %s", ErrState, path, found[0])
		}
		id := cfg.ClusterID
		if id == "" {
			var b [4]byte
			_, _ = rand.Read(b[:]) // documented never to return an error
			id = "local-" + hex.EncodeToString(b[:])
		}
		l.state = state{ClusterID: id, Stores: cfg.stores()}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := json.Unmarshal(text, &l.state); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrState, path, err)
	}
	switch {
	case !clusterID.MatchString(l.state.ClusterID) || l.state.Stores < 0 || l.state.Stores > MaxStores:
		return fmt.Errorf("%w: %s: cluster %q with %d stores", ErrState, path, l.state.ClusterID, l.state.Stores)
	case cfg.ClusterID != "" && cfg.ClusterID != l.state.ClusterID:
		return fmt.Errorf("%w: %s is of cluster %q, not %q", ErrConfig, l.Dir, l.state.ClusterID, cfg.ClusterID)
	case l.state.Etcd != nil && (!cfg.Etcd.Given() || cfg.Etcd.Prefix != l.state.Etcd.Prefix):
		return fmt.Errorf("%w: %s has its registers below %s of an etcd, not elsewhere: give that etcd, or another directory", ErrConfig, l.Dir, l.state.Etcd.Prefix)
	case l.state.Initialised && l.state.Etcd == nil && cfg.Etcd.Given():
		return fmt.Errorf("%w: %s has its registers in %d stores, not in etcd: give another directory", ErrConfig, l.Dir, l.state.Stores)
	case l.state.Initialised && cfg.stores() != l.state.Stores:
		return fmt.Errorf("%w: %s has %d stores, not %d: their number is fixed at the first start", ErrConfig, l.Dir, l.state.Stores, cfg.Stores)
	}
	l.state.Stores = cfg.stores()
	return nil
}

// reserve takes the block of ports that the directory had, or another one if another
// process listens there.
func (l *Layout) reserve() error {
	if b := l.state.Block; b >= firstBlock && b <= 65_535/blockSize-1 && waitFree(loopback(b*blockSize)) == nil {
		if lis, err := guard(b); err == nil {
			l.guard = lis
			return nil
		}
	}
	block, lis, err := pickBlock()
	if err != nil {
		return err
	}
	l.state.Block, l.guard = block, lis
	return nil
}

// place gives every possible node its own ports, whatever the numbers of this
// start, so that an address never moves from one node to another.
func (l *Layout) place(cfg Config) {
	port := l.state.Block*blockSize + 1
	add := func(role Role, most, count int) {
		for i := range most {
			n := Node{Role: role, Name: cfg.nodeName(role, i), Zone: cfg.zone(i), Set: cfg.set}
			next := func() string {
				addr := loopback(port)
				if cfg.Host != nil {
					addr = net.JoinHostPort(cfg.Host(n.Name), strconv.Itoa(port))
				}
				port++
				return addr
			}
			n.Addr, n.Gossip = next(), next()
			if role == RoleRouter {
				n.HTTP = next()
			}
			n.Dir = filepath.Join(l.Dir, n.Name)
			if i < count {
				l.Nodes = append(l.Nodes, n)
			} else if role == RoleStore {
				l.spare = append(l.spare, n)
			}
		}
	}
	add(RoleStore, MaxStores, cfg.stores())
	add(RoleAlloc, MaxAllocs, cfg.Allocs)
	if cfg.set != "" {
		return // the routers of the first Set serve all
	}
	add(RoleRouter, MaxRouters, cfg.Routers)
	first := &l.Nodes[cfg.stores()+cfg.Allocs]
	first.Addr = asked(cfg.Listen, first.Addr)
	first.HTTP = asked(cfg.HTTP, first.HTTP)
	if cfg.RESP != "" {
		first.RESP = asked(cfg.RESP, loopback(port)) // behind all others: it moves none
	}
	if cfg.Console != "" {
		first.Console = asked(cfg.Console, loopback(port+1))
	}
}

// asked is the address that was asked for, unless it leaves the port open.
func asked(addr, fallback string) string {
	if addr == "" {
		return fallback
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "0" {
		return addr // one that is no address is named by the bind that follows
	}
	_, kept, _ := net.SplitHostPort(fallback)
	return net.JoinHostPort(host, kept)
}

// save replaces the state file as a whole: a crash leaves the old or the new one.
func (l *Layout) save() error {
	l.state.Nodes = l.Nodes
	return WriteJSON(filepath.Join(l.Dir, stateFile), l.state)
}

// Initialise makes the stores' databases by initStore, all of them, if this directory
// has none. It does nothing otherwise. A crash before the end leaves stores that
// never served: the next call removes them and begins again.
func (l *Layout) Initialise(initStore func(store Node) error) error {
	if l.state.Initialised {
		return nil
	}
	for _, n := range l.Role(RoleStore) {
		if err := os.RemoveAll(n.Dir); err != nil {
			return fmt.Errorf("remove a half-made store: %w", err)
		}
		if err := initStore(n); err != nil {
			return fmt.Errorf("initialise %s: %w", n.Name, err)
		}
	}
	l.state.Initialised = true
	return l.save()
}

// Role lists the nodes of a role in order.
func (l *Layout) Role(role Role) []Node {
	return slices.DeleteFunc(slices.Clone(l.Nodes), func(n Node) bool { return n.Role != role })
}

// Addrs lists the gRPC addresses of a role in order.
func (l *Layout) Addrs(role Role) []string {
	var addrs []string
	for _, n := range l.Role(role) {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// Told returns the address that others on this machine reach a node by which listens on all
// interfaces. It is empty for any other node.
func (n Node) Told() string {
	host, port, err := net.SplitHostPort(n.Addr)
	if ip := net.ParseIP(host); err != nil || host != "" && (ip == nil || !ip.IsUnspecified()) {
		return ""
	}
	return net.JoinHostPort("localhost", port)
}

// GossipAddrs lists the membership addresses of all nodes: any of them is a seed.
func (l *Layout) GossipAddrs() []string {
	addrs := make([]string, len(l.Nodes))
	for i, n := range l.Nodes {
		addrs[i] = n.Gossip
	}
	return addrs
}

// StoreNames lists the names of all stores, as init takes them.
func (l *Layout) StoreNames() []string {
	var names []string
	for _, n := range l.Role(RoleStore) {
		names = append(names, n.Name)
	}
	return names
}

// StoreZones are the zones of those stores; nil if there are none.
func (l *Layout) StoreZones() (zones []string) {
	for _, n := range l.Role(RoleStore) {
		if n.Zone != "" {
			zones = append(zones, n.Zone)
		}
	}
	return zones
}

// Close frees the ports and the directory. Safe to call twice.
func (l *Layout) Close() {
	for _, other := range l.Others {
		other.Close()
	}
	if l.guard != nil {
		_ = l.guard.Close()
	}
	if l.lock != nil {
		_ = l.lock.Close() // the lock goes with the descriptor
	}
}
