package seq

import (
	"fmt"
	"regexp"
	"strings"
	"unsafe"
)

// This file has the checks of requests. Every front of every daemon calls them, so that
// a request is refused for the same reason in the same words wherever it came in.
// `field` is what the caller called the value.

// Bounds of a request, beside MaxCount and MaxBatch.
const (
	MaxIDs     = 100_000 // snowflake IDs of one call
	MaxKey     = 1024    // bytes of a string key
	MaxTagName = 128     // bytes of a segment tag's name
	maxAgent   = 64      // bytes of an agent's name
)

var (
	namespaceName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,63}$`)
	agentName     = regexp.MustCompile(`^[a-zA-Z][a-zA-Z\-0-9]*$`) // as Twitter's
)

// CheckCount bounds how many numbers of one key are taken at once: ErrBadCount.
func CheckCount(field string, n uint64) error { return checkCount(field, n, MaxCount) }

// CheckIDs bounds how many snowflake IDs are generated at once: ErrBadCount.
func CheckIDs(field string, n uint64) error { return checkCount(field, n, MaxIDs) }

func checkCount(field string, n, most uint64) error {
	if n == 0 || n > most {
		return fmt.Errorf("%w: %s is %d, expected 1 to %d", ErrBadCount, field, n, most)
	}
	return nil
}

// CheckKeys bounds the keys over all batches of a request: ErrBadBatch.
func CheckKeys(field string, n int) error {
	if n == 0 || n > MaxBatch {
		return fmt.Errorf("%w: %s has %d keys, expected 1 to %d", ErrBadBatch, field, n, MaxBatch)
	}
	return nil
}

// CheckFloor bounds what a sequence is raised to: ErrOverflow.
func CheckFloor(field string, floor uint64) error {
	if floor > uint64(MaxSeq) {
		return fmt.Errorf("%w: %s is %d, expected 0 to %d", ErrOverflow, field, floor, MaxSeq)
	}
	return nil
}

// CheckKey bounds the length of a string key: ErrBadArgument.
func CheckKey(field, key string) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("%w: %s of %d bytes, expected 1 to %d", ErrBadArgument, field, len(key), MaxKey)
	}
	return nil
}

// CheckTag is ErrBadArgument for a name that no segment tag can have.
func CheckTag(name string) error {
	if len(name) == 0 || len(name) > MaxTagName {
		return fmt.Errorf("%w: tag of %d bytes, expected 1 to %d", ErrBadArgument, len(name), MaxTagName)
	}
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("._:-", c) >= 0 {
			continue
		}
		return fmt.Errorf("%w: tag %q, expected only A-Z a-z 0-9 . _ : -", ErrBadArgument, name)
	}
	return nil
}

// CheckNamespace is ErrBadArgument for a name that no snowflake namespace can have. The
// names are those of path elements without surprises, since they stand in register names
// and in URLs; the first byte is a letter, so that none looks like a number.
func CheckNamespace(name string) error {
	if !namespaceName.MatchString(name) {
		return fmt.Errorf("%w: namespace name %q, expected %s", ErrBadArgument, name, namespaceName)
	}
	return nil
}

// CheckAgent is ErrBadArgument for a name that no agent can have; "" is one that gives
// no name.
func CheckAgent(name string) error {
	if name != "" && (len(name) > maxAgent || !agentName.MatchString(name)) {
		return fmt.Errorf("%w: agent %.64q, expected at most %d bytes of %s", ErrBadArgument, name, maxAgent, agentName)
	}
	return nil
}

// Batch is the keys of one space in a request, as they came in. An index counts over UIDs
// and then Keys.
type Batch struct {
	UIDs   []uint64
	Keys   []string
	Counts []uint32 // one an index; none: one number each
}

// Resolve checks the batch and gives the UID of each index. Without string keys the
// result shares the memory of UIDs. at is the batch's index among those of its request.
// ErrBadBatch, ErrBadCount, ErrBadArgument.
func (b Batch) Resolve(at int) ([]UID, error) {
	n := len(b.UIDs) + len(b.Keys)
	if len(b.Counts) != 0 && len(b.Counts) != n {
		return nil, fmt.Errorf("%w: batches[%d].counts has %d entries for %d keys, expected none or one a key", ErrBadBatch, at, len(b.Counts), n)
	}
	for i, c := range b.Counts {
		if CheckCount("", uint64(c)) != nil { // the text is made for those that are refused alone
			return nil, CheckCount(fmt.Sprintf("batches[%d].counts[%d]", at, i), uint64(c))
		}
	}
	uids := unsafe.Slice((*UID)(unsafe.SliceData(b.UIDs)), len(b.UIDs))
	if len(b.Keys) == 0 {
		return uids, nil
	}
	uids = append(make([]UID, 0, n), uids...)
	for i, key := range b.Keys {
		if CheckKey("", key) != nil {
			return nil, CheckKey(fmt.Sprintf("batches[%d].keys[%d]", at, i), key)
		}
		uids = append(uids, HashKey(key))
	}
	return uids, nil
}
