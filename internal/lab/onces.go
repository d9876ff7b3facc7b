package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// Shares of the requests of an exact space.
const (
	repeatedPart = 6                      // one in so many is one of before
	hurriedPart  = 5                      // one in so many is sent by a caller that gives up soon,
	hurry        = 100 * time.Millisecond // within so long, and sends it again, on another way
)

// auditors ask at a time when all is over, for where so many UIDs stand in a call: each may cost
// a commit of its section.
const (
	auditors     = 64
	standsAtOnce = 64
)

// Onces are the requests of a load for one space of mode=exact. Each has an id. One without an
// answer is sent again until it has one, by any caller; others are sent again later all the same.
type Onces struct {
	space    seq.Space
	patience time.Duration // for all of Audit
	shelf    *shelf        // if non-nil, every second request is for a ticket

	mu       sync.Mutex // guards all below
	made     []*once
	open     []*once // not answered, and no caller is at it
	answered []*once
}

// once is a request as it is repeated.
type once struct {
	uid    seq.UID
	id     string
	count  uint32
	ticket bool // wanted
	sent   time.Time
	got    bool // an answer; guarded by Onces.mu
}

// NewOnces has none yet. Patience bounds Audit.
func NewOnces(space seq.Space, patience time.Duration) *Onces {
	return &Onces{space: space, patience: patience}
}

// ExactSpace is the text of an exact space for a cluster of one's own, which keeps ids for longer
// than any run takes.
func ExactSpace(name string) string {
	return fmt.Sprintf("%s:mode=exact,window=%v", name, seq.MaxWindow)
}

// Kind is requests for the space.
func (o *Onces) Kind(percent int) Kind {
	return Kind{Name: "exact", Percent: percent, Call: func(ctx context.Context, j Job) { _ = o.send(ctx, j, o.draw(j)) }}
}

// draw is a request without an answer, one of before, or a new one for the next UID.
func (o *Onces) draw(j Job) *once {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.open) - 1; last >= 0 && j.Random%2 == 0 {
		q := o.open[last]
		o.open = o.open[:last]
		return q
	}
	if n := uint64(len(o.answered)); n > 0 && j.Random>>8%repeatedPart == 0 {
		return o.answered[j.Random>>16%n]
	}
	q := &once{uid: j.NextUID(), id: strconv.Itoa(len(o.made)), count: 1, sent: time.Now()}
	if j.Random>>4%8 == 0 {
		q.count = 2 + uint32(j.Random>>12%9)
	}
	q.ticket = o.shelf != nil && len(o.made)%2 == 0
	o.made = append(o.made, q)
	return q
}

// send sends a request and records what came of it, as one call.
func (o *Onces) send(ctx context.Context, j Job, q *once) error {
	var r client.Range
	var err error
	began := j.Clock.Now()
	if j.Random>>40%hurriedPart == 0 {
		soon, cancel := context.WithTimeout(ctx, rand.N(hurry))
		r, err = o.take(soon, j.Path, q)
		cancel()
		j.sent++
		j.Path = j.path(j.Caller + 1)
	}
	if j.sent == 0 || err != nil {
		r, err = o.take(ctx, j.Path, q)
		j.sent++
	}
	j.id = q.id
	j.Record(o.key(q), began, r, err)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err != nil:
		o.open = append(o.open, q)
	case !q.got:
		q.got = true
		o.answered = append(o.answered, q)
	}
	return err
}

func (o *Onces) take(ctx context.Context, p Path, q *once) (client.Range, error) {
	request := client.Request{ID: q.id, Sent: q.sent}
	if q.ticket {
		if r, err := o.shelf.open(ctx, p, q.uid, q.count, client.OpenedOnce(request)); !errors.Is(err, seq.ErrTicketEnded) {
			return r, err
		} // readers may have passed its numbers, which it has all the same
	}
	return p.Client.TakeIdempotent(ctx, client.Key{Space: o.space.Name, UID: q.uid}, q.count, request)
}

func (o *Onces) key(q *once) history.Key {
	return history.Key{Space: o.space.Name, UID: uint64(q.uid)}
}

// Audit comes when the load has ended and the cluster serves. It sends what has no answer until
// it has one, looks every id up, and asks where each UID stands.
func (o *Onces) Audit(ctx context.Context, l *Load) (map[history.Key]history.Log, error) {
	if len(o.made) > 0 && time.Since(o.made[0].sent) > o.space.Window {
		return nil, fmt.Errorf("%w: %s keeps ids for %v, and the load began before", ErrUnaudited, o.space.Name, o.space.Window)
	}
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	open := o.open
	o.open = nil
	err := o.all(ctx, l, len(open), func(ctx context.Context, j Job, i int) error { return o.send(ctx, j, open[i]) })
	if err != nil {
		return nil, err
	}
	logs := map[history.Key]history.Log{}
	var uids []seq.UID
	for _, q := range o.made {
		if _, ok := logs[o.key(q)]; !ok {
			logs[o.key(q)] = history.Log{Found: map[string]history.Taken{}}
			uids = append(uids, q.uid)
		}
	}
	var mu sync.Mutex // guards the logs
	err = o.all(ctx, l, len(o.made), func(ctx context.Context, j Job, i int) error {
		q := o.made[i]
		r, _, err := j.Client.Lookup(ctx, client.Key{Space: o.space.Name, UID: q.uid}, q.id)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			logs[o.key(q)].Found[q.id] = history.Taken{First: uint64(r.First), Last: uint64(r.Last)}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	parts := slices.Collect(slices.Chunk(uids, standsAtOnce))
	err = o.all(ctx, l, len(parts), func(ctx context.Context, j Job, i int) error {
		part := parts[i]
		values, err := j.Client.Current(ctx, o.space.Name, part)
		for k := 0; err == nil && k < len(values); k++ {
			if err = values[k].Err; err == nil {
				mu.Lock()
				key := history.Key{Space: o.space.Name, UID: uint64(part[k])}
				log := logs[key]
				log.Last = uint64(values[k].Seq)
				logs[key] = log
				mu.Unlock()
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return logs, nil
}

// all does n things, some at a time, each again and again until it succeeds or ctx ends.
func (o *Onces) all(ctx context.Context, l *Load, n int, do func(ctx context.Context, j Job, i int) error) error {
	todo, errs := make(chan int), make([]error, auditors)
	var workers sync.WaitGroup
	for w := range auditors {
		workers.Go(func() {
			for i := range todo {
				for {
					j := Job{Load: l, Path: l.path(w), Caller: w, Random: rand.Uint64()}
					call, cancel := context.WithTimeout(ctx, l.cfg.Timeout)
					err := do(call, j, i)
					cancel()
					if err == nil {
						break
					}
					if ctx.Err() != nil {
						errs[w] = fmt.Errorf("%w: %w", ErrUnaudited, err)
						return
					}
					_ = rest(ctx, poll)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case todo <- i:
		case <-ctx.Done():
		}
	}
	close(todo)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrUnaudited, ctx.Err())
	}
	return nil
}
