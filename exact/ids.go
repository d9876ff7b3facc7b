package exact

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/seqsvr/seqsvr/seq"
)

// request names a take that may be repeated.
type request struct {
	uid seq.UID
	id  string
}

// The seeds of all hashes in memory are drawn, so that callers cannot choose ids that collide. They affect
// only speed.
var (
	idSeed  = maphash.MakeSeed()
	uidSeed = rand.Uint64()
)

// mix is a bijection that spreads a UID over all bits.
func mix(uid seq.UID) uint64 {
	x := (uint64(uid) ^ uidSeed) * 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	return x ^ x>>32
}

func (q *request) hash() uint64 { return hash(q.uid, maphash.String(idSeed, q.id)) }

func hash(uid seq.UID, id uint64) uint64 { return bits.RotateLeft64(mix(uid), 1) ^ id }

// assigned is what a request has got.
type assigned struct {
	first uint64
	count uint32
	until int64 // it is kept, in the section's time
}

// parts is the number of buckets in a window.
const parts = 16

// ids are the requests that can be repeated, in buckets by the time until which they are kept. A bucket is
// dropped whole, when its time is over. Until then it may have requests that have expired. Neither has
// pointers to single requests, so that a collection of garbage passes them over.
type ids struct {
	buckets []bucket // by rising end
	count   int      // of requests, in all buckets
	bytes   int      // that the buckets take in memory
}

// bucket is the requests that expire within a part of the window.
type bucket struct {
	end   int64 // in the section's time: all have expired by then
	count int
	// texts are their encodings, in the order of their records, so that equal copies have equal encodings.
	texts []byte
	// index finds them by open addressing: the place in texts, from 1 on, above a byte of the hash, which
	// spares most looks at others. Zero means an empty place. At most four fifths are in use.
	index []uint32
	// The owner's marks: so many bytes of texts have begun to travel, and so many are at W stores.
	sent, held int
}

const (
	tagBits = 8 // of the hash, in a place of the index
	// maxTexts bounds where a text may begin.
	maxTexts = 1<<(32-tagBits) - 2
)

// ending returns the end of the bucket of an id that is kept until a time. It is not before that time.
func ending(until, window int64) int64 {
	width := max(1, window/parts)
	if until > math.MaxInt64-width {
		return math.MaxInt64
	}
	return (until + width - 1) / width * width
}

// find returns the bucket that has a request, and the place in its texts. It looks at the buckets that end
// after a time. If none has the request, the bucket is nil.
func (s *ids) find(q request, time int64) (*bucket, int) {
	h := q.hash()
	for i := len(s.buckets) - 1; i >= 0 && s.buckets[i].end > time; i-- {
		if at := s.buckets[i].find(q, h); at >= 0 {
			return &s.buckets[i], at
		}
	}
	return nil, 0
}

// add adds the request of a record, which is kept until a time.
func (s *ids) add(r *Record, until, window int64) {
	end := ending(until, window)
	i := len(s.buckets)
	for i > 0 && s.buckets[i-1].end > end {
		i--
	}
	if i == 0 || s.buckets[i-1].end != end || len(s.buckets[i-1].texts) > maxTexts {
		s.bytes -= cap(s.buckets) * int(unsafe.Sizeof(bucket{}))
		s.buckets = slices.Insert(s.buckets, i, bucket{end: end})
		s.bytes += cap(s.buckets) * int(unsafe.Sizeof(bucket{}))
		i++
	}
	b := &s.buckets[i-1]
	s.bytes -= b.bytes()
	at := len(b.texts)
	b.texts = appendRequest(b.texts, r, until)
	if b.count++; 5*b.count > 4*len(b.index) {
		b.reindex(len(b.index) + len(b.index)/2 + 2)
	} else {
		b.place(at, (&request{r.UID, r.ID}).hash())
	}
	s.bytes += b.bytes()
	s.count++
}

// pass drops the buckets that end by a time.
func (s *ids) pass(time int64) {
	n := 0
	for ; n < len(s.buckets) && s.buckets[n].end <= time; n++ {
		s.count -= s.buckets[n].count
		s.bytes -= s.buckets[n].bytes()
	}
	if n > 0 {
		s.buckets = slices.Delete(s.buckets, 0, n)
	}
}

// next returns when the next bucket is dropped. It returns false if there is none.
func (s *ids) next() (int64, bool) {
	if len(s.buckets) == 0 {
		return 0, false
	}
	return s.buckets[0].end, true
}

// forget drops a request that has expired before its bucket, because its id is used again.
func (s *ids) forget(q request) {
	b, at := s.find(q, math.MinInt64)
	if b == nil {
		return
	}
	s.bytes -= b.bytes()
	b.cut(at)
	s.count--
	if s.bytes += b.bytes(); b.count == 0 {
		s.bytes -= b.bytes()
		s.buckets = slices.DeleteFunc(s.buckets, func(b bucket) bool { return b.count == 0 })
	}
}

// begin marks what there is as being on its way to the stores.
func (s *ids) begin() {
	for i := range s.buckets {
		s.buckets[i].sent = len(s.buckets[i].texts)
	}
}

// committed marks what was on its way as held by W stores.
func (s *ids) committed() {
	for i := range s.buckets {
		s.buckets[i].held = s.buckets[i].sent
	}
}

// clone copies the requests, without the marks.
func (s *ids) clone() ids {
	c := *s
	c.buckets, c.bytes = slices.Clone(s.buckets), 0
	for i := range c.buckets {
		b := &c.buckets[i]
		b.texts, b.index = slices.Clone(b.texts), slices.Clone(b.index)
		b.sent, b.held = 0, 0
		c.bytes += b.bytes()
	}
	c.bytes += cap(c.buckets) * int(unsafe.Sizeof(bucket{}))
	return c
}

// bytes returns the memory behind the bucket.
func (b *bucket) bytes() int { return cap(b.texts) + cap(b.index)*4 }

// got returns what the request at a place has got.
func (b *bucket) got(at int) assigned {
	r, until := NewReader(b.texts[at:]).request()
	return assigned{first: r.First, count: r.Count, until: until}
}

// text returns the request whose text stands at a place, without a copy of its id, and the size of the text.
func (b *bucket) text(at int) (uid seq.UID, id []byte, size int) {
	text := b.texts[at:]
	u, n := binary.Uvarint(text)
	length, m := binary.Uvarint(text[n:])
	size = n + m + int(length)
	id = text[n+m : size]
	for range 4 { // see appendRequest
		_, m = binary.Uvarint(text[size:])
		size += m
	}
	return seq.UID(u), id, size
}

// home returns the place of the index at which the search for a hash begins. The index is not empty.
func (b *bucket) home(h uint64) int {
	hi, _ := bits.Mul64(h, uint64(len(b.index)))
	return int(hi)
}

// find returns the place of a request with that hash in the texts, -1 if it is not there.
func (b *bucket) find(q request, h uint64) int {
	if len(b.index) == 0 {
		return -1
	}
	for i := b.home(h); ; {
		in := b.index[i]
		if in == 0 {
			return -1
		}
		if uint8(in) == uint8(h) {
			at := int(in>>tagBits) - 1
			if uid, id, _ := b.text(at); uid == q.uid && string(id) == q.id {
				return at
			}
		}
		if i++; i == len(b.index) {
			i = 0
		}
	}
}

// place notes the place of a text in the index.
func (b *bucket) place(at int, h uint64) {
	i := b.home(h)
	for b.index[i] != 0 {
		if i++; i == len(b.index) {
			i = 0
		}
	}
	b.index[i] = uint32(at+1)<<tagBits | uint32(uint8(h))
}

// reindex makes an index of at least that many places.
func (b *bucket) reindex(places int) {
	b.index = slices.Grow([]uint32(nil), places)
	b.index = b.index[:cap(b.index)]
	clear(b.index)
	for at := 0; at < len(b.texts); {
		uid, id, size := b.text(at)
		b.place(at, hash(uid, maphash.Bytes(idSeed, id)))
		at += size
	}
}

// cut drops the request at a place.
func (b *bucket) cut(at int) {
	_, _, size := b.text(at)
	b.texts = slices.Delete(b.texts, at, at+size)
	b.count--
	b.reindex(len(b.index))
	if at < b.sent {
		b.sent -= size
	}
	if at < b.held {
		b.held -= size
	}
}
