package workers

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Limits of a delegated window. The longest is maxBehind below what the stores let a
// mark be ahead of their clocks, so that clocks may be minutes apart.
const (
	DefaultDelegation = 10 * time.Minute
	MinDelegation     = time.Second
	MaxDelegation     = quorum.WorkerAhead - maxBehind
)

// holderName allows no character that could break a line of a log.
var holderName = regexp.MustCompile(`^[!-~]{0,64}$`)

// WindowRequest is a client's request for a window.
type WindowRequest struct {
	By      Caller // whose share of the pool is bounded; one without a name is not
	Holder  string // for people, 0 to 64 visible characters
	Window  time.Duration
	Extends bool // the window that is named, as the client got it
	Named
	Ticket uint64 // of that window; 0 if the client has none
}

// Named identifies a client's window in its namespace.
type Named struct {
	Datacenter snowflake.Datacenter
	Worker     snowflake.Worker
	Confirmed  Mark
}

// validate: seq.ErrBadArgument. The worker id is held against its layout later.
func (w WindowRequest) validate() error {
	switch {
	case !holderName.MatchString(w.Holder):
		return fmt.Errorf("%w: holder %.64q, expected %s", seq.ErrBadArgument, w.Holder, holderName)
	case w.Window < MinDelegation || w.Window > MaxDelegation:
		return fmt.Errorf("%w: window %v, expected %v to %v", seq.ErrBadArgument, w.Window, MinDelegation, MaxDelegation)
	case w.Extends && w.Confirmed == 0:
		return fmt.Errorf("%w: a worker id to extend and no mark", seq.ErrBadArgument)
	case !w.Extends && w.Named != Named{}:
		return fmt.Errorf("%w: a worker id, datacenter id or mark, and nothing to extend", seq.ErrBadArgument)
	}
	return nil
}

// names reports whether the request extends the window that ends at the mark.
func (w WindowRequest) names(dc snowflake.Datacenter, worker snowflake.Worker, m Mark) bool {
	return w.Extends && w.Named == Named{dc, worker, m}
}

// Window is a window that only the client that asked for it may use.
//
//	Floor < tick <= Last; W stores have the register's max at or above Confirmed;
//	the mark was at Floor when W stores promised, and no session steps it in between
type Window struct {
	Named
	Namespace   namespaces.Namespace // as it is recorded
	Floor, Last snowflake.Tick
	Continues   bool   // continues the named window, without a hole
	Ticket      uint64 // to give the window back with; zero if it cannot be given back
}

// ValidUntil is when the last tick is over.
func (d Window) ValidUntil() time.Time {
	at, err := d.Namespace.Layout.TimeOf(d.Last + 1)
	if err != nil {
		return d.Namespace.Layout.Exhausted()
	}
	return at
}

// Delegate gives a client a worker id and a window of its own. It returns seq.ErrQuota if the client has
// its share of the pool. The node never uses the id itself, and attaches no lease to it. The mark alone
// protects it, because a node that takes the id later starts above the mark. Other errors are the errors of
// globalid.Service.Generate and seq.ErrBadArgument. After an error nothing is granted. Delegate may be
// retried, but every grant costs a worker id until its window is over.
func (i *Issuer) Delegate(ctx context.Context, wish WindowRequest) (Window, error) {
	if err := wish.validate(); err != nil {
		return Window{}, err
	}
	if err := i.w.life.Err(); err != nil {
		return Window{}, i.w.leavingError(fmt.Errorf("namespace %q: %w", i.name, err))
	}
	d, err := i.delegate(ctx, wish)
	if err != nil {
		err = fmt.Errorf("namespace %q datacenter %d: %w", i.name, i.w.cfg.Node.Datacenter.ID, i.w.leavingError(err))
		// The client tells people; it may ask often.
		i.w.log.Debug("no worker id for a client", "holder", wish.Holder, "error", err)
		return Window{}, err
	}
	i.Delegated.Add(1)
	i.w.log.Info("worker id delegated", "namespace", i.name, "datacenter", d.Datacenter, "worker", d.Worker,
		"holder", wish.Holder, "confirmed", d.Confirmed.Time(), "continues", d.Continues)
	return d, nil
}

func (i *Issuer) delegate(ctx context.Context, wish WindowRequest) (d Window, err error) {
	w := i.w
	p, err := w.record(ctx, i.name)
	if err != nil {
		return d, err
	}
	if wish.Extends && wish.Worker > p.Layout.MaxWorker() {
		return d, fmt.Errorf("%w: worker id %d, the layout has 0 to %d", seq.ErrBadArgument, wish.Worker, p.Layout.MaxWorker())
	}
	if _, own := p.own.Find(wish.Worker); !own {
		wish.Extends, wish.Named, wish.Ticket = false, Named{}, 0 // a node of another Set lent it
	}
	asked := i.shares.ask(wish.By)
	defer func() { asked.done(err == nil, wish.Confirmed, d.Confirmed, w.now()) }()
	grant := func(worker snowflake.Worker) (err error) {
		d, err = i.grant(ctx, p, worker, wish)
		return err
	}
	if wish.names(p.dc, wish.Worker, wish.Confirmed) && wish.Confirmed > w.now() {
		// Its window still keeps others away, so this takes nothing more from the pool.
		if err := grant(wish.Worker); err == nil || !isTaken(err) {
			return d, err
		}
	}
	err = try(func() ([]snowflake.Worker, error) { return i.spare(ctx, p, wish, asked) }, grant)
	return d, err
}

// spare looks at the stores for worker ids to delegate: those with marks that the clock
// has passed, so that the window begins now, and only while the pool is not crowded. The
// rest is for nodes: without a worker id at one of them no caller is served. At least one,
// or an error. Those that were given back here go before new ones.
func (i *Issuer) spare(ctx context.Context, p *pool, wish WindowRequest, asked ask) ([]snowflake.Worker, error) {
	w := i.w
	by := order{self: nobody, latest: w.now(), topDown: true, returned: func(u Used) bool {
		return i.loans.spare(p.at(u.Worker), u.Mark, u.Floor, p.Layout, w.now())
	}}
	if wish.names(p.dc, wish.Worker, wish.Confirmed) {
		by.first = &wish.Worker
	}
	after := func(c choice) Pool { return Pool{Held: c.pool.Held + 1, Size: c.pool.Size} }
	c, err := w.look(ctx, p, by, func(c choice) bool { return len(c.try) > 0 && !after(c).Crowded() })
	if err != nil {
		return nil, err
	}
	if len(c.try) == 0 || after(c).Crowded() {
		err := w.exhausted(c)
		if errors.Is(err, seq.ErrWorkersExhausted) {
			err = fmt.Errorf("the last %d %% are for nodes: %w", 100-crowdedPercent, err)
		}
		return nil, err
	}
	return c.try, asked.check(after(c), w.now())
}

// grant tries to delegate one worker id. A crash before the step is confirmed leaves a promise that bars no
// session, and perhaps a mark at fewer than W stores. A crash after it leaves a window that is not used.
//
// The clock must have passed the mark, or the mark must be the one that the client named. In the second
// case no session has stepped since the mark was confirmed to this client, because every step that hands
// something out raises it. So the client's window goes on without a hole. In both cases the grant is above
// the promised mark, so a client gains nothing by naming a mark that it never had.
//
// The mark may also be the end of a window that was given back here. Then the grant begins above the last
// used tick of that window, and ends above the mark. So the step raises the mark, and no other grant from
// that mark, at any node, is confirmed.
func (i *Issuer) grant(ctx context.Context, p *pool, worker snowflake.Worker, wish WindowRequest) (Window, error) {
	w, at := i.w, p.at(worker)
	d := Window{Named: Named{Datacenter: p.dc, Worker: worker}, Namespace: p.Namespace}
	var before *loan
	_, err := w.bid(ctx, &bid{w: w, pool: p, worker: worker,
		suits: func(m, era Mark) bool {
			return m <= w.now() || wish.names(p.dc, worker, m) || i.loans.spare(at, m, era, p.Layout, w.now())
		},
		begin: func(floor Mark) (Mark, error) {
			d.Floor, d.Continues = floor.tick(p.Layout), wish.names(p.dc, worker, floor)
			before = i.loans.claim(at, floor)
			if before != nil && before.returned && !d.Continues && before.layout == p.Layout {
				d.Floor = before.used
				floor++
			}
			if before != nil && (before.returned || before.ticket != wish.Ticket) {
				before = nil
			}
			return max(floor, w.now().add(wish.Window)), nil
		},
		confirmed: func(_ uint64, to Mark) (leased bool) {
			d.Last, d.Confirmed = to.tick(p.Layout), to
			return false
		}})
	if err != nil {
		return Window{}, err
	}
	d.Ticket = i.loans.add(d, before, wish.Holder, w.now())
	return d, nil
}

// GiveBack ends a window that this node has lent before its time: a client that is lent that worker
// id next begins above the last tick that was used. seq.ErrConflict: the window is not the
// newest of that worker id, as far as this node knows. seq.ErrBadArgument: it has no such
// tick. Nothing is written: the mark stays, and what is forgotten by a restart is free when
// the mark is over.
func (i *Issuer) GiveBack(by Caller, n Named, ticket uint64, used snowflake.Tick) error {
	if err := i.loans.giveBack(n, ticket, used); err != nil {
		return fmt.Errorf("namespace %q: %w", i.name, err)
	}
	i.shares.over(by, n.Confirmed)
	i.GivenBack.Add(1)
	i.w.log.Info("worker id given back", "namespace", i.name, "datacenter", n.Datacenter, "worker", n.Worker)
	return nil
}

// maxLoans bounds what a node remembers of one namespace. Windows beyond cannot be given back.
const maxLoans = 4096

// place is a worker id in its namespace.
type place struct {
	dc     snowflake.Datacenter
	worker snowflake.Worker
}

// loan is the newest window of a worker id that this node has lent, and what it has found out
// of it. It lives in memory only: a node that starts again takes nothing back, and the mark
// keeps the worker id until the window is over.
type loan struct {
	ticket   uint64
	layout   snowflake.Layout // of the ticks
	mark     Mark             // the end of the window, which no other of this worker id shares
	floor    snowflake.Tick   // all ticks above, up to the mark, are this client's
	last     snowflake.Tick
	holder   string
	returned bool
	used     snowflake.Tick // if returned: the client made no ID above, nor will; at least floor
}

// loans holds the windows of one namespace that are not over.
//
//	at most one a worker id; used is meant for the mark it came with
type loans struct {
	mu sync.Mutex // guards all below
	by map[place]*loan
}

// add records a confirmed window, in place of the earlier window of that worker id. A window that continues
// another, with its ticket, begins where the other began. add returns the new ticket, or 0.
func (s *loans) add(d Window, extends *loan, holder string, now Mark) uint64 {
	l := &loan{layout: d.Namespace.Layout, mark: d.Confirmed, floor: d.Floor, last: d.Last, holder: holder}
	if d.Continues && extends != nil && extends.layout == l.layout {
		l.floor = extends.floor
	}
	var b [8]byte
	rand.Read(b[:]) // never fails
	l.ticket = max(1, binary.LittleEndian.Uint64(b[:]))
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, old := range s.by {
		if old.mark <= now {
			delete(s.by, at)
		}
	}
	at := place{d.Datacenter, d.Worker}
	delete(s.by, at)
	if len(s.by) >= maxLoans {
		return 0
	}
	if s.by == nil {
		s.by = map[place]*loan{}
	}
	s.by[at] = l
	return l.ticket
}

// claim forgets a loan, since a new window of its worker id is about to be asked for; nil if
// its mark is another one.
func (s *loans) claim(at place, mark Mark) *loan {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.by[at]
	delete(s.by, at)
	if l == nil || l.mark != mark {
		return nil
	}
	return l
}

// spare reports whether a worker id with that mark was given back, and can be lent under the
// layout from now on: nothing above the used tick is anybody's. era is the floor of a restored
// era, below which another process may have been lent it.
func (s *loans) spare(at place, mark, era Mark, layout snowflake.Layout, now Mark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.by[at]
	return l != nil && l.returned && l.mark == mark && l.layout == layout && startOf(layout, l.used) <= now && (era == 0 || startOf(layout, l.used) > era)
}

// holder returns the client that was lent the worker id of that mark, "" if it is not known.
func (s *loans) holder(at place, mark Mark) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.by[at]; l != nil && l.mark == mark && !l.returned {
		return l.holder
	}
	return ""
}

// giveBack notes that a client has done with its window. seq.ErrConflict, seq.ErrBadArgument.
func (s *loans) giveBack(n Named, ticket uint64, used snowflake.Tick) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.by[place{n.Datacenter, n.Worker}]
	switch {
	case l == nil || l.mark != n.Confirmed || l.ticket != ticket:
		return fmt.Errorf("%w: this node did not lend worker %d up to %s last, or with another ticket", seq.ErrConflict, n.Worker, n.Confirmed.Time())
	case used > l.last:
		return fmt.Errorf("%w: last tick used %d, the window ends at %d", seq.ErrBadArgument, used, l.last)
	}
	l.used = max(used, l.floor, l.used) // never less, should it be told twice
	l.returned = true
	return nil
}

// LentTo returns the client to which this node has lent a worker id, as it calls itself; "" if
// another node has, or none.
func (i *Issuer) LentTo(u Used) string { return i.loans.holder(place{u.Datacenter, u.Worker}, u.Mark) }

// Bounds of the windows that may be held at a time, however large the pool: each costs the stores
// a register.
const (
	maxHeld    = 256          // by one caller
	maxHeldVia = 16 * maxHeld // by all that one host asks for
)

// Caller is the recipient of a window.
type Caller struct {
	Name string // empty if it is not known; then there is no limit
	// Via is a host that gave the caller's name and has not proved that it is a router. Then the limits
	// hold for that host, too. Via is empty if the caller was seen or proved.
	Via string
}

// host returns the caller that was seen. Windows that it asks for as Via and windows that it takes itself
// count together.
func (c Caller) host() string { return cmp.Or(c.Via, c.Name) }

// shares holds the windows of one namespace that this node has delegated, by caller. A node that starts
// again begins with none. The earlier windows are still held, and count for the pool.
type shares struct {
	mu     sync.Mutex // guards all below
	held   book       // by caller
	hosts  book       // by host
	asking int        // calls under way
}

// book has windows by a name.
type book map[string]*entry

// entry holds the windows and calls of one name.
type entry struct {
	ends   []Mark // of windows that were not over when last looked at
	asking int    // calls under way
}

// ask is a call that may get a window. Earlier calls under way count as if they had got a window, because
// calls at the same moment do not see each other's windows at the stores.
type ask struct {
	of              *shares
	by              Caller
	mine, host, all int // calls before it
}

func (s *shares) ask(by Caller) ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held, s.hosts = book{}, book{}
	}
	a := ask{s, by, s.held.begin(by.Name), s.hosts.begin(by.host()), s.asking}
	s.asking++
	return a
}

// begin notes a call, and returns how many were under way.
func (b book) begin(name string) (before int) {
	e, ok := b[name]
	if !ok {
		e = &entry{}
		b[name] = e
	}
	before = e.asking
	e.asking++
	return before
}

// done ends the call. If a window was granted, done records it in place of the window that it extends,
// whose end is was. Zero means that it extends none.
func (a ask) done(granted bool, was, ends, now Mark) {
	s := a.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking--
	granted = granted && a.by.Name != ""
	s.held.end(a.by.Name, granted, was, ends)
	s.hosts.end(a.by.host(), granted, was, ends)
	s.held.forget(now)
	s.hosts.forget(now)
}

func (b book) end(name string, granted bool, was, ends Mark) {
	e := b[name]
	e.asking--
	if granted {
		e.drop(was)
		e.ends = append(e.ends, ends)
	}
}

func (e *entry) drop(ends Mark) {
	if i := slices.Index(e.ends, ends); i >= 0 {
		e.ends = slices.Delete(e.ends, i, i+1)
	}
}

// forget drops the windows that are over, of all names.
func (b book) forget(now Mark) {
	for name, e := range b {
		if e.ends = slices.DeleteFunc(e.ends, func(m Mark) bool { return m <= now }); len(e.ends)+e.asking == 0 {
			delete(b, name)
		}
	}
}

// check returns seq.ErrQuota if the caller has its share of the pool. The pool after includes one window
// more. While half of the pool is free, every caller gets more, up to maxHeld. From the other half only a
// caller without windows here gets one. Above two thirds its host must have none here, either, because a
// host may invent the callers that it names.
func (a ask) check(after Pool, now Mark) error {
	if a.by.Name == "" {
		return nil
	}
	s := a.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.forget(now)
	s.hosts.forget(now)
	share, ofHost := maxHeld, maxHeldVia
	if after.Size < 1<<40 {
		used := uint64(after.Held + a.all)
		if used*2 > after.Size {
			share = 1
		}
		if used*3 > after.Size*2 {
			ofHost = 1
		}
	}
	name, has := a.by.Name, s.held[a.by.Name].ends
	switch hosts := s.hosts[a.by.host()].ends; {
	case len(has)+a.mine >= share:
	case a.by.Via != "" && len(hosts)+a.host >= ofHost:
		name, has = a.by.Via, hosts
	default:
		return nil
	}
	come := "later"
	if len(has) > 0 {
		come = "in " + slices.Min(has).ahead(now).String()
	}
	return fmt.Errorf("%w: %.300s has %d delegated worker ids of this node, and %d of %d are held in all: extend one of them, or come again %s",
		seq.ErrQuota, name, len(has), after.Held-1, after.Size, come)
}

// over notes that a caller has given a window back.
func (s *shares) over(by Caller, ends Mark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range []*entry{s.held[by.Name], s.hosts[by.host()]} {
		if e != nil {
			e.drop(ends)
		}
	}
}
