package membership

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
)

const (
	// maxKeys bounds a file: what comes is tried with one key after the other. A rotation needs two.
	maxKeys = 16
	// maxKeysFile in bytes, so that a mistaken path (a log, a device) fails fast.
	maxKeysFile = 64 << 10
)

// Keys encrypt and authenticate the gossip of one process: the first encrypts, all decrypt. They may be
// replaced while views use them. Nil is plain gossip. Safe for concurrent use.
type Keys struct {
	mu   sync.Mutex // guards list and the order of changes to ring
	list [][]byte   // 1 to maxKeys, of 16, 24 or 32 bytes, none twice
	ring *keyring   // what memberlist reads
}

// NewKey draws a key of 16, 24 or 32 bytes for AES-128, AES-192 or AES-256, as a line of a keys file.
// ErrKeys for another size.
func NewKey(size int) (string, error) {
	if !keySize(size) {
		return "", fmt.Errorf("%w: a key of %d bytes: expected 16, 24 or 32", ErrKeys, size)
	}
	key := make([]byte, size)
	rand.Read(key)
	return base64.StdEncoding.EncodeToString(key), nil
}

func keySize(n int) bool { return n == 16 || n == 24 || n == 32 }

// NewKeys takes keys of 16, 24 or 32 bytes, the first of which encrypts. ErrKeys for none, too many,
// another size, or one that comes twice.
func NewKeys(list ...[]byte) (*Keys, error) {
	if len(list) == 0 || len(list) > maxKeys {
		return nil, fmt.Errorf("%w: %d keys: expected 1 to %d", ErrKeys, len(list), maxKeys)
	}
	for i, key := range list {
		if !keySize(len(key)) {
			return nil, fmt.Errorf("%w: key %d has %d bytes: expected 16, 24 or 32", ErrKeys, i+1, len(key))
		}
		if slices.ContainsFunc(list[:i], func(other []byte) bool { return bytes.Equal(other, key) }) {
			return nil, fmt.Errorf("%w: key %d stands there twice", ErrKeys, i+1)
		}
	}
	list = slices.Clone(list)
	ring, err := newKeyring(list)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	return &Keys{list: list, ring: ring}, nil
}

// LoadKeys reads a keys file: one key a line in base64, the first of which encrypts; empty lines and what
// comes after a # are passed over. Nil for an empty path. ErrKeys, naming file and line but never what
// stands there, for a file that cannot be read, that everybody on the machine may read or write, that has
// no key, or a line that is none.
func LoadKeys(path string) (*Keys, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readKeys(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeys, err)
	}
	list, err := parseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKeys, path, err)
	}
	keys, err := NewKeys(list...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

func readKeys(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has mode %04o: everybody on this machine gets at the keys: chmod 0640, or 0600", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeysFile+1))
	if err == nil && len(text) > maxKeysFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxKeysFile)
	}
	return text, err
}

// parseKeys says what is wrong with a line by its number.
func parseKeys(text []byte) (list [][]byte, err error) {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := base64.StdEncoding.Strict().DecodeString(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d is not base64: expected one key a line, as seqctl gossip-key writes it", n)
		case !keySize(len(key)):
			return nil, fmt.Errorf("line %d has %d bytes: expected a key of 16, 24 or 32", n, len(key))
		}
		list = append(list, key)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no key in it: seqctl gossip-key makes one")
	}
	return list, nil
}

// Replace puts the keys of another in place of these, for all views that use them, and reports whether that
// changed anything. The new keys decrypt before the first of them encrypts.
func (k *Keys) Replace(by *Keys) (changed bool) {
	by.mu.Lock()
	list := slices.Clone(by.list)
	by.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.EqualFunc(k.list, list, bytes.Equal) {
		return false
	}
	k.list = list
	k.ring.replace(list)
	return true
}

// Names tell the keys apart in logs without telling them: a short digest each, the encrypting one first.
// Two processes that have a key in common have a name in common. Empty for nil.
func (k *Keys) Names() []string {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	names := make([]string, len(k.list))
	for i, key := range k.list {
		sum := sha256.Sum256(append([]byte("seqsvr gossip key\n"), key...))
		names[i] = hex.EncodeToString(sum[:4])
	}
	return names
}
