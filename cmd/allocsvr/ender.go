package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// connectPause is between two tries to reach a quorum of stores.
const connectPause = 100 * time.Millisecond

// ender ends sessions at the stores. It connects beforehand, in the background, so
// that at a child's death only one message a store is left to send.
type ender struct {
	name   string // of the node
	stores []string
	dial   []grpc.DialOption // of all connections
	log    *slog.Logger
	ready  chan struct{} // closed when group is set, or stop gave up
	stop   context.CancelFunc
	task   sync.WaitGroup

	cluster string                      // set with group
	group   *quorum.Group               // set before ready is closed; nil if no connection was made
	free    func() error                // closes the connections below group
	run     func(context.Context) error // follows the member list of the stores
}

func newEnder(name string, stores []string, log *slog.Logger, dial ...grpc.DialOption) *ender {
	ctx, cancel := context.WithCancel(context.Background())
	e := &ender{name: name, stores: stores, dial: dial, log: log, ready: make(chan struct{}), stop: cancel}
	e.task.Go(func() {
		defer e.follow(ctx)
		defer close(e.ready)
		for ctx.Err() == nil {
			err := e.connect(ctx)
			if err == nil {
				return
			}
			log.Debug("supervisor has no quorum of stores yet", "error", err)
			wake.Sleep(ctx, connectPause)
		}
	})
	return e
}

// follow goes over to every newer member list until ctx ends.
func (e *ender) follow(ctx context.Context) {
	if e.group != nil {
		_ = e.run(ctx) // ends with ctx only
	}
}

func (e *ender) connect(ctx context.Context) error {
	cluster, err := storeclient.Connect(ctx, e.stores, e.dial...)
	if err != nil {
		return err
	}
	id := cluster.Identity
	var group *quorum.Group
	follower := storeclient.NewFollower(cluster, e.log, func(list quorum.MemberList, stores []quorum.NamedStore) error {
		return group.Reconfigure(quorum.Config{Ref: list.Ref(id.Ref.Cluster, id.Ref.Era), N: list.N(), R: list.R, W: list.W}, stores)
	}, e.dial...)
	group, err = quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W, OnStale: follower.Kick, Secret: seq.NewSecret(e.name)}, storeclient.NamedStores(cluster.Stores))
	if err != nil {
		return errors.Join(err, cluster.Close())
	}
	e.group, e.free, e.cluster, e.run = group, follower.Close, id.Ref.Cluster, follower.Run
	return nil
}

// end ends the session, trying until ctx ends. Safe to repeat.
func (e *ender) end(ctx context.Context, secret seq.Secret) error {
	session := secret.Session()
	select {
	case <-e.ready:
	case <-ctx.Done():
		return fmt.Errorf("end session %s: %w: stores not reached", session, seq.ErrNoQuorum)
	}
	for {
		err := e.group.EndSession(ctx, secret)
		if err == nil {
			e.tell(ctx, session)
		}
		if err == nil || ctx.Err() != nil || !errors.Is(err, seq.ErrNoQuorum) {
			return err
		}
		if !wake.Sleep(ctx, connectPause) {
			return err
		}
	}
}

// tellTime bounds how long the other nodes are told of a death. After it they know anyway.
const tellTime = 500 * time.Millisecond

// tell has the other AllocSvr look at the stores at once, and not with their next
// renewal. It is a hint: an AllocSvr that it does not reach finds out a moment later.
func (e *ender) tell(ctx context.Context, ended seq.Session) {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	doc, err := e.group.LoadDocument(ctx, e.group.Config().Secret.Session(), seq.RoutesRegister)
	var table pb.RouteTable
	if err == nil && doc.Version > 0 {
		err = proto.Unmarshal(doc.Body, &table)
	}
	if err != nil {
		e.log.Debug("others are not told of the death", "error", err)
		return
	}
	var wg sync.WaitGroup
	for _, n := range table.Nodes {
		if n.Session == uint64(ended) {
			continue
		}
		wg.Go(func() {
			if err := e.look(ctx, n.Addr, ended); err != nil {
				e.log.Debug("not told of the death", "node", n.Name, "error", err)
			}
		})
	}
	wg.Wait()
}

func (e *ender) look(ctx context.Context, addr string, ended seq.Session) error {
	conn, err := rpc.Dial(addr, e.dial...)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = pb.NewPeerClient(conn).Look(ctx, &pb.LookRequest{ClusterId: e.cluster, Ended: uint64(ended)})
	return err
}

// close must not be called before the last end returned.
func (e *ender) close() {
	e.stop()
	e.task.Wait()
	if e.group != nil {
		e.group.Close()
		_ = e.free()
	}
}
