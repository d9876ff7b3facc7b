package router

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/hostport"
	"github.com/seqsvr/seqsvr/internal/process/tracing"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/browser"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/membership"
	"github.com/seqsvr/seqsvr/seq"
)

// Config holds the addresses, limits and security of a router. Listen and Allocs are required.
type Config struct {
	// Name is the name of the node in the gossip. If empty, it is "router-" and random digits.
	Name string
	// Zone is the zone of the router, in the form that seq.CheckZone accepts. The gossip sends it
	// to peers. If empty, the zone is unknown. The router asks owners in all zones alike.
	Zone string
	// Listen is host:port of the gRPC front; port 0 takes a free one.
	Listen string
	// HTTPListen is host:port of the HTTP front. If empty, there is no HTTP front.
	HTTPListen string
	// HTTPHosts are further host names by which clients may address the HTTP front. IP addresses,
	// localhost and the host of HTTPListen are always allowed. Only web pages of these names may
	// send requests.
	HTTPHosts []string
	// Leaf turns on the HTTP paths of Meituan's Leaf, which take numbers by GET.
	Leaf bool
	// RESPListen is host:port of the front for clients of Redis. If empty, there is none.
	RESPListen string
	// ConsoleListen is host:port of the console. If empty, there is no console. ConsoleHosts are
	// further host names by which browsers may address it. IP addresses and localhost are always
	// allowed.
	ConsoleListen string
	ConsoleHosts  []string
	// Advertise is the gRPC address sent to peers. If empty, it is the listener's address.
	Advertise string
	// Allocs are gRPC host:port of any AllocSvr, at least one. The router loads its first route
	// table from them.
	Allocs []string
	// ClusterID is the cluster ID that each AllocSvr must have. If empty, the router takes the ID
	// of the first AllocSvr that answers.
	ClusterID string
	// Timeout bounds a call without a deadline of its own. Zero means the SDK's 10 s.
	Timeout time.Duration
	// AttemptTimeout is the time after which the router gives up on a silent AllocSvr. Zero means
	// the SDK's 500 ms.
	AttemptTimeout time.Duration
	// SuspectAfter is the silence of an AllocSvr after which the router asks its standbys too, as in client.Config.
	// Zero means that it does not.
	SuspectAfter time.Duration
	// MaxInWork bounds the unanswered calls of all fronts, in keys. A call weighs gate.CallCost and
	// its keys. Further calls end with seq.ErrOverloaded. The least value is gate.MinInWork. Zero means
	// DefaultMaxInWork.
	MaxInWork int
	// HTTPMaxBody is the largest body of an HTTP request in bytes, 1 KiB to 256 MiB. Zero means
	// DefaultHTTPMaxBody.
	HTTPMaxBody int
	// RESPMaxConns is the largest number of open connections of the RESP front, 1 or more. Zero
	// means line.DefaultMaxConns.
	RESPMaxConns int
	// RESPMaxPipeline is the largest number of commands that the router answers together for one
	// connection, 1 or more. Zero means line.DefaultMaxPipeline. The router answers longer
	// pipelines in parts.
	RESPMaxPipeline int
	// IDsFallback are namespaces of snowflake IDs, by name or number. While no AllocSvr answers,
	// the router generates IDs of these namespaces itself. It does so from a worker id of its own
	// in each, for at least half of IDsFallbackWindow. If empty, the calls fail.
	IDsFallback []string
	// IDsFallbackAfter is the time that a call waits before the fallback, less than Timeout. Zero means 3 s.
	IDsFallbackAfter time.Duration
	// IDsFallbackWindow is 1 s to 50 min. Zero means 10 min.
	IDsFallbackWindow time.Duration
	// UnreadyAfter is the time without an answer of any AllocSvr after which the router reports
	// that it is not ready, 1 s or more. It should be longer than a failover. Zero means
	// DefaultUnreadyAfter.
	UnreadyAfter time.Duration
	// GossipListen is host:port of the gossip, TCP and UDP. If empty, there is no gossip.
	GossipListen string
	// GossipJoin lists seeds, host:port each.
	GossipJoin []string
	// GossipProfile is fast, lan or wan. If empty, it is fast.
	GossipProfile string
	// GossipKeys encrypt the gossip. If nil, the gossip is plaintext.
	GossipKeys *membership.Keys
	// TLS secures all fronts and the connections to AllocSvr. If nil, they are plaintext. A client
	// of a front needs no certificate. If it presents one, the CA must have signed it.
	TLS *rpc.TLS
	// Guard authorizes every call. If nil, every caller may make every call.
	Guard *auth.Guard
	// Refused counts what is refused and closed. If nil, the router makes one.
	Refused *rpc.Refused
	// Traces creates spans of unary calls and HTTP requests. If nil, tracing is off.
	Traces *tracing.Tracer
	// Logger receives messages for operators. If nil, nothing is logged.
	Logger *slog.Logger
}

// Validate checks the configuration without changing it: seq.ErrBadArgument with
// every field that is not sound.
func (cfg Config) Validate() error {
	var errs []error
	addr := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %w", field, err))
		}
	}
	addr("Listen", hostport.Listen(cfg.Listen))
	for field, value := range map[string]string{"HTTPListen": cfg.HTTPListen, "RESPListen": cfg.RESPListen, "ConsoleListen": cfg.ConsoleListen, "GossipListen": cfg.GossipListen} {
		if value != "" {
			addr(field, hostport.Listen(value))
		}
	}
	for field, names := range map[string][]string{"HTTPHosts": cfg.HTTPHosts, "ConsoleHosts": cfg.ConsoleHosts} {
		if err := browser.CheckNames(names); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
	}
	if cfg.Advertise != "" || cfg.GossipListen != "" { // without gossip, no peer learns the address
		addr("Advertise:", hostport.Told(cfg.Listen, cfg.Advertise))
	}
	if len(cfg.Allocs) == 0 {
		errs = append(errs, errors.New("Allocs is empty: expected at least one host:port"))
	}
	for i, a := range cfg.Allocs {
		addr(fmt.Sprintf("Allocs[%d]", i), hostport.Dial(a))
	}
	for i, a := range cfg.GossipJoin {
		addr(fmt.Sprintf("GossipJoin[%d]", i), hostport.Dial(a))
	}
	if len(cfg.GossipJoin) > 0 && cfg.GossipListen == "" {
		errs = append(errs, errors.New("GossipJoin needs GossipListen"))
	}
	if _, err := membership.ParseProfile(cfg.GossipProfile); err != nil {
		errs = append(errs, fmt.Errorf("GossipProfile: %w", err))
	}
	if cfg.Timeout < 0 || cfg.AttemptTimeout < 0 || cfg.SuspectAfter < 0 {
		errs = append(errs, fmt.Errorf("Timeout %v, AttemptTimeout %v and SuspectAfter %v: expected 0 or more", cfg.Timeout, cfg.AttemptTimeout, cfg.SuspectAfter))
	}
	if cfg.UnreadyAfter != 0 && cfg.UnreadyAfter < time.Second {
		errs = append(errs, fmt.Errorf("UnreadyAfter %v: expected 0 or at least 1s", cfg.UnreadyAfter))
	}
	if err := seq.CheckZone(cfg.Zone); err != nil {
		errs = append(errs, fmt.Errorf("Zone: %w", err))
	}
	errs = append(errs, cfg.checkLimits())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("router: %w: %w", seq.ErrBadArgument, err)
	}
	return nil
}

// fallback returns the settings with which the SDK generates IDs while no AllocSvr answers. If
// there are none, it returns nil.
func (cfg Config) fallback() *client.Fallback {
	if len(cfg.IDsFallback) == 0 {
		return nil
	}
	return &client.Fallback{Namespace: cfg.IDsFallback[0], Also: cfg.IDsFallback[1:], After: cfg.IDsFallbackAfter, Window: cfg.IDsFallbackWindow}
}
