// Package memstore is a cluster of stores in memory: the acceptor that StoreSvr
// ships, behind quorum.Store, without disk or network. Tests of what stands above
// the stores use it where they want faults at exact moments.
package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// Cluster is n stores of one cluster.
type Cluster struct {
	mu      sync.Mutex // guards Ref while Restore runs
	Ref     quorum.Ref
	Mapping seq.Mapping
	Stores  []*Store
}

// New makes n stores with all registers of the mapping, on one clock.
func New(n int, m seq.Mapping, c clock.Clock, maxLease time.Duration) *Cluster {
	out := &Cluster{Ref: quorum.Ref{Cluster: "mem", Era: 1, Members: 1}, Mapping: m}
	for i := range n {
		s := &Store{uuid: fmt.Sprintf("mem-%d", i+1), ref: out.Ref, clock: c, maxLease: maxLease, mapping: m, disk: map[seq.Register]acceptor.State{}, copies: map[seq.SectionID]*exact.Copy{}}
		for id := range seq.SectionID(m.Sections()) {
			s.disk[seq.SectionRegister(id)] = acceptor.State{}
			if space, _ := m.SpaceOf(id); space.Mode == seq.Exact {
				s.copies[id] = exact.NewCopy(space.Window.Milliseconds())
			}
		}
		for _, r := range seq.FixedRegisters() {
			s.disk[r] = acceptor.State{}
		}
		s.Restart()
		out.Stores = append(out.Stores, s)
	}
	return out
}

// Rename gives the cluster another id. Call it before anything connects.
func (c *Cluster) Rename(id string) {
	c.Ref.Cluster = id
	for _, s := range c.Stores {
		s.ref.Cluster = id
	}
}

// Registers are what a backup would have: of each register the highest of all stores.
func (c *Cluster) Registers() []quorum.RegisterState {
	all := map[seq.Register]acceptor.State{}
	for _, s := range c.Stores {
		s.mu.Lock()
		for r, st := range s.disk {
			if old, there := all[r]; !there || old.Accepted.Less(st.Accepted) || old.Accepted == st.Accepted && old.Max < st.Max {
				all[r] = st
			}
		}
		s.mu.Unlock()
	}
	var out []quorum.RegisterState
	for r, st := range all {
		st.Promised = seq.Epoch{Round: st.Promised.Round + 1000, Session: 1} // above what other stores promised
		out = append(out, st.Of(r))
	}
	slices.SortFunc(out, func(x, y quorum.RegisterState) int { return strings.Compare(string(x.Register), string(y.Register)) })
	return out
}

// Told returns Ref, for callers that run beside Restore.
func (c *Cluster) Told() quorum.Ref {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Ref
}

// Restore puts all stores into a new era that begins with the registers. No process of the era
// before may still run.
func (c *Cluster) Restore(era seq.Era, registers map[seq.Register]acceptor.State, floors quorum.Floors) {
	c.mu.Lock()
	c.Ref.Era = era
	c.mu.Unlock()
	for _, s := range c.Stores {
		s.mu.Lock()
		s.ref.Era, s.disk, s.floors = era, maps.Clone(registers), floors
		s.mu.Unlock()
		s.Restart()
	}
}

// Named lists the stores as a quorum.Group and quorum.Leases want them.
func (c *Cluster) Named() []quorum.NamedStore {
	out := make([]quorum.NamedStore, len(c.Stores))
	for i, s := range c.Stores {
		out[i] = quorum.NamedStore{Name: s.uuid, UUID: s.uuid, Store: s}
	}
	return out
}

// Group is a quorum over all stores with majorities.
func (c *Cluster) Group() (*quorum.Group, error) {
	w := len(c.Stores)/2 + 1
	return quorum.NewGroup(quorum.Config{Ref: c.Ref, N: len(c.Stores), R: w, W: w}, c.Named())
}

// Store is one replica in memory. Its disk survives Restart; its leases do not.
type Store struct {
	uuid     string
	ref      quorum.Ref
	clock    clock.Clock
	maxLease time.Duration
	mapping  seq.Mapping // as New was given it

	mu        sync.Mutex // guards all below
	core      *acceptor.Acceptor
	disk      map[seq.Register]acceptor.State
	copies    map[seq.SectionID]*exact.Copy // of the sections of exact spaces
	floors    quorum.Floors
	bound     time.Duration
	boot      uint64
	commits   uint64
	down      bool
	loseSteps int
	deaf      bool          // takes requests in, and loses the answers
	bounded   bool          // takes no records from beyond its clock
	wrong     time.Duration // by how much its clock is ahead
	reticent  bool          // does not tell its clock, as a build of the version before
	full      bool          // says that it has no memory for more
	// unreadable is true if it gives no copies of exact sections.
	unreadable bool
	far        time.Duration // on the way to it
}

// ahead bounds how far beyond its clock a store takes records, as storesvr.LogAhead does.
const ahead = 10 * time.Second

// SetClock sets by how much the store's clock is ahead. From then on the store takes no records
// from too far beyond that clock.
func (s *Store) SetClock(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounded, s.wrong = true, by
}

// SetReticent has the store keep its clock to itself, as a build of the version before.
func (s *Store) SetReticent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reticent = true
}

// SetFar has calls take so long to reach the store.
func (s *Store) SetFar(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.far = by
}

// SetUnreadable has the store give no copies of exact sections, or give them again.
func (s *Store) SetUnreadable(unreadable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreadable = unreadable
}

// SetFull has the store say that it has no memory for more of exact spaces.
func (s *Store) SetFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// wall is what its clock shows. Callers hold s.mu.
func (s *Store) wall() time.Time { return time.Now().Add(s.wrong) }

// Restart is a crash and a start: the disk stays, lease memory goes, grace begins.
func (s *Store) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	registers := make(map[seq.Register]acceptor.State, len(s.disk))
	for r, st := range s.disk {
		registers[r] = st
	}
	core, err := acceptor.New(acceptor.Config{Registers: registers, MaxLease: s.maxLease, LeaseBound: s.bound, Start: s.clock.Now(), Floors: s.floors, Copies: s.copyOf, Space: s.mapping.SpaceOf})
	if err != nil {
		panic(err) // the acceptor's own state broke its invariants
	}
	s.core, s.down = core, false
	s.boot++
}

// Extend makes the registers of sections in [from, to), as a store does that hears of a space.
func (s *Store) Extend(from, to seq.SectionID) error {
	return s.call(context.Background(), s.ref, func(time.Duration) error { return s.core.Extend(from, to) })
}

// copyOf is the copy of a section of an exact space, nil for any other. It is on the disk at once:
// no call ends between the two.
func (s *Store) copyOf(id seq.SectionID) *exact.Copy { return s.copies[id] }

// SetDown makes every call fail without effect, or ends that.
func (s *Store) SetDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Max is the register's max on the store's disk.
func (s *Store) Max(r seq.Register) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disk[r].Max
}

// SetDeaf makes every call take effect and fail all the same, or ends that.
func (s *Store) SetDeaf(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = deaf
}

// LoseSteps makes the next n steps of sections take effect and their answers be lost.
func (s *Store) LoseSteps(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseSteps = n
}

// errDown is what a caller of a dead store sees.
var errDown = fmt.Errorf("store is down: %w", context.DeadlineExceeded)

// call runs f on the core, commits what it changed, and answers.
func (s *Store) call(ctx context.Context, ref quorum.Ref, f func(now time.Duration) error) error {
	s.mu.Lock()
	far := s.far
	s.mu.Unlock()
	if far > 0 {
		select {
		case <-time.After(far):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.down {
		return errDown
	}
	if err := s.admit(ref); err != nil {
		return err
	}
	if err := f(s.clock.Now()); err != nil {
		return err
	}
	changes := s.core.Changes()
	for _, c := range changes {
		s.disk[c.Register] = c.State
	}
	if len(changes)+len(s.core.Entries()) > 0 {
		s.commits++
	}
	s.core.Committed()
	if s.deaf {
		return errDown
	}
	return nil
}

// admit says whether the caller means this store and whether it votes.
func (s *Store) admit(ref quorum.Ref) error {
	switch {
	case ref.Cluster != s.ref.Cluster:
		return fmt.Errorf("store %s: %w: the caller is of %q", s.uuid, seq.ErrForeignCluster, ref.Cluster)
	case ref != s.ref:
		return fmt.Errorf("store %s: %w: it has %+v, the caller %+v", s.uuid, seq.ErrStaleEra, s.ref, ref)
	}
	return nil
}

// Read implements quorum.Store.
func (s *Store) Read(ctx context.Context, req quorum.ReadRequest) (reply quorum.Reply, err error) {
	reply.UUID = s.uuid
	err = s.call(ctx, req.Ref, func(now time.Duration) error {
		if !req.Copies {
			reply.Results = s.core.Read(req, now)
			return nil
		}
		if s.unreadable {
			return errDown
		}
		for _, r := range req.Registers {
			res := s.core.Position(r)
			if id, _ := r.Section(); res.Verdict == quorum.VerdictOK {
				res.Time = s.wall().UnixMilli()
				res.Payload = s.copies[id].Borrow().AppendTo(nil)
			}
			reply.Results = append(reply.Results, res)
		}
		return nil
	})
	return reply, err
}

// Prepare implements quorum.Store.
func (s *Store) Prepare(ctx context.Context, req quorum.PrepareRequest) (reply quorum.Reply, err error) {
	reply.UUID = s.uuid
	err = s.call(ctx, req.Ref, func(now time.Duration) (err error) {
		reply.Results, err = s.core.Prepare(req, now)
		return err
	})
	return reply, err
}

// Step implements quorum.Store.
func (s *Store) Step(ctx context.Context, req quorum.StepRequest) (reply quorum.Reply, err error) {
	reply.UUID = s.uuid
	lost := false
	err = s.call(ctx, req.Ref, func(time.Duration) (err error) {
		var limits acceptor.Limits
		if s.bounded {
			limits.Latest = s.wall().Add(ahead).UnixMilli()
		}
		reply.Results, err = s.core.Step(req, limits)
		if _, section := req.Items[0].Register.Section(); err == nil && section && s.loseSteps > 0 {
			s.loseSteps--
			lost = true
		}
		return err
	})
	if lost && err == nil {
		return quorum.Reply{}, errDown
	}
	return reply, err
}

// Renew implements quorum.Store.
func (s *Store) Renew(ctx context.Context, req quorum.RenewRequest) (reply quorum.RenewReply, err error) {
	err = s.call(ctx, req.Ref, func(now time.Duration) (err error) {
		if req.Lease <= s.maxLease {
			s.bound = max(s.bound, req.Lease)
			s.core.SetLeaseBound(s.bound)
		}
		reply, err = s.core.Renew(req, now)
		reply.UUID, reply.BootCount, reply.Commits = s.uuid, s.boot, s.commits
		reply.Full = s.full
		if !s.reticent {
			reply.Time = s.wall().UnixMilli()
		}
		return err
	})
	return reply, err
}

// Release implements quorum.Store.
func (s *Store) Release(ctx context.Context, req quorum.ReleaseRequest) (string, error) {
	return s.uuid, s.call(ctx, req.Ref, func(now time.Duration) error {
		_, err := s.core.Release(req, now)
		return err
	})
}

// Steal makes the store promise a register to another session without asking its
// leases, as a store with a lying clock would.
func (s *Store) Steal(r seq.Register, round uint64, session seq.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.disk[r]
	st.Promised = seq.Epoch{Round: round, Session: session}
	s.disk[r] = st
	registers := make(map[seq.Register]acceptor.State, len(s.disk))
	for r, st := range s.disk {
		registers[r] = st
	}
	if core, err := acceptor.New(acceptor.Config{Registers: registers, MaxLease: s.maxLease, LeaseBound: s.bound, Start: s.clock.Now(), Copies: s.copyOf, Space: s.mapping.SpaceOf}); err == nil {
		s.core = core
	}
}
