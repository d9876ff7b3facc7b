package section

import (
	"context"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/counters"
)

// stride is the number of keys of a batch that are served side by side. Each key waits for memory three or
// four times. The more keys wait together, the less a key costs. Their sections stay locked meanwhile.
const stride = 16

// BatchClock is the time by which all keys of a batch are judged. It must be read after the last request of
// the batch has arrived.
type BatchClock struct {
	now    time.Duration
	losses uint64 // of the leases
	stamp  uint32 // Unix seconds
}

// BatchClock reads the clocks for a batch.
func (t *Table) BatchClock() BatchClock {
	return BatchClock{now: t.clock.Now(), losses: t.losses(), stamp: t.unix()}
}

// Pass serves all that needs no waiting.
func (t *Taking) Pass(m BatchClock) {
	if t.exact { // all wait for the stores
		for i := range t.keys.UIDs {
			t.pending = append(t.pending, i)
		}
		t.waits()
		return
	}
	for from := 0; from < len(t.keys.UIDs); {
		from += t.stride(from, m)
	}
	if !t.Settled() {
		t.waits()
	}
}

// entry is one key of a stride. Its section is locked by the first of the neighbours that
// share it and unlocked after the last.
type entry struct {
	c      *Section
	serves bool
	lapsed bool // without a lease, as spaces that are only unique may
	spot   counters.Ref
}

// stride serves the keys from an index on, and returns how many it served, at least one. It does each kind
// of step for all keys together, so that the processor fetches the memory of all keys at once and not one
// after the other.
//
// It waits only for the first section. Another section may be locked by another batch, or because it is in
// the stride already. Then the stride ends before it. So no batch waits for a lock while it holds one, and
// keys of one section are served by rising index.
func (t *Taking) stride(from int, m BatchClock) int {
	var entries [stride]entry
	to := min(from+stride, len(t.keys.UIDs))
	uids := t.keys.UIDs[from:to]
	var sum uint64
	for k, place := range t.keys.Places[from:to] {
		c := t.table.Section(t.space.SectionOf(place))
		entries[k].c = c
		sum += uint64(c.id) + uint64(c.space.First)
	}
	n := t.lock(entries[:len(uids)], m)
	for k := range entries[:n] {
		if l := &entries[k]; l.serves {
			sum += l.c.table.Prefetch(uint64(uids[k]))
		}
	}
	for k := range entries[:n] {
		if l := &entries[k]; l.serves {
			l.spot = l.c.table.Find(uint64(uids[k]))
		}
	}
	for k := range entries[:n] {
		sum += entries[k].spot.Fetch()
	}
	t.fetched = sum
	t.serve(from, entries[:n], m.stamp)
	return n
}

// lock locks the sections of the entries, and says up to which one.
func (t *Taking) lock(entries []entry, m BatchClock) int {
	for k := range entries {
		l := &entries[k]
		switch {
		case k == 0:
			l.c.mu.Lock()
		case l.c == entries[k-1].c:
			l.serves, l.lapsed = entries[k-1].serves, entries[k-1].lapsed
			continue
		case !l.c.mu.TryLock():
			return k
		}
		if l.serves = l.c.state == Owned; l.serves && !l.c.vouched(m.now, m.losses) {
			l.serves, l.lapsed = t.unique, true
		}
	}
	return len(entries)
}

// serve takes the numbers, and unlocks.
func (t *Taking) serve(from int, entries []entry, stamp uint32) {
	good := true // spots of the section; a UID that was new moves others
	uids := t.keys.UIDs[from:][:len(entries)]
	for k := range entries {
		l, i := &entries[k], from+k
		if !l.serves || t.line.has(l.c, uids[k]) || !t.take(l.c, i, l.spot, good, stamp) {
			t.pending = append(t.pending, i)
			t.line.hold(l.c, uids[k], t.count(i))
		} else if l.lapsed {
			t.out.Unordered = true
		}
		if good = good && l.spot.Known(); k+1 == len(entries) || entries[k+1].c != l.c {
			l.c.mu.Unlock()
			good = true
		}
	}
}

// take serves index i from an owned cell; false if the ceiling is in the way, or there is no
// memory for a UID without a counter. spot is where the UID is, if it is good. Needs c.mu.
func (t *Taking) take(c *Section, i int, spot counters.Ref, good bool, stamp uint32) bool {
	uid := uint64(t.keys.UIDs[i])
	if !good {
		spot = c.table.Find(uid)
	}
	if !spot.Known() && c.memory.above(allUsed) {
		return false
	}
	first, last, ok := c.table.TakeAt(spot, uid, t.count(i), c.confirmed, stamp)
	if !ok {
		return false
	}
	if !spot.Known() {
		c.weigh()
	}
	if c.watched {
		c.watch.Mark(uid)
	}
	t.out.First[i], t.out.Last[i] = first, last
	t.numbers += last - first + 1
	if t.strict {
		t.epochs.note(c)
	}
	if c.due() {
		t.table.ahead(context.Background(), c, c.table.High())
	}
	return true
}
