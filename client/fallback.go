package client

import (
	"context"

	"github.com/seqsvr/seqsvr/client/fallback"
	"github.com/seqsvr/seqsvr/internal/sdk/call"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Defaults and limits of a Fallback.
const (
	DefaultFallbackAfter  = fallback.DefaultAfter
	DefaultFallbackWindow = fallback.DefaultWindow
	MinFallbackWindow     = fallback.MinWindow
	MaxFallbackWindow     = fallback.MaxWindow
)

// Fallback lets a Client make snowflake IDs by itself while the service is away.
type Fallback = fallback.Config

// FallbackStats is what a Client's fallback did so far, for metrics.
type FallbackStats = fallback.Stats

// fallbacks are the fallbacks of a Client, one a namespace. It is empty if Config has no Fallback.
type fallbacks []*fallback.Fallback

func (all fallbacks) stats() (sum FallbackStats) {
	for i, f := range all {
		one := f.Stats()
		sum.IDs, sum.Refused, sum.Windows = sum.IDs+one.IDs, sum.Refused+one.Refused, sum.Windows+one.Windows
		if i == 0 || one.ValidUntil.Before(sum.ValidUntil) {
			sum.ValidUntil = one.ValidUntil
		}
	}
	return sum
}

// of returns the fallback of a namespace, or nil if the namespace has none.
func (all fallbacks) of(namespace string) *fallback.Fallback {
	for _, f := range all {
		if f.Covers(namespace) {
			return f
		}
	}
	return nil
}

// openFallbacks opens the fallbacks that Config names.
func openFallbacks(c *Client) (all fallbacks) {
	if c.cfg.Fallback == nil {
		return nil
	}
	for _, namespace := range append([]string{c.cfg.Fallback.Namespace}, c.cfg.Fallback.Also...) {
		one := *c.cfg.Fallback
		one.Namespace, one.Also = namespace, nil
		f := fallback.New(one, c.cfg.Agent, lender{c}, c.cfg.Logger)
		all = append(all, f)
		c.lent.keep(c, f.Windows)
		c.calls.Go(func() { f.Watch(c.calls.Context()) })
	}
	return all
}

// lender is the service as the fallback sees it.
type lender struct{ c *Client }

// Delegate implements fallback.Lender. The node that lent the window before is asked first.
func (l lender) Delegate(ctx context.Context, r *pb.SnowflakeDelegateRequest) (reply *pb.SnowflakeDelegateReply, err error) {
	err = l.c.calls.AskOnce(ctx, r.GetNode(), func(ctx context.Context, s *call.Server) (err error) {
		reply, err = s.IDs.Delegate(ctx, r)
		return err
	})
	return reply, err
}

// GiveBack implements fallback.Lender.
func (l lender) GiveBack(ctx context.Context, r *pb.SnowflakeGiveBackRequest) error {
	return l.c.calls.AskOnce(ctx, r.GetNode(), func(ctx context.Context, s *call.Server) error {
		_, err := s.IDs.GiveBack(ctx, r)
		return err
	})
}

// Probe implements fallback.Service.
func (l lender) Probe(ctx context.Context, namespace string) error {
	_, err := generate(ctx, l.c, &pb.SnowflakeGenerateRequest{Namespace: namespace, Count: 1, Agent: l.c.cfg.Agent}, false)
	return err
}

// Final implements fallback.Service.
func (lender) Final(err error) bool { return call.Final(err) }
