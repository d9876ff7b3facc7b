package quorum

import (
	"context"
	"time"
)

// bring repeats promises to stores that refuse to attach their registers, by steps without a ceiling, until
// ctx ends. A store that was away when a promise was given does not know it. If few callers use the
// register, its next step may be far away. If another store failed before that step, too few stores would
// keep the hold. A store may refuse again, for example because it does not know a new space yet. bring then
// tries again, at most twice in a lease.
func (l *Leases) bring(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.missed:
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		pause.Reset(l.cfg.Lease / 2)
		if items := l.unheard(); len(items) > 0 {
			l.cfg.Step(ctx, l.cfg.Session, items)
			l.askAgain()
		}
	}
}

// unheard are steps for all holds that some store refuses.
func (l *Leases) unheard() (items []StepItem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[*Hold]bool{}
	for _, s := range l.now.Load().stores {
		for h := range s.refused {
			if !seen[h] {
				seen[h] = true
				items = append(items, StepItem{Register: h.register, Round: h.round})
			}
		}
	}
	return items
}

// askAgain has stores asked with the next renewal for what they refused. It is not sent sooner: a
// store may go on refusing.
func (l *Leases) askAgain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.now.Load().stores {
		s.retryAt = time.Duration(never)
	}
}
