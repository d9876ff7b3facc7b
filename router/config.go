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

// Config is how a router listens and finds the cluster. Listen and Allocs are needed.
type Config struct {
	// Name of the node in the gossip; empty: "router-" and random digits.
	Name string
	// Zone that the router is in, as seq.CheckZone has it: told to the others. Owners are asked
	// wherever they are. Empty: none is known.
	Zone string
	// Listen is host:port of the gRPC front; port 0 takes a free one.
	Listen string
	// HTTPListen is host:port of the HTTP front; empty: none.
	HTTPListen string
	// HTTPHosts are names that the HTTP front may be asked by, beside IP addresses, localhost and the
	// host of HTTPListen. Web pages of these names may send requests, other pages may not.
	HTTPHosts []string
	// Leaf serves the paths of Leaf that take numbers by GET.
	Leaf bool
	// RESPListen is host:port of the front for clients of Redis; empty: none.
	RESPListen string
	// ConsoleListen is host:port of the console; empty: none. ConsoleHosts are names that it
	// may be asked by, beside IP addresses and localhost.
	ConsoleListen string
	ConsoleHosts  []string
	// Advertise is the gRPC address that others are told; empty: the listener's.
	Advertise string
	// Allocs are gRPC host:port of any AllocSvr, at least one: the first route table
	// comes from them.
	Allocs []string
	// ClusterID that the AllocSvr must have; empty: that of the first that answers.
	ClusterID string
	// Timeout of a call whose caller names none; 0: the SDK's 10 s.
	Timeout time.Duration
	// AttemptTimeout after which a silent AllocSvr is given up; 0: the SDK's 500 ms.
	AttemptTimeout time.Duration
	// MaxInWork bounds the calls that have come and are not answered, over all fronts, in
	// keys; a call weighs gate.CallCost beside its keys. More are refused with
	// seq.ErrOverloaded. At least gate.MinInWork; 0: DefaultMaxInWork.
	MaxInWork int
	// HTTPMaxBody is the largest body of an HTTP request, in bytes, 1 KiB to 256 MiB; 0:
	// DefaultHTTPMaxBody.
	HTTPMaxBody int
	// RESPMaxConns is how many connections the RESP front serves at a time, 1 or more; 0:
	// resp.DefaultMaxConns.
	RESPMaxConns int
	// RESPMaxPipeline is how many commands of one of them are answered together, 1 or
	// more; 0: resp.DefaultMaxPipeline. Longer pipelines are answered in parts.
	RESPMaxPipeline int
	// IDsFallback are namespaces of snowflake IDs, by name or number, of which the router makes
	// IDs itself while no AllocSvr answers: from a worker id of its own each, for half of
	// IDsFallbackWindow at least. None: calls fail then.
	IDsFallback []string
	// IDsFallbackAfter is how long a call then waits first, less than Timeout; 0: 3 s.
	IDsFallbackAfter time.Duration
	// IDsFallbackWindow is 1 s to 50 min; 0: 10 min.
	IDsFallbackWindow time.Duration
	// UnreadyAfter is for how long no AllocSvr must have answered before the router says
	// that it is not ready, 1 s or more; 0: DefaultUnreadyAfter. A failover is shorter.
	UnreadyAfter time.Duration
	// GossipListen is host:port of the gossip, TCP and UDP; empty: no gossip.
	GossipListen string
	// GossipJoin lists seeds, host:port each.
	GossipJoin []string
	// GossipProfile is fast, lan or wan; empty: fast.
	GossipProfile string
	// GossipKeys encrypt the gossip; nil: it is plain.
	GossipKeys *membership.Keys
	// TLS secures all fronts and the connections to AllocSvr; nil: plaintext. A client of
	// a front needs no certificate, but one that it shows must be signed by the CA.
	TLS *rpc.TLS
	// Guard checks every call; nil: everybody may do everything.
	Guard *auth.Guard
	// Refused counts what is refused and closed. If nil, the router makes one.
	Refused *rpc.Refused
	// Traces makes spans of unary calls and HTTP requests; nil: none.
	Traces *tracing.Tracer
	// Logger takes what operators should see; nil: none.
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
	if cfg.Advertise != "" || cfg.GossipListen != "" { // nobody is told otherwise
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
	if cfg.Timeout < 0 || cfg.AttemptTimeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout %v and AttemptTimeout %v: expected 0 or more", cfg.Timeout, cfg.AttemptTimeout))
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

// fallback is how the SDK makes IDs while no AllocSvr answers; nil: it does not.
func (cfg Config) fallback() *client.Fallback {
	if len(cfg.IDsFallback) == 0 {
		return nil
	}
	return &client.Fallback{Namespace: cfg.IDsFallback[0], Also: cfg.IDsFallback[1:], After: cfg.IDsFallbackAfter, Window: cfg.IDsFallbackWindow}
}
