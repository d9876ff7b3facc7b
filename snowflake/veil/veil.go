// Package veil hides what IDs tell: a keyed permutation over the bits of a layout, so
// that an ID shown outside tells neither time nor volume, and is read back with the key.
//
// It guarantees that two IDs are never hidden as one, that a hidden ID has no more bits
// than the layout, and that Show gives back what Hide was given. It is a Feistel network
// of AES under a key of 32 bytes; where the layout has an odd number of bits, the network
// has one more and walks on until it is inside again.
//
// It is no encryption of messages and no right to anything: an ID is always hidden the
// same way, so equal IDs are seen to be equal; nothing tells a forged ID from one that
// was made, so check that it exists and who may see it; of a layout of few bits all IDs
// can be tried; and a holder of the key reads every ID, old and new. Hidden IDs have no
// order: store the ID itself and hide it at the edge.
package veil

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seqsvr/seqsvr/snowflake"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// minBits is what a layout must have at least: with fewer all IDs are tried in no time.
const minBits = 32

// rounds of the network, as in FF1 of NIST's SP 800-38G.
const rounds = 10

// Errors of New, Hide and Show.
var (
	// ErrKey: the key is not KeySize bytes.
	ErrKey = errors.New("key not valid")
	// ErrRange: the ID has bits above the layout's, or the layout has too few.
	ErrRange = errors.New("out of the range of the layout")
)

// Veil is a permutation of the IDs of one layout under one key. Safe for concurrent use.
type Veil struct {
	block cipher.Block
	bits  uint // of an ID
	half  uint // of the network, which has twice that: bits, or one more
}

// New makes the permutation of a layout. Layouts of as many bits have the same one under the
// same key: take a key for each kind of ID.
func New(l snowflake.Layout, key []byte) (*Veil, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("veil: %w: %d bytes, expected %d", ErrKey, len(key), KeySize)
	}
	bits := l.Bits()
	if bits < minBits {
		return nil, fmt.Errorf("veil: %w: a layout of %d bits, expected %d or more", ErrRange, bits, minBits)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("veil: %w: %w", ErrKey, err)
	}
	return &Veil{block: block, bits: bits, half: (bits + 1) / 2}, nil
}

// Hide gives what stands for the ID outside. ErrRange.
func (v *Veil) Hide(id snowflake.ID) (snowflake.ID, error) { return v.walk(id, v.forth) }

// Show gives the ID that was hidden. Every number in the range stands for some ID. ErrRange.
func (v *Veil) Show(hidden snowflake.ID) (snowflake.ID, error) { return v.walk(hidden, v.back) }

// walk goes along the permutation of the network until it is inside the layout again. It
// begins inside, so it comes back at the latest to where it began: two steps on average.
func (v *Veil) walk(id snowflake.ID, step func(uint64) uint64) (snowflake.ID, error) {
	x := uint64(id)
	if x>>v.bits != 0 {
		return 0, fmt.Errorf("veil: id %d: %w of %d bits", x, ErrRange, v.bits)
	}
	for {
		if x = step(x); x>>v.bits == 0 {
			return snowflake.ID(x), nil
		}
	}
}

func (v *Veil) forth(x uint64) uint64 {
	left, right := x>>v.half, x&v.mask()
	for i := range rounds {
		left, right = right, left^v.round(i, right)
	}
	return left<<v.half | right
}

func (v *Veil) back(x uint64) uint64 {
	left, right := x>>v.half, x&v.mask()
	for i := range rounds {
		left, right = right^v.round(rounds-1-i, left), left
	}
	return left<<v.half | right
}

func (v *Veil) mask() uint64 { return 1<<v.half - 1 }

// round is AES of the round, the width and one half. The widths differ in it, so that what is
// hidden under one tells nothing of another.
func (v *Veil) round(i int, half uint64) uint64 {
	var in, out [aes.BlockSize]byte
	in[0], in[1] = byte(i), byte(v.bits)
	binary.BigEndian.PutUint64(in[8:], half)
	v.block.Encrypt(out[:], in[:])
	return binary.BigEndian.Uint64(out[:]) & v.mask()
}
