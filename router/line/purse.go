package line

import (
	"errors"

	"github.com/seqsvr/seqsvr/internal/wire/gate"
)

const (
	// DefaultMemory is the budget of a Server that is given none, in bytes.
	DefaultMemory = 64 << 20
	// freely is what each connection may hold without drawing on the budget.
	freely = 2 * minRoom
	// piece is what a connection draws at once.
	piece = 16 << 10
	// fewOps is the number of requests that the server answers together while memory is short.
	fewOps = 64
)

// errMemory ends a connection.
var errMemory = errors.New("OVERLOADED: unfinished commands and replies that are not read fill the memory for them")

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
