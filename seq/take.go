package seq

import (
	"strconv"
	"time"
)

// Key names one sequence: of a UID, or made by StringKey.
type Key struct {
	Space string // "" is DefaultSpace
	UID   UID

	name  string // of a StringKey
	named bool
}

// StringKey returns the sequence of a string key: 1 to MaxKey bytes of UTF-8. The key itself is sent,
// because only AllocSvr know the secret under which keys are hashed.
func StringKey(space, key string) Key { return Key{Space: space, name: key, named: true} }

// Name returns the string key; ok is false for the key of a UID.
func (k Key) Name() (name string, ok bool) { return k.name, k.named }

// Check returns ErrBadArgument for a string key that is not valid.
func (k Key) Check() error {
	if !k.named {
		return nil
	}
	return CheckKey("key", k.name)
}

// Place returns what decides the section: the UID, or the public hash of a string key.
func (k Key) Place() UID {
	if k.named {
		return HashKey(k.name)
	}
	return k.UID
}

// String gives space and key as "user/42", or as `user/"room:7"`.
func (k Key) String() string {
	space := k.Space
	if space == "" {
		space = DefaultSpace
	}
	if k.named {
		return space + "/" + strconv.Quote(k.name)
	}
	return space + "/" + strconv.FormatUint(uint64(k.UID), 10)
}

// Range has the numbers First to Last, inclusive and contiguous, taken for one key. If Err is not nil,
// First and Last are 0.
type Range struct {
	First, Last Seq
	Unordered   bool // unique, but perhaps not the largest so far
	// Replayed: the request id had these numbers before, by an earlier call or by a lost attempt
	// of this one. Only in spaces of mode=exact.
	Replayed bool
	Err      error
}

// Request makes a take idempotent in a space of mode=exact. The first request with an id takes numbers. A
// repetition with the same id, key and count gets the same numbers. This holds over crashes and failovers
// of callers and servers, as long as the space keeps ids (Space.Window, 10 minutes by default).
type Request struct {
	ID string // 1 to MaxRequestID bytes, such as the id that a client gave its message
	// Sent is the time when the request was first sent. Keep it beside the id. If Sent is before the
	// window, a repetition gets ErrIDExpired and never other numbers. If Sent is zero, the time is now, and
	// a repetition after the window takes other numbers.
	Sent time.Time
}

// Check returns ErrBadArgument or ErrIDNotKept for a request that the space cannot have.
func (r *Request) Check(space *Space) error {
	if err := CheckRequestID("request id", r.ID); err != nil {
		return err
	}
	return space.KeepsIDs()
}
