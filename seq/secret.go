package seq

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Secret is what the owner of a session proves itself by: 16 random bytes, which only
// its process, a parent that watches over it, and the stores that it asks ever see. The
// session is derived from it, so that a store needs no memory to tell the owner from
// another process that has only read the session's number, as anybody can. To find a
// secret for a session that is known takes about 2^64 tries.
type Secret [16]byte

// NewSecret draws a secret from the system's random source.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // documented never to return an error
	return s
}

// Session is the session of the secret; never 0.
func (s Secret) Session() Session {
	sum := sha256.Sum256(append([]byte("seqsvr session "), s[:]...))
	return Session(max(1, binary.LittleEndian.Uint64(sum[:])))
}

// Proves returns ErrNotSession unless the secret is that of the session, and
// ErrBadArgument for session 0, which there is not.
func (s Secret) Proves(session Session) error {
	switch {
	case session == 0:
		return fmt.Errorf("%w: session 0", ErrBadArgument)
	case s.Session() != session:
		return fmt.Errorf("%w: session %s", ErrNotSession, session)
	}
	return nil
}

// IsZero says whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// String names the session, not the secret: it may end up in a log.
func (s Secret) String() string { return "secret of session " + s.Session().String() }

// MarshalText gives the secret itself as 32 hex digits, for a child process.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads what MarshalText wrote. The error does not repeat the text.
func (s *Secret) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(s) {
		return fmt.Errorf("%w: a session's secret of %d characters, expected %d hex digits", ErrBadArgument, len(text), 2*len(s))
	}
	copy(s[:], b)
	return nil
}
