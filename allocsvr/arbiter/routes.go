package arbiter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Table is a route table with its wire form, which is encoded once and shared.
type Table struct {
	*seq.RouteTable
	Wire *pb.RouteTable
}

// Version returns the version of the table, or 0 if there is no table.
func (t *Table) Version() uint64 {
	if t == nil {
		return 0
	}
	return t.RouteTable.Version
}

// Owner returns the desired owner. If there is no table, ok is false.
func (t *Table) Owner(id seq.SectionID) (seq.Node, bool) {
	if t == nil {
		return seq.Node{}, false
	}
	return t.RouteTable.Owner(id)
}

// Gives reports whether the table lets the node, alive as the session, be given sections.
func (t *Table) Gives(name string, s seq.Session) bool {
	if t == nil {
		return true
	}
	i := t.Index(name)
	return i < 0 || t.Nodes[i].Takes(s)
}

// Leaves reports whether the table says that the node's session has begun to leave.
func (t *Table) Leaves(name string, s seq.Session) bool {
	if t == nil {
		return false
	}
	i := t.Index(name)
	return i >= 0 && t.Nodes[i].Leaving == s
}

// Documents are compare-and-swap documents on the replicas of the registers.
type Documents interface {
	LoadDocument(ctx context.Context, session seq.Session, reg seq.Register) (quorum.Document, error)
	SwapDocument(ctx context.Context, session seq.Session, reg seq.Register, old uint64, body []byte) (quorum.Document, error)
}

// RoutesConfig holds the parts of Routes. All fields are required.
type RoutesConfig struct {
	Name      string // of this node, for the log of decisions
	Session   seq.Session
	Mapping   seq.Mapping
	Documents Documents
	// Heard returns the latest version that the stores reported.
	Heard  func() uint64
	Clock  clock.Clock
	Wall   func() time.Time
	Logger *slog.Logger
}

// Routes holds the newest route table that this node knows. Safe for concurrent use.
type Routes struct {
	cfg     RoutesConfig
	current atomic.Pointer[Table]
	hint    atomic.Uint64 // highest version heard of, by gossip or callers
	look    *wake.Signal
	changed []func()
}

// NewRoutes returns Routes without a table.
func NewRoutes(cfg RoutesConfig) *Routes { return &Routes{cfg: cfg, look: wake.New()} }

// OnChange registers f, which is called after each newer table. Call it before the first use.
func (r *Routes) OnChange(f func()) { r.changed = append(r.changed, f) }

// Table returns the newest table, or nil if none is known.
func (r *Routes) Table() *Table { return r.current.Load() }

// Look makes Follow read from the stores soon.
func (r *Routes) Look() { r.look.Kick() }

// Adopt takes a table if it is newer than the current table.
func (r *Routes) Adopt(t *seq.RouteTable) bool {
	next := &Table{RouteTable: t, Wire: rpc.RoutesToProto(t)}
	for {
		old := r.current.Load()
		if old.Version() >= t.Version {
			return false
		}
		if r.current.CompareAndSwap(old, next) {
			for _, changed := range r.changed {
				changed()
			}
			return true
		}
	}
}

// Hint is called with a version that another node has. Gossip sends the version only, not the table.
func (r *Routes) Hint(version uint64) {
	for {
		old := r.hint.Load()
		if version <= old {
			return
		}
		if r.hint.CompareAndSwap(old, version) {
			r.look.Kick()
			return
		}
	}
}

// Follow reads the table when another node or a store has a newer version, and from time to time, until ctx
// ends.
func (r *Routes) Follow(ctx context.Context) {
	// A newer version wakes Follow. The tick is for the first table, and for a read that failed.
	const every = 100 * time.Millisecond
	last := time.Duration(-1)
	for r.look.Wait(ctx, every) {
		have := r.Table().Version()
		now := r.cfg.Clock.Now()
		stale := last < 0 || now-last > 5*time.Second
		if have > 0 && !stale && max(r.cfg.Heard(), r.hint.Load()) <= have {
			continue
		}
		if have == 0 && last >= 0 && now-last < 100*time.Millisecond {
			continue
		}
		last = now
		if _, err := r.Load(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Logger.Debug("route table not read", "error", err)
		}
	}
}

// Load reads the table from the stores and adopts it. Version 0 means that no table exists yet.
func (r *Routes) Load(ctx context.Context) (*seq.RouteTable, error) {
	doc, err := r.cfg.Documents.LoadDocument(ctx, r.cfg.Session, seq.RoutesRegister)
	if err != nil {
		return nil, fmt.Errorf("load route table: %w", err)
	}
	if doc.Version == 0 || len(doc.Body) == 0 {
		return &seq.RouteTable{Version: doc.Version}, nil
	}
	t, err := decodeRoutes(doc.Body, r.cfg.Mapping)
	if err != nil {
		return nil, err
	}
	t.Version = doc.Version
	if r.Adopt(t) {
		r.cfg.Logger.Debug("route table adopted", "version", t.Version)
	}
	return t, nil
}

func decodeRoutes(body []byte, m seq.Mapping) (*seq.RouteTable, error) {
	var wire pb.RouteTable
	if err := proto.Unmarshal(body, &wire); err != nil {
		return nil, fmt.Errorf("%w: %w", seq.ErrBadTable, err)
	}
	return rpc.RoutesFromProto(&wire, m)
}

// ErrUnchanged tells Routes.Change that nothing is to be written.
var ErrUnchanged = errors.New("unchanged")

// Change replaces the table by compare-and-swap. The function change gets a copy of the newest table and
// alters it. It is called again if another writer was faster or the outcome of the write is unknown, so it
// must be idempotent. Events are written to the log of decisions after the table.
func (r *Routes) Change(ctx context.Context, change func(t *seq.RouteTable) ([]Event, error)) (*seq.RouteTable, error) {
	for {
		cur, err := r.Load(ctx)
		if err != nil {
			return nil, err
		}
		next := cur.Clone()
		events, err := change(next)
		if errors.Is(err, ErrUnchanged) {
			return cur, nil
		}
		if err != nil {
			return nil, err
		}
		if err := next.Validate(r.cfg.Mapping); err != nil {
			return nil, err
		}
		next.Version = cur.Version + 1
		body, err := proto.Marshal(rpc.RoutesToProto(next))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", seq.ErrBadTable, err)
		}
		doc, err := r.cfg.Documents.SwapDocument(ctx, r.cfg.Session, seq.RoutesRegister, cur.Version, body)
		if errors.Is(err, seq.ErrConflict) || errors.Is(err, quorum.ErrUnknownOutcome) {
			continue // changes are idempotent: one that was written after all is written again
		}
		if err != nil {
			return nil, fmt.Errorf("write route table %d: %w", next.Version, err)
		}
		next.Version = doc.Version
		r.Adopt(next)
		// The log is for people, so no caller waits for it to be mended.
		if err := r.Record(ctx, events); err != nil {
			r.cfg.Logger.Warn("events not recorded", "error", err)
		}
		return next, nil
	}
}
