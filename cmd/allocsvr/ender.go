package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// connectPause is between two tries to reach a quorum of stores.
const connectPause = 100 * time.Millisecond

// ender ends sessions at the stores. It connects beforehand, in the background, so
// that at a child's death only one message a store is left to send.
type ender struct {
	stores []string
	log    *slog.Logger
	ready  chan struct{} // closed when group is set, or stop gave up
	stop   context.CancelFunc
	task   sync.WaitGroup

	group *quorum.Group // set before ready is closed; nil: never connected
	free  func() error  // closes the connections below group
}

func newEnder(stores []string, log *slog.Logger) *ender {
	ctx, cancel := context.WithCancel(context.Background())
	e := &ender{stores: stores, log: log, ready: make(chan struct{}), stop: cancel}
	e.task.Go(func() {
		defer close(e.ready)
		for ctx.Err() == nil {
			err := e.connect(ctx)
			if err == nil {
				return
			}
			log.Debug("supervisor has no quorum of stores yet", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(connectPause):
			}
		}
	})
	return e
}

func (e *ender) connect(ctx context.Context) error {
	cluster, err := storeclient.Connect(ctx, e.stores)
	if err != nil {
		return err
	}
	id := cluster.Identity
	named := make([]quorum.NamedStore, len(cluster.Stores))
	for i, s := range cluster.Stores {
		named[i] = quorum.NamedStore{Name: s.Addr, UUID: s.UUID, Store: s.Client}
	}
	group, err := quorum.NewGroup(quorum.Config{Ref: id.Ref, N: id.N, R: id.R, W: id.W}, named)
	if err != nil {
		return errors.Join(err, cluster.Close())
	}
	e.group, e.free = group, cluster.Close
	return nil
}

// end ends the session, trying until ctx ends. Safe to repeat.
func (e *ender) end(ctx context.Context, session seq.Session) error {
	select {
	case <-e.ready:
	case <-ctx.Done():
		return fmt.Errorf("end session %s: %w: stores not reached", session, seq.ErrNoQuorum)
	}
	for {
		err := e.group.EndSession(ctx, session)
		if err == nil || ctx.Err() != nil || !errors.Is(err, seq.ErrNoQuorum) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(connectPause):
		}
	}
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
