package exact

import (
	"cmp"
	"fmt"

	"github.com/seqsvr/seqsvr/seq"
)

// Config of an owner. Times are milliseconds.
type Config struct {
	Window int64 // for how long ids are kept
	Bound  int64 // by how much a caller's clock may be ahead of the owner's
	// Full returns why no more UIDs and ids may be kept, nil if they may. If nil, they may.
	Full func() error
	Most int64 // bytes that a copy may take; if zero, MaxCopy
}

// Owner is a section at the allocator that hands its numbers out: the state with all that was gathered so
// far, of which W stores have a part. No answer may be sent before they have its batch: each answer says
// which batch it waits for. Owner has no clock, no I/O and no goroutine, and is not safe for concurrent
// use.
//
//	committed <= sent <= state
type Owner struct {
	cfg   Config
	epoch seq.Epoch
	state *State

	sent    Position // end of the last batch that began
	latest  []Record // that it brought
	pending []Record // behind it
	round   uint64   // batches that began
	flying  bool     // the last of them is under way
	asked   bool     // a read waits for a batch that has yet to begin
}

// NewOwner makes the owner of a section under an epoch that W stores have promised. found is the copy with
// the highest position among these stores' copies, read after the promises. Its first batch must be at W
// stores before any other begins.
func NewOwner(cfg Config, epoch seq.Epoch, found *State, now int64) (*Owner, error) {
	if !found.at.Epoch.Less(epoch) {
		return nil, fmt.Errorf("%w: epoch %v for a copy at %v", ErrBadRecord, epoch, found.at)
	}
	o := &Owner{cfg: cfg, epoch: epoch, state: found, sent: found.at}
	o.state.ids.begin()
	if err := o.add(Record{Kind: Began}, now); err != nil {
		return nil, err
	}
	return o, nil
}

// Answer is the reply to a request. It holds once batch Round is at W stores. If Round is zero, it holds
// now.
type Answer struct {
	Round    uint64
	First    uint64 // zero if there are no numbers
	Count    uint32
	Replayed bool
}

// Take assigns count numbers, at most seq.MaxCount, to a request. If the request has numbers already, Take
// returns those. id has at most MaxID bytes; if empty, the request cannot be repeated. first is the time
// when its caller first sent it. Zero means now. Take returns ErrConflict with the original numbers,
// ErrExpired, ErrTime, ErrFull or ErrSpent.
func (o *Owner) Take(uid seq.UID, count uint32, id string, first, now int64) (Answer, error) {
	time := o.time(now)
	if first == 0 {
		first = time
	}
	if id != "" {
		if a, ok := o.had(request{uid, id}, time); ok && a.Count != count {
			return a, &Conflict{First: a.First, Count: a.Count, Asked: count}
		} else if ok {
			return a, nil
		}
		switch {
		case first > time+o.cfg.Bound:
			return Answer{}, fmt.Errorf("%w: first sent at %d, and it is %d", ErrTime, first, time)
		case first+o.cfg.Window <= time:
			return Answer{}, fmt.Errorf("%w: first sent at %d, ids are kept for %d, and it is %d", ErrExpired, first, o.cfg.Window, time)
		}
	}
	last := o.state.Last(uid)
	if id != "" || !o.state.knows(uid) {
		if err := o.full(); err != nil {
			return Answer{}, err
		}
	}
	if uint64(count) > uint64(seq.MaxSeq)-last {
		return Answer{}, fmt.Errorf("%w: last number %d", ErrSpent, last)
	}
	if err := o.add(Record{Kind: Take, UID: uid, First: last + 1, Count: count, ID: id, Sent: first}, now); err != nil {
		return Answer{}, err
	}
	return Answer{Round: o.round + 1, First: last + 1, Count: count}, nil
}

// full is ErrFull if there is no room for another UID or id: in memory, or in a copy.
func (o *Owner) full() error {
	uids, ids := o.Size()
	switch {
	case o.CopyShare() >= 1:
		return fmt.Errorf("%w: %d UIDs and %d ids of this section kept, as many as a copy may have: its space needs more sections", ErrFull, uids, ids)
	case o.cfg.Full == nil:
		return nil
	}
	if why := o.cfg.Full(); why != nil {
		return fmt.Errorf("%w: %d ids of this section kept: %w", ErrFull, ids, why)
	}
	return nil
}

// CopyShare returns an upper bound of the copy's size as a share of its limit. A full copy has 1.
func (o *Owner) CopyShare() float64 {
	return float64(o.state.copyBytes()+idText+uidText) / float64(cmp.Or(o.cfg.Most, MaxCopy))
}

// had returns what a request has got, or is about to, if it is kept beyond a time.
func (o *Owner) had(q request, time int64) (Answer, bool) {
	in, at := o.state.ids.find(q, time)
	if in == nil {
		return Answer{}, false
	}
	got := in.got(at)
	return Answer{Round: o.has(in, at), First: got.first, Count: got.count, Replayed: true}, got.until > time
}

// has is the batch with which W stores have a request, 0 if they do.
func (o *Owner) has(in *bucket, at int) uint64 {
	switch {
	case at < in.held:
		return 0
	case at < in.sent && o.round > 0: // else what was found: the first batch shows that W stores have it
		return o.round
	}
	return o.round + 1
}

// Lookup returns the numbers that a request has got. First is 0 if it has none. It takes nothing.
func (o *Owner) Lookup(uid seq.UID, id string) Answer {
	if a, ok := o.had(request{uid, id}, o.state.time); ok {
		return a
	}
	return Answer{Round: o.ask()}
}

// Current returns the last number of a UID, as First. For a UID without numbers it is 0, or after a restore
// the number at which the UID begins, because it may have had numbers up to there.
func (o *Owner) Current(uid seq.UID) Answer {
	return Answer{Round: o.ask(), First: o.state.Last(uid)}
}

// ask makes a batch begin. An owner's memory may be old, because another owner may have the section by now.
// Only a batch that began after the question proves the answer.
func (o *Owner) ask() uint64 {
	o.asked = true
	return o.round + 1
}

// Raise lifts a UID to at least a number, and returns its last number. It returns ErrSpent or ErrFull.
func (o *Owner) Raise(uid seq.UID, to uint64, now int64) (Answer, error) {
	last := o.state.Last(uid)
	if to > uint64(seq.MaxSeq) {
		return Answer{}, fmt.Errorf("%w: raise to %d", ErrSpent, to)
	}
	if to <= last {
		return Answer{Round: o.ask(), First: last}, nil
	}
	if !o.state.knows(uid) {
		if err := o.full(); err != nil {
			return Answer{}, err
		}
	}
	if err := o.add(Record{Kind: Raise, UID: uid, First: to}, now); err != nil {
		return Answer{}, err
	}
	return Answer{Round: o.round + 1, First: to}, nil
}

// Pass adds a record of the time if ids can be dropped by it. It reports whether it added one.
func (o *Owner) Pass(now int64) bool {
	if next, ok := o.state.ids.next(); !ok || next > o.time(now) {
		return false
	}
	return o.add(Record{Kind: Passed}, now) == nil
}

func (o *Owner) time(now int64) int64 { return max(o.state.time, now) }

// add completes a record and takes it in. ErrBadRecord for a record that a copy would refuse: it
// is not gathered, because every copy would refuse the whole batch.
func (o *Owner) add(r Record, now int64) error {
	r.Epoch, r.Index, r.Prev, r.Time = o.epoch, o.state.at.Index+1, o.state.at.Epoch, o.time(now)
	next := batch{state: o.state, window: o.cfg.Window}
	again, err := next.admits(&r)
	if err != nil {
		return err
	}
	o.state.apply(&r, again, o.cfg.Window)
	o.pending = append(o.pending, r)
	return nil
}

// Begin returns the next batch. It returns false if none is wanted or one is under way. The owner must
// repeat the batch unchanged until W stores have it, or end.
//
// The batch repeats the records of the batch before it. The two may overtake each other on their way to a
// store that is not among the W, and each time the store would otherwise need a whole copy.
func (o *Owner) Begin() (Batch, bool) {
	if o.flying || len(o.pending) == 0 && !o.asked {
		return Batch{}, false
	}
	b := Batch{Epoch: o.epoch, After: o.sent, Records: o.pending}
	if n := len(o.latest); n > 0 {
		b.After, b.Records = o.latest[0].after(), append(o.latest[:n:n], o.pending...)
	}
	if len(o.pending) > 0 {
		o.latest = o.pending
	}
	o.pending, o.sent, o.asked, o.flying = nil, o.state.at, false, true
	o.state.ids.begin()
	o.round++
	return b, true
}

// Committed notes that W stores have the batch under way. All answers with a Round up to the result now
// hold.
func (o *Owner) Committed() (round uint64) {
	o.flying = false
	o.state.ids.committed()
	return o.round
}

// Ask makes a batch begin although there is nothing to send.
func (o *Owner) Ask() { o.ask() }

// Round returns the number of the last batch that began.
func (o *Owner) Round() uint64 { return o.round }

// Last returns the last number that was gathered for a UID. W stores may not have it yet.
func (o *Owner) Last(uid seq.UID) uint64 { return o.state.Last(uid) }

// Highest returns a number that no last number is above.
func (o *Owner) Highest() uint64 { return max(o.state.floor, o.state.last.High()) }

// Size returns the numbers of UIDs and ids in the section.
func (o *Owner) Size() (uids, ids int) { return o.state.UIDs(), o.state.IDs() }

// Page calls State.Page on all that the owner has.
func (o *Owner) Page(from seq.UID, most int) (uids []seq.UID, next seq.UID) {
	return o.state.Page(from, most)
}

// Bytes is about what the UIDs and ids take in memory.
func (o *Owner) Bytes() int64 { return o.state.Bytes() }

// State returns all that the owner has, committed or not, for copies that stand elsewhere. It ends in a
// record of the owner's epoch.
func (o *Owner) State() *State { return o.state.Clone() }
