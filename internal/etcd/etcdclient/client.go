package etcdclient

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
	"github.com/seqsvr/seqsvr/seq"
)

// How long one endpoint is waited for before the next is asked: firstTry, and twice as long in
// each round over all of them. An election takes a second or two, whichever is asked.
const firstTry = time.Second

// loginTime bounds a login, which callers wait for no longer than they want to.
const loginTime = 10 * time.Second

// A connection with calls in flight is found dead within these times. etcd as shipped takes pings
// every 5 s, and none without a call.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 3 * time.Second
)

// Config says where etcd is.
type Config struct {
	Endpoints      []string                         // host:port of each member's client port
	Creds          credentials.TransportCredentials // if nil, plaintext
	User, Password string                           // empty without a user, or if the certificate names the user
	Options        []grpc.DialOption                // more of them, last
}

// Client is an etcd cluster over gRPC. It is safe for concurrent use.
type Client struct {
	cfg   Config
	ends  []endpoint
	first atomic.Uint32 // index of the endpoint that is asked first

	mu     sync.Mutex // guards all below
	token  string     // etcd's, for the user; empty before the first login
	logins map[string]*login
}

// login is one that is under way at an endpoint.
type login struct {
	done  chan struct{} // closed when the rest is there
	token string
	err   error
}

type endpoint struct {
	addr string
	conn *grpc.ClientConn
	kv   pb.KVClient
}

var _ etcdstore.KV = (*Client)(nil)

// Dial makes a client without waiting for etcd: seq.ErrBadArgument.
func Dial(cfg Config) (*Client, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, fmt.Errorf("%w: no endpoint of etcd, expected host:port,...", seq.ErrBadArgument)
	}
	if cfg.Creds == nil {
		cfg.Creds = insecure.NewCredentials()
	}
	c := &Client{cfg: cfg, logins: map[string]*login{}}
	for _, addr := range cfg.Endpoints {
		conn, err := grpc.NewClient("passthrough:///"+addr, append([]grpc.DialOption{
			grpc.WithTransportCredentials(cfg.Creds),
			grpc.WithNoProxy(),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
				MinConnectTimeout: 2 * time.Second,
			}),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
		}, cfg.Options...)...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w: endpoint %q of etcd: %w", seq.ErrBadArgument, addr, err), c.Close())
		}
		c.ends = append(c.ends, endpoint{addr: addr, conn: conn, kv: pb.NewKVClient(conn)})
	}
	return c, nil
}

// Close ends the connections and all calls in flight, their outcome unknown.
func (c *Client) Close() error {
	var errs []error
	for _, e := range c.ends {
		errs = append(errs, e.conn.Close())
	}
	return errors.Join(errs...)
}

// Do implements etcdstore.KV.
func (c *Client) Do(ctx context.Context, t etcdstore.Txn) (etcdstore.Answer, error) {
	var a etcdstore.Answer
	err := c.try(ctx, func(ctx context.Context, e endpoint) error {
		reply, err := e.kv.Txn(ctx, request(t))
		if err != nil {
			return err
		}
		a, err = answer(t, reply)
		return err
	})
	return a, err
}

// try asks one endpoint after the other until one answers or ctx ends.
func (c *Client) try(ctx context.Context, call func(context.Context, endpoint) error) error {
	patience, n := firstTry, uint32(len(c.ends))
	for attempt := uint32(1); ; attempt++ {
		at := c.first.Load() % n
		err := c.once(ctx, c.ends[at], patience, call)
		if err == nil {
			return nil
		}
		if !elsewhere(err) {
			return fmt.Errorf("etcd at %s: %w", c.ends[at].addr, named(err))
		}
		c.first.CompareAndSwap(at, (at+1)%n)
		if ctx.Err() != nil {
			return fmt.Errorf("etcd at %s: %w: %w", c.ends[at].addr, context.Cause(ctx), named(err))
		}
		if attempt%n == 0 {
			patience *= 2
			select { // endpoints that are down refuse at once
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// once asks one endpoint, under a fresh token if the old one is refused.
func (c *Client) once(ctx context.Context, e endpoint, patience time.Duration, call func(context.Context, endpoint) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if c.cfg.User == "" {
		return call(ctx, e)
	}
	refused := ""
	for {
		token, err := c.tokenBut(ctx, e, refused)
		if err != nil {
			return err
		}
		err = call(metadata.AppendToOutgoingContext(ctx, "token", token), e)
		if err == nil || refused != "" || !errors.Is(named(err), errToken) {
			return err
		}
		refused = token
	}
}

// tokenBut gives the token of the user, if it is not the one that was refused, else a new one. All who
// need a new one share a login, and one that takes longer than they wait is there for those who
// come later: etcd makes passwords slow to check.
func (c *Client) tokenBut(ctx context.Context, e endpoint, refused string) (string, error) {
	c.mu.Lock()
	if c.token != "" && c.token != refused {
		defer c.mu.Unlock()
		return c.token, nil
	}
	l := c.logins[e.addr]
	if l == nil {
		l = &login{done: make(chan struct{})}
		c.logins[e.addr] = l
		go c.login(e, l)
	}
	c.mu.Unlock()
	select {
	case <-l.done:
		return l.token, l.err
	case <-ctx.Done():
		return "", status.FromContextError(ctx.Err()).Err()
	}
}

// login logs in at an endpoint. It ends with the connection.
func (c *Client) login(e endpoint, l *login) {
	ctx, cancel := context.WithTimeout(context.Background(), loginTime)
	defer cancel()
	reply, err := pb.NewAuthClient(e.conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: c.cfg.User, Password: c.cfg.Password})
	l.token, l.err = reply.GetToken(), err
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.token = l.token
	}
	delete(c.logins, e.addr)
	close(l.done)
}
