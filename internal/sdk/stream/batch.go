package stream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// batch is keys that travel in one message. It is filled while it waits in a stream's queue,
// under the stream's lock; after that only its stream touches it, until done is closed. From
// then on nothing changes it, and its callers read their answers.
//
// All callers of a batch wait for one channel: to wake them is one operation, and a caller
// that leaves early leaves nothing behind.
type batch struct {
	groups []group
	n      int           // keys over all groups; at most seq.MaxBatch
	sent   time.Time     // zero while it waits
	link   *link         // that it went by; nil while it waits
	done   chan struct{} // closed when the groups have their results, or err is set
	err    error         // of the whole batch
	// rest has the keys that have to wait at the server, once the others have their answers;
	// late says that this batch is such a rest. They hold up nothing: neither the keys that
	// were in one message with them, nor later ones.
	rest *batch
	late bool

	tickets []*TicketCall // if not nil, they are all that the batch has, and it has no groups

	leaseless bool // a group is of a strict or exact space

	mu        sync.Mutex // guards ordered and delivered once the batch is on its way
	ordered   []Ordered  // keys whose callers do not wait; they are told by deliver
	delivered bool

	one [1]group // room for groups: nearly all batches are of one space
}

// group is the keys of one space, in the order in which they came: UIDs, or string keys.
type group struct {
	space  *seq.Space
	named  bool // the keys are names; else uids
	uids   []uint64
	names  []string
	n      int      // keys
	counts []uint32 // nil while all are 1
	ids    [][]byte // of requests, in an exact space; else nil
	sent   []int64  // when they were first sent, beside ids
	result *pb.BatchResult
	errs   []error  // by index; nil if there are none
	plain  []uint64 // the answers where each that is not 0 is one sound number; else nil
}

// Slot is one key's place in a batch.
type Slot struct {
	b            *batch
	group, index int
}

// newBatch makes an empty batch; uids is room for its keys.
func newBatch(uids []uint64) *batch {
	b := &batch{done: make(chan struct{})}
	b.one[0].uids = uids[:0]
	b.groups = b.one[:0]
	return b
}

// add gives a key a slot.
func (b *batch) add(space *seq.Space, key seq.Key, count uint32, r *Request) Slot {
	name, named := key.Name()
	k := b.groupOf(space, named)
	g := &b.groups[k]
	i := g.n
	if g.n++; named {
		g.names = append(g.names, name)
	} else {
		g.uids = append(g.uids, uint64(key.UID))
	}
	if g.counts != nil || count != 1 {
		g.count(i, count)
	}
	if r != nil {
		g.request(r)
	}
	b.n++
	return Slot{b, k, i}
}

// addAll gives the keys at idx slots, one after the other, and returns the first.
func (b *batch) addAll(space *seq.Space, keys *Takes, idx []int) Slot {
	k := b.groupOf(space, keys.Names != nil)
	g := &b.groups[k]
	first := g.n
	g.n += len(idx)
	for _, i := range idx {
		if g.named {
			g.names = append(g.names, keys.Names[i])
		} else {
			g.uids = append(g.uids, uint64(keys.Places[i]))
		}
	}
	if g.counts != nil || len(keys.Counts) != 0 {
		for j, i := range idx {
			g.count(first+j, keys.Count(i))
		}
	}
	if keys.Requests != nil {
		for _, i := range idx {
			g.request(&keys.Requests[i])
		}
	}
	b.n += len(idx)
	return Slot{b, k, first}
}

// groupOf finds or makes the group of a space for UIDs, or for string keys.
func (b *batch) groupOf(space *seq.Space, named bool) int {
	k := 0
	for k < len(b.groups) && (b.groups[k].space.First != space.First || b.groups[k].named != named) {
		k++
	}
	if k == len(b.groups) {
		var uids []uint64
		if k == 0 {
			uids = b.one[0].uids
		}
		b.groups = append(b.groups, group{space: space, named: named, uids: uids})
		b.leaseless = b.leaseless || space.Mode.Leaseless()
	}
	return k
}

// count notes a count of index i, the last one.
func (g *group) count(i int, n uint32) {
	for len(g.counts) < i {
		g.counts = append(g.counts, 1)
	}
	g.counts = append(g.counts, n)
}

// request notes the request of the last key. In an exact space every key has one.
func (g *group) request(r *Request) {
	g.ids, g.sent = append(g.ids, r.ID), append(g.sent, r.Sent)
}

// request is the message of the batch. It shares the uids, so it is good until stream.sent
// lets the next batch have their memory.
func (b *batch) request(id, version uint64, timeout time.Duration) *pb.StreamRequest {
	if b.tickets != nil {
		return &pb.StreamRequest{Id: id, Call: b.ticketsRequest(version), TimeoutMs: millis(timeout)}
	}
	next := &pb.BatchNextRequest{RouteVersion: version, Batches: make([]*pb.Batch, len(b.groups))}
	for i := range b.groups {
		g := &b.groups[i]
		next.Batches[i] = &pb.Batch{Space: g.space.Name, Uids: g.uids, Keys: g.names, Counts: g.counts, RequestIds: g.ids, FirstSentMs: g.sent}
	}
	return &pb.StreamRequest{Id: id, Call: &pb.StreamRequest_Next{Next: next}, TimeoutMs: millis(timeout), Parts: true}
}

// millis rounds up: 0 would mean the server's default.
func millis(d time.Duration) uint32 {
	return uint32((d + time.Millisecond - 1) / time.Millisecond)
}

// split makes the rest of a batch, before its answer comes: each key has its slot there too.
func (b *batch) split() *batch {
	rest := &batch{n: b.n, sent: b.sent, link: b.link, done: make(chan struct{}), late: true, leaseless: b.leaseless}
	rest.groups = make([]group, len(b.groups))
	for i := range b.groups {
		rest.groups[i] = group{space: b.groups[i].space, n: b.groups[i].n}
	}
	b.rest = rest
	return rest
}

// answer completes the batch by the reply.
func (b *batch) answer(reply *pb.StreamReply) {
	if k := reply.GetError(); k != nil {
		b.fail(rpc.FromKeyError(k))
		return
	}
	results := reply.GetNext().GetResults()
	for i := range b.groups[:min(len(b.groups), len(results))] {
		g := &b.groups[i]
		r := results[i]
		g.result, g.errs = r, KeyErrors(r.GetErrors(), g.n)
		if r != nil && g.errs == nil && g.counts == nil && !r.Unordered && len(r.Last) == 0 && len(r.Replayed) == 0 {
			g.plain = r.First
		}
	}
	b.complete()
}

// fail completes the batch with an error for all its callers.
func (b *batch) fail(err error) {
	b.err = err
	b.complete()
}

// complete wakes the calls that wait, and tells the orders, which do not.
func (b *batch) complete() {
	close(b.done)
	b.deliver()
}

// wait waits until the batch is completed; false if ctx ended first. It is not inlined, so
// that what select needs is not on the stack of a caller that does not need it.
//
//go:noinline
func (b *batch) wait(ctx context.Context) bool {
	select {
	case <-b.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Await waits for the slot's answer, which may come with the rest; false if ctx ended
// first.
func (s *Slot) Await(ctx context.Context) bool {
	for {
		if !s.b.wait(ctx) {
			return false
		}
		if !s.Open() {
			return true
		}
		s.b = s.b.rest
	}
}

// In reports whether there is a slot: the zero Slot is none.
func (s Slot) In() bool { return s.b != nil }

// Done is closed when the batch is completed; the answer may still come with the rest.
func (s Slot) Done() <-chan struct{} { return s.b.done }

// Wait waits until the batch is completed; false if ctx ended first.
func (s Slot) Wait(ctx context.Context) bool { return s.b.wait(ctx) }

// Result returns the answer for the keys of the batch that are of one space, and the index of the slot's
// key in it. r is nil if the batch has no such answer yet. err is the error of the whole batch. Call it
// after Done.
func (s Slot) Result() (r *pb.BatchResult, index int, err error) {
	if s.b.err != nil {
		return nil, 0, s.b.err
	}
	return s.b.groups[s.group].result, s.index, nil
}

// Next is the slot n keys further on, of an AddAll.
func (s Slot) Next(n int) Slot { return Slot{s.b, s.group, s.index + n} }

// Open says that the slot's key still waits, with the rest. Not before done is closed.
func (s Slot) Open() bool {
	if s.b.rest == nil || s.b.err != nil {
		return false
	}
	g := &s.b.groups[s.group]
	return g.result == nil || s.index < len(g.result.First) && g.result.First[s.index] == 0 && (g.errs == nil || g.errs[s.index] == nil)
}

// Plain is the answer to a slot for one number; 0 if it is not as simple as nearly
// always. Not before done is closed.
func (s Slot) Plain() seq.Seq {
	g := &s.b.groups[s.group]
	if s.index >= len(g.plain) || g.plain[s.index] > uint64(seq.MaxSeq) {
		return 0
	}
	return seq.Seq(g.plain[s.index])
}

// Refused is a slot whose batch has failed.
func Refused(err error) Slot {
	b := newBatch(nil)
	b.groups = b.one[:1]
	b.fail(err)
	return Slot{b: b}
}

// Answer is what came for the slot's key. Not before done is closed.
func (s Slot) Answer(count uint32) seq.Range {
	if s.b.err != nil {
		return seq.Range{Err: s.b.err}
	}
	g := &s.b.groups[s.group]
	if g.result == nil {
		return seq.Range{Err: errNoResult}
	}
	return RangeOf(g.result, s.index, count, g.errs)
}

// KeyErrors lays the errors of a result out by index; nil if there are none.
func KeyErrors(list []*pb.KeyError, n int) []error {
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

// RangeOf reads the answer for one index and refuses one that does not fit the count: a
// server's fault must not become a number.
func RangeOf(r *pb.BatchResult, i int, count uint32, errs []error) seq.Range {
	if errs != nil && errs[i] != nil {
		return seq.Range{Err: errs[i]}
	}
	if i >= len(r.First) {
		return seq.Range{Err: fmt.Errorf("%w: %d numbers, none for index %d", ErrMalformed, len(r.First), i)}
	}
	first := r.First[i]
	last := first
	if i < len(r.Last) {
		last = r.Last[i]
	}
	got := CheckRange(first, last, count, r.Unordered)
	got.Replayed = got.Err == nil && i < len(r.Replayed) && r.Replayed[i]
	return got
}

// CheckRange is the numbers first to last, or ErrMalformed if they do not fit the count.
func CheckRange(first, last uint64, count uint32, unordered bool) seq.Range {
	if first == 0 || last > uint64(seq.MaxSeq) || last-first != uint64(count)-1 {
		return seq.Range{Err: fmt.Errorf("%w: numbers %d to %d for a count of %d", ErrMalformed, first, last, count)}
	}
	return seq.Range{First: seq.Seq(first), Last: seq.Seq(last), Unordered: unordered}
}

// errNoResult: the reply has fewer results than the request had batches.
var errNoResult = fmt.Errorf("%w: a result is missing", ErrMalformed)

func failAll(batches []*batch, err error) {
	for _, b := range batches {
		b.fail(err)
	}
}
