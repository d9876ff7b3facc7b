package globalid

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr/tenure"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/snowflake"
)

// Documents are compare-and-swap documents on the same replicas.
type Documents interface {
	LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error)
	SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error)
}

// DefaultWindow is how far ahead of time a worker id's mark is confirmed.
const DefaultWindow = 3 * time.Second

// Limits of a window. A longer one costs more IDs' time after a crash, a shorter one
// more writes, and does not outlast a short loss of the quorum.
const (
	MinWindow = 100 * time.Millisecond
	MaxWindow = time.Minute
)

// reach is how many windows a mark may lie ahead of the clock, which only the borrow
// policies use up. Stores must take marks that are MaxWindow*reach ahead of their own
// clocks, and some more for what the clocks differ.
const reach = 10

// Config of one node's endpoint.
type Config struct {
	Name      string         // of the node, for people
	Holder    *tenure.Holder // whose leases only keep others away: what permits anything is the mark
	Documents Documents
	// ReadPrefix shows the worker ids that have a register; see quorum.Group.
	ReadPrefix func(ctx context.Context, session seq.Session, prefix string) (map[seq.Register]quorum.Outcome, error)
	// Sessions are those that the stores told of, for people.
	Sessions func() []quorum.SessionView

	// Quorum is nil while the stores can be written to, as far as is known, else why not:
	// a seq.ErrNoQuorum. Nil: requests wait, and find out.
	Quorum func() error

	// DatacenterID goes into the IDs of layouts that have that field. It is bound to
	// the name Datacenter, "" for none, at its first use in the cluster.
	DatacenterID snowflake.Datacenter
	Datacenter   string // 0 to 64 bytes of A-Z a-z 0-9 . _ -
	// Namespaces are recorded by Run where nobody has, and stand in place of the
	// defaults of the same name or alias until then. Version is not looked at.
	Namespaces []Namespace
	// Worker is the only worker id to be used, for nodes that are numbered from
	// outside; nil: any free one. It is leased and fenced like any other.
	Worker *snowflake.Worker
	Window time.Duration // 0: DefaultWindow

	Wall   func() time.Time  // nil: time.Now
	Sleep  snowflake.Sleeper // how requests wait for the wall clock; nil: a timer
	Clock  clock.Clock       // for pauses; nil: the machine's
	Logger *slog.Logger      // nil: none
}

var datacenterName = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)

// CheckNamespaces checks configured namespaces, each and against each other:
// seq.ErrBadArgument, seq.ErrBadLayout.
func CheckNamespaces(all []Namespace) error {
	for i, ns := range all {
		if err := ns.validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(all[:i], ns.meets) {
			return fmt.Errorf("%w: namespace %q: name or alias %d twice", seq.ErrBadArgument, ns.Name, ns.Alias)
		}
	}
	return nil
}

// withDefaults fills in what may be left out and checks the rest: seq.ErrBadArgument.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Holder == nil || c.Documents == nil || c.ReadPrefix == nil || c.Sessions == nil:
		return c, fmt.Errorf("%w: registers, documents and sessions are needed", seq.ErrBadArgument)
	case c.Holder.Session == 0:
		return c, fmt.Errorf("%w: session 0", seq.ErrBadArgument)
	case !datacenterName.MatchString(c.Datacenter):
		return c, fmt.Errorf("%w: datacenter name %q, expected %s", seq.ErrBadArgument, c.Datacenter, datacenterName)
	case c.Window != 0 && (c.Window < MinWindow || c.Window > MaxWindow):
		return c, fmt.Errorf("%w: window %v, expected %v to %v", seq.ErrBadArgument, c.Window, MinWindow, MaxWindow)
	}
	if err := CheckNamespaces(c.Namespaces); err != nil {
		return c, err
	}
	if c.Window == 0 {
		c.Window = DefaultWindow
	}
	if c.Quorum == nil {
		c.Quorum = func() error { return nil }
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = func(ctx context.Context, d time.Duration) error {
			pause(ctx, d, nil)
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
