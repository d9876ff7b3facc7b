package etcdmodel

import (
	"context"
	"errors"
	"time"

	"github.com/seqsvr/seqsvr/internal/etcd/etcdstore"
)

// Fate says what happens to one message. The zero Fate belongs to a good network.
type Fate struct {
	There time.Duration // until it reaches etcd
	Back  time.Duration // until the answer is here
	Never bool          // it never reaches etcd
	Mute  bool          // it is done, and its answer is lost
	Twice time.Duration // time after which it is done again; zero if it is not
	// Despite makes etcd do it although it is full, and answer etcdstore.ErrNoSpace: the alarm may come
	// between.
	Despite bool
}

// Client is the way of one process to etcd. The context bounds how long a call waits, and takes
// no message back. It is safe for concurrent use.
type Client struct {
	Etcd *Etcd
	// Fate decides what happens to a message. Do calls it when it sends the message. If nil, every message
	// arrives.
	Fate func(t etcdstore.Txn) Fate
}

var _ etcdstore.KV = (*Client)(nil)

// Do implements etcdstore.KV.
func (c *Client) Do(ctx context.Context, t etcdstore.Txn) (etcdstore.Answer, error) {
	if c.Fate == nil {
		if err := ctx.Err(); err != nil {
			return etcdstore.Answer{}, err
		}
		return c.Etcd.Apply(t)
	}
	type outcome struct {
		etcdstore.Answer
		error
	}
	fate, answers := c.Fate(t), make(chan outcome, 1)
	if !fate.Never {
		time.AfterFunc(fate.There, func() {
			a, err := c.Etcd.Apply(t)
			if fate.Despite && errors.Is(err, etcdstore.ErrNoSpace) {
				_, _ = c.Etcd.apply(t)
			}
			if fate.Twice > 0 {
				time.AfterFunc(fate.Twice, func() { _, _ = c.Etcd.Apply(t) })
			}
			if !fate.Mute {
				time.AfterFunc(fate.Back, func() { answers <- outcome{a, err} })
			}
		})
	}
	select {
	case o := <-answers:
		return o.Answer, o.error
	case <-ctx.Done():
		return etcdstore.Answer{}, context.Cause(ctx)
	}
}
