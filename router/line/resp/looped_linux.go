package resp

import (
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
	l     *loop
	fd    int // -1: closed
	state atomic.Uint32

	// Of the loop, or of the goroutine that answers while it is busy.
	me    *session
	in    input
	out   writer
	sent  int // of out.buf
	ops   []op
	begun time.Time
	since time.Time // that it waits: for a command, the rest of one, or its replies to be taken
	fault error     // of the protocol: nothing after it is read
	dead  bool      // it takes no replies

	order stream.Order // what it takes of sequences
	place Place        // the admission of order
}

// sort puts the takes of a connection into its order; false if it wants something else too,
// or numbers of two spaces.
func (c *looped) sort() bool {
	to := &c.order
	to.UIDs, to.Counts = to.UIDs[:0], to.Counts[:0]
	for i := range c.ops {
		o := &c.ops[i]
		n := len(to.UIDs)
		switch {
		case o.kind == local:
			continue
		case o.kind != takeSeq, n == seq.MaxBatch, n > 0 && to.Space != o.key.Space:
			return false
		}
		to.Space, to.UIDs = o.key.Space, append(to.UIDs, o.key.UID)
		if o.count != 1 || len(to.Counts) > 0 {
			for len(to.Counts) < n {
				to.Counts = append(to.Counts, 1)
			}
			to.Counts = append(to.Counts, o.count)
		}
	}
	return true
}

// answered is the end of a connection's order.
func (c *looped) answered() {
	c.place.Leave()
	got := c.order.Ranges
	c.fill(func(o *op) {
		o.takes(got[0], got[0].Err)
		got = got[1:]
	})
	c.answer()
}

// fill gives each take what it got.
func (c *looped) fill(with func(*op)) {
	for i := range c.ops {
		if c.ops[i].kind == takeSeq {
			with(&c.ops[i])
		}
	}
}

// answer writes the replies, and gives the connection back to the loop.
func (c *looped) answer() {
	s := c.l.s
	c.since = s.reply(c.ops, c.begun, &c.out)
	if c.fault != nil {
		s.malformed(c.fault, c.me, &c.out)
	}
	c.trim()
	if c.flush(); !c.fits() {
		s.refused.Note(rpc.RefusedUnread, c.me.purse.address)
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
	if cap(c.ops) > keepOps || c.me.purse.short() {
		c.ops = nil
		c.order.UIDs, c.order.Counts, c.order.Ranges = nil, nil, nil
	}
	clear(c.ops)
	c.ops = c.ops[:0]
}

// ends says that nothing is to be done for a connection any more.
func (c *looped) ends() bool {
	return c.dead || c.state.Load()&evicted != 0 || len(c.out.buf) == 0 && (c.me.quit || c.fault != nil)
}

// fits draws what the buffers take. It reports false if memory has run out.
func (c *looped) fits() bool { return fits(c.me, &c.in, &c.out, c.ops) }

// flush writes as much as the connection takes.
func (c *looped) flush() {
	for c.sent < len(c.out.buf) && !c.dead {
		n, err := unix.Write(c.fd, c.out.buf[c.sent:])
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return
		case err != nil:
			c.dead = true
		default:
			if c.sent += n; c.sent < len(c.out.buf) {
				c.since = time.Now()
			}
		}
	}
	c.sent = 0
	c.out.reset()
}
