package tickets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"time"
)

// ErrCorrupt is returned by Decode for bytes that AppendBinary cannot have written. The section then begins as
// after a crash.
var ErrCorrupt = errors.New("corrupt encoded tickets")

// The encoded form. Varints are unsigned LEB128, times are milliseconds, rounded up.
//
//	version  1 byte
//	hold     varint   left of it
//	fence    varint   of all UIDs
//	fences   varint   number; by rising UID: the UID, its fence
//	keys     varint   number; by rising UID: the UID, the number of its tickets, not 0;
//	                  by rising number: first, last less first, id, the time left
//	crc32c   4 bytes  of everything before it
const version = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary ends what is over now, and appends all else with the time that it has left.
func (b *Book) AppendBinary(dst []byte, now time.Duration) []byte {
	b.Expire(now)
	start := len(dst)
	put := func(n uint64) { dst = binary.AppendUvarint(dst, n) }
	left := func(end time.Duration) {
		put(uint64((max(end-now, 0) + time.Millisecond - 1) / time.Millisecond))
	}
	dst = append(dst, version)
	left(b.hold)
	put(b.fence)
	put(uint64(len(b.fences)))
	for _, uid := range slices.Sorted(maps.Keys(b.fences)) {
		put(uid)
		put(b.fences[uid])
	}
	put(uint64(len(b.keys)))
	for _, uid := range slices.Sorted(maps.Keys(b.keys)) {
		k := b.keys[uid]
		put(uid)
		put(uint64(len(k.open) - k.ended))
		for _, t := range k.open {
			if t.id != 0 {
				put(t.first)
				put(t.last - t.first)
				put(t.id)
				left(t.end)
			}
		}
	}
	return append(dst[:start], sealed(dst[start:])...)
}

// sealed appends the checksum.
func sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// Decode reads what AppendBinary wrote, as of now. ErrCorrupt.
func Decode(stats *Stats, body []byte, now time.Duration) (*Book, error) {
	if len(body) < 5 || body[0] != version || crc32.Checksum(body[:len(body)-4], castagnoli) != binary.LittleEndian.Uint32(body[len(body)-4:]) {
		return nil, fmt.Errorf("%w: not of version %d, or changed on the way", ErrCorrupt, version)
	}
	r := reader{rest: body[1 : len(body)-4]}
	b := &Book{stats: stats, keys: make(map[uint64]*key)}
	b.hold = r.time(now)
	b.fence = r.number()
	for n := r.number(); n > 0 && !r.bad; n-- {
		b.raise(r.number(), r.number())
	}
	for n := r.number(); n > 0 && !r.bad; n-- {
		b.read(&r, now)
	}
	if r.bad || len(r.rest) > 0 {
		b.Close()
		return nil, fmt.Errorf("%w: no tickets of a section", ErrCorrupt)
	}
	return b, nil
}

// read reads the tickets of one UID.
func (b *Book) read(r *reader, now time.Duration) {
	uid, n := r.number(), r.number()
	r.bad = r.bad || n == 0 || n > MostOfKey || b.keys[uid] != nil
	for below := uint64(0); n > 0 && !r.bad; n-- {
		t := ticket{first: r.number(), last: r.number(), id: r.number(), begun: now, end: r.time(now)}
		if t.last += t.first; t.first <= below || t.last < t.first || t.id == 0 {
			r.bad = true
		}
		if below = t.last; !r.bad {
			b.put(uid, t)
		}
	}
}

// reader reads varints until one is bad.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// time reads how much is left, and returns the end.
func (r *reader) time(now time.Duration) time.Duration {
	n := r.number()
	if n > math.MaxUint32 {
		r.bad = true
		return now
	}
	return now + time.Duration(n)*time.Millisecond
}
