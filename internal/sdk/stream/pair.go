package stream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

// Server is what the room needs of a server.
type Server interface {
	// Open opens a stream, which ends with ctx.
	Open(ctx context.Context) (pb.Sequence_StreamClient, error)
	// Version returns the version of the route table by which the server is asked.
	Version() uint64
	// Heard notes what a reply says of the route table.
	Heard(version uint64, routes *pb.RouteTable)
	// Answered notes any word from the server.
	Answered()
	// Ended notes that a stream ended, or that an answer took too long, and returns what that
	// means for the keys on it.
	Ended(cause error) error
}

// Config is the same for all servers of a Client.
type Config struct {
	Context        context.Context // ends with the Client
	Go             func(func())    // starts a goroutine of the Client's
	AttemptTimeout time.Duration   // after which a silent server is given up
	SuspectAfter   time.Duration   // the least after which it is for keys of strict and exact spaces, by Owing
	MaxQueue       int             // keys that may wait for one server
}

// Errors that are found here.
var (
	// ErrFull is the caller's own overload: retrying inside the call would hide it.
	ErrFull = fmt.Errorf("%w: too many calls wait for this server", seq.ErrOverloaded)
	// ErrTimedOut is the cause where no answer came.
	ErrTimedOut = errors.New("attempt timed out")
	// ErrMalformed: an answer does not fit what was asked.
	ErrMalformed = errors.New("malformed answer")
)

// Pair is the two streams to a server.
type Pair struct {
	cfg     *Config
	server  Server
	streams [2]*stream
	balance balance

	listening listening

	unary atomic.Bool // the server takes no TicketCall by the streams that are open
}

// NewPair makes the streams to a server. They open with the first key.
func NewPair(cfg *Config, to Server) *Pair {
	p := &Pair{cfg: cfg, server: to}
	p.listening.begin(cfg.SuspectAfter)
	p.balance.born = time.Now()
	for i := range p.streams {
		p.streams[i] = newStream(p, &p.balance.load[i])
	}
	return p
}

// Add gives a key a slot in a batch on one of the streams. Without an error the batch is
// completed exactly once, within about AttemptTimeout. ErrFull if too many keys wait.
func (p *Pair) Add(space *seq.Space, key seq.Key, count uint32, r *Request) (Slot, error) {
	k := p.balance.pick()
	t, full, err := p.streams[k].enqueue(space, key, count, r, p.room(k))
	if full {
		t, _, err = p.streams[1-k].enqueue(space, key, count, r, p.room(1-k))
	}
	return t, err
}

// AddAll is Add for the keys at idx, at most seq.MaxBatch, all in one batch: it returns the slot of
// the first.
func (p *Pair) AddAll(space *seq.Space, keys *Takes, idx []int) (Slot, error) {
	k := p.balance.pick()
	t, full, err := p.streams[k].enqueueAll(space, keys, idx, p.room(k))
	if full {
		t, _, err = p.streams[1-k].enqueueAll(space, keys, idx, p.room(1-k))
	}
	return t, err
}

// AddOrdered is Add for keys of orders. Those for which there is no room fail.
func (p *Pair) AddOrdered(keys []Ordered) {
	k := p.balance.pick()
	rest, err := p.streams[k].enqueueOrdered(keys, p.room(k))
	if len(rest) > 0 && err == ErrFull {
		rest, err = p.streams[1-k].enqueueOrdered(rest, p.room(1-k))
	}
	for _, key := range rest {
		key.Order.Ranges[key.I].Err = err
		key.Order.Answered(1)
	}
}

// room returns the number of keys that may wait for a stream. Both streams together hold MaxQueue keys.
func (p *Pair) room(stream int) int { return (p.cfg.MaxQueue + 1 - stream) / 2 }

// Sweep gives up what has waited for too long.
func (p *Pair) Sweep(now time.Time) {
	for _, s := range p.streams {
		s.sweep(now)
	}
}

// HangUp ends the gRPC streams that are open. The batches in flight end as lost.
func (p *Pair) HangUp() {
	for _, s := range p.streams {
		s.hangUpNow()
	}
}

// Close fails everything with the cause, and whatever comes later.
func (p *Pair) Close(cause error) {
	for _, s := range p.streams {
		s.close(cause)
	}
}
