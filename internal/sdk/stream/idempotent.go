package stream

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Request is a seq.Request as it travels. All attempts for one key repeat one.
type Request struct {
	ID   []byte
	Sent int64 // milliseconds since 1970
}

// randomID is the number of bytes of an id that a call makes for itself. They come from the system, because
// a copy of a running process must not make the same ids.
const randomID = 16

// RequestIn is the request of one key: named, or a new one.
func RequestIn(space *seq.Space, named *seq.Request) (*Request, error) {
	if named == nil {
		id := make([]byte, randomID)
		_, _ = rand.Read(id) // never fails
		return &Request{id, time.Now().UnixMilli()}, nil
	}
	if err := named.Check(space); err != nil {
		return nil, err
	}
	r := travelling(named, time.Now())
	return &r, nil
}

func travelling(r *seq.Request, now time.Time) Request {
	if !r.Sent.IsZero() {
		now = r.Sent
	}
	return Request{[]byte(r.ID), now.UnixMilli()}
}

// RequestsIn are the requests of n keys: named, or new ones in an exact space; nil in another.
func RequestsIn(space *seq.Space, n int, named []seq.Request) ([]Request, error) {
	if len(named) == 0 && space.Mode != seq.Exact {
		return nil, nil
	}
	if len(named) != 0 && len(named) != n {
		return nil, fmt.Errorf("%w: %d requests for %d keys", seq.ErrBadBatch, len(named), n)
	}
	out, now := make([]Request, n), time.Now()
	for i := range named {
		if err := named[i].Check(space); err != nil {
			return nil, fmt.Errorf("index %d: %w", i, err)
		}
		out[i] = travelling(&named[i], now)
	}
	if len(named) == 0 {
		ids := make([]byte, n*randomID)
		_, _ = rand.Read(ids)
		for i := range out {
			out[i] = Request{ids[i*randomID:][:randomID:randomID], now.UnixMilli()}
		}
	}
	return out, nil
}

// namedAt are the requests at idx, for another call to repeat.
func namedAt(requests []Request, idx []int) []seq.Request {
	if requests == nil {
		return nil
	}
	out := make([]seq.Request, len(idx))
	for k, i := range idx {
		out[k] = seq.Request{ID: string(requests[i].ID), Sent: time.UnixMilli(requests[i].Sent)}
	}
	return out
}
