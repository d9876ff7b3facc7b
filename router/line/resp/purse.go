package resp

import (
	"errors"
	"time"
	"unsafe"

	"github.com/seqsvr/seqsvr/internal/wire/auth"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

const (
	// DefaultMemory is the budget of a Server that is given none, in bytes.
	DefaultMemory = 64 << 20
	// freely is what each connection may hold without drawing on the budget.
	freely = 2 * minRoom
	// piece is what a connection draws at once.
	piece = 16 << 10
	// fewOps is the number of commands that the server answers together while memory is short.
	fewOps = 64
)

var (
	opSize = int(unsafe.Sizeof(op{}))
	// errMemory ends a connection.
	errMemory = errors.New("OVERLOADED: unfinished commands and replies that are not read fill the memory for them")
)

// purse counts what one connection holds of the budget. It is not safe for concurrent use.
type purse struct {
	of      *gate.Budget
	address string
	drawn   int
	denied  bool // the last time
}

// hold notes that the connection has n bytes in memory. It reports false if there is no room for
// more than it held before.
func (p *purse) hold(n int) bool {
	want := max(0, (n-freely+piece-1)/piece*piece)
	if p.denied = want != p.drawn && !p.of.Draw(p.address, int64(want-p.drawn)); p.denied {
		return false
	}
	p.drawn = want
	return true
}

// short reports whether a connection should hold little. One that holds nothing needs no look.
func (p *purse) short() bool { return p.denied || p.drawn > 0 && p.of.Short(p.address) }

// fits reports whether there is memory for what a connection holds. Small commands and replies
// always fit: a caller that is served well by them is not ended because of others.
func fits(me *session, in *input, out *writer, ops []op) bool {
	return me.purse.hold(size(me, in, out, ops)) ||
		len(in.unread()) <= freely && len(out.buf) <= freely && (me.tx == nil || me.tx.bytes <= freely)
}

// size is what the buffers of a connection take.
func size(me *session, in *input, out *writer, ops []op) int {
	n := cap(in.buf) + cap(me.parser.spans)*int(unsafe.Sizeof(span{})) + cap(me.parser.args)*int(unsafe.Sizeof([]byte{})) +
		cap(out.buf) + cap(ops)*opSize + len(me.name)
	if me.tx != nil {
		n += me.tx.bytes
	}
	return n
}

// stranger reports whether a connection must show who it is, and has not.
func (s *session) stranger() bool {
	if s.guard == nil || s.proved || s.guard.Mode() != auth.Require {
		return false
	}
	_, err := s.guard.Identify(s.who)
	s.proved = err == nil
	return !s.proved
}

// late reports whether a connection has had its time to show who it is.
func (s *Server) late(me *session, now time.Time) bool {
	return now.Sub(me.begun) >= s.waits.stranger && me.stranger()
}

// little reports whether a connection should be read in small parts.
func (s *session) little() bool { return s.purse.short() || s.stranger() }

// heard notes that a connection has had a command. The command of a stranger does not count.
func (s *session) heard() {
	if !s.called && !s.stranger() {
		s.called = true
		s.seat.Called()
	}
}
