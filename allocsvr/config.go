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
	Advertise string   // address told to callers and peers; empty: the bound one
	Stores    []string // gRPC addresses of all StoreSvr; required without Etcd
	Etcd      Etcd     // in place of Stores; no Endpoints: none
	ClusterID string   // refused if the stores are of another; empty: not checked
	DataDir   string   // where parked counters are kept; empty: none are kept
	Weight    uint32   // share of the sections, 100 is normal; 1 to 10,000
	Zone      string   // that fails as a whole, as seq.CheckZone has it; empty: none is known

	Lease time.Duration // T; MinLease to MaxLease, and to the stores' bound

	GossipListen  string           // membership, host:port; empty: no membership view
	GossipJoin    []string         // addresses of other members
	GossipProfile string           // fast, lan or wan
	GossipKeys    *membership.Keys // nil: the gossip is plain

	// ExpectAllocs is how many AllocSvr the first route table waits for, for at
	// most a few seconds, so that a cluster that starts at once starts balanced.
	ExpectAllocs int
	// Secret of the session is given by a supervising parent, which ends the session
	// when this process dies; zero: one is drawn.
	Secret seq.Secret

	// Snowflake IDs. DatacenterID is bound to the name Datacenter at its first use in
	// the cluster, so that one region cannot start with another's id.
	DatacenterID uint64
	Datacenter   string
	// Regions are gRPC host:port of routers or AllocSvr of other regions' clusters, which have stores
	// of their own: a node whose datacenter has IDs there, and none here so far, does not start.
	// None: nobody is looked at.
	Regions          []string
	RegionsCA        string // PEM file of the CAs of their certificates; empty: plaintext
	RegionsTokenFile string // token of a reader or caller there, read again when it changes; empty: none
	WorkerID         int64  // the only worker id to use, leased and fenced all the same; -1: any free one
	// Namespaces are recorded at the start unless they are recorded already, one a line as
	// namespaces.Parse reads them.
	Namespaces   []string
	WorkerWindow time.Duration // how far ahead the high-water mark is confirmed; 0: 3 s
	// IDAudit is where it is written down which IDs are handed out; no Path: nowhere.
	IDAudit audit.Config

	// MaxInWork bounds the calls of sequences in work, in keys; a call weighs gate.CallCost
	// beside its keys, and what is answered at once on a stream does not count. More are
	// refused with seq.ErrOverloaded. At least gate.MinInWork; 0: api.DefaultMaxInWork.
	MaxInWork int
	// MaxStreamWaits bounds the calls of one stream that wait for something, so that one
	// caller cannot fill the node's room; more are refused likewise. 0: api.DefaultMaxStreamWaits.
	MaxStreamWaits int
	// UIDMemory bounds the bytes that the counters of UIDs take. From 60 % of it on,
	// those that nothing was taken from for long are dropped: their UIDs skip numbers.
	// If there are none, UIDs without a counter are refused with seq.ErrUIDMemory once all
	// is used. At least api.MinUIDMemory; 0: no bound.
	UIDMemory uint64

	// TLS secures the listener and the connections to stores and peers; nil: plaintext.
	// With a CA nobody connects without a certificate that it has signed.
	TLS *rpc.TLS
	// Guard checks every call; nil: everybody may do everything.
	Guard *auth.Guard
	// Refused counts what is refused and closed. If nil, the server makes one.
	Refused *rpc.Refused

	// Traces makes spans; nil: none.
	Traces *tracing.Tracer

	// DevLog is the log of the `seqctl dev` that all nodes share one process in, told to
	// operators in place of a service manager; empty: this is a process of its own.
	DevLog string

	Logger *slog.Logger
}

// DefaultConfig has every default; Name and Stores are still to be set.
func DefaultConfig() Config {
	return Config{
		Listen: "127.0.0.1:7410", Weight: 100, Lease: time.Second,
		GossipProfile: "fast", ExpectAllocs: 1, WorkerID: -1, MaxInWork: api.DefaultMaxInWork, MaxStreamWaits: api.DefaultMaxStreamWaits,
		UIDMemory: api.DefaultUIDMemory, Logger: slog.Default(),
	}
}

// Validate names the first field that cannot work. It changes nothing.
func (c Config) Validate() error {
	switch {
	case c.Name == "" || len(c.Name) > 64:
		return fmt.Errorf("%w: name %q, expected 1 to 64 bytes", seq.ErrBadArgument, c.Name)
	case !utf8.ValidString(c.Name) || c.GossipListen != "" && strings.Contains(c.Name, "/"):
		return fmt.Errorf("%w: name %q, expected UTF-8 without a slash: the membership refuses others", seq.ErrBadArgument, c.Name)
	case len(c.Stores) == 0 && !c.onEtcd():
		return fmt.Errorf("%w: no stores, expected the address of every StoreSvr", seq.ErrBadArgument)
	case len(c.Stores) > 0 && c.onEtcd():
		return fmt.Errorf("%w: stores and etcd, expected one of them: they do not know of each other", seq.ErrBadArgument)
	case c.Listen == "":
		return fmt.Errorf("%w: no listen address, expected host:port", seq.ErrBadArgument)
	case c.Lease < MinLease || c.Lease > MaxLease:
		return fmt.Errorf("%w: %v, expected %v to %v", seq.ErrBadLease, c.Lease, MinLease, MaxLease)
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

// onEtcd says whether the registers are in etcd.
func (c Config) onEtcd() bool { return len(c.Etcd.Endpoints) > 0 }

// limits are the configured ones; Validate must have found them well.
func (c Config) limits() *api.Limits {
	return api.NewLimits(c.MaxInWork, c.MaxStreamWaits, c.UIDMemory)
}

// namespaces are the configured ones: seq.ErrBadArgument, seq.ErrBadLayout.
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
