package auth

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// refusals counts the calls that were refused or, in Accept, would have been.
type refusals struct{ unknown, forbidden, quota atomic.Uint64 }

func (r *refusals) of(err error) *atomic.Uint64 {
	switch {
	case errors.Is(err, seq.ErrQuota):
		return &r.quota
	case errors.Is(err, seq.ErrForbidden), errors.Is(err, seq.ErrNotSession):
		return &r.forbidden
	}
	return &r.unknown
}

// Refused returns the number of calls that were refused, by reason. In Accept it counts the calls that
// Require would refuse. It has every reason, and zeros for a nil Guard.
func (g *Guard) Refused() map[string]uint64 {
	if g == nil {
		g = &Guard{}
	}
	return map[string]uint64{
		"unauthenticated": g.refuse.unknown.Load(),
		"forbidden":       g.refuse.forbidden.Load(),
		"quota":           g.refuse.quota.Load(),
	}
}

// verdict counts and logs a refusal, which holds in Require alone.
func (g *Guard) verdict(h holder, method string, err error) error {
	if err == nil {
		return nil
	}
	g.refuse.of(err).Add(1)
	g.tell(h, method, err)
	if g.cfg.Mode != Require {
		return nil
	}
	return err
}

// tell logs a refusal, at most one a second.
func (g *Guard) tell(h holder, method string, err error) {
	if errors.Is(err, seq.ErrQuota) {
		return // an everyday matter
	}
	now, last := int64(time.Since(g.begun)), g.told.Load()
	if now-last < int64(time.Second) || !g.told.CompareAndSwap(last, now) {
		g.untold.Add(1)
		return
	}
	text := "call refused"
	if g.cfg.Mode != Require {
		text = "call served that --auth require would refuse"
	}
	g.log.Warn(text, "method", method, "by", h.id, "error", err, "others_not_logged", g.untold.Swap(0))
}

// QuotaError is a seq.ErrQuota that knows when to come again.
type QuotaError struct {
	By, Of     string
	Rate       Rate
	RetryAfter time.Duration
}

// Error says when to come again.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("%v: %s has %d keys a second of %s: come again in %v", seq.ErrQuota, e.By, e.Rate.PerSecond, e.Of, e.RetryAfter)
}

// Unwrap makes errors.Is(err, seq.ErrQuota) hold.
func (e *QuotaError) Unwrap() error { return seq.ErrQuota }
