package localcluster

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdclient"
	"github.com/seqsvr/seqsvr/seq"
)

// Limits of a local cluster, bounded by its block of ports.
const (
	MaxStores  = 7
	MaxAllocs  = 16
	MaxRouters = 8
	MaxSets    = 8
)

// Config of a cluster. DefaultConfig has the defaults.
type Config struct {
	Dir       string // everything the cluster keeps; made if missing; required
	ClusterID string // of a new directory, drawn if empty; of an old directory it must be the same or empty
	Stores    int    // 1 to MaxStores; fixed by the first start in Dir; none with Etcd
	Allocs    int    // 1 to MaxAllocs; may differ from start to start
	Routers   int    // 1 to MaxRouters; may differ from start to start
	Sets      int    // how many such clusters divide the sections, behind the same routers; 0 or 1: one; never fewer than before

	// Listen and HTTP are the addresses, host:port, of the first router. If an address is empty or its port
	// is zero, Open picks a port that stays the same over restarts.
	Listen string
	HTTP   string
	// RESP is the address of the first router for clients of Redis, likewise. If empty, there is none.
	RESP string
	// Console is the address of the first router's console, likewise. If empty, there is none.
	Console string

	// Bin holds the binaries storesvr, allocsvr and router. Empty: the folder of the
	// running executable. Only Start looks at it.
	Bin string

	Lease         time.Duration // of every AllocSvr; zero means its default
	GossipProfile string        // fast, lan or wan; if empty, the daemons' default
	Supervise     bool          // run each AllocSvr below a supervising parent

	// Etcd, if it is Given, keeps the registers in place of stores. Dir then belongs to the
	// cluster below its prefix, which the first start makes if there is none. That of a further
	// Set ends in - and the Set's name.
	Etcd etcdclient.Flags

	// Secure turns everything on: TLS with a certificate for each node, roles and grants,
	// encrypted gossip. The files are below Dir, and the CA stays the same.
	Secure bool

	// Sections and Step of the default space, and further spaces as `storesvr init --space` takes them.
	// They are used when a new directory is initialised. Zero means the defaults.
	Sections uint32
	Step     uint64
	Spaces   []string

	// Zones are given to the nodes of each role in turn. If empty, nodes are in no zone.
	Zones []string

	// Host gives a node, by its name, another address than 127.0.0.1, and Wrap changes
	// the command line that starts it: for nodes in network namespaces of their own.
	// Wrap must end in an exec of argv, so that the pid stays. Nil: neither.
	Host func(name string) string
	Wrap func(name string, argv []string) []string

	set  string  // of a further Set: its name, with which its nodes' names begin
	root *Layout // of a further Set: the first one

	// Roles are the roles whose processes run. If empty, all run. The layout has all roles.
	Roles []Role

	// Args are appended to the command line of every process of a role.
	Args map[Role][]string
	// Env is the environment of the processes. Nil: this process's own, without SEQ_*.
	Env []string
}

// DefaultConfig is 3 stores, 3 allocators and one router in dir.
func DefaultConfig(dir string) Config {
	return Config{Dir: dir, Stores: 3, Allocs: 3, Routers: 1}
}

// Planned are the nodes that a cluster of this Config will have, with role and name only.
func (c Config) Planned() (nodes []Node) {
	for _, part := range []struct {
		role  Role
		count int
	}{{RoleStore, c.stores()}, {RoleAlloc, c.Allocs}, {RoleRouter, c.Routers}} {
		for i := range part.count {
			nodes = append(nodes, Node{Role: part.role, Name: c.nodeName(part.role, i), Zone: c.zone(i), Set: c.set})
		}
	}
	for i := range c.furtherSets() {
		of := c.ofSet(i)
		nodes = append(nodes, slices.DeleteFunc(of.Planned(), func(n Node) bool { return n.Role == RoleRouter })...)
	}
	return nodes
}

// stores returns the number of StoreSvr.
func (c Config) stores() int {
	if c.Etcd.Given() {
		return 0
	}
	return c.Stores
}

// AllSpaces are the default space and the further ones: seq.ErrBadMapping.
func (c Config) AllSpaces() ([]seq.Space, error) {
	spaces := []seq.Space{{Name: seq.DefaultSpace, Sections: c.Sections, Step: c.Step}}
	for _, text := range c.Spaces {
		space, err := seq.ParseSpace(text)
		if err != nil {
			return nil, fmt.Errorf("--space %q: %w", text, err)
		}
		spaces = append(spaces, space)
	}
	return spaces, nil
}

// zone returns the zone of the i-th node of a role.
func (c Config) zone(i int) string {
	if len(c.Zones) == 0 {
		return ""
	}
	return c.Zones[i%len(c.Zones)]
}

func (c Config) nodeName(role Role, i int) string {
	if c.set != "" {
		return fmt.Sprintf("%s-%s-%d", c.set, role, i+1)
	}
	return fmt.Sprintf("%s-%d", role, i+1)
}

var clusterID = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

// Validate names the first field that cannot work, as ErrConfig.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return fmt.Errorf("%w: no directory", ErrConfig)
	case c.Stores < 1 || c.Stores > MaxStores:
		return fmt.Errorf("%w: %d stores, expected 1 to %d", ErrConfig, c.Stores, MaxStores)
	case c.Allocs < 1 || c.Allocs > MaxAllocs:
		return fmt.Errorf("%w: %d allocs, expected 1 to %d", ErrConfig, c.Allocs, MaxAllocs)
	case c.Routers < 1 || c.Routers > MaxRouters:
		return fmt.Errorf("%w: %d routers, expected 1 to %d", ErrConfig, c.Routers, MaxRouters)
	case c.Etcd.Given() && c.Supervise:
		return fmt.Errorf("%w: supervise with etcd: the parent of an AllocSvr ends sessions at StoreSvr only", ErrConfig)
	case c.Sets < 0 || c.Sets > MaxSets:
		return fmt.Errorf("%w: %d Sets, expected 1 to %d", ErrConfig, c.Sets, MaxSets)
	case c.ClusterID != "" && !clusterID.MatchString(c.ClusterID):
		return fmt.Errorf("%w: cluster id %q, expected %s", ErrConfig, c.ClusterID, clusterID)
	}
	for _, zone := range c.Zones {
		if err := seq.CheckZone(zone); err != nil || zone == "" {
			return fmt.Errorf("%w: zone %q: %w", ErrConfig, zone, cmp.Or(err, seq.ErrBadArgument))
		}
	}
	return nil
}

// binary finds a daemon's executable as an absolute path.
func (c Config) binary(name string) (string, error) {
	dir := c.Bin
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("%w: find own executable: %w", ErrConfig, err)
		}
		dir = filepath.Dir(self)
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", fmt.Errorf("%w: binary %s: %w", ErrConfig, name, err)
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("%w: binary %s: %w (make build puts it there)", ErrConfig, name, err)
	}
	return path, nil
}
