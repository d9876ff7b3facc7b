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

	"github.com/seqsvr/seqsvr/internal/etcdstore"
	"github.com/seqsvr/seqsvr/seq"
)

// How long one endpoint is waited for before the next is asked: firstTry, and twice as long in
// each round over all of them. An election takes a second or two, whichever is asked.
const firstTry = time.Second

// A connection with calls in flight is found dead within these times. etcd as shipped takes pings
// every 5 s, and none without a call.
const (
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 3 * time.Second
)

// Config says where etcd is.
type Config struct {
	Endpoints      []string                         // host:port of each member's client port
	Creds          credentials.TransportCredentials // nil: plaintext
	User, Password string                           // empty: none, or by the certificate
	Options        []grpc.DialOption                // more of them, last
}

// Client is an etcd cluster over gRPC. It is safe for concurrent use.
type Client struct {
	cfg   Config
	ends  []endpoint
	first atomic.Uint32 // index of the endpoint that is asked first

	mu    sync.Mutex // guards token
	token string     // of etcd's, for the user; empty: none yet
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
	c := &Client{cfg: cfg}
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
	for renewed := false; ; renewed = true {
		token, err := c.login(ctx, e, renewed)
		if err != nil {
			return err
		}
		with := ctx
		if token != "" {
			with = metadata.AppendToOutgoingContext(ctx, "token", token)
		}
		err = call(with, e)
		if err == nil || renewed || c.cfg.User == "" || !errors.Is(named(err), errToken) {
			return err
		}
	}
}

// login gives the token of the user, a new one if asked for.
func (c *Client) login(ctx context.Context, e endpoint, anew bool) (string, error) {
	if c.cfg.User == "" {
		return "", nil
	}
	c.mu.Lock()
	token := c.token
	c.mu.Unlock()
	if token != "" && !anew {
		return token, nil
	}
	reply, err := pb.NewAuthClient(e.conn).Authenticate(ctx, &pb.AuthenticateRequest{Name: c.cfg.User, Password: c.cfg.Password})
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = reply.GetToken()
	return c.token, nil
}
