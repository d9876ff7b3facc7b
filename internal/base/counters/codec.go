package counters

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
)

// The encoded form. Varints are unsigned LEB128 in their shortest form, fixed
// numbers are little-endian. Version 2 is of tables whose base Fold has raised
// above their floor, version 1 of all others.
//
//	version  1 byte
//	floor    varint
//	rise     varint   version 2 only: base less floor, not 0
//	blocks   varint   version 2: not 0
//	by rising block:
//	  gap    varint   block number, less the former one and 1
//	  shape  1 byte   0..63: one UID, at this offset; 64: a bitmap follows
//	  bitmap 8 bytes  only with shape 64; at least two bits set
//	  last   4 bytes  Unix seconds of the last take, 0 if unknown
//	  values varint each, by rising UID: the value, less floor and 1
//	crc32c   4 bytes  of everything before it
const (
	plain       = 1 // version: floor and base are one
	risen       = 2 // version: the base is above the floor
	shapeBitmap = blockSize
	crcSize     = 4
	maxBlock    = math.MaxUint64 >> blockBits
	minBlockLen = 1 + 1 + 4 + 1 // gap, shape, last, one value
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary appends the table, times included, to dst and returns the result.
// Tables of equal content give equal bytes.
func (t *Table) AppendBinary(dst []byte) []byte {
	start := len(dst)
	if t.base == t.floor {
		dst = binary.AppendUvarint(append(dst, plain), t.floor)
	} else {
		dst = binary.AppendUvarint(append(dst, risen), t.floor)
		dst = binary.AppendUvarint(dst, t.base-t.floor)
	}
	dst = binary.AppendUvarint(dst, uint64(t.blocks))
	var next uint64 // the lowest block that may follow
	for _, i := range t.slots.order(t.blocks) {
		s := &t.slots[i]
		dst = binary.AppendUvarint(dst, s.block-next)
		next = s.block + 1
		if s.form() == single {
			dst = append(dst, byte(s.pos()))
		} else {
			dst = append(dst, shapeBitmap)
			dst = binary.LittleEndian.AppendUint64(dst, s.word)
		}
		dst = binary.LittleEndian.AppendUint32(dst, s.last)
		t.each(s, func(_, value uint64) bool {
			dst = binary.AppendUvarint(dst, value-t.floor-1)
			return true
		})
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// Decode returns the table that AppendBinary wrote as exactly b. Any other
// bytes are refused with ErrVersion or ErrCorrupt; b is not kept.
func Decode(b []byte) (*Table, error) {
	body := len(b) - crcSize
	if body < 1 {
		return nil, fmt.Errorf("decode counters: %d bytes: %w", len(b), ErrCorrupt)
	}
	// The checksum first, so that a damaged version byte reads as damage.
	if got, want := crc32.Checksum(b[:body], castagnoli), binary.LittleEndian.Uint32(b[body:]); got != want {
		return nil, fmt.Errorf("decode counters: checksum %08x, want %08x: %w", got, want, ErrCorrupt)
	}
	if b[0] != plain && b[0] != risen {
		return nil, fmt.Errorf("decode counters: version %d: %w", b[0], ErrVersion)
	}
	r := reader{b: b[1:body]}
	t := New(r.uvarint())
	if b[0] == risen {
		rise := r.uvarint()
		t.base += rise
		t.high = t.base
		r.bad = r.bad || t.base <= t.floor // no rise, or one past 2^64-1
	}
	blocks := r.uvarint()
	r.bad = r.bad || b[0] == risen && blocks == 0
	if blocks > uint64(len(r.b)/minBlockLen) {
		return nil, fmt.Errorf("decode counters: %d blocks in %d bytes: %w", blocks, len(r.b), ErrCorrupt)
	}
	t.slots = t.slots.resized(int(blocks) + int(blocks)/4 + 1)
	var next uint64
	for i := range blocks {
		if next = t.decodeBlock(&r, next); r.bad {
			return nil, fmt.Errorf("decode counters: block %d of %d: %w", i, blocks, ErrCorrupt)
		}
	}
	if r.bad || len(r.b) != 0 {
		return nil, fmt.Errorf("decode counters: %d bytes left over: %w", len(r.b), ErrCorrupt)
	}
	return t, nil
}

// decodeBlock reads one block, whose number must be at least next, and returns
// the least number of the one after it. It may leave half a block in the table
// if it sets r.bad.
func (t *Table) decodeBlock(r *reader, next uint64) uint64 {
	gap := r.uvarint()
	if next > maxBlock || gap > maxBlock-next {
		r.bad = true
		return 0
	}
	block := next + gap
	bitmap := r.bitmap()
	last := r.uint32()
	if bits.OnesCount64(bitmap) > len(r.b) {
		r.bad = true
	}
	var s *slot
	for m := bitmap; m != 0 && !r.bad; m &= m - 1 {
		rel := r.uvarint()
		// floor + rel + 1 <= 2^64-1, and floor itself is no value.
		if r.bad || t.floor == math.MaxUint64 || rel > math.MaxUint64-t.floor-1 {
			r.bad = true
			return 0
		}
		value := t.floor + rel + 1
		s = t.add(s, block<<blockBits|uint64(bits.TrailingZeros64(m)), value)
		s.last = last
		t.high = max(t.high, value)
	}
	return block + 1
}

// reader takes fields off the front of b. Once bad it returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) next(n int) []byte {
	if r.bad || len(r.b) < n {
		r.bad = true
		return make([]byte, 8)[:n]
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.next(4)) }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	// A last byte of 0 in a longer varint is not the shortest form.
	if r.bad || n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// bitmap reads shape and bitmap.
func (r *reader) bitmap() uint64 {
	shape := r.next(1)[0]
	if shape < shapeBitmap {
		return 1 << shape
	}
	m := binary.LittleEndian.Uint64(r.next(8))
	if shape > shapeBitmap || bits.OnesCount64(m) < 2 {
		r.bad = true
	}
	return m
}
