package call

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/internal/sdk/route"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// Pauses between the rounds of a call. A takeover lasts for a second or two, so the pauses
// stay short beside it.
const (
	pauseFirst = 5 * time.Millisecond
	pauseMax   = 30 * time.Millisecond
)

// maxHops limits how often a round follows a NOT_OWNER. If two servers redirect to each other, the call
// must pause.
const maxHops = 3

// call is a call on its way: it asks again until each of its keys has an answer or an error.
type call struct {
	c       *Caller
	rules   *rules
	space   *seq.Space    // of the keys
	places  []seq.UID     // one a key, each decides the section; empty if the call is for the section itself, which then counts as one key
	node    string        // asked first by calls that ask all in turn; may be empty
	section seq.SectionID // for calls without keys that have an owner
	turn    int           // where calls that ask the owner begin with the addresses of Config; zero if they have not begun
	// ask makes an attempt and puts the answers away. It gives the keys that failed for
	// themselves, or the error of all. Each key is in one attempt at a time.
	ask func(ctx context.Context, a *Attempt) ([]Fault, error)

	// until ends a call whose context has no deadline, between two rounds; zero: never. The
	// clock is not read for a Next that succeeds at once, and no attempt takes long.
	until time.Time

	errs  []error // one a key; nil until one fails
	start tries   // how each key begins
	tries []tries // one a key; nil while all keys go to their owners for the first time
}

// tries is what became of the attempts for one key. A round asks where a NOT_OWNER pointed,
// and the servers in the order of the rules; then comes a pause.
type tries struct {
	hint           string     // address that a NOT_OWNER named, not asked yet
	of             *route.Set // the Set of the hint; nil if unknown
	in             *route.Set // the Set that a NOT_OWNER of the round named, asked instead of the map's; may be nil
	gen            uint64     // of the view that the round goes by
	next           int        // how far the round has come
	turn           int        // where it began, if it asks all in turn
	late           []*Server  // put off to the end of the round, since they are in doubt
	hops           int        // NOT_OWNER followed in the round
	asked, refused int        // attempts of the round, with servers passed by in doubt, and how many were refusals
	strange        int        // of asked, how many were at servers that are left out
	round          int        // rounds that ended
	last           error      // why the last attempt failed
	quorum         error      // the newest answer if it was NO_QUORUM; attempts without one say nothing
}

// keys returns the number of keys of the call.
func (k *call) keys() int { return max(len(k.places), 1) }

// of returns the state of the attempts for key i.
func (k *call) of(i int) *tries {
	if k.tries == nil {
		k.tries = make([]tries, k.keys())
		for i := range k.tries {
			k.tries[i] = k.start
		}
	}
	return &k.tries[i]
}

func (k *call) fail(i int, err error) {
	if k.errs == nil {
		k.errs = make([]error, k.keys())
	}
	k.errs[i] = err
}

// one makes a call for one key, or for none.
func (k *call) one(ctx context.Context) error {
	k.retry(ctx, []int{0})
	if k.errs != nil {
		return k.errs[0]
	}
	return nil
}

// retry asks for the pending keys until each has its answer or its error.
func (k *call) retry(ctx context.Context, pending []int) {
	for len(pending) > 0 {
		v := k.c.table.View()
		attempts, idle := k.plan(v, pending)
		if len(attempts) == 0 {
			pending = k.endRound(ctx, idle)
			continue
		}
		pending = k.askAll(ctx, attempts, idle)
	}
}

// askAll makes the attempts, all at the same time, and gives back the keys to ask for again.
func (k *call) askAll(ctx context.Context, attempts []*Attempt, again []int) []int {
	one := func(a *Attempt) {
		defer a.probe.release()
		a.faults, a.err = k.ask(ctx, a)
	}
	done := make(chan struct{}, len(attempts))
	for _, a := range attempts[1:] {
		go func() {
			one(a)
			done <- struct{}{}
		}()
	}
	one(attempts[0])
	for range attempts[1:] {
		<-done
	}
	for _, a := range attempts {
		if a.err != nil {
			a.faults = make([]Fault, len(a.Idx))
			for j := range a.Idx {
				a.faults[j] = Fault{j, a.err}
			}
		}
		if ctx.Err() == nil {
			a.note()
		}
		for _, bad := range a.faults {
			i := a.Idx[bad.K]
			if end := k.failed(ctx, k.of(i), a.Server, bad.Err); end != nil {
				k.fail(i, end)
				continue
			}
			again = append(again, i)
		}
	}
	slices.Sort(again) // one uid's numbers rise with the index
	return again
}

// failed notes a failed attempt; the error with which the call ends for that key comes back.
func (k *call) failed(ctx context.Context, t *tries, from *Server, err error) error {
	if route.Strange(err) {
		from.Doubt()
		if why := from.Other(); why != nil {
			err = why
			t.strange++
		}
	}
	if k.rules.final(err) {
		return err
	}
	k.noteQuorum(t, from, err)
	if end := ctx.Err(); end != nil {
		if t.last == nil && !errors.Is(err, end) {
			t.last = err
		}
		return t.timedOut(end)
	}
	if !k.rules.once {
		k.c.counts.retries.Add(1)
	}
	t.last = err
	t.asked++
	if _, ok := err.(*namelessError); ok || anyOf(err, ofNode) {
		t.refused++
	}
	var moved *rpc.NotOwnerError
	switch {
	case errors.As(err, &moved):
		k.follow(t, from, moved)
	case k.rules.where == atOwner && (errors.Is(err, seq.ErrOverloaded) || errors.Is(err, seq.ErrStoreFull)):
		// No other server does better now. Without a quorum one may: the owner may be cut
		// off alone, and a standby have taken over.
		t.next = 1 << 16
	}
	return nil
}

// follow has the round go on where a NOT_OWNER points.
func (k *call) follow(t *tries, from *Server, moved *rpc.NotOwnerError) {
	of := from.Set()
	if of != nil && moved.RouteVersion > of.Version() {
		of.Poke()
	}
	if k.rules.where != atOwner || k.c.cfg.Indirect {
		return
	}
	if moved.Set != "" {
		// The map is old, or ahead of the Sets, or the section is on its way.
		k.c.table.WantMap(from.Set())
		if of = k.c.table.View().Set(moved.Set); of == nil || k.rules.root {
			return // not for an address of a cluster that is not known; the map will name it
		}
	}
	if t.hops >= maxHops {
		return
	}
	t.hops++
	t.hint, t.of = moved.Addr, of
	if moved.Set != "" && of != t.in {
		t.in, t.next, t.late = of, 0, nil
	}
}

// noteQuorum keeps what an attempt says of the quorum.
func (k *call) noteQuorum(t *tries, from *Server, err error) {
	switch lost := (*lostError)(nil); {
	case errors.Is(err, seq.ErrNoQuorum):
		t.quorum = err
		if of := from.Set(); of != nil {
			of.Care.Hear(err)
		}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &lost):
		// An end of the caller's time says nothing of the quorum.
	default:
		t.quorum = nil
	}
}

// over is why no further round is worth while for key i; nil if one is.
func (k *call) over(i int, t *tries) error {
	if k.rules.once {
		return t.last
	}
	v := k.c.table.View()
	in := k.in(v, i, t)
	// Of a Set whose table was not known in this round none may have been asked but routers, which do
	// not serve all calls.
	known := t.gen == v.Gen && (v.Alone() || k.anySet() || in.Version() > 0)
	if k.rules.unanimous && known && t.asked > 0 && t.asked == t.refused {
		return t.last
	}
	if t.asked > 0 && t.asked == t.strange && k.c.table.Strangers() {
		return t.last
	}
	if k.anySet() && !v.Alone() {
		return k.c.QuorumLost() // no Set can
	}
	switch {
	case t.quorum == nil:
		return careOf(in).unreachable()
	case in.Care.Reason() != nil:
		return in.Named(t.quorum)
	case k.c.cfg.Indirect && len(v.Sets.Sets) > 0:
		return t.quorum // of one Set: routers have a quorum as long as any Set does
	}
	return nil
}

// endRound pauses for the keys that have no server left to ask, and gives back those for which
// another round is worth while.
func (k *call) endRound(ctx context.Context, idle []int) []int {
	idle = slices.DeleteFunc(idle, func(i int) bool {
		t := k.of(i)
		if t.last == nil {
			t.last = seq.ErrNoRoute // no server was there to be asked
		}
		err := k.over(i, t)
		if err != nil {
			k.fail(i, err)
		}
		return err != nil
	})
	if len(idle) == 0 {
		return nil
	}
	k.refresh(idle)
	round := k.of(idle[0]).round
	end := k.pause(ctx, round)
	for _, i := range idle {
		t := k.of(i)
		switch {
		case end == nil:
			*t = tries{gen: t.gen, round: round + 1, last: t.last, quorum: t.quorum}
		case end == ErrClosed:
			k.fail(i, end)
		default:
			k.fail(i, t.timedOut(end))
		}
	}
	if end != nil {
		return nil
	}
	return idle
}

// pause waits a little, unless the call or the Client ends first.
func (k *call) pause(ctx context.Context, round int) error {
	k.c.counts.pauses.Add(1)
	if !k.until.IsZero() && !time.Now().Before(k.until) {
		return context.DeadlineExceeded
	}
	d := min(pauseFirst<<min(round, 10), pauseMax)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.c.ctx.Done():
		return ErrClosed
	case <-timer.C:
		return nil
	}
}
