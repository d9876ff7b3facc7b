package quorum

import (
	"context"
	"time"
)

// bring repeats the promises of what stores refuse to attach, by steps without a ceiling, until
// ctx ends. A store that was away when they were given has not heard of them, and the next step of
// a register that hardly anybody takes from may be far away: were another store to go before
// that, too few would be left that keep the hold. What is refused again, as by a store that was not
// yet told of a space, is brought again, twice in a lease at most.
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
