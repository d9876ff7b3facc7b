package backup

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Key signs backups, with HMAC-SHA256; nil signs none. It prints as nothing of itself.
type Key []byte

// Format hides the key.
func (Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "<key>") }

// MarshalText hides the key.
func (Key) MarshalText() ([]byte, error) { return []byte("<key>"), nil }

// ID tells one key from another, and is no secret; "" for nil.
func (k Key) ID() string {
	if k == nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte("seqsvr backup key\n"), k...))
	return hex.EncodeToString(sum[:8])
}

func (k Key) mac() hash.Hash { return hmac.New(sha256.New, k) }

// Signature is what is known of the maker of a backup.
type Signature string

// The signatures.
const (
	Unsigned Signature = "not signed"
	NoKey    Signature = "signed, no key given"
	Held     Signature = "signed and held"
	OtherKey Signature = "does not hold: signed with another key"
	Broken   Signature = "does not hold: changed after it was signed"
)

// Check is what stands against making stores of a backup with that signature: ErrSignature.
// Nothing stands against one that is not signed, or where no key is given.
func (k Key) Check(m Manifest, sig Signature) error {
	switch {
	case sig == OtherKey:
		return fmt.Errorf("%w: signed with key %.32q, and the one given is %s: give the key that it was made with", ErrSignature, m.SignedBy, k.ID())
	case sig == Broken:
		return fmt.Errorf("%w: it was changed after it was signed, or not made with key %s: take another backup, and find out who could write to this one", ErrSignature, k.ID())
	case sig == Unsigned && k != nil:
		return fmt.Errorf("%w: it is not signed: take another backup, or leave the key out if you know where this one is from", ErrSignature)
	}
	return nil
}
