package snowflake

import (
	"fmt"
	"math"
)

// Encoding is a text form of IDs. In each form an ID has one text: without
// leading zeros, and only hex is read in both cases and with zeros on the left
// up to 16 digits, as %016X prints it.
type Encoding uint8

const (
	// Decimal is 1 to 19 digits.
	Decimal Encoding = iota
	// Base58 is 1 to 11 digits of the alphabet 1-9 a-z A-Z without 0 l I O, small
	// letters first as at Flickr and in bwmarrin/snowflake; not Bitcoin's order.
	Base58
	// Base62 is 1 to 11 digits of 0-9 A-Z a-z, in the order of ASCII.
	Base62
	// ZBase32 is 1 to 13 digits of the z-base-32 alphabet, of the number and not
	// of its bytes, as in bwmarrin/snowflake.
	ZBase32
	// Hex is 1 to 16 digits, written small.
	Hex
	numEncodings
)

// digits is an alphabet and its reverse.
type digits struct {
	name     string
	alphabet string
	value    [256]int8
}

var encodings = [numEncodings]*digits{
	Decimal: newDigits("decimal", "0123456789"),
	Base58:  newDigits("base58", "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"),
	Base62:  newDigits("base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
	ZBase32: newDigits("zbase32", "ybndrfg8ejkmcpqxot1uwisza345h769"),
	Hex:     newHexDigits(),
}

func newDigits(name, alphabet string) *digits {
	d := &digits{name: name, alphabet: alphabet}
	for i := range d.value {
		d.value[i] = -1
	}
	for i := range len(alphabet) {
		d.value[alphabet[i]] = int8(i)
	}
	return d
}

func newHexDigits() *digits {
	d := newDigits("hex", "0123456789abcdef")
	for c := byte('A'); c <= 'F'; c++ {
		d.value[c] = d.value[c-'A'+'a']
	}
	return d
}

// String returns the name that ParseEncoding reads.
func (e Encoding) String() string {
	if e < numEncodings {
		return encodings[e].name
	}
	return fmt.Sprintf("encoding(%d)", uint8(e))
}

// ParseEncoding reads decimal, base58, base62, zbase32 or hex. It returns
// ErrEncoding.
func ParseEncoding(name string) (Encoding, error) {
	for e, d := range encodings {
		if d.name == name {
			return Encoding(e), nil
		}
	}
	return 0, fmt.Errorf("text form %q: %w", name, ErrEncoding)
}

// Append appends the text of id to dst. It returns ErrSign for a negative ID and
// ErrEncoding for an unknown form.
func (e Encoding) Append(dst []byte, id ID) ([]byte, error) {
	if e >= numEncodings {
		return dst, fmt.Errorf("format id %d as %s: %w", id, e, ErrEncoding)
	}
	if id < 0 {
		return dst, fmt.Errorf("format id %d as %s: %w", id, e, ErrSign)
	}
	return encodings[e].append(dst, uint64(id)), nil
}

// FormatOf returns the text of an ID of a layout. If the layout is ReadOnly, it is the text of an unsigned
// number. It returns the errors of Append.
func (e Encoding) FormatOf(l Layout, id ID) (string, error) {
	if e < numEncodings && l.ReadOnly() {
		return string(encodings[e].append(nil, uint64(id))), nil
	}
	return e.Format(id)
}

func (d *digits) append(dst []byte, v uint64) []byte {
	var buf [20]byte
	i := len(buf)
	for base := uint64(len(d.alphabet)); ; v /= base {
		i--
		buf[i] = d.alphabet[v%base]
		if v < base {
			return append(dst, buf[i:]...)
		}
	}
}

// Format returns the text of id. It returns the errors of Append.
func (e Encoding) Format(id ID) (string, error) {
	text, err := e.Append(nil, id)
	return string(text), err
}

// Parse reads the text of an ID. It returns ErrTextLength, ErrTextAlphabet,
// ErrTextCanonical, ErrTextOverflow or ErrEncoding.
func (e Encoding) Parse(text string) (ID, error) { return e.parse(text, math.MaxInt64) }

// ParseOf reads the text of an ID of a layout, up to 2^64-1 if the layout is ReadOnly. It returns the
// errors of Parse.
func (e Encoding) ParseOf(l Layout, text string) (ID, error) {
	if l.ReadOnly() {
		return e.parse(text, math.MaxUint64)
	}
	return e.Parse(text)
}

func (e Encoding) parse(text string, most uint64) (ID, error) {
	if e >= numEncodings {
		return 0, fmt.Errorf("parse %s id: %w", e, ErrEncoding)
	}
	id, err := encodings[e].parse(text, most)
	if err != nil {
		return 0, fmt.Errorf("parse %s id %.24q: %w", e, text, err)
	}
	return id, nil
}

func (d *digits) parse(text string, most uint64) (ID, error) {
	base, longest := uint64(len(d.alphabet)), 0
	for v := most; v > 0; v /= base {
		longest++
	}
	if len(text) < 1 || len(text) > longest {
		return 0, fmt.Errorf("%d characters, want 1 to %d: %w", len(text), longest, ErrTextLength)
	}
	v := uint64(0)
	for i := range len(text) {
		digit := d.value[text[i]]
		if digit < 0 {
			return 0, fmt.Errorf("character %d: %w", i+1, ErrTextAlphabet)
		}
		if v > (most-uint64(digit))/base {
			return 0, ErrTextOverflow
		}
		v = v*base + uint64(digit)
	}
	if len(text) > 1 && d.value[text[0]] == 0 && d.name != "hex" {
		return 0, ErrTextCanonical
	}
	return ID(v), nil
}
