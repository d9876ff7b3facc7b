package tickets

import (
	"fmt"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Bounds of what is kept.
const (
	// MostOpen is the largest number of open tickets of a node, some 80 MB.
	MostOpen = 1 << 20
	// MostOfKey is the largest number of open tickets of one UID.
	MostOfKey = 1 << 14
	// mostFences is the largest number of UIDs of a section that have a fence of their own. Beyond it their
	// highest fence becomes the fence of all. That costs readers a write more, and is never wrong.
	mostFences = 256
)

// guard is added to each ticket's life beside the share for clocks, for the resolution of clocks.
const guard = 10 * time.Millisecond

// Span returns how long an owner keeps a ticket of that life by its own clock: two clocks that run
// within 1 % of the right rate differ by 1.0203 at most.
func Span(life time.Duration) time.Duration { return life + life/40 + guard }

// Stats counts the tickets of a node, and bounds them. Safe for concurrent use.
type Stats struct {
	Open atomic.Int64 // now, in all sections
	// Since the node began: how many were opened, how they ended, and requests that were refused because
	// there were too many.
	Opened, Done, Cancelled, Expired, Refused atomic.Uint64
}

// ticket is a range of numbers that is open until a time. If id is 0, it has ended.
type ticket struct {
	first, last uint64
	id          uint64
	begun, end  time.Duration // begun at this owner
}

// Census counts the open tickets of a section.
type Census struct {
	Open   int
	Oldest time.Duration // how long the oldest has been open at this owner
}

// key has the tickets of one UID.
//
//	open[0] is open; first rises; ended of the others have ended
type key struct {
	open  []ticket
	ended int
	next  time.Duration // no ticket ends before
}

// Book has the tickets of one section. All times are readings of the owner's clock. Not safe for concurrent
// use.
type Book struct {
	stats  *Stats
	keys   map[uint64]*key
	fences map[uint64]uint64 // of UIDs
	fence  uint64            // of all UIDs
	lost   bool              // the tickets of the owner before, so that fence must be set
	serves bool              // after Begin
	hold   time.Duration     // no mark is known before
	ended  func(uid uint64)  // is called when time ends a ticket
}

// New returns the book of an owner that does not know the tickets of the owner before, which had that life at
// most. W stores promised the section at the time promised.
func New(stats *Stats, promised, life time.Duration) *Book {
	return &Book{stats: stats, keys: make(map[uint64]*key), lost: true, hold: promised + Span(life)}
}

// Notify has ended called with a UID whenever time ends a ticket of it.
func (b *Book) Notify(ended func(uid uint64)) { b.ended = ended }

// Begin says that the owner serves from now on, and that no number of the section is above high. Tickets of
// numbers above the last number of their UID are forgotten, because other requests will get these numbers. If
// last is nil, there are none. A second call changes nothing.
func (b *Book) Begin(high uint64, last func(uid uint64) uint64) {
	if b.serves {
		return
	}
	b.serves = true
	if b.lost {
		b.fence, b.lost = max(b.fence, high), false
	}
	if last == nil {
		return
	}
	for uid, k := range b.keys {
		for i := range k.open {
			if k.open[i].id != 0 && k.open[i].last > last(uid) {
				b.drop(k, i)
			}
		}
		b.tidy(uid, k)
	}
}

// Len returns the number of UIDs with an open ticket.
func (b *Book) Len() int { return len(b.keys) }

// Admit returns a seq.ErrTickets if the UID may get no further ticket.
func (b *Book) Admit(uid uint64, now time.Duration) error {
	k := b.at(uid, now)
	switch {
	case b.stats.Open.Load() >= MostOpen:
		b.stats.Refused.Add(1)
		return fmt.Errorf("%w: %d are open at this node, expected less than %d: end them with Done", seq.ErrTickets, b.stats.Open.Load(), MostOpen)
	case k != nil && len(k.open)-k.ended >= MostOfKey:
		b.stats.Refused.Add(1)
		return fmt.Errorf("%w: %d of this key are open, expected less than %d: end them with Done", seq.ErrTickets, len(k.open)-k.ended, MostOfKey)
	}
	return nil
}

// Open opens a ticket for the numbers first to last of a UID, which were taken now and are its highest. The
// id is not 0, and hard to guess.
func (b *Book) Open(uid, first, last, id uint64, now, life time.Duration) {
	b.stats.Opened.Add(1)
	b.put(uid, ticket{first, last, id, now, now + Span(life)})
}

// Again returns the id of the ticket of numbers that a UID got earlier, for a request that is repeated. If the
// ticket is open, it lasts for that life from now. If it has ended and the mark has not passed its numbers, it
// is opened under the id. Otherwise the numbers are closed, and Again returns 0.
func (b *Book) Again(uid, first, last, id uint64, now, life time.Duration) uint64 {
	k := b.at(uid, now)
	if k == nil || first < k.open[0].first {
		return 0
	}
	t := ticket{first, last, id, now, now + Span(life)}
	i := sort.Search(len(k.open), func(i int) bool { return k.open[i].first >= first })
	switch {
	case i == len(k.open) || k.open[i].first != first:
		k.open = slices.Insert(k.open, i, t)
	case k.open[i].id != 0:
		k.open[i].end = max(k.open[i].end, t.end)
		return k.open[i].id
	default:
		k.open[i] = t
		k.ended--
	}
	k.next = min(k.next, t.end)
	b.stats.Opened.Add(1)
	b.stats.Open.Add(1)
	return id
}

func (b *Book) put(uid uint64, t ticket) {
	k := b.keys[uid]
	if k == nil {
		k = &key{next: t.end}
		b.keys[uid] = k
	}
	k.open, k.next = append(k.open, t), min(k.next, t.end)
	b.stats.Open.Add(1)
}

// End ends the ticket that begins at the number first of a UID and has the id. seq.ErrTicketEnded.
func (b *Book) End(uid, first, id uint64, now time.Duration) error {
	k := b.at(uid, now)
	if k == nil {
		return seq.ErrTicketEnded
	}
	i := sort.Search(len(k.open), func(i int) bool { return k.open[i].first >= first })
	if i == len(k.open) || k.open[i].first != first || k.open[i].id != id || id == 0 {
		return seq.ErrTicketEnded
	}
	b.drop(k, i)
	b.tidy(uid, k)
	return nil
}

// Revoke ends the latest ticket of a UID with the id, which its writer never heard of, and reports whether
// it was open.
func (b *Book) Revoke(uid, id uint64) bool {
	k := b.keys[uid]
	if k == nil {
		return false
	}
	for i, t := range slices.Backward(k.open) {
		if t.id == id {
			b.drop(k, i)
			b.tidy(uid, k)
			return true
		}
	}
	return false
}

// Mark returns the mark of a UID with the last number last, and its fence, which is at most the mark. If
// the mark is not known yet, it returns for how long.
func (b *Book) Mark(uid, last uint64, now time.Duration) (mark, fence uint64, unknown time.Duration) {
	if now < b.hold {
		return 0, 0, b.hold - now
	}
	mark = last
	if k := b.at(uid, now); k != nil {
		mark = k.open[0].first - 1
	}
	return mark, min(mark, max(b.fence, b.fences[uid])), 0
}

// Kept returns how many tickets of a UID are open, and how long the one with the lowest number still lasts.
func (b *Book) Kept(uid uint64, now time.Duration) (open int, left time.Duration) {
	k := b.at(uid, now)
	if k == nil {
		return 0, 0
	}
	return len(k.open) - k.ended, k.open[0].end - now
}

// Expire ends the tickets whose time is over, and counts the others. Of each UID the one with the lowest number
// counts as its oldest.
func (b *Book) Expire(now time.Duration) (c Census) {
	for uid := range b.keys {
		if k := b.at(uid, now); k != nil {
			c.Open += len(k.open) - k.ended
			c.Oldest = max(c.Oldest, now-k.open[0].begun)
		}
	}
	return c
}

// Close forgets all tickets.
func (b *Book) Close() {
	for _, k := range b.keys {
		b.stats.Open.Add(int64(k.ended - len(k.open)))
	}
	b.keys = nil
}

// at returns the tickets of a UID that are open now, nil if there are none.
func (b *Book) at(uid uint64, now time.Duration) *key {
	k := b.keys[uid]
	if k == nil || now < k.next {
		return k
	}
	k.next = 1<<63 - 1
	for i, t := range k.open {
		switch {
		case t.id == 0:
		case t.end <= now:
			b.stats.Expired.Add(1)
			b.raise(uid, t.last)
			b.drop(k, i)
			if b.ended != nil {
				b.ended(uid)
			}
		default:
			k.next = min(k.next, t.end)
		}
	}
	return b.tidy(uid, k)
}

// drop ends one ticket.
func (b *Book) drop(k *key, i int) {
	k.open[i].id = 0
	k.ended++
	b.stats.Open.Add(-1)
}

// tidy forgets tickets that have ended, and returns the key if any is open.
func (b *Book) tidy(uid uint64, k *key) *key {
	for len(k.open) > 0 && k.open[0].id == 0 {
		k.open = k.open[1:]
		k.ended--
	}
	if len(k.open) == 0 {
		delete(b.keys, uid)
		return nil
	}
	if k.ended > len(k.open)/2 {
		k.open, k.ended = slices.DeleteFunc(k.open, func(t ticket) bool { return t.id == 0 }), 0
	}
	return k
}

// raise lifts the fence of a UID.
func (b *Book) raise(uid, to uint64) {
	if b.fences == nil {
		b.fences = make(map[uint64]uint64)
	}
	b.fences[uid] = max(b.fences[uid], to)
	if len(b.fences) <= mostFences {
		return
	}
	for _, fence := range b.fences {
		b.fence = max(b.fence, fence)
	}
	b.fences = nil
}
