package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seqsvr/seqsvr/seq"
)

// TokenPrefix begins each token, so that scanners of repositories and logs know one.
const TokenPrefix = "seqtok_"

// tokenBytes is the number of random bytes of a token.
const tokenBytes = 32

// Hash is what is kept of a token.
type Hash [sha256.Size]byte

// Token is a secret. It prints as nothing of itself.
type Token string

// NewToken draws one.
func NewToken() Token {
	var b [tokenBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return Token(TokenPrefix + base64.RawURLEncoding.EncodeToString(b[:]))
}

// String hides the token.
func (Token) String() string { return "<token>" }

// GoString hides the token.
func (Token) GoString() string { return "<token>" }

// Secret is the token's text, for the one who made it and for the wire.
func (t Token) Secret() string { return string(t) }

// ErrBadToken is a text that no token can be.
var ErrBadToken = errors.New("malformed token")

// ParseToken reads a token with space around it. ErrBadToken, which does not show it.
func ParseToken(text string) (Token, error) {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, TokenPrefix)
	if b, err := base64.RawURLEncoding.DecodeString(rest); !ok || err != nil || len(b) != tokenBytes {
		return "", fmt.Errorf("%w: expected %s and %d characters, as seqctl auth token prints it", ErrBadToken, TokenPrefix, base64.RawURLEncoding.EncodedLen(tokenBytes))
	}
	return Token(text), nil
}

// Hash is what a policy file keeps of the token.
func (t Token) Hash() Hash { return sha256.Sum256([]byte(t)) }

// Hex is the hash as it stands in a policy file.
func (h Hash) Hex() string { return hex.EncodeToString(h[:]) }

// String hides the hash: it is of no use in a log.
func (Hash) String() string { return "<hash>" }

// parseHash reads one of a policy file; the error does not show it.
func parseHash(text string) (h Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("a token of %d characters: expected the %d hex digits of its SHA-256, as seqctl auth token writes them", len(text), 2*len(h))
	}
	copy(h[:], b)
	return h, nil
}

// Bearer is the token in the values of an Authorization header; "" without one.
// seq.ErrUnauthenticated for several, or one of another scheme.
func Bearer(values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", fmt.Errorf("%w: %d authorization headers: expected one", seq.ErrUnauthenticated, len(values))
	}
	word, rest, _ := strings.Cut(values[0], " ")
	if rest = strings.TrimSpace(rest); !strings.EqualFold(word, "bearer") || rest == "" {
		return "", fmt.Errorf("%w: authorization header: expected Bearer and a token", seq.ErrUnauthenticated)
	}
	return rest, nil
}

// ReadToken reads a file with one token. ErrOpenFile if others may read it, ErrBadToken.
func ReadToken(path string) (Token, error) {
	if err := CheckPrivate(path); err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	token, err := ParseToken(string(text))
	if err != nil {
		return "", fmt.Errorf("token %s: %w", path, err)
	}
	return token, nil
}
