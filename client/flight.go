package client

import (
	"context"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/internal/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// flight is the calls that travel in one message. It is filled while it waits in a
// lane's queue, under the lane's lock; after that only its lane touches it, until done
// is closed. From then on nobody changes it, and its callers read their answers.
//
// All callers of a flight wait for one channel: to wake them is one operation, and a
// caller that leaves early leaves nothing behind.
type flight struct {
	parts  []portion
	n      int           // keys over all parts; at most seq.MaxBatch
	sent   time.Time     // zero while it waits
	outlet *outlet       // the stream that it went by; nil while it waits
	done   chan struct{} // closed when the parts have their results, or err is set
	err    error         // of the whole flight
	// rest is the way on of the keys that have to wait at the peer, once the others have
	// their answers; tail says that this is one. They hold up nobody: not the callers who
	// came with them, nor those who come later.
	rest *flight
	tail bool

	one [1]portion // room for parts: nearly all flights are of one space
}

// portion is the keys of one space, in the order in which they came.
type portion struct {
	space  *seq.Space
	uids   []uint64
	counts []uint32 // nil while all are 1
	result *pb.BatchResult
	errs   []error  // by index; nil if there are none
	plain  []uint64 // the answers where each that is not 0 is one sound number; else nil
}

// ticket is one caller's place in a flight.
type ticket struct {
	f           *flight
	part, index int
}

// newFlight makes an empty flight; uids is room for its keys.
func newFlight(uids []uint64) *flight {
	f := &flight{done: make(chan struct{})}
	f.one[0].uids = uids[:0]
	f.parts = f.one[:0]
	return f
}

// add gives a key its place.
func (f *flight) add(space *seq.Space, uid seq.UID, count uint32) ticket {
	k := f.portion(space)
	p := &f.parts[k]
	i := len(p.uids)
	p.uids = append(p.uids, uint64(uid))
	if p.counts != nil || count != 1 {
		p.count(i, count)
	}
	f.n++
	return ticket{f, k, i}
}

// addAll gives the keys of a batch at idx their places, one after the other, and the
// first of them.
func (f *flight) addAll(space *seq.Space, b *batch, idx []int) ticket {
	k := f.portion(space)
	p := &f.parts[k]
	first := len(p.uids)
	for _, i := range idx {
		p.uids = append(p.uids, uint64(b.uids[i]))
	}
	if p.counts != nil || len(b.counts) != 0 {
		for j, i := range idx {
			p.count(first+j, b.count(i))
		}
	}
	f.n += len(idx)
	return ticket{f, k, first}
}

// portion finds or makes that of a space.
func (f *flight) portion(space *seq.Space) int {
	k := 0
	for k < len(f.parts) && f.parts[k].space.First != space.First {
		k++
	}
	if k == len(f.parts) {
		var uids []uint64
		if k == 0 {
			uids = f.one[0].uids
		}
		f.parts = append(f.parts, portion{space: space, uids: uids})
	}
	return k
}

// count notes a count of index i, the last one.
func (p *portion) count(i int, n uint32) {
	for len(p.counts) < i {
		p.counts = append(p.counts, 1)
	}
	p.counts = append(p.counts, n)
}

// request is the message of the flight. It shares the uids, so it is good until they
// are taken by reclaim.
func (f *flight) request(id, version uint64, timeout time.Duration) *pb.StreamRequest {
	next := &pb.BatchNextRequest{RouteVersion: version, Batches: make([]*pb.Batch, len(f.parts))}
	for i := range f.parts {
		p := &f.parts[i]
		next.Batches[i] = &pb.Batch{Space: p.space.Name, Uids: p.uids, Counts: p.counts}
	}
	return &pb.StreamRequest{Id: id, Call: &pb.StreamRequest_Next{Next: next}, TimeoutMs: millis(timeout), Parts: true}
}

// millis rounds up: 0 would mean the peer's default.
func millis(d time.Duration) uint32 {
	return uint32((d + time.Millisecond - 1) / time.Millisecond)
}

// split makes the rest of a flight, before its answer comes.
func (f *flight) split() *flight {
	rest := &flight{n: f.n, sent: f.sent, outlet: f.outlet, done: make(chan struct{}), tail: true}
	rest.parts = make([]portion, len(f.parts))
	for i := range f.parts {
		rest.parts[i] = portion{space: f.parts[i].space, uids: f.parts[i].uids}
	}
	f.rest = rest
	return rest
}

// answer completes the flight by the reply.
func (f *flight) answer(reply *pb.StreamReply) {
	if k := reply.GetError(); k != nil {
		f.fail(rpc.FromKeyError(k))
		return
	}
	results := reply.GetNext().GetResults()
	for i := range f.parts[:min(len(f.parts), len(results))] {
		p := &f.parts[i]
		r := results[i]
		p.result, p.errs = r, keyErrors(r.GetErrors(), len(p.uids))
		if r != nil && p.errs == nil && p.counts == nil && !r.Unordered && len(r.Last) == 0 {
			p.plain = r.First
		}
	}
	close(f.done)
}

// fail completes the flight with an error for all its callers.
func (f *flight) fail(err error) {
	f.err = err
	close(f.done)
}

// wait waits until the flight is completed; false if ctx ended first. It is not inlined,
// so that what select needs is not on the stacks of those who call without it.
//
//go:noinline
func (f *flight) wait(ctx context.Context) bool {
	select {
	case <-f.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// land waits for the ticket's answer, which may come with the rest; false if ctx ended
// first.
func (t *ticket) land(ctx context.Context) bool {
	for {
		if !t.f.wait(ctx) {
			return false
		}
		if !t.open() {
			return true
		}
		t.f = t.f.rest
	}
}

// open says that the ticket's key goes on with the rest. Not before done is closed.
func (t ticket) open() bool {
	if t.f.rest == nil || t.f.err != nil {
		return false
	}
	p := &t.f.parts[t.part]
	return p.result == nil || t.index < len(p.result.First) && p.result.First[t.index] == 0 && (p.errs == nil || p.errs[t.index] == nil)
}

// plain is the answer to a ticket for one number; 0 if it is not as simple as nearly
// always. Not before done is closed.
func (t ticket) plain() seq.Seq {
	p := &t.f.parts[t.part]
	if t.index >= len(p.plain) || p.plain[t.index] > uint64(seq.MaxSeq) {
		return 0
	}
	return seq.Seq(p.plain[t.index])
}

// refused is a ticket whose flight has failed.
func refused(err error) ticket {
	f := newFlight(nil)
	f.parts = f.one[:1]
	f.fail(err)
	return ticket{f: f}
}

// answer is what came for the ticket's caller. Not before done is closed.
func (t ticket) answer(count uint32) Range {
	if t.f.err != nil {
		return Range{Err: t.f.err}
	}
	p := &t.f.parts[t.part]
	if p.result == nil {
		return Range{Err: errNoResult}
	}
	return rangeOf(p.result, t.index, count, p.errs)
}

// keyErrors lays the errors of a result out by index; nil if there are none.
func keyErrors(list []*pb.KeyError, n int) []error {
	if len(list) == 0 {
		return nil
	}
	out := make([]error, n)
	for _, k := range list {
		if int64(k.GetIndex()) < int64(n) {
			out[k.GetIndex()] = rpc.FromKeyError(k)
		}
	}
	return out
}

// rangeOf reads the answer for one index and refuses what is no answer to the count:
// a peer's fault must not become a number.
func rangeOf(r *pb.BatchResult, i int, count uint32, errs []error) Range {
	if errs != nil && errs[i] != nil {
		return Range{Err: errs[i]}
	}
	if i >= len(r.First) {
		return Range{Err: fmt.Errorf("%w: %d numbers, none for index %d", errMalformed, len(r.First), i)}
	}
	first := r.First[i]
	last := first
	if i < len(r.Last) {
		last = r.Last[i]
	}
	return checkRange(first, last, count, r.Unordered)
}

func checkRange(first, last uint64, count uint32, unordered bool) Range {
	if first == 0 || last > uint64(seq.MaxSeq) || last-first != uint64(count)-1 {
		return Range{Err: fmt.Errorf("%w: numbers %d to %d for a count of %d", errMalformed, first, last, count)}
	}
	return Range{First: seq.Seq(first), Last: seq.Seq(last), Unordered: unordered}
}

// errNoResult: the reply has fewer results than the request had batches.
var errNoResult = fmt.Errorf("%w: a result is missing", errMalformed)

func failAll(flights []*flight, err error) {
	for _, f := range flights {
		f.fail(err)
	}
}
