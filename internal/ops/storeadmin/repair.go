package storeadmin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/internal/wire/storewire"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// lasting is the time for which a voter must lack a state of another voter before repair sends it. A write
// under way arrives by itself within that time.
const lasting = 300 * time.Millisecond

// states is what one store has.
type states map[seq.Register]quorum.RegisterState

func (s states) sorted() []quorum.RegisterState {
	return slices.SortedFunc(maps.Values(s), func(a, b quorum.RegisterState) int { return cmp.Compare(a.Register, b.Register) })
}

// source is a voter, or the learner, with what it has.
type source struct {
	quorum.Member
	client *storeclient.Client
	id     quorum.Identity
	has    states
}

// repairing brings the stores of a list up to date.
type repairing struct{ *cluster }

func (c *Care) repair(ctx context.Context) error { return repairing{&c.cluster}.run(ctx) }

// run has everything that was confirmed so far at W voters of the list in force, and
// all of it at the learner, if there is one. Afterwards another list may follow.
//
// All of it was confirmed under this list or one before, and a quorum of any such list
// shares a store with the W that are read here, all of which refuse the lists before. No
// lease of a list before is left either: the list is as old as the longest lease.
func (c repairing) run(ctx context.Context) error {
	if err := c.outwait(ctx); err != nil {
		return err
	}
	voters, learner, err := c.ask(ctx)
	if err != nil {
		return err
	}
	all := voters
	if learner != nil {
		all = append(slices.Clone(voters), learner)
	}
	if err := c.level(ctx, all); err != nil {
		return err
	}
	if err := c.dump(ctx, voters); err != nil {
		return err
	}
	merged := merge(voters)
	if err := c.repairDocuments(ctx, merged); err != nil {
		return err
	}
	if err := c.spread(ctx, voters, merged); err != nil {
		return err
	}
	if learner == nil {
		return nil
	}
	// Again, because the documents have changed. The learner has what others got of it
	// before, if this is not the first try.
	if err := c.dump(ctx, voters); err != nil {
		return err
	}
	if err := c.dump(ctx, []*source{learner}); err != nil {
		return err
	}
	for _, s := range voters { // before it counts as filled
		if want := s.id.Required; want > learner.id.Required {
			if err := learner.client.Require(ctx, c.name, c.era, want, false, true); err != nil {
				return err
			}
			learner.id.Required = want
		}
	}
	return c.send(ctx, learner, learner.lacks(merge(voters), true), true, longest(voters))
}

// merge returns everything that any of the stores has.
func merge(sources []*source) states {
	all := states{}
	for _, s := range sources {
		for r, st := range s.has {
			if have, there := all[r]; there {
				st = quorum.Merge(have, st)
			}
			all[r] = st
		}
	}
	return all
}

func longest(sources []*source) (bound time.Duration) {
	for _, s := range sources {
		bound = max(bound, s.id.LeaseBound)
	}
	return bound
}

// outwait waits until every lease of the lists before has ended, no voter is in its grace, and
// as many vote as a read of a document needs: a new one compares its disk first.
func (c repairing) outwait(ctx context.Context) error {
	for {
		voters, _, err := c.ask(ctx)
		left := pause
		if err == nil && len(voters) < c.list.R {
			err = fmt.Errorf("%w: %d voters answer, a read needs %d", seq.ErrNoQuorum, len(voters), c.list.R)
		}
		if err == nil {
			left = 0
			for _, s := range voters {
				left = max(left, s.id.Grace, graceOf(longest(voters))-s.id.ListAge)
			}
		}
		if err == nil && left == 0 {
			return nil
		}
		if ended := wait(ctx, left); ended != nil {
			return fmt.Errorf("wait for leases of the list before to end: %w", errors.Join(ended, err))
		}
	}
}

// graceOf returns how long a lease may last by any clock, as in the stores' own grace.
func graceOf(bound time.Duration) time.Duration {
	return bound + time.Duration(2*quorum.Rho*float64(bound)) + quorum.Guard
}

// repairDocuments has every document chosen again under this list.
func (c repairing) repairDocuments(ctx context.Context, merged states) error {
	for _, r := range slices.Sorted(maps.Keys(merged)) {
		if !r.HasPayload() {
			continue
		}
		if err := c.group.RepairDocument(ctx, c.session, r); err != nil {
			return err
		}
	}
	return nil
}

// spread gives the voters what they still lack of merged after a while.
func (c repairing) spread(ctx context.Context, voters []*source, merged states) error {
	if !slices.ContainsFunc(voters, func(s *source) bool { return len(s.lacks(merged, false)) > 0 }) {
		return nil
	}
	for begun := time.Now(); ; {
		if err := wait(ctx, lasting); err != nil {
			return err
		}
		if err := c.dump(ctx, voters); err != nil {
			return err
		}
		for _, s := range voters {
			if err := c.send(ctx, s, s.lacks(merged, false), false, 0); err != nil {
				return err
			}
		}
		if !voters[0].id.Mapping.HasExact() {
			return nil
		}
		if err := c.dump(ctx, voters); err != nil {
			return err
		}
		if err := c.stand(voters, merged); err == nil || time.Since(begun) > cmp.Or(c.Takeovers, DefaultTakeovers) {
			return err
		}
	}
}

// stand says whether W voters have as much of every exact section as any of them had. One that
// promised a higher epoch takes no copy from here: the node that takes the section over brings it one.
func (c repairing) stand(voters []*source, merged states) error {
	for _, st := range merged.sorted() {
		if id, ok := st.Register.Section(); !ok || !voters[0].id.Mapping.IsExact(id) {
			continue
		}
		have := 0
		for _, s := range voters {
			if !position(s.has[st.Register]).Less(position(st)) {
				have++
			}
		}
		if have < c.list.W {
			return fmt.Errorf("%w: %s: a takeover is under way, and %d of %d stores have all of it: repeat the command while an AllocSvr runs",
				seq.ErrNoQuorum, st.Register, have, c.list.W)
		}
	}
	return nil
}

func position(st quorum.RegisterState) exact.Position {
	return exact.Position{Epoch: st.Accepted, Index: st.PayloadMax}
}

// lacks returns what the source does not have of merged, in the order of the names.
func (s *source) lacks(merged states, documents bool) []quorum.RegisterState {
	var out []quorum.RegisterState
	for _, st := range merged.sorted() {
		have, there := s.has[st.Register]
		if (documents || st.Register.Leased()) && (!there || !sameState(quorum.Merge(have, st), have)) {
			out = append(out, st)
		}
	}
	return out
}

func sameState(a, b quorum.RegisterState) bool {
	return a.Promised == b.Promised && a.Accepted == b.Accepted && a.Max == b.Max && a.PayloadMax == b.PayloadMax && bytes.Equal(a.Payload, b.Payload)
}

// send fills a store in messages of bounded size. complete tells a learner that it has
// everything with these.
func (c repairing) send(ctx context.Context, s *source, some []quorum.RegisterState, complete bool, bound time.Duration) error {
	for done := len(some) == 0 && !complete; !done; {
		n := storewire.Batch(some)
		last := n == len(some)
		_, err := s.client.Fill(ctx, c.ref(), c.secret, some[:n], complete && last, bound)
		if errors.Is(err, seq.ErrOverloaded) { // in its grace: it has just restarted
			if ended := wait(ctx, pause); ended != nil {
				return fmt.Errorf("%w: %w", ended, err)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("fill store %s: %w", s.Name, err)
		}
		some, done = some[n:], last
	}
	return nil
}

// level tells stores of spaces that others of them have heard of: what is merged into a store
// must be registers that it has.
func (c repairing) level(ctx context.Context, stores []*source) error {
	m := mappingOf(stores)
	for _, s := range stores {
		if s.id.Mapping.Extends(m) {
			continue
		}
		within, cancel := context.WithTimeout(ctx, askTime)
		id, err := s.client.Extend(within, c.name, c.era, m)
		cancel()
		if err != nil {
			return err
		}
		s.id.Mapping = id.Mapping
	}
	return nil
}
