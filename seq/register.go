package seq

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync/atomic"
)

// Register names one fenced register on the stores: a kind byte, then the name.
// It is a string so that it is comparable; its bytes are the key on disk and on
// the wire.
type Register string

// Kind is the first byte of a register's name and decides its rules; see Rules.
type Kind byte

const (
	// KindSection registers hold the max_seq of one section. They are made with
	// the space, are owned under a lease, and never by default exist.
	KindSection Kind = 's'
	// KindLease registers are owned under a lease and hold no value of meaning:
	// the arbiter's lease.
	KindLease Kind = 'a'
	// KindDocument registers are compare-and-swap documents: a payload that
	// carries its own version, no lease.
	KindDocument Kind = 'd'
	// KindTag registers hold the upper end of what a segment tag handed out.
	// They are owned under a lease and created on first PREPARE.
	KindTag Kind = 't'
	// KindWorker registers hold the timestamp high-water mark of one snowflake
	// worker id. They are owned under a lease and created on first PREPARE.
	KindWorker Kind = 'w'
)

// MaxRegisterName is the largest length of a Register in bytes.
const MaxRegisterName = 256

// Registers with a fixed name, made by init beside the sections.
const (
	ArbiterRegister    Register = "aarbiter"
	RoutesRegister     Register = "droutes"
	EventsRegister     Register = "devents"
	NamespacesRegister Register = "dnamespaces"
	TagsRegister       Register = "dtags"
	MembersRegister    Register = "dmembers" // who the stores are; see quorum.MemberList
	KeysRegister       Register = "dkeys"    // how string keys are hashed, with the secrets
	SpacesRegister     Register = "dspaces"  // the Mapping, once a space was added
	RecordRegister     Register = "drecord"  // which sections this Set has; see package sets
	SetsRegister       Register = "dsets"    // which Set has which sections: the root's word, elsewhere what was heard of it
)

// SectionRegister names the register of a section: 's' and 4 bytes big-endian, so
// that the order of keys is the order of sections.
func SectionRegister(id SectionID) Register {
	if id >= MaxSections {
		return sectionNames(id, 1)
	}
	const chunk = 1 << sectionChunk
	c := &sectionRegisters[id>>sectionChunk]
	names := c.Load()
	if names == nil {
		made := sectionNames(id&^(chunk-1), chunk)
		c.CompareAndSwap(nil, &made) // another goroutine may have been first: the text is the same
		names = c.Load()
	}
	at := sectionLength * (id & (chunk - 1))
	return (*names)[at : at+sectionLength]
}

// A takeover names thousands of sections in each of its messages. So their names are
// kept, 2^sectionChunk in one string, once one of them was asked for.
const (
	sectionLength = 5
	sectionChunk  = 10
)

var sectionRegisters [MaxSections >> sectionChunk]atomic.Pointer[Register]

// sectionNames are the names of n sections from id on, in a row.
func sectionNames(id SectionID, n int) Register {
	b := make([]byte, 0, sectionLength*n)
	for i := range n {
		b = append(b, byte(KindSection))
		b = binary.BigEndian.AppendUint32(b, uint32(id)+uint32(i))
	}
	return Register(b)
}

// TagRegister names the register of a segment tag.
func TagRegister(tag string) Register { return Register(KindTag) + Register(tag) }

// WorkerRegister names the register of one worker id in a namespace and datacenter.
func WorkerRegister(namespace string, datacenter, worker uint64) Register {
	return Register(KindWorker) + Register(namespace+"/"+
		strconv.FormatUint(datacenter, 10)+"/"+strconv.FormatUint(worker, 10))
}

// Kind returns the register's kind, or 0 for the empty name.
func (r Register) Kind() Kind {
	if r == "" {
		return 0
	}
	return Kind(r[0])
}

// Section returns the section of a section register. For other registers ok is false.
func (r Register) Section() (id SectionID, ok bool) {
	if r.Kind() != KindSection || len(r) != sectionLength {
		return 0, false
	}
	return SectionID(r[1])<<24 | SectionID(r[2])<<16 | SectionID(r[3])<<8 | SectionID(r[4]), true
}

// Leased reports whether the register is owned under a lease. Documents are not.
func (r Register) Leased() bool { return r.Rules().Owned != ByVersion }

// OnDemand reports whether a PREPARE may create the register. For all others a missing register is an
// error, never zero.
func (r Register) OnDemand() bool { return r.Rules().Made == OnPrepare }

// HasPayload reports whether the register holds a payload, as documents do.
func (r Register) HasPayload() bool { return r.Rules().Holds == Version }

// Validate tells whether the name has a known kind and a sound length.
func (r Register) Validate() error {
	if len(r) < 2 || len(r) > MaxRegisterName {
		return fmt.Errorf("%w: register name of %d bytes, expected 2 to %d", ErrBadRegister, len(r), MaxRegisterName)
	}
	switch kind := r.Kind(); {
	case !kind.Known():
		return fmt.Errorf("%w: unknown kind %q", ErrBadRegister, byte(kind))
	case kind == KindSection && len(r) != sectionLength:
		return fmt.Errorf("%w: section register of %d bytes, expected %d", ErrBadRegister, len(r), sectionLength)
	}
	return nil
}

// String gives a readable form: "section 17", "document routes".
func (r Register) String() string {
	if id, ok := r.Section(); ok {
		return "section " + strconv.FormatUint(uint64(id), 10)
	}
	if kind := r.Kind(); kind.Known() && kind != KindSection {
		return kind.Rules().Name + " " + string(r[1:])
	}
	return "register " + strconv.Quote(string(r))
}
