package etcdstore

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// tooNew is the error for a cluster that requires a newer build.
func (m meta) tooNew() error {
	return fmt.Errorf("%w: this build speaks %d, the cluster requires %d: start a newer build", seq.ErrProtocol, version.Protocol, m.Required)
}

// Require raises the protocol that sessions must speak, and never lowers it. Older builds then write
// nothing more, because every write compares the meta. If a live session is older, Require fails with
// seq.ErrProtocol and the session's name. Other errors come from KV, remeta and ctx.
func (s *Store) Require(ctx context.Context, protocol int) error {
	if err := s.require(ctx, protocol); err != nil {
		return fmt.Errorf("require protocol %d in etcd below %s: %w", protocol, s.cluster.prefix, err)
	}
	return nil
}

func (s *Store) require(ctx context.Context, protocol int) error {
	c := s.cluster
	look := []Op{get(c.keys.meta()), all(c.keys.sessions())}
	for {
		a, err := c.do(ctx, Txn{Then: look})
		if err == nil {
			err = c.remeta(ctx, a)
		}
		if err != nil {
			return err
		}
		now, err := readMeta(a)
		if err != nil || now.Required >= protocol {
			return err
		}
		if _, err := c.older(a.Results[1].KVs, protocol); err != nil {
			return err
		}
		next := now.meta
		next.Required = protocol
		next.Poison = next.gate()
		if a, err = c.do(ctx, Txn{If: []Compare{modified(c.keys.meta(), now.rev)}, Then: append([]Op{put(c.keys.meta(), encode(c.keys.meta(), next))}, look...)}); err != nil {
			return err
		}
		if !a.Then {
			continue
		}
		a.Results = a.Results[1:]
		if err := c.remeta(ctx, a); err != nil {
			return err
		}
		// A session that began meanwhile renews no more, and serves until its lease ends.
		lease, _ := c.older(a.Results[1].KVs, protocol)
		if !wake.Sleep(ctx, lease+time.Duration(2*quorum.Rho*float64(lease))) {
			return context.Cause(ctx)
		}
		c.logger.Info("sessions must speak a protocol from now on", "required", protocol)
		return nil
	}
}

// older returns the longest lease of the sessions that speak an older protocol, with
// seq.ErrProtocol that names one of them.
func (c *cluster) older(sessions []KeyValue, protocol int) (lease time.Duration, err error) {
	for _, kv := range sessions {
		var s session
		if err := decode(kv, &s); err != nil {
			return 0, err
		}
		if s.Protocol < protocol {
			lease = max(lease, s.Lease)
			err = fmt.Errorf("%w: node %q at %s speaks %d, %d is to be required: upgrade the node first", seq.ErrProtocol, s.Name, s.Addr, max(s.Protocol, version.SetsBefore), protocol)
		}
	}
	return lease, err
}
