package owner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/handover"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// handOverBatch bounds the sections that are sealed at one time. Their requests wait for two commits of the
// stores and four messages.
const handOverBatch = 256

// giveUp bounds the hand-over of one batch.
const giveUp = 3 * time.Second

// giver is an Owner as one that gives sections away.
type giver struct{ *Owner }

// seal seals an owned section for good. It returns false if the section is not owned.
func (g *giver) seal(id seq.SectionID) (handover.Sealed, bool) {
	epoch, table, ok := g.sections.Section(id).Seal()
	return handover.Sealed{ID: id, Epoch: epoch, Table: table, Mark: g.mark(id), Tickets: g.sections.Tickets(id)}, ok
}

// run hands over what the table wants elsewhere, for as long as ctx lasts.
func (g *giver) run(ctx context.Context) {
	retry := make(map[seq.Session]refusal)
	for g.giver.Wait(ctx, g.lease/2) {
		if g.leaving.Load() {
			continue
		}
		if g.drained() {
			g.empty(ctx)
		}
		now := g.clock.Now()
		maps.DeleteFunc(retry, func(_ seq.Session, r refusal) bool { return now > r.until+lastRefusal })
		for name, ids := range g.misplaced(now) {
			to, live := g.nodes.View(now).Live[name]
			if !live || now < retry[to.Session].until {
				continue
			}
			moved, err := g.handOverAll(ctx, to, ids)
			if err == nil {
				delete(retry, to.Session)
				continue
			}
			retry[to.Session] = retry[to.Session].again(g.clock.Now())
			if errors.Is(err, seq.ErrShuttingDown) {
				continue // it leaves, and will write into the table which nodes have its sections
			}
			g.log.Warn("hand-over failed", "to", name, "moved", moved, "of", len(ids), "error", err)
		}
	}
}

// refusal records that a session did not take an offer.
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
func (g *giver) misplaced(now time.Duration) map[string][]seq.SectionID {
	t := g.routes.Table()
	if t == nil {
		return nil
	}
	v := g.nodes.View(now)
	byNode := make(map[string][]seq.SectionID)
	for _, id := range g.sections.Owned() {
		owner, ok := t.Owner(id)
		if !ok || owner.Name == g.name {
			continue
		}
		if s, live := v.Live[owner.Name]; live && !g.suspects(owner.Name) && owner.Takes(s.Session) && g.nodes.Steady(s.Session, now) {
			byNode[owner.Name] = append(byNode[owner.Name], id)
		}
	}
	return byNode
}

// handOverAll hands the sections over batch by batch and stops at the first that fails.
func (g *giver) handOverAll(ctx context.Context, to quorum.SessionView, ids []seq.SectionID) (moved int, err error) {
	begin := g.clock.Now()
	ctx, span := g.traces.Rare(ctx, "alloc.handover")
	span.Text("to", to.Name)
	defer func() {
		span.Int("sections", moved)
		span.End(err)
	}()
	// An empty offer first: a peer that is away or leaving must not cost a seal.
	if err := g.peers.Offer(ctx, to.Addr, to.Session, nil); err != nil {
		return 0, err
	}
	for len(ids) > 0 {
		n := min(len(ids), handOverBatch)
		done, err := g.handOver(ctx, to, ids[:n])
		moved += done
		if err != nil {
			return moved, err
		}
		ids = ids[n:]
	}
	g.log.Info("sections handed over", "to", to.Name, "sections", moved, "took", (g.clock.Now() - begin).Round(time.Microsecond))
	return moved, nil
}

// handOver moves one batch: seal, send the counters, release at the stores, let the
// successor acquire, answer the waiting requests with its address.
//
// A failure before the release: this node acquires again, under a new epoch, and
// goes on from its own sealed counters. A failure after it: the first node that
// acquires goes on, and only counters sealed under the last accepted epoch are used, so in
// every case no number is handed out twice. A crash here is a crash of the owner.
func (g *giver) handOver(life context.Context, to quorum.SessionView, ids []seq.SectionID) (moved int, err error) {
	ctx, cancel := context.WithTimeout(life, giveUp)
	defer cancel()
	var sealed []handover.Sealed
	for _, id := range ids {
		if s, ok := g.seal(id); ok {
			s.Body = s.Table.AppendBinary(nil)
			sealed = append(sealed, s)
		}
	}
	if len(sealed) == 0 {
		return 0, nil
	}
	if err := g.peers.Offer(ctx, to.Addr, to.Session, sealed); err != nil {
		g.reclaim(sealed)
		return 0, err
	}
	items := make([]quorum.LeaseItem, len(sealed))
	open := make(map[seq.SectionID]handover.Sealed, len(sealed))
	for i, s := range sealed {
		items[i] = quorum.LeaseItem{Register: seq.SectionRegister(s.ID), Round: s.Epoch.Round, Seal: s.Digest()}
		open[s.ID] = s
	}
	if err := g.holder.Release(ctx, items, to.Session); err != nil {
		g.reclaim(sealed)
		return 0, err
	}
	taken := make([]seq.SectionID, 0, len(sealed))
	for _, s := range sealed {
		taken = append(taken, s.ID)
	}
	owned, err := g.letTake(life, to, taken)
	for _, id := range owned {
		if s, ok := open[id]; ok {
			g.sections.Section(id).Drop(s.Epoch, to.Addr)
			delete(open, id)
			moved++
		}
	}
	g.handoffs.Add(1)
	if len(open) > 0 {
		rest := make([]handover.Sealed, 0, len(open))
		for _, s := range open {
			rest = append(rest, s)
		}
		g.reclaim(rest)
	}
	return moved, err
}

// takePatience bounds how long a successor that lives is left to take what was released for it.
const takePatience = 10 * time.Second

// letTake makes the successor acquire the released sections, and repeats that while the successor lives and
// has not acquired them. An earlier attempt of it may have been accepted late. Only the successor knows
// then that nothing was handed out under that epoch (handover.Sealed.Also). Any other node, also this one,
// must go on from the base, which leaves a gap. If a section was sealed for a move to another Set
// meanwhile, letTake does not wait for it, because no node of this Set takes it. letTake returns
// errNotTaken.
func (g *giver) letTake(ctx context.Context, to quorum.SessionView, ids []seq.SectionID) (owned []seq.SectionID, err error) {
	ctx, cancel := context.WithTimeout(ctx, takePatience)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, giveUp)
		owned, err = g.peers.Take(try, to.Addr, to.Session, ids)
		done()
		if len(owned) == len(ids) {
			return owned, err
		}
		if record, err := g.record.Load(ctx); err == nil && !lacks(record, ids, owned) {
			return owned, nil
		}
		lives := g.nodes.Present()[to.Name].Session == to.Session && !g.routes.Table().Leaves(to.Name, to.Session)
		if errors.Is(err, seq.ErrNodeUnfit) || !lives {
			return owned, errors.Join(err, errNotTaken)
		}
		select {
		case <-ctx.Done():
			return owned, errors.Join(err, errNotTaken)
		case <-time.After(g.lease / 50):
		}
	}
}

// lacks reports whether the Set has a wanted section that is not among the owned.
func lacks(record sets.Record, wanted, owned []seq.SectionID) bool {
	return slices.ContainsFunc(wanted, func(id seq.SectionID) bool { return record.Has(id) && !slices.Contains(owned, id) })
}

// errNotTaken: the successor could not acquire what it was offered.
var errNotTaken = errors.New("successor did not take all sections")

// reclaim gives sealed sections of a failed hand-over another chance: this node may
// acquire them again, and then go on from where it sealed them.
func (g *giver) reclaim(sealed []handover.Sealed) {
	g.kept.Keep(sealed...)
	ids, record := make([]seq.SectionID, 0, len(sealed)), g.record.Known()
	for _, s := range sealed {
		if g.sections.Section(s.ID).Drop(s.Epoch, ""); record.Has(s.ID) {
			ids = append(ids, s.ID)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveUp)
	defer cancel()
	g.acquire(ctx, ids, nil)
	g.seeker.Kick()
}
