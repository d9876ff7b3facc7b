package client

import (
	"context"

	"github.com/seqsvr/seqsvr/client/fallback"
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

// FallbackStats is zero without Config.Fallback.
func (c *Client) FallbackStats() FallbackStats {
	if c.fallback == nil {
		return FallbackStats{}
	}
	return c.fallback.Stats()
}

// lender is the service as the fallback sees it.
type lender struct{ c *Client }

// Delegate implements fallback.Service.
func (l lender) Delegate(ctx context.Context, r *pb.SnowflakeDelegateRequest) (reply *pb.SnowflakeDelegateReply, err error) {
	err = unary(ctx, l.c, &forOnce, "", func(ctx context.Context, s *server) (err error) {
		reply, err = s.ids.Delegate(ctx, r)
		return err
	})
	return reply, err
}

// Final implements fallback.Service.
func (lender) Final(err error) bool { return final(err) }
