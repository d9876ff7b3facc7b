package seq

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// This file has the checks of requests. Every front of every daemon calls them, so that
// a request is refused for the same reason in the same words wherever it came in.
// `field` is what the caller called the value.

// Bounds of a request, beside MaxCount and MaxBatch.
const (
	MaxIDs       = 100_000 // snowflake IDs of one call
	MaxNumbers   = 10_000  // business numbers of one call
	MaxKey       = 1024    // bytes of a string key
	MaxTagName   = 128     // bytes of a segment tag's name
	MaxRequestID = 64      // bytes of a request id
	maxAgent     = 64      // bytes of an agent's name
)

var (
	namespaceName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,63}$`)
	agentName     = regexp.MustCompile(`^[a-zA-Z][a-zA-Z\-0-9]*$`) // as Twitter's
)

// CheckCount bounds how many numbers of one key are taken at once: ErrBadCount.
func CheckCount(field string, n uint64) error { return checkCount(field, n, MaxCount) }

// CheckIDs bounds how many snowflake IDs are generated at once: ErrBadCount.
func CheckIDs(field string, n uint64) error { return checkCount(field, n, MaxIDs) }

// CheckNumbers bounds how many business numbers are taken at once: ErrBadCount.
func CheckNumbers(field string, n uint64) error { return checkCount(field, n, MaxNumbers) }

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

// CheckTicket checks what names a ticket of a key, the first of its numbers and its id: ErrBadArgument.
func CheckTicket(first, id uint64) error {
	switch {
	case first == 0 || first > uint64(MaxSeq):
		return fmt.Errorf("%w: first is %d, expected the first number of a ticket, 1 to %d", ErrBadArgument, first, MaxSeq)
	case id == 0 || id > uint64(MaxSeq):
		return fmt.Errorf("%w: ticket is %d, expected 1 to %d as open gave it", ErrBadArgument, id, MaxSeq)
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

// CheckKey bounds the length of a string key, which must be UTF-8 to travel: ErrBadArgument.
func CheckKey(field, key string) error {
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("%w: %s of %d bytes, expected 1 to %d", ErrBadArgument, field, len(key), MaxKey)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: %s is not UTF-8", ErrBadArgument, field)
	}
	return nil
}

// CheckRequestID bounds the length of a request id: ErrBadArgument.
func CheckRequestID[T string | []byte](field string, id T) error {
	if len(id) == 0 || len(id) > MaxRequestID {
		return fmt.Errorf("%w: %s of %d bytes, expected 1 to %d", ErrBadArgument, field, len(id), MaxRequestID)
	}
	return nil
}

// GivesTickets returns ErrNoTickets for a space that gives no tickets and has no marks.
func (s *Space) GivesTickets() error {
	if s.Tickets > 0 {
		return nil
	}
	return fmt.Errorf("%w: space %q has none", ErrNoTickets, s.Name)
}

// TicketLife returns the life of a ticket that was asked for, in milliseconds; zero means the longest. It
// returns ErrNoTickets, or ErrBadArgument for a life that the space does not give.
func (s *Space) TicketLife(ms uint64) (time.Duration, error) {
	switch most := uint64(s.Tickets.Milliseconds()); {
	case most == 0:
		return 0, s.GivesTickets()
	case ms == 0:
		return s.Tickets, nil
	case ms > most:
		return 0, fmt.Errorf("%w: a ticket of %d ms, expected at most the %d ms of space %q", ErrBadArgument, ms, most, s.Name)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// KeepsIDs returns ErrIDNotKept for a space that keeps no request ids, because a promise that a crash may
// break is none.
func (s *Space) KeepsIDs() error {
	if s.Mode == Exact {
		return nil
	}
	return fmt.Errorf("%w: space %q is of mode=%s", ErrIDNotKept, s.Name, s.Mode)
}

// CheckTag returns ErrBadArgument for a name that no segment tag can have.
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

// CheckNamespace returns ErrBadArgument for a name that no snowflake namespace can have. The names stand in
// register names and URLs, so they are plain path elements. The first byte is a letter, so no name looks
// like a number.
func CheckNamespace(name string) error {
	if !namespaceName.MatchString(name) {
		return fmt.Errorf("%w: namespace name %q, expected %s", ErrBadArgument, name, namespaceName)
	}
	return nil
}

// CheckAgent returns ErrBadArgument for a name that no agent can have. An agent without a name has "".
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
	Counts []uint32 // one for each index; if nil, one number each
	IDs    [][]byte // of requests, one for each index; if nil, the requests have no ids
	Sent   []int64  // when they were first sent, in milliseconds since 1970, one for each id; if nil, now
}

// Check returns ErrBadBatch, ErrBadCount or ErrBadArgument for a batch that cannot be served. at is the
// index of the batch in its request, for the error.
func (b Batch) Check(at int) error {
	n := len(b.UIDs) + len(b.Keys)
	if len(b.Counts) != 0 && len(b.Counts) != n {
		return fmt.Errorf("%w: batches[%d].counts has %d entries for %d keys, expected none or one a key", ErrBadBatch, at, len(b.Counts), n)
	}
	for i, c := range b.Counts {
		if CheckCount("", uint64(c)) != nil { // the text is made for those that are refused alone
			return CheckCount(fmt.Sprintf("batches[%d].counts[%d]", at, i), uint64(c))
		}
	}
	if len(b.IDs) != 0 && len(b.IDs) != n {
		return fmt.Errorf("%w: batches[%d].request_ids has %d entries for %d keys, expected none or one a key", ErrBadBatch, at, len(b.IDs), n)
	}
	if len(b.Sent) != 0 && len(b.Sent) != len(b.IDs) {
		return fmt.Errorf("%w: batches[%d].first_sent_ms has %d entries for %d request ids, expected none or one an id", ErrBadBatch, at, len(b.Sent), len(b.IDs))
	}
	for i, id := range b.IDs {
		if CheckRequestID("", id) != nil {
			return CheckRequestID(fmt.Sprintf("batches[%d].request_ids[%d]", at, i), id)
		}
	}
	for i, key := range b.Keys {
		if CheckKey("", key) != nil {
			return CheckKey(fmt.Sprintf("batches[%d].keys[%d]", at, i), key)
		}
	}
	return nil
}
