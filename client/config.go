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

// Config is how a Client finds and treats the cluster. Zero fields but Addrs get
// defaults.
type Config struct {
	// Addrs are gRPC host:port of any AllocSvr, of several Sets those of any, or routers: at least
	// one. The first route table comes from them, and they are the last resort later.
	Addrs []string
	// ClusterID that every server must have, of several Sets the id of any. Empty: that of the
	// first that answers.
	ClusterID string
	// Timeout of a call whose context has no deadline; 0: DefaultTimeout.
	Timeout time.Duration
	// AttemptTimeout is after how long one silent server is given up and the call tried
	// elsewhere, at least 1 ms; 0: DefaultAttemptTimeout.
	AttemptTimeout time.Duration
	// MaxQueue is how many keys may wait to be sent to one server before more are
	// refused with seq.ErrOverloaded; 0: DefaultMaxQueue.
	MaxQueue int
	// Indirect sends everything to Addrs, for callers that reach routers only.
	// By default a Client talks to the owners.
	Indirect bool
	// Zone that this program is in. Of Addrs, routers say in which zones they are (router
	// --zone): those in this one are asked before the others, which do while none of them
	// answers. An owner is asked wherever it is. Empty: Addrs are asked in turn.
	Zone string
	// AllowUnordered takes unordered answers of unique-only spaces; see ErrUnordered.
	AllowUnordered bool
	// Lazy makes New return before there is a route table; calls wait for it.
	Lazy bool
	// Agent is the name under which the AllocSvr count this process's snowflake IDs: a
	// letter, then up to 63 letters, digits and "-"; empty: none.
	Agent string
	// Fallback makes snowflake IDs of some namespaces while the service is away; nil: calls
	// fail instead. NewLocal makes them here always.
	Fallback *Fallback
	// Alone says whether a call of Take, Next, NextN or NextBatch is to be a unary call of its
	// own, instead of sharing a batch with others: an interceptor among DialOptions then sees
	// it with its context, as it must to carry a trace on. That costs several times as much,
	// so let it be true for few. Nil: for none.
	Alone func(ctx context.Context) bool
	// Logger gets changes of the table, servers that fall silent and replaced TLS files. Nil: none.
	Logger *slog.Logger
	// TLS secures the connections by PEM files; nil: plaintext, unless DialOptions say
	// otherwise.
	TLS *TLS
	// TokenFile has the token that says who this program is (seqctl auth token), mode 0600. It
	// is read again within a second of a change, and sent over TLS only. Empty: none.
	TokenFile string
	// DialOptions come after the defaults, e.g. grpc.WithTransportCredentials.
	DialOptions []grpc.DialOption
}

// TLS names PEM files, which are read again when they change.
type TLS struct {
	CertFile string // this program's certificate chain, where the cluster asks for one
	KeyFile  string // its key
	CAFile   string // CAs that the cluster's certificates must be signed by; empty: the system's
	// VerifyRole refuses servers whose certificate is not of an AllocSvr or router of
	// Config.ClusterID or one of Sets. ClusterID must then be set, as must CAFile or CertFile.
	VerifyRole bool
	// Sets are the ids of the clusters that are Sets beside Config.ClusterID; for VerifyRole.
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
	case cfg.MaxQueue < 0:
		return cfg, fmt.Errorf("%w: MaxQueue %d, expected more than 0", seq.ErrBadArgument, cfg.MaxQueue)
	}
	return cfg, nil
}

// calls is what the room of calls has of it.
func (cfg *Config) calls() call.Config {
	return call.Config{
		Addrs: cfg.Addrs, ClusterID: cfg.ClusterID, Zone: cfg.Zone, Indirect: cfg.Indirect, AllowUnordered: cfg.AllowUnordered,
		Timeout: cfg.Timeout, AttemptTimeout: cfg.AttemptTimeout, MaxQueue: cfg.MaxQueue, Alone: cfg.Alone,
		Logger: cfg.Logger, DialOptions: cfg.DialOptions,
	}
}
