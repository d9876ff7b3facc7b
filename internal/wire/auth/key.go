package auth

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// keyPrefix begins each key, so that scanners of repositories and logs know one.
const keyPrefix = "seqkey_"

// Random bytes of a key.
const (
	minKey = 32 // as many as NewKey draws
	maxKey = 1024
)

// ErrBadKey is a file that is no key.
var ErrBadKey = errors.New("malformed key")

// NewKey is the text of a new key, a line.
func NewKey() []byte {
	var b [minKey]byte
	_, _ = rand.Read(b[:]) // never fails
	return []byte(keyPrefix + base64.RawURLEncoding.EncodeToString(b[:]) + "\n")
}

// ReadKey reads a file with one key. ErrOpenFile if others may read it; ErrBadKey, which
// does not show it.
func ReadKey(path string) ([]byte, error) {
	if err := CheckPrivate(path); err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(string(text)), keyPrefix)
	key, err := base64.RawURLEncoding.DecodeString(rest)
	if !ok || err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("key %s: %w: expected %s and %d random bytes or more in base64, as seqctl auth key writes it", path, ErrBadKey, keyPrefix, minKey)
	}
	return key, nil
}
