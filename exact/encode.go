package exact

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/seq"
)

// The encodings below stand on disks and in messages: unsigned varints, and texts behind their lengths. The
// code that stores them adds a checksum.

// The least bytes of the encoding of a record, and the usual bytes of a UID and of an id.
const (
	leastRecord = 26
	usualUID    = 12
	usualID     = 48
)

// AppendTo appends the record's encoding.
func (r *Record) AppendTo(b []byte) []byte {
	b = appendEpoch(b, r.Epoch)
	b = binary.AppendUvarint(b, r.Index)
	b = appendEpoch(b, r.Prev)
	b = append(b, byte(r.Kind))
	b = binary.AppendUvarint(b, uint64(r.UID))
	b = binary.AppendUvarint(b, r.First)
	b = binary.AppendUvarint(b, uint64(r.Count))
	b = appendText(b, r.ID)
	b = binary.AppendUvarint(b, uint64(r.Sent))
	return binary.AppendUvarint(b, uint64(r.Time))
}

// AppendTo appends the state's encoding.
func (s *State) AppendTo(b []byte) []byte {
	b = slices.Grow(b, 64+usualUID*s.UIDs()+usualID*s.ids.count)
	b = appendEpoch(b, s.at.Epoch)
	b = binary.AppendUvarint(b, s.at.Index)
	b = binary.AppendUvarint(b, uint64(s.time))
	b = binary.AppendUvarint(b, s.floor)
	b = binary.AppendUvarint(b, uint64(s.UIDs()))
	for uid, last := range s.last.All() {
		b = binary.AppendUvarint(b, uid)
		b = binary.AppendUvarint(b, last)
	}
	b = binary.AppendUvarint(b, uint64(s.ids.count))
	for i := range s.ids.buckets {
		b = append(b, s.ids.buckets[i].texts...)
	}
	return b
}

// appendRequest appends the encoding of what the request of a record has got.
func appendRequest(b []byte, r *Record, until int64) []byte {
	b = binary.AppendUvarint(b, uint64(r.UID))
	b = appendText(b, r.ID)
	b = binary.AppendUvarint(b, r.First)
	b = binary.AppendUvarint(b, r.Index)
	b = binary.AppendUvarint(b, uint64(until))
	return binary.AppendUvarint(b, uint64(r.Count))
}

// request reads what appendRequest has written.
func (r *Reader) request() (out Record, until int64) {
	out.UID, out.ID = seq.UID(r.Uint()), r.id()
	out.First, out.Index, until, out.Count = r.Uint(), r.Uint(), int64(r.Uint()), uint32(r.Uint())
	return out, until
}

func appendEpoch(b []byte, e seq.Epoch) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, e.Round), uint64(e.Session))
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// Reader reads encodings one after the other. After an error it returns zero values.
type Reader struct {
	b   []byte
	err error
}

// NewReader reads b, which must not change meanwhile.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err returns ErrBadRecord if an encoding was not whole.
func (r *Reader) Err() error { return r.err }

// Left returns the number of bytes that are left.
func (r *Reader) Left() int { return len(r.b) }

func (r *Reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrBadRecord, what)
	}
	r.b = nil
}

// Uint reads an unsigned varint.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("its encoding ends early")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads how many encodings of at least that many bytes follow. There is room for no more
// than the bytes that are left may have.
func (r *Reader) count(least int) (n uint64, room int) {
	n = r.Uint()
	return n, int(min(n, uint64(len(r.b)/least)))
}

func (r *Reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("its encoding ends early")
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *Reader) epoch() (e seq.Epoch) {
	e.Round = r.Uint()
	if b := r.bytes(8); b != nil {
		e.Session = seq.Session(binary.LittleEndian.Uint64(b))
	}
	return e
}

func (r *Reader) id() string {
	n := r.Uint()
	if n > MaxID {
		r.fail("an id that is too long")
		return ""
	}
	return string(r.bytes(n))
}

// Record reads a record.
func (r *Reader) Record() (out Record) {
	out.Epoch = r.epoch()
	out.Index = r.Uint()
	out.Prev = r.epoch()
	if b := r.bytes(1); b != nil {
		out.Kind = Kind(b[0])
	}
	out.UID = seq.UID(r.Uint())
	out.First = r.Uint()
	out.Count = uint32(r.Uint())
	out.ID = r.id()
	out.Sent = int64(r.Uint())
	out.Time = int64(r.Uint())
	return out
}

// State reads a state, whose ids are kept for window.
func (r *Reader) State(window int64) *State {
	s := &State{}
	s.at.Epoch = r.epoch()
	s.at.Index = r.Uint()
	s.time = int64(r.Uint())
	s.floor = r.Uint()
	for n := r.Uint(); n > 0 && r.err == nil; n-- {
		uid := r.Uint()
		s.last.Raise(uid, r.Uint())
	}
	for n := r.Uint(); n > 0 && r.err == nil; n-- {
		if got, until := r.request(); r.err == nil {
			s.ids.add(&got, until, window)
		}
	}
	return s
}

// ReadState reads a state that is all of b, and whose ids are kept for window. ErrBadRecord.
func ReadState(b []byte, window int64) (*State, error) {
	in := NewReader(b)
	s := in.State(window)
	if in.err == nil && len(in.b) > 0 {
		in.fail(fmt.Sprintf("%d bytes behind a state", len(in.b)))
	}
	return s, in.err
}

// Change is what an owner sends to the copies of its section: a batch, or a whole state.
type Change struct {
	Batch Batch
	Whole *State // replaces the copy; if nil, Batch applies
	Text  []byte // encoding of Whole, of a change that was read
}

// Epoch returns the epoch of the change's last record.
func (c *Change) Epoch() seq.Epoch {
	if c.Whole != nil {
		return c.Whole.at.Epoch
	}
	return c.Batch.Epoch
}

// Entry is the change of a section at a store, for its disk: records that the copy took, or a whole copy
// that replaces all before.
type Entry struct {
	Section seq.SectionID
	Records []Record
	Whole   []byte // encoding of a State: the copy's own goes on changing
}

// The first byte of a change's encoding says which kind follows.
const (
	batchChange = iota + 1
	wholeChange
)

// AppendTo appends the change's encoding.
func (c *Change) AppendTo(b []byte) []byte {
	if c.Whole != nil {
		return c.Whole.AppendTo(append(b, wholeChange))
	}
	b = appendEpoch(append(b, batchChange), c.Batch.Epoch)
	b = appendEpoch(b, c.Batch.After.Epoch)
	b = binary.AppendUvarint(b, c.Batch.After.Index)
	b = binary.AppendUvarint(b, uint64(len(c.Batch.Records)))
	for i := range c.Batch.Records {
		b = c.Batch.Records[i].AppendTo(b)
	}
	return b
}

// ReadChange reads a change that is all of b, and keeps b as its Text. Ids are kept for window. ErrBadRecord.
func ReadChange(b []byte, window int64) (c Change, err error) {
	in := NewReader(b)
	switch kind := in.Uint(); kind {
	case wholeChange:
		c.Text = in.b
		c.Whole = in.State(window)
	case batchChange:
		c.Batch.Epoch = in.epoch()
		c.Batch.After.Epoch = in.epoch()
		c.Batch.After.Index = in.Uint()
		n, room := in.count(leastRecord)
		c.Batch.Records = make([]Record, 0, room)
		for ; n > 0 && in.err == nil; n-- {
			c.Batch.Records = append(c.Batch.Records, in.Record())
		}
	default:
		in.fail(fmt.Sprintf("a change of kind %d", kind))
	}
	if in.err == nil && len(in.b) > 0 {
		in.fail(fmt.Sprintf("%d bytes behind a change", len(in.b)))
	}
	return c, in.err
}
