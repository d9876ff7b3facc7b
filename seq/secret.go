package seq

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// Secret proves that a process owns a session: a seed of 16 random bytes and the name of its node. Only the
// process, a parent that watches over it, and the stores that it asks ever see the seed. The session is
// derived from both. So a store needs no memory to tell the owner from a process that only read the
// session's number, and to know the node whose certificate belongs to the session. To find a secret for a
// known session takes about 2^64 tries.
type Secret struct {
	Seed [16]byte
	// Node names the AllocSvr whose session it is. It is empty for an operator's tool and for an AllocSvr
	// of v0.1.0.
	Node string
}

// NewSecret draws a secret of a node from the system's random source.
func NewSecret(node string) Secret {
	s := Secret{Node: node}
	_, _ = rand.Read(s.Seed[:]) // documented never to return an error
	return s
}

// Key returns all that a store of v0.1.0 knows of a secret. Without a node it is the seed.
func (s Secret) Key() (key [16]byte) {
	if s.Node == "" {
		return s.Seed
	}
	sum := sha256.Sum256(append(append([]byte("seqsvr node "), s.Seed[:]...), s.Node...))
	copy(key[:], sum[:])
	return key
}

// Session returns the session of the secret, which is never 0.
func (s Secret) Session() Session {
	key := s.Key()
	sum := sha256.Sum256(append([]byte("seqsvr session "), key[:]...))
	return Session(max(1, binary.LittleEndian.Uint64(sum[:])))
}

// Proves returns nil if the secret belongs to the session, and ErrNotSession otherwise. It returns
// ErrBadArgument for session 0, which does not exist.
func (s Secret) Proves(session Session) error {
	switch {
	case session == 0:
		return fmt.Errorf("%w: session 0", ErrBadArgument)
	case s.Session() != session:
		return fmt.Errorf("%w: session %s", ErrNotSession, session)
	}
	return nil
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// String names the session, not the secret: it may end up in a log.
func (s Secret) String() string { return "secret of session " + s.Session().String() }

// MarshalText gives the secret itself, for a child process: 32 hex digits, and the node
// after a colon.
func (s Secret) MarshalText() ([]byte, error) {
	text := hex.EncodeToString(s.Seed[:])
	if s.Node != "" {
		text += ":" + s.Node
	}
	return []byte(text), nil
}

// UnmarshalText reads what MarshalText wrote. The error does not repeat the text.
func (s *Secret) UnmarshalText(text []byte) error {
	seed, node, _ := strings.Cut(string(text), ":")
	b, err := hex.DecodeString(seed)
	if err != nil || len(b) != len(s.Seed) {
		return fmt.Errorf("%w: a session's secret of %d characters, expected %d hex digits", ErrBadArgument, len(seed), 2*len(s.Seed))
	}
	copy(s.Seed[:], b)
	s.Node = node
	return nil
}
