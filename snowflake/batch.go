package snowflake

import "iter"

// shape turns the positions of one worker into IDs.
type shape struct {
	base      ID     // datacenter and worker in their places
	seqMask   uint64 // of the sequence in a position
	seqBits   uint8
	seqShift  uint8
	timeShift uint8
}

func (s shape) id(position uint64) ID {
	tick := position >> s.seqBits
	sequence := position & s.seqMask
	return s.base | ID(tick<<s.timeShift) | ID(sequence<<s.seqShift)
}

// fill writes the IDs of consecutive positions, tick by tick.
func (s shape) fill(dst []ID, from uint64) {
	stride := ID(1) << s.seqShift
	for len(dst) > 0 {
		n := min(uint64(len(dst)), s.leftInTick(from))
		id := s.id(from)
		for i := range dst[:n] {
			dst[i] = id
			id += stride
		}
		dst, from = dst[n:], from+n
	}
}

// leftInTick counts the positions from the given one to the end of its tick.
func (s shape) leftInTick(position uint64) uint64 {
	perTick := uint64(1) << s.seqBits
	return perTick - position&(perTick-1)
}

// Batch is a number of IDs claimed in one step: consecutive sequences of one
// tick, or of several under the borrow policies. It is a value that needs no
// memory for its IDs; the zero Batch is empty.
type Batch struct {
	shape shape
	from  uint64
	count uint64
}

// Run is a part of a batch within one tick: First, First+Stride, ... Last, both
// ends included. Stride is 1 in layouts whose lowest field is the sequence.
type Run struct{ First, Last, Stride ID }

// Len returns the number of IDs.
func (b Batch) Len() int { return int(b.count) }

// At returns ID i, 0 <= i < Len. It panics outside.
func (b Batch) At(i int) ID {
	if i < 0 || uint64(i) >= b.count {
		panic("snowflake: index out of range of batch")
	}
	return b.shape.id(b.from + uint64(i))
}

// AppendTo appends the IDs to dst.
func (b Batch) AppendTo(dst []ID) []ID {
	n := len(dst)
	dst = append(dst, make([]ID, b.count)...)
	b.shape.fill(dst[n:], b.from)
	return dst
}

// Runs lists the batch tick by tick.
func (b Batch) Runs() iter.Seq[Run] {
	return func(yield func(Run) bool) {
		for from, left := b.from, b.count; left > 0; {
			n := min(left, b.shape.leftInTick(from))
			if !yield(Run{b.shape.id(from), b.shape.id(from + n - 1), 1 << b.shape.seqShift}) {
				return
			}
			from, left = from+n, left-n
		}
	}
}
