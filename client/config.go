package client

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/seqsvr/seqsvr/internal/sdk/call"
	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// Defaults of a Config.
const (
	DefaultTimeout        = 10 * time.Second
	DefaultAttemptTimeout = 500 * time.Millisecond
	// DefaultMaxQueue is a queue of 65,536 keys to one server.
	DefaultMaxQueue = 1 << 16
)

// Config holds the settings of a Client. Addrs is required. All other fields have defaults.
type Config struct {
	// Addrs are the gRPC addresses (host:port) of AllocSvr or routers, at least one. With several Sets,
	// servers of any Set will do. The Client gets its first route table from them, and falls back on them
	// later.
	Addrs []string
	// ClusterID is the cluster id that every server must have. With several Sets, the id of any Set will
	// do. If empty, the Client takes the id of the first server that answers.
	ClusterID string
	// Timeout bounds a call whose context has no deadline. Zero means DefaultTimeout.
	Timeout time.Duration
	// AttemptTimeout bounds one attempt at a server. After it the Client tries another server. The minimum
	// is 1 ms. Zero means DefaultAttemptTimeout.
	AttemptTimeout time.Duration
	// SuspectAfter, if not zero, has the standbys be asked for keys of strict and exact spaces once the owner
	// owes answers for so long and says nothing, also when it is asked whether it is there. The Client gives an
	// owner longer that is slow at other times. For clusters whose AllocSvr have --suspect-after, and callers
	// that have processors to spare. 30 ms is a good value there. An attempt that was given up may have taken numbers: a
	// strict space skips them, and in an exact space the answer is Replayed.
	SuspectAfter time.Duration
	// MaxQueue limits the keys that wait to be sent to one server. The Client refuses more keys with
	// seq.ErrOverloaded. Zero means DefaultMaxQueue.
	MaxQueue int
	// Indirect sends everything to Addrs, for callers that reach routers only.
	// By default a Client talks to the owners.
	Indirect bool
	// Zone is the zone of this program. The Client prefers those Addrs that are routers of this zone
	// (router --zone), and uses other Addrs if none of them answers. Owners are asked in any zone. If
	// empty, the Client asks Addrs in turn.
	Zone string
	// AllowUnordered takes unordered answers of unique-only spaces; see ErrUnordered.
	AllowUnordered bool
	// Lazy makes New return before there is a route table; calls wait for it.
	Lazy bool
	// Agent is the name under which the AllocSvr count this process's snowflake IDs: a letter, then up to
	// 63 letters, digits and "-". If empty, they count them under no name.
	Agent string
	// Fallback makes snowflake IDs of some namespaces while the service is unavailable. If nil, calls fail
	// then. NewLocal makes every ID in this process.
	Fallback *Fallback
	// Alone reports whether a call of Take, Next, NextN or NextBatch is sent as a unary call of its own,
	// and not in a batch with other calls. An interceptor among DialOptions then sees the call with its
	// context, which a trace needs. Such a call costs several times as much. If nil, no call is sent alone.
	Alone func(ctx context.Context) bool
	// Logger receives changes of the route table, servers that fall silent and replaced TLS files. If nil,
	// nothing is logged.
	Logger *slog.Logger
	// TLS secures the connections by PEM files. If nil, the connections are plaintext unless DialOptions
	// secure them.
	TLS *TLS
	// TokenFile names the file of the token that authenticates this program (seqctl auth token), of mode
	// 0600. The Client reads it again within a second of a change, and sends the token over TLS only. If
	// empty, the Client sends no token.
	TokenFile string
	// DialOptions come after the defaults, e.g. grpc.WithTransportCredentials.
	DialOptions []grpc.DialOption
}

// TLS names PEM files, which are read again when they change.
type TLS struct {
	CertFile string // this program's certificate chain, where the cluster asks for one
	KeyFile  string // its key
	CAFile   string // CAs that must have signed the cluster's certificates; if empty, the system's CAs
	// VerifyRole refuses a server unless its certificate names an AllocSvr or router of Config.ClusterID or
	// Sets. It needs ClusterID, and CAFile or CertFile.
	VerifyRole bool
	// Sets are the cluster ids of the Sets beside Config.ClusterID. Only VerifyRole uses them.
	Sets []string
}

func (cfg Config) withDefaults() (Config, error) {
	if cfg.TLS != nil {
		secured, err := rpc.NewTLS(rpc.TLSFiles{Cert: cfg.TLS.CertFile, Key: cfg.TLS.KeyFile, CA: cfg.TLS.CAFile}, cfg.Logger)
		if err != nil {
			return cfg, fmt.Errorf("%w: TLS: %w", seq.ErrBadArgument, err)
		}
		switch {
		case !cfg.TLS.VerifyRole:
		case cfg.ClusterID == "":
			return cfg, fmt.Errorf("%w: TLS.VerifyRole: expected ClusterID beside it", seq.ErrBadArgument)
		case secured == nil:
			return cfg, fmt.Errorf("%w: TLS.VerifyRole: expected CAFile or CertFile beside it", seq.ErrBadArgument)
		default:
			secured.Identify(cfg.ClusterID, true)
			secured.TrustSets(func(cluster string) bool { return slices.Contains(cfg.TLS.Sets, cluster) })
		}
		options := secured.DialSets(auth.Alloc, auth.Router)
		if secured == nil { // no file: the system's CAs, and no certificate of its own
			options = []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(nil))}
		}
		cfg.DialOptions = append(options, cfg.DialOptions...)
	}
	if cfg.TokenFile != "" {
		if cfg.TLS == nil && len(cfg.DialOptions) == 0 {
			return cfg, fmt.Errorf("%w: TokenFile: expected TLS beside it, a token is not sent over plaintext", seq.ErrBadArgument)
		}
		token, err := rpc.TokenFile(cfg.TokenFile)
		if err != nil {
			return cfg, fmt.Errorf("%w: TokenFile: %w", seq.ErrBadArgument, err)
		}
		cfg.DialOptions = append(slices.Clone(cfg.DialOptions), grpc.WithPerRPCCredentials(token))
	}
	if len(cfg.Addrs) == 0 {
		return cfg, fmt.Errorf("%w: Addrs is empty, expected at least one host:port", seq.ErrBadArgument)
	}
	for i, a := range cfg.Addrs {
		if a == "" {
			return cfg, fmt.Errorf("%w: Addrs[%d] is empty, expected host:port", seq.ErrBadArgument, i)
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.AttemptTimeout == 0 {
		cfg.AttemptTimeout = DefaultAttemptTimeout
	}
	if cfg.MaxQueue == 0 {
		cfg.MaxQueue = DefaultMaxQueue
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if err := seq.CheckAgent(cfg.Agent); err != nil {
		return cfg, err
	}
	if err := seq.CheckZone(cfg.Zone); err != nil {
		return cfg, err
	}
	if cfg.Fallback != nil {
		f, err := cfg.Fallback.WithDefaults(cfg.Timeout)
		if err == nil {
			err = checkIDs("", f.Namespace, 1)
		}
		for _, also := range f.Also {
			if err == nil {
				err = checkIDs("", also, 1)
			}
		}
		if err != nil {
			return cfg, err
		}
		cfg.Fallback = &f
	}
	switch {
	case cfg.Timeout < 0:
		return cfg, fmt.Errorf("%w: Timeout %v, expected more than 0", seq.ErrBadArgument, cfg.Timeout)
	case cfg.AttemptTimeout < time.Millisecond:
		return cfg, fmt.Errorf("%w: AttemptTimeout %v, expected at least 1ms", seq.ErrBadArgument, cfg.AttemptTimeout)
	case cfg.SuspectAfter < 0:
		return cfg, fmt.Errorf("%w: SuspectAfter %v, expected 0 or more", seq.ErrBadArgument, cfg.SuspectAfter)
	case cfg.MaxQueue < 0:
		return cfg, fmt.Errorf("%w: MaxQueue %d, expected more than 0", seq.ErrBadArgument, cfg.MaxQueue)
	}
	return cfg, nil
}

// calls is what the room of calls has of it.
func (cfg *Config) calls() call.Config {
	return call.Config{
		Addrs: cfg.Addrs, ClusterID: cfg.ClusterID, Zone: cfg.Zone, Indirect: cfg.Indirect, AllowUnordered: cfg.AllowUnordered,
		Timeout: cfg.Timeout, AttemptTimeout: cfg.AttemptTimeout, SuspectAfter: cfg.SuspectAfter, MaxQueue: cfg.MaxQueue, Alone: cfg.Alone,
		Logger: cfg.Logger, DialOptions: cfg.DialOptions,
	}
}
