package line

import (
	"errors"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

// Conn is a connection. A Session calls its exported methods while the Server calls the Session.
// The zero Conn has no Server, and its caller may do everything.
type Conn struct {
	id      uint64
	server  *Server
	session Session
	begun   time.Time
	quit    bool

	guard  *auth.Guard
	who    auth.Credentials
	proved bool // it has shown who it is

	seat   *gate.Seat
	called bool // the seat knows of a request
	purse  purse

	in  input
	out []byte // replies
	ops []Op   // requests in work
	// held is a request that waits, and was read with others before it. If nil, there is none.
	held *Op
}

// ErrNoGuard is the error of Authenticate if there is nothing to authenticate for.
var ErrNoGuard = errors.New("authorization is off")

// ErrWrongToken is the error of Authenticate for a token that does not hold.
var ErrWrongToken = errors.New("wrong token")

// conn makes a Conn, which the dialect opens.
func (s *Server) conn(seat *gate.Seat, address string) *Conn {
	c := &Conn{id: s.ids.Add(1), server: s, guard: s.guard, seat: seat, begun: time.Now(), purse: purse{of: s.budget, address: address}}
	c.session = s.dialect.Open(c)
	return c
}

// ID returns the number of the connection, from 1 on.
func (c *Conn) ID() uint64 { return c.id }

// Quit ends the connection after the replies to the requests so far.
func (c *Conn) Quit() { c.quit = true }

// Stats returns the counts of the Server.
func (c *Conn) Stats() Stats { return c.server.Stats() }

// Stranger reports whether the caller must authenticate, and has not. The requests of a stranger
// should be small.
func (c *Conn) Stranger() bool {
	if c.guard == nil || c.proved || c.guard.Mode() != auth.Require {
		return false
	}
	_, err := c.guard.Identify(c.who)
	c.proved = err == nil
	return !c.proved
}

// Authenticate stores a token for all later requests. name is the name of the token's principal; if
// empty, any name will do.
func (c *Conn) Authenticate(name, token string) error {
	if c.guard == nil {
		return ErrNoGuard
	}
	who := auth.Credentials{Token: token, Evidence: c.who.Evidence}
	id, err := c.guard.Identify(who)
	_, own, _ := strings.Cut(id, "/")
	if wrong := err != nil || name != "" && name != own; wrong && c.guard.Mode() == auth.Require {
		return ErrWrongToken
	}
	c.who, c.proved = who, false // looked at again
	return nil
}

// gather reads the requests that are complete, up to the last one, the limit, or as many as have
// maxReplies; then there may be more. A request may bring several Ops, such as EXEC. A request that waits comes
// alone.
func (c *Conn) gather(limit int) (more bool, err error) {
	ops, size := c.ops[:0], 0
	if c.held != nil {
		c.ops, c.held = append(ops, *c.held), nil
		return true, nil
	}
	for len(ops) < limit && size < maxReplies && !c.quit {
		n := len(ops)
		var used int
		used, ops, err = c.session.Read(c.in.unread(), ops)
		if used == 0 || err != nil {
			c.ops = ops
			return false, err
		}
		if c.in.begin += used; len(ops) == n {
			continue
		}
		c.heard()
		if ops[n].waits() {
			if n > 0 {
				held := ops[n]
				ops, c.held = ops[:n], &held
			}
			c.ops = ops
			return true, nil
		}
		for i := range ops[n:] {
			size += ops[n+i].room()
		}
	}
	c.ops = ops
	return !c.quit, nil
}

// heard notes that a connection has had a request. The request of a stranger does not count.
func (c *Conn) heard() {
	if !c.called && !c.Stranger() {
		c.called = true
		c.seat.Called()
	}
}

// late reports whether a connection has had its time to show who it is.
func (c *Conn) late(now time.Time) bool {
	return now.Sub(c.begun) >= c.server.waits.Stranger && c.Stranger()
}

// little reports whether a connection should be read in small parts.
func (c *Conn) little() bool { return c.purse.short() || c.Stranger() }

// limit returns the number of requests that are answered together.
func (c *Conn) limit() int {
	most := int(c.server.maxPipeline.Load())
	if c.purse.short() {
		return min(most, fewOps)
	}
	return most
}

// reply writes the replies to requests that were begun together, and returns the time.
func (c *Conn) reply(begun time.Time) time.Time {
	out := c.out
	for i := range c.ops {
		o := &c.ops[i]
		o.close()
		var got Result
		out, got = c.session.Reply(out, o)
		o.Tally[got].Add(1)
	}
	c.out = out
	now := time.Now()
	if len(c.ops) > 0 && !c.ops[0].waits() { // a wait takes the time that its caller wants
		c.server.stats.took.Observe(now.Sub(begun))
		c.server.stats.sizes.Add(uint64(len(c.ops)), 1)
	}
	return now
}

// sent empties the buffer of the replies.
func (c *Conn) sent() {
	if cap(c.out) > keepReply {
		c.out = nil
	}
	c.out = c.out[:0]
}

// drop gives up the buffers of a connection that waits.
func (c *Conn) drop() {
	c.ops = nil
	c.in.drop()
	c.session.Trim()
	if len(c.out) == 0 {
		c.out = nil
	}
}

// fits reports whether there is memory for the buffers of a connection. Small requests and replies
// always fit: a caller that is served well by them is not ended because of others.
func (c *Conn) fits() bool {
	all, kept := c.session.Memory()
	return c.purse.hold(all+cap(c.in.buf)+cap(c.out)+cap(c.ops)*opSize) ||
		len(c.in.unread()) <= freely && len(c.out) <= freely && kept <= freely
}
