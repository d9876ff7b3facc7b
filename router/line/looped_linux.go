package line

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seqsvr/seqsvr/internal/sdk/stream"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	"github.com/seqsvr/seqsvr/seq"
)

// State of a connection.
const (
	busy    = 1 << iota // its commands are being answered: it is not the loop's
	again               // to be looked at once it is not busy
	hung                // the other side sends no more: read up to the end
	evicted             // another connection has its seat
)

// looped is a connection of a loop.
type looped struct {
	*Conn // of the loop, or of the goroutine that answers while it is busy, as all below the state
	l     *loop
	fd    int // -1: closed
	state atomic.Uint32

	written int // of the replies
	started time.Time
	since   time.Time // that it waits: for a request, the rest of one, or its replies to be taken
	fault   error     // of the protocol: nothing after it is read
	dead    bool      // it takes no replies

	giveUp context.CancelCauseFunc // the loop's own: ends the last request that waited; nil before the first

	order stream.Order // what it takes of sequences
	place Place        // the admission of order
}

// hear ends the wait of a connection that sends no more, or lost its seat.
func (c *looped) hear() {
	if c.giveUp != nil && c.state.Load()&(hung|evicted) != 0 {
		c.giveUp(errLeft)
	}
}

// sort puts the takes of a connection into its order; false if it wants something else too, or numbers of string
// keys or two spaces.
func (c *looped) sort() bool {
	to := &c.order
	to.UIDs, to.Counts = to.UIDs[:0], to.Counts[:0]
	for i := range c.ops {
		o := &c.ops[i]
		n := len(to.UIDs)
		switch {
		case o.Kind == Local:
			continue
		case o.Kind != Take, stream.GroupOf(o.Key).Named, n == seq.MaxBatch, n > 0 && to.Space != o.Key.Space:
			return false
		}
		to.Space, to.UIDs = o.Key.Space, append(to.UIDs, o.Key.UID)
		if o.Count != 1 || len(to.Counts) > 0 {
			for len(to.Counts) < n {
				to.Counts = append(to.Counts, 1)
			}
			to.Counts = append(to.Counts, o.Count)
		}
	}
	return true
}

// answered is the end of a connection's order.
func (c *looped) answered() {
	c.place.Leave()
	got := c.order.Ranges
	c.fill(func(o *Op) {
		o.takes(got[0], got[0].Err)
		got = got[1:]
	})
	c.answer()
}

// fill gives each take what it got.
func (c *looped) fill(with func(*Op)) {
	for i := range c.ops {
		if c.ops[i].Kind == Take {
			with(&c.ops[i])
		}
	}
}

// answer writes the replies, and gives the connection back to the loop.
func (c *looped) answer() {
	s := c.l.s
	c.since = c.reply(c.started)
	if c.fault != nil {
		s.malformed(c.fault, c.Conn)
	}
	c.trim()
	if c.flush(); !c.fits() {
		s.refused.Note(rpc.RefusedUnread, c.purse.address)
		c.dead = true
	}
	ends := c.ends()
	if c.state.And(^uint32(busy))&again != 0 || ends || c.l.leave.Load() != stay {
		c.l.enqueue(c)
	}
}

// keepOps is the number of commands for which a connection keeps its buffers while it goes on sending.
const keepOps = 1024

// trim gives up what an unusually long pipeline needed.
func (c *looped) trim() {
	if cap(c.ops) > keepOps || c.purse.short() {
		c.ops = nil
		c.order.UIDs, c.order.Counts, c.order.Ranges = nil, nil, nil
	}
	clear(c.ops)
	c.ops = c.ops[:0]
}

// ends says that nothing is to be done for a connection any more.
func (c *looped) ends() bool {
	return c.dead || c.state.Load()&evicted != 0 || len(c.out) == 0 && (c.quit || c.fault != nil)
}

// flush writes as much as the connection takes.
func (c *looped) flush() {
	for c.written < len(c.out) && !c.dead {
		n, err := unix.Write(c.fd, c.out[c.written:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return
		case err != nil:
			c.dead = true
		default:
			if c.written += n; c.written < len(c.out) {
				c.since = time.Now()
			}
		}
	}
	c.written = 0
	c.sent()
}
