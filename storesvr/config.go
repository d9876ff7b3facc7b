package storesvr

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/seq"
)

// Defaults and limits of a Config.
const (
	DefaultListen   = "127.0.0.1:7500"
	DefaultMaxLease = 10 * time.Second
	DefaultNearFull = 64 << 20

	// maxMaxLease bounds what a restart may cost: the grace is as long as the longest
	// lease ever granted.
	maxMaxLease = time.Hour
)

// Config configures a run of a store. The data directory holds what Init fixed.
type Config struct {
	DataDir string // holds the database that Init made
	Listen  string // gRPC, host:port; port 0 takes a free one
	// Advertise is the gRPC address sent to peers, host:port. If empty, it is the address of the
	// listener.
	Advertise string
	ClusterID string // if not empty, the cluster that the database must belong to
	Zone      string // failure domain of the store; if empty, the zone given to Init

	GossipListen  string           // host:port of the membership view; if empty, there is no gossip
	GossipJoin    []string         // other members, host:port
	GossipProfile string           // fast, lan or wan; if empty, fast
	GossipKeys    *membership.Keys // if nil, the gossip is plaintext

	MaxLease time.Duration // longest lease granted, above 0 and at most an hour
	NearFull uint64        // bytes free on the disk below which writes are refused; zero means never

	// Memory is the memory limit of the process in bytes. Zero means that no limit is known.
	Memory uint64

	// TLS secures the listener. If nil, it is plaintext. With a CA, only clients with a certificate
	// of that CA can connect.
	TLS *rpc.TLS
	// Guard authorizes every call. If nil, every caller may make every call.
	Guard *auth.Guard
	// Refused counts what is refused and closed. If nil, the store makes one.
	Refused *rpc.Refused

	// Traces creates spans of the calls of traced callers. If nil, tracing is off.
	Traces *tracing.Tracer

	Logger *slog.Logger // if nil, nothing is logged
	Clock  clock.Clock  // if nil, the clock of the machine
	// Wall bounds the high-water marks of snowflake worker ids. If nil, it is time.Now.
	Wall func() time.Time
}

// DefaultConfig is a config that lacks nothing but DataDir.
func DefaultConfig() Config {
	return Config{Listen: DefaultListen, MaxLease: DefaultMaxLease, NearFull: DefaultNearFull}
}

// Validate checks the config without changing it. ErrConfig.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	if c.DataDir == "" {
		return bad("no data directory")
	}
	if c.MaxLease <= 0 || c.MaxLease > maxMaxLease {
		return bad("max lease %v, expected above 0 and at most %v", c.MaxLease, maxMaxLease)
	}
	if err := seq.CheckZone(c.Zone); err != nil {
		return bad("%v", err)
	}
	if c.GossipListen == "" && len(c.GossipJoin) > 0 {
		return bad("gossip members to join, but no address to gossip on")
	}
	if _, err := membership.ParseProfile(c.GossipProfile); err != nil {
		return bad("%v", err)
	}
	if c.Listen == "" {
		return bad("no address to listen on")
	}
	if err := c.checkAddrs(); err != nil {
		return bad("%v", err)
	}
	return nil
}

// checkAddrs returns an error for addresses that cannot work.
func (c Config) checkAddrs() error {
	if err := hostport.Listen(c.Listen); err != nil {
		return fmt.Errorf("listen address %w", err)
	}
	if c.GossipListen != "" {
		if err := hostport.Listen(c.GossipListen); err != nil {
			return fmt.Errorf("gossip listen address %w", err)
		}
	}
	if c.Advertise != "" || c.GossipListen != "" { // without gossip, no peer learns the address
		if err := hostport.Told(c.Listen, c.Advertise); err != nil {
			return fmt.Errorf("advertise address: %w", err)
		}
	}
	return hostport.DialAll("gossip join address", c.GossipJoin)
}

// withDefaults fills what may be nil.
func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = clock.Boot()
	}
	if c.Refused == nil {
		c.Refused = rpc.NewRefused(c.Logger)
	}
	return c
}

func (c Config) wall() func() time.Time {
	if c.Wall == nil {
		return time.Now
	}
	return c.Wall
}
