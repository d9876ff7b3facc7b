package workers

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// DefaultWindow is the default time by which a worker id's mark is confirmed ahead.
const DefaultWindow = 3 * time.Second

// Limits of a window. A longer window costs more IDs' time after a crash. A shorter window costs more
// writes, and does not outlast a short loss of the quorum. The longest is maxReach.
const (
	MinWindow = 100 * time.Millisecond
	MaxWindow = maxReach
)

// Config holds the parts of Workers. Holder, ReadPrefix and Sessions are required.
type Config struct {
	Name   string // of the node, for people
	Node   namespaces.Node
	Holder *ownership.Holder // its leases only keep others away; the mark alone permits IDs
	// ReadPrefix shows the worker ids that have a register; see quorum.Group.
	ReadPrefix func(ctx context.Context, session seq.Session, prefix string) (map[seq.Register]quorum.Outcome, error)
	// Sessions are those that the stores told of, for people.
	Sessions func() []quorum.SessionView

	// Tell makes the node of another session read the document of namespaces again. It returns when that
	// node uses it, or how long that may take at most. If nil, there is no other node.
	Tell func(ctx context.Context, session seq.Session) (later time.Duration, err error)

	// ClockAhead returns how far this node's clock is ahead of the stores' clocks, and whether that is
	// known. If nil, it is never known. See quorum.Leases.
	ClockAhead func() (ahead time.Duration, known bool)

	// Quorum returns nil while the stores can be written to, as far as this node knows, and otherwise a
	// seq.ErrNoQuorum. If Quorum is nil, requests wait, and find out.
	Quorum func() error

	Window time.Duration     // zero means DefaultWindow
	Wall   func() time.Time  // if nil, time.Now
	Sleep  snowflake.Sleeper // waits for the wall clock; if nil, a timer
	Clock  clock.Clock       // for pauses; if nil, the machine's clock
	Logger *slog.Logger      // if nil, nothing is logged
}

// WithDefaults fills in defaults and checks the other fields. It returns seq.ErrBadArgument.
func (c Config) WithDefaults() (Config, error) {
	switch {
	case c.Holder == nil || c.ReadPrefix == nil || c.Sessions == nil:
		return c, fmt.Errorf("%w: registers and sessions are needed", seq.ErrBadArgument)
	case c.Holder.Session == 0:
		return c, fmt.Errorf("%w: session 0", seq.ErrBadArgument)
	case c.Window != 0 && (c.Window < MinWindow || c.Window > MaxWindow):
		return c, fmt.Errorf("%w: window %v, expected %v to %v", seq.ErrBadArgument, c.Window, MinWindow, MaxWindow)
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Quorum == nil {
		c.Quorum = func() error { return nil }
	}
	if c.Tell == nil {
		c.Tell = func(context.Context, seq.Session) (time.Duration, error) { return 0, nil }
	}
	if c.ClockAhead == nil {
		c.ClockAhead = func() (time.Duration, bool) { return 0, false }
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = func(ctx context.Context, d time.Duration) error {
			wake.New().Wait(ctx, d)
			return ctx.Err()
		}
	}
	if c.Clock == nil {
		c.Clock = clock.Boot()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
