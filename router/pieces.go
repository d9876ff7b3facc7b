package router

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	// maxParallel bounds how many batches of one request are forwarded at once to a Set.
	maxParallel = 16
	// together is the time for which answers of one Set wait for answers of other Sets. So a
	// request to healthy Sets gets one message.
	together = time.Millisecond
)

// piece is the keys of a batch that one Set has.
type piece struct {
	checked
	batch int
	idx   []int // positions in the batch; if nil, the piece is the whole batch
	set   int   // noSet if the cluster is alone, or the space is not known
}

const noSet = -1

// at is where the key of index k of the piece stands in its batch.
func (p *piece) at(k int) int {
	if p.idx == nil {
		return k
	}
	return p.idx[k]
}

// add puts the key of index k of a batch into the piece. UIDs come before string keys in both.
func (p *piece) add(b checked, k int) {
	p.idx = append(p.idx, k)
	if k < len(b.uids) {
		p.uids = append(p.uids, b.uids[k])
	} else {
		p.names = append(p.names, b.names[k-len(b.uids)])
	}
	p.counts, p.once = append(p.counts, b.countsOf(k, k+1)...), append(p.once, b.onceOf(k, k+1)...)
}

// request holds admitted batches, divided by Set. So keys of one Set do not wait for keys of a dead Set.
type request struct {
	lanes [][]piece // of one Set each
	place *gate.Place
	mu    sync.Mutex // guards what the answers are put into
}

// enter takes batches apart and lets them in, as a call of so many keys, until leave is called, which
// may be done after an error, too.
func (d admission) enter(ctx context.Context, batches []checked, keys int) (r *request, leave func(), err error) {
	r = &request{}
	for i, b := range batches {
		d.apart(r, i, b)
	}
	var sets []int
	for _, lane := range r.lanes {
		if set := lane[0].set; set != noSet {
			sets = append(sets, set)
		}
	}
	if r.place, err = d.inWork.Enter(ctx, keys, sets...); err != nil {
		return nil, func() {}, err
	}
	return r, r.place.Leave, nil
}

// apart adds the pieces of a batch.
func (d admission) apart(r *request, batch int, b checked) {
	in := d.sdk.Caller().Table().View().SetsOf(b.space, b.uids, b.names)
	switch {
	case len(in) == 0:
		r.add(piece{checked: b, batch: batch, set: noSet})
		return
	case !slices.ContainsFunc(in, func(set int) bool { return set != in[0] }):
		r.add(piece{checked: b, batch: batch, set: in[0]})
		return
	}
	at := map[int]*piece{}
	for k, set := range in {
		if at[set] == nil {
			at[set] = &piece{checked: checked{space: b.space}, batch: batch, set: set}
		}
		at[set].add(b, k)
	}
	for _, p := range at {
		r.add(*p)
	}
}

func (r *request) add(p piece) {
	i := slices.IndexFunc(r.lanes, func(lane []piece) bool { return lane[0].set == p.set })
	if i < 0 {
		r.lanes = append(r.lanes, []piece{p})
		return
	}
	r.lanes[i] = append(r.lanes[i], p)
}

// time is the context in which the request is asked for: where several keys have one answer, it ends
// in time for those that are answered to reach the caller, beside those that are not.
func (r *request) time(ctx context.Context, whole bool) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok && whole && r.many() {
		return context.WithTimeout(ctx, time.Until(end)*4/5)
	}
	return ctx, func() {}
}

// many reports whether the request has more than one key.
func (r *request) many() bool {
	first := r.lanes[0]
	return len(r.lanes) > 1 || len(first) > 1 || first[0].keys() > 1
}

// each asks for all pieces, the Sets in parallel, and waits. ask returns a function that stores the
// answers; each calls these functions one at a time. refused is the error if the admission refuses
// calls for the Set of the piece. If early is non-nil, it is called when some answers are ready and
// others are pending.
func (r *request) each(ask func(p piece, refused error) (put func()), early func()) {
	if len(r.lanes) == 1 {
		own := r.lanes[0]
		inTurns(own, func(p piece) { ask(p, nil)() }) // each has its own batch
		return
	}
	left := 0
	for _, own := range r.lanes {
		left += len(own)
	}
	answered := make(chan struct{}, left)
	for _, own := range r.lanes {
		set := own[0].set
		go func() {
			inTurns(own, func(p piece) {
				put := ask(p, r.place.Refused(set))
				r.mu.Lock()
				defer r.mu.Unlock()
				put()
				answered <- struct{}{}
			})
			r.place.Answered(set)
		}()
	}
	var soon <-chan time.Time // nil while no answer has come since the last part
	for left > 0 {
		select {
		case <-answered:
			if left--; soon == nil && early != nil {
				soon = time.After(together)
			}
		case <-soon:
			soon = nil
			early()
		}
	}
}

// inTurns runs do for all pieces, a bounded number at once, and waits. Pieces of one space that share
// a key go one after the other, since the numbers of a key rise with its place in the request.
func inTurns(all []piece, do func(piece)) {
	if len(all) == 1 {
		do(all[0])
		return
	}
	turns, of := make([][]piece, 0, len(all)), map[string][]piece{}
	for _, p := range all {
		space := auth.SpaceName(p.space)
		of[space] = append(of[space], p)
	}
	for _, same := range of {
		if shareKeys(same) {
			turns = append(turns, same)
			continue
		}
		for i := range same {
			turns = append(turns, same[i:i+1])
		}
	}
	inParallel(len(turns), func(i int) {
		for _, p := range turns[i] {
			do(p)
		}
	})
}

// shareKeys reports whether a key stands in two of the pieces of a space. A string key and the UID
// that it is counted by are one key, unless the cluster hashes string keys under a secret.
func shareKeys(same []piece) bool {
	if len(same) == 1 {
		return false
	}
	in := map[seq.UID]int{}
	for i, p := range same {
		uids := p.uids
		for _, name := range p.names {
			uids = append(uids[:len(uids):len(uids)], seq.HashKey(name))
		}
		for _, uid := range uids {
			if at, known := in[uid]; known && at != i {
				return true
			}
			in[uid] = i
		}
	}
	return false
}

// inParallel runs do(0) to do(n-1), a bounded number at once, and waits.
func inParallel(n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var all errgroup.Group
	all.SetLimit(maxParallel)
	for i := range n {
		all.Go(func() error { do(i); return nil })
	}
	_ = all.Wait() // do has the errors
}
