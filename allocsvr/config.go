package allocsvr

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seqsvr/seqsvr/allocsvr/api"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/audit"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/nodes"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/seq"
)

// Limits of the lease that an AllocSvr may ask for.
const (
	MinLease = 200 * time.Millisecond
	MaxLease = 10 * time.Second
)

// Config of one AllocSvr. DefaultConfig has the defaults.
type Config struct {
	Name      string   // unique in the cluster; required
	Listen    string   // gRPC, host:port; port 0 picks one
	Advertise string   // address sent to callers and peers; if empty, the bound address
	Stores    []string // gRPC addresses of all StoreSvr; required without Etcd
	Etcd      Etcd     // in place of Stores; used if Endpoints is not empty
	ClusterID string   // stores of another cluster are refused; if empty, no check
	DataDir   string   // directory of parked counters; if empty, none are parked
	Weight    uint32   // share of the sections, 100 is normal; 1 to 10,000
	Zone      string   // failure zone, a name that seq.CheckZone accepts; may be empty

	Lease time.Duration // T; MinLease to MaxLease, and to the stores' bound

	GossipListen  string           // membership, host:port; if empty, gossip is off
	GossipJoin    []string         // addresses of other members
	GossipProfile string           // fast, lan or wan
	GossipKeys    *membership.Keys // if nil, the gossip is plaintext

	// SuspectAfter is the silence after which standbys take over what a node has of strict and exact
	// spaces. If zero, they wait for its lease.
	SuspectAfter time.Duration
	// ExpectAllocs is the number of AllocSvr that the first route table waits for, at most a few seconds.
	// So a cluster whose nodes start together starts balanced.
	ExpectAllocs int
	// Secret is the secret of the session. A supervising parent sets it, so that it can end the session
	// when this process dies. If zero, the server draws one.
	Secret seq.Secret

	// Snowflake IDs. The first use of DatacenterID in the cluster binds it to the name Datacenter, so that
	// a region cannot start with another's id.
	DatacenterID uint64
	Datacenter   string
	// Regions are gRPC addresses (host:port) of routers or AllocSvr of other regions' clusters, which have
	// stores of their own. A node does not start if its datacenter has IDs there and none here so far. If
	// empty, no region is checked.
	Regions          []string
	RegionsCA        string // PEM file of the CAs of their certificates; if empty, plaintext
	RegionsTokenFile string // file with a token of a reader or caller there, read again when it changes; may be empty
	WorkerID         int64  // the only worker id to use, still leased and fenced; -1 means any free id
	// Namespaces are recorded at the start, unless they are recorded already. Each is a line that
	// namespaces.Parse reads.
	Namespaces   []string
	WorkerWindow time.Duration // how far ahead the high-water mark is confirmed; zero means 3 s
	// IDAudit configures the file that records which IDs are handed out. If its Path is empty, no file is
	// written.
	IDAudit audit.Config

	// MaxInWork limits the keys of sequence calls in work. Each call counts gate.CallCost keys more, and a
	// stream's call that is answered at once does not count. Above the limit calls fail with
	// seq.ErrOverloaded. The least is gate.MinInWork. Zero means api.DefaultMaxInWork.
	MaxInWork int
	// MaxStreamWaits limits the waiting calls of one stream, so that one caller cannot use up the node's
	// memory. Above the limit calls fail with seq.ErrOverloaded. Zero means api.DefaultMaxStreamWaits.
	MaxStreamWaits int
	// UIDMemory limits the bytes that the counters of UIDs take. Above 60 % of it, the node drops counters
	// that were not used for long, and their UIDs skip numbers. If no counter can be dropped and the memory
	// is used up, UIDs without a counter are refused with seq.ErrUIDMemory. The least is api.MinUIDMemory.
	// Zero means no limit.
	UIDMemory uint64

	// TLS secures the listener and the connections to stores and peers. If nil, they are plaintext. With a
	// CA, every client needs a certificate that the CA has signed.
	TLS *rpc.TLS
	// Guard checks every call. If nil, every caller may make every call.
	Guard *auth.Guard
	// Refused counts refused calls and closed connections. If nil, the server makes one.
	Refused *rpc.Refused

	// Traces creates spans. If nil, tracing is off.
	Traces *tracing.Tracer

	// DevLog is the log of the `seqctl dev` whose process all nodes share. Operators see it in place of a
	// service manager. If empty, this node has its own process.
	DevLog string

	Logger *slog.Logger
}

// MinSuspect is the least SuspectAfter: two pings.
const MinSuspect = 2 * nodes.PingEvery

// DefaultConfig returns the defaults. Name and Stores must still be set.
func DefaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:7410", Weight: 100, Lease: time.Second,
		GossipProfile: "fast", ExpectAllocs: 1, WorkerID: -1, MaxInWork: api.DefaultMaxInWork, MaxStreamWaits: api.DefaultMaxStreamWaits,
		UIDMemory: api.DefaultUIDMemory, Logger: slog.Default(),
	}
}

// Validate returns an error for the first field that cannot work.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("%w: no --name, expected 1 to 64 bytes, unique in the cluster", seq.ErrBadArgument)
	case len(c.Name) > 64:
		return fmt.Errorf("%w: name %q, expected 1 to 64 bytes", seq.ErrBadArgument, c.Name)
	case !utf8.ValidString(c.Name) || c.GossipListen != "" && strings.Contains(c.Name, "/"):
		return fmt.Errorf("%w: name %q, expected UTF-8 without a slash: the membership refuses others", seq.ErrBadArgument, c.Name)
	case len(c.Stores) == 0 && !c.onEtcd():
		return fmt.Errorf("%w: no --stores, expected the address of every StoreSvr, or an --etcd", seq.ErrBadArgument)
	case len(c.Stores) > 0 && c.onEtcd():
		return fmt.Errorf("%w: stores and etcd, expected one of them: they do not know of each other", seq.ErrBadArgument)
	case c.Listen == "":
		return fmt.Errorf("%w: no listen address, expected host:port", seq.ErrBadArgument)
	case c.Lease < MinLease || c.Lease > MaxLease:
		return fmt.Errorf("%w: %v, expected %v to %v", seq.ErrBadLease, c.Lease, MinLease, MaxLease)
	case c.SuspectAfter != 0 && (c.SuspectAfter < MinSuspect || c.SuspectAfter > c.Lease):
		return fmt.Errorf("%w: suspect-after %v, expected %v to the lease of %v, or 0", seq.ErrBadArgument, c.SuspectAfter, MinSuspect, c.Lease)
	case c.Weight == 0 || c.Weight > 10_000:
		return fmt.Errorf("%w: weight %d, expected 1 to 10,000", seq.ErrBadArgument, c.Weight)
	case c.Logger == nil:
		return fmt.Errorf("%w: no logger", seq.ErrBadArgument)
	}
	if err := seq.CheckZone(c.Zone); err != nil {
		return err
	}
	if err := c.checkAddrs(); err != nil {
		return fmt.Errorf("%w: %w", seq.ErrBadArgument, err)
	}
	if err := api.CheckLimits(c.MaxInWork, c.MaxStreamWaits, c.UIDMemory); err != nil {
		return err
	}
	if err := c.checkRegions(); err != nil {
		return err
	}
	if err := c.IDAudit.Validate(); err != nil {
		return err
	}
	_, err := c.namespaces()
	return err
}

// checkAddrs returns an error for addresses that cannot work.
func (c Config) checkAddrs() error {
	if err := hostport.Told(c.Listen, c.Advertise); err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	if err := hostport.Listen(c.Listen); err != nil {
		return fmt.Errorf("listen %w", err)
	}
	if c.GossipListen != "" {
		if err := hostport.Listen(c.GossipListen); err != nil {
			return fmt.Errorf("gossip-listen %w", err)
		}
	}
	if err := hostport.DialAll("stores", c.Stores); err != nil {
		return err
	}
	return hostport.DialAll("gossip-join", c.GossipJoin)
}

// onEtcd reports whether the registers are in etcd.
func (c Config) onEtcd() bool { return len(c.Etcd.Endpoints) > 0 }

// limits returns the configured limits. Validate must have accepted them.
func (c Config) limits() *api.Limits {
	return api.NewLimits(c.MaxInWork, c.MaxStreamWaits, c.UIDMemory)
}

// namespaces returns the configured namespaces. Errors are seq.ErrBadArgument and seq.ErrBadLayout.
func (c Config) namespaces() ([]namespaces.Namespace, error) {
	out := make([]namespaces.Namespace, 0, len(c.Namespaces))
	for _, text := range c.Namespaces {
		ns, err := namespaces.Parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, ns)
	}
	return out, namespaces.Check(out)
}
