package quorum

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

const (
	// refreshTime bounds the time that one operation starts over because the member lists of the group and
	// of the stores differ.
	refreshTime = 3 * time.Second
	// refreshPause is the time between two tries. A store that lacks the newer list gets it soon.
	refreshPause = 25 * time.Millisecond
)

// patience bounds the time that an operation starts over. The zero value is ready.
type patience struct{ ends time.Time }

// Reconfigure sends every later round to the stores of another member list. Rounds under way end as they
// began. The caller must know that the list was decided: any store that has it is proof. If Reconfigure
// returns ErrBadConfig, nothing has changed.
func (g *Group) Reconfigure(cfg Config, stores []NamedStore) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if err := checkStores(stores, cfg.N); err != nil {
		return err
	}
	old := g.now.Load().cfg
	cfg.Timeout, cfg.OnStale, cfg.OnClaim, cfg.Secret = old.Timeout, old.OnStale, old.OnClaim, old.Secret
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now.Store(&view{cfg, slices.Clone(stores), newNearest(cfg.N)})
	close(g.change)
	g.change = make(chan struct{})
	return nil
}

// Config returns the configuration of the next round.
func (g *Group) Config() Config { return g.now.Load().cfg }

// outdated calls Config.OnStale if a store refused the member list of v.
func (g *Group) outdated(v *view, err error) {
	if v.cfg.OnStale != nil && errors.Is(err, seq.ErrStaleEra) {
		v.cfg.OnStale()
	}
}

// refreshed waits until the group has another view than v, or for a moment; false if
// there is no point in another try.
func (g *Group) refreshed(ctx context.Context, v *view, p *patience) bool {
	if v.cfg.OnStale == nil {
		return false
	}
	if p.ends.IsZero() {
		p.ends = time.Now().Add(refreshTime)
	}
	if !time.Now().Before(p.ends) {
		return false
	}
	g.mu.Lock()
	change := g.change
	g.mu.Unlock()
	if g.now.Load() != v {
		return true
	}
	timer := time.NewTimer(refreshPause)
	defer timer.Stop()
	select {
	case <-change:
		return true
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// stale says whether an item is undecided while a store refused the caller's member
// list: under the stores' own it may be decided.
func (b *batch) stale() bool {
	if !slices.ContainsFunc(b.answers, func(a answer) bool { return errors.Is(a.err, seq.ErrStaleEra) }) {
		return false
	}
	for i := range b.length {
		if s, _ := b.state(i); s == Unknown {
			return true
		}
	}
	return false
}
