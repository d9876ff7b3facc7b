package allocsvr

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// handOverBatch is how many sections are sealed at one time: their requests wait
// for two commits of the stores and four messages.
const handOverBatch = 256

// giveUp bounds one hand-over of a batch.
const giveUp = 3 * time.Second

// Peers are the other AllocSvr, by session and address.
type Peers interface {
	// Offer hands the sealed sections to the session at addr. An error means
	// that the peer may or may not have them.
	Offer(ctx context.Context, addr string, to seq.Session, sections []sealedSection) error
	// Take lets the session acquire what was offered; it tells what it owns now.
	Take(ctx context.Context, addr string, to seq.Session, ids []seq.SectionID) (owned []seq.SectionID, err error)
}

// give hands over what the table wants elsewhere, for as long as ctx lasts.
func (a *Alloc) give(ctx context.Context) {
	retry := make(map[seq.Session]refusal)
	for a.giver.wait(ctx, a.lease/2) {
		if a.leaving.Load() {
			continue
		}
		if a.drained() {
			a.empty(ctx)
		}
		now := a.clock.Now()
		maps.DeleteFunc(retry, func(_ seq.Session, r refusal) bool { return now > r.until+lastRefusal })
		for name, ids := range a.misplaced(now) {
			to, live := a.view(now).live[name]
			if !live || now < retry[to.Session].until {
				continue
			}
			moved, err := a.handOverAll(ctx, to, ids)
			if err == nil {
				delete(retry, to.Session)
				continue
			}
			retry[to.Session] = retry[to.Session].again(a.clock.Now())
			if errors.Is(err, seq.ErrShuttingDown) {
				continue // it leaves, and will write into the table who has its sections
			}
			a.log.Warn("hand-over failed", "to", name, "moved", moved, "of", len(ids), "error", err)
		}
	}
}

// refusal is of a session that did not take what it was offered.
type refusal struct {
	until time.Duration // nothing is offered before
	pause time.Duration // of the last time
}

// The pause after a hand-over that failed: a try costs the callers of the sections a wait,
// and a peer that has no time for it has less by each.
const (
	firstRefusal = time.Second
	lastRefusal  = 30 * time.Second
)

func (r refusal) again(now time.Duration) refusal {
	pause := min(max(2*r.pause, firstRefusal), lastRefusal)
	return refusal{until: now + pause, pause: pause}
}

// misplaced groups this node's sections that the table wants at another live node.
func (a *Alloc) misplaced(now time.Duration) map[string][]seq.SectionID {
	t := a.routes.table()
	if t == nil {
		return nil
	}
	v := a.view(now)
	byNode := make(map[string][]seq.SectionID)
	for _, id := range a.owned() {
		owner, ok := t.Owner(id)
		if !ok || owner.Name == a.name {
			continue
		}
		if s, live := v.live[owner.Name]; live && owner.Takes(s.Session) && a.steady(s.Session, now) {
			byNode[owner.Name] = append(byNode[owner.Name], id)
		}
	}
	return byNode
}

// handOverAll hands the sections over batch by batch and stops at the first that fails.
func (a *Alloc) handOverAll(ctx context.Context, to quorum.SessionView, ids []seq.SectionID) (moved int, err error) {
	begin := a.clock.Now()
	ctx, span := a.traces.Rare(ctx, "alloc.handover")
	span.Text("to", to.Name)
	defer func() {
		span.Int("sections", moved)
		span.End(err)
	}()
	// An empty offer first: a peer that is away or leaving must not cost a seal.
	if err := a.peers.Offer(ctx, to.Addr, to.Session, nil); err != nil {
		return 0, err
	}
	for len(ids) > 0 {
		n := min(len(ids), handOverBatch)
		done, err := a.handOver(ctx, to, ids[:n])
		moved += done
		if err != nil {
			return moved, err
		}
		ids = ids[n:]
	}
	a.log.Info("sections handed over", "to", to.Name, "sections", moved, "took", (a.clock.Now() - begin).Round(time.Microsecond))
	return moved, nil
}

// handOver moves one batch: seal, send the counters, release at the stores, let the
// successor acquire, answer the waiting requests with its address.
//
// A failure before the release: this node acquires again, under a new epoch, and
// goes on from its own sealed counters. A failure after it: whoever acquires first
// goes on, and only counters sealed under the last accepted epoch are used, so in
// every case no number is handed out twice. A crash here is a crash of the owner.
func (a *Alloc) handOver(life context.Context, to quorum.SessionView, ids []seq.SectionID) (moved int, err error) {
	ctx, cancel := context.WithTimeout(life, giveUp)
	defer cancel()
	var sealed []sealedSection
	for _, id := range ids {
		if s, ok := a.cells[id].seal(); ok {
			s.body = s.table.AppendBinary(nil)
			sealed = append(sealed, s)
		}
	}
	if len(sealed) == 0 {
		return 0, nil
	}
	if err := a.peers.Offer(ctx, to.Addr, to.Session, sealed); err != nil {
		a.reclaim(sealed)
		return 0, err
	}
	items := make([]quorum.LeaseItem, len(sealed))
	open := make(map[seq.SectionID]sealedSection, len(sealed))
	for i, s := range sealed {
		items[i] = quorum.LeaseItem{Register: seq.SectionRegister(s.id), Round: s.epoch.Round, Seal: s.digest()}
		open[s.id] = s
	}
	if err := a.holder.Release(ctx, items, to.Session); err != nil {
		a.reclaim(sealed)
		return 0, err
	}
	taken := make([]seq.SectionID, 0, len(sealed))
	for _, s := range sealed {
		taken = append(taken, s.id)
	}
	owned, err := a.letTake(life, to, taken)
	for _, id := range owned {
		if s, ok := open[id]; ok {
			a.cells[id].drop(s.epoch, to.Addr)
			delete(open, id)
			moved++
		}
	}
	a.stats.handoffs.Add(1)
	if len(open) > 0 {
		rest := make([]sealedSection, 0, len(open))
		for _, s := range open {
			rest = append(rest, s)
		}
		a.reclaim(rest)
		err = errors.Join(err, errNotTaken)
	}
	return moved, err
}

// takePatience bounds how long a successor that lives is left to take what was released for it.
const takePatience = 10 * time.Second

// letTake lets the successor acquire what was released for it, and again while it lives and
// has not: an attempt of it that was late may have been accepted, and it alone knows then that
// nothing was handed out under that epoch (sealedSection.also). Any other node that acquires,
// this one too, has to go on from the base, which leaves a gap.
func (a *Alloc) letTake(ctx context.Context, to quorum.SessionView, ids []seq.SectionID) (owned []seq.SectionID, err error) {
	ctx, cancel := context.WithTimeout(ctx, takePatience)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, giveUp)
		owned, err = a.peers.Take(try, to.Addr, to.Session, ids)
		done()
		lives := a.present()[to.Name].Session == to.Session && !a.routes.table().leaves(to.Name, to.Session)
		if len(owned) == len(ids) || errors.Is(err, seq.ErrNodeUnfit) || !lives {
			return owned, err
		}
		select {
		case <-ctx.Done():
			return owned, err
		case <-time.After(a.lease / 50):
		}
	}
}

// errNotTaken: the successor could not acquire what it was offered.
var errNotTaken = errors.New("successor did not take all sections")

// reclaim gives sealed sections of a failed hand-over another chance: this node may
// acquire them again, and then go on from where it sealed them.
func (a *Alloc) reclaim(sealed []sealedSection) {
	a.heirs.keep(sealed...)
	ids := make([]seq.SectionID, 0, len(sealed))
	for _, s := range sealed {
		a.cells[s.id].drop(s.epoch, "")
		ids = append(ids, s.id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	a.acquire(ctx, ids)
	a.seeker.kick()
}

// acceptOffer keeps counters that a peer hands to this session, or says that it does.
func (a *Alloc) acceptOffer(sections []sealedSection) error {
	if a.leaving.Load() {
		return seq.ErrShuttingDown
	}
	a.heirs.offer(sections...)
	return nil
}

// takeOffered acquires what a peer has released for this session. It tries again
// for a moment: a look of this node's own may be at the same sections just now, and
// until they are owned the peer's callers wait.
func (a *Alloc) takeOffered(ctx context.Context, ids []seq.SectionID) []seq.SectionID {
	const (
		patience = 300 * time.Millisecond // below quorum.ReserveTime
		pause    = 2 * time.Millisecond
	)
	begin := a.clock.Now()
	kept := 0
	for {
		done, leaving := a.gain(ctx, ids)
		kept += done.kept
		have := a.ownedOf(ids)
		if leaving || len(have) == len(ids) || ctx.Err() != nil || a.clock.Now()-begin > patience {
			a.log.Info("sections taken by hand", "sections", len(have), "of", len(ids), "with counters", kept,
				"took", (a.clock.Now() - begin).Round(time.Microsecond))
			return have
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// ownedOf lists which of the sections this node owns.
func (a *Alloc) ownedOf(ids []seq.SectionID) []seq.SectionID {
	have := make([]seq.SectionID, 0, len(ids))
	for _, id := range ids {
		if a.stateOf(a.cells[id]) == owned {
			have = append(have, id)
		}
	}
	return have
}
