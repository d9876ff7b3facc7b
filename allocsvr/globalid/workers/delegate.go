package workers

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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
