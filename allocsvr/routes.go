package allocsvr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/seqsvr/seqsvr/internal/rpc"
	"github.com/seqsvr/seqsvr/internal/wake"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// table is a route table with its wire form, made once and shared.
type table struct {
	*seq.RouteTable
	wire *pb.RouteTable
}

func (t *table) version() uint64 {
	if t == nil {
		return 0
	}
	return t.Version
}

// Owner is the desired owner; ok is false without a table.
func (t *table) Owner(id seq.SectionID) (seq.Node, bool) {
	if t == nil {
		return seq.Node{}, false
	}
	return t.RouteTable.Owner(id)
}

// takes is false if the table says that the node, alive as that session, is to be given
// nothing.
func (t *table) takes(name string, s seq.Session) bool {
	if t == nil {
		return true
	}
	i := t.Index(name)
	return i < 0 || t.Nodes[i].Takes(s)
}

// leaves is true if the table says that the node's session has begun to leave.
func (t *table) leaves(name string, s seq.Session) bool {
	if t == nil {
		return false
	}
	i := t.Index(name)
	return i >= 0 && t.Nodes[i].Leaving == s
}

// routes is the newest table that this node knows.
type routes struct {
	current atomic.Pointer[table]
	hint    atomic.Uint64 // highest version heard of, by gossip or callers
	loop    *wake.Signal
	changed func() // told after a newer table was adopted; nil: nobody
}

func (r *routes) table() *table { return r.current.Load() }

// adopt takes a table if it is newer than the one at hand.
func (r *routes) adopt(t *seq.RouteTable) bool {
	next := &table{RouteTable: t, wire: rpc.RoutesToProto(t)}
	for {
		old := r.current.Load()
		if old.version() >= t.Version {
			return false
		}
		if r.current.CompareAndSwap(old, next) {
			if r.changed != nil {
				r.changed()
			}
			return true
		}
	}
}

// HintRoutes tells of a version that somebody else has: gossip spreads the number only.
func (a *Alloc) HintRoutes(version uint64) {
	for {
		old := a.routes.hint.Load()
		if version <= old {
			return
		}
		if a.routes.hint.CompareAndSwap(old, version) {
			a.routes.loop.Kick()
			return
		}
	}
}

// followRoutes reads the table when a newer version is heard of, and now and then.
func (a *Alloc) followRoutes(ctx context.Context) {
	// News of a newer version kicks; this is for the first table, and after a failed read.
	const every = 100 * time.Millisecond
	last := time.Duration(-1)
	for a.routes.loop.Wait(ctx, every) {
		have := a.routes.table().version()
		now := a.clock.Now()
		stale := last < 0 || now-last > 5*time.Second
		if have > 0 && !stale && max(a.leases.RouteVersion(), a.routes.hint.Load()) <= have {
			continue
		}
		if have == 0 && last >= 0 && now-last < 100*time.Millisecond {
			continue
		}
		last = now
		if _, err := a.loadRoutes(ctx); err != nil && ctx.Err() == nil {
			a.log.Debug("route table not read", "error", err)
		}
	}
}

// loadRoutes reads the table from the stores and adopts it. Version 0: none yet.
func (a *Alloc) loadRoutes(ctx context.Context) (*seq.RouteTable, error) {
	doc, err := a.documents.LoadDocument(ctx, a.session, seq.RoutesRegister)
	if err != nil {
		return nil, fmt.Errorf("load route table: %w", err)
	}
	if doc.Version == 0 || len(doc.Body) == 0 {
		return &seq.RouteTable{Version: doc.Version}, nil
	}
	t, err := decodeRoutes(doc.Body, a.mapping)
	if err != nil {
		return nil, err
	}
	t.Version = doc.Version
	if a.routes.adopt(t) {
		a.log.Debug("route table adopted", "version", t.Version)
		a.seeker.Kick()
		a.giver.Kick()
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

// errUnchanged tells changeRoutes that there is nothing to write.
var errUnchanged = errors.New("unchanged")

// changeRoutes replaces the table by compare-and-swap: change gets a copy of the
// newest one and alters it. It is called again when another writer was faster, or
// when the outcome of the write is unknown, so it must be idempotent.
// Events are written to the log of decisions after the table.
func (a *Alloc) changeRoutes(ctx context.Context, change func(t *seq.RouteTable) ([]event, error)) (*seq.RouteTable, error) {
	for {
		cur, err := a.loadRoutes(ctx)
		if err != nil {
			return nil, err
		}
		next := cur.Clone()
		events, err := change(next)
		if errors.Is(err, errUnchanged) {
			return cur, nil
		}
		if err != nil {
			return nil, err
		}
		if err := next.Validate(a.mapping); err != nil {
			return nil, err
		}
		next.Version = cur.Version + 1
		body, err := proto.Marshal(rpc.RoutesToProto(next))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", seq.ErrBadTable, err)
		}
		doc, err := a.documents.SwapDocument(ctx, a.session, seq.RoutesRegister, cur.Version, body)
		if errors.Is(err, seq.ErrConflict) || errors.Is(err, quorum.ErrUnknownOutcome) {
			continue // changes are idempotent: one that was written after all is written again
		}
		if err != nil {
			return nil, fmt.Errorf("write route table %d: %w", next.Version, err)
		}
		next.Version = doc.Version
		a.routes.adopt(next)
		a.seeker.Kick()
		a.giver.Kick()
		a.record(ctx, events)
		return next, nil
	}
}

// event is one decision, with its reason.
type event struct {
	ID      uint64 `json:"id"`
	UnixMS  int64  `json:"ms"`
	Node    string `json:"node"`
	Kind    string `json:"kind"`
	Subject string `json:"subject,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// maxEvents bounds the log of decisions.
const maxEvents = 1000

// record appends to the log of decisions in the stores; the log is for people, so
// a failure is logged and nothing waits for it to be mended.
func (a *Alloc) record(ctx context.Context, events []event) {
	if err := a.appendEvents(ctx, events); err != nil {
		a.log.Warn("events not recorded", "error", err)
	}
}

// appendEvents appends to the log of decisions, again whenever another writer was faster.
func (a *Alloc) appendEvents(ctx context.Context, events []event) error {
	for len(events) > 0 {
		log, version, err := a.loadEvents(ctx)
		if err != nil {
			return err
		}
		id := uint64(0)
		if len(log) > 0 {
			id = log[len(log)-1].ID
		}
		for _, e := range events {
			id++
			e.ID, e.Node, e.UnixMS = id, a.name, a.wall().UnixMilli()
			log = append(log, e)
		}
		log = log[max(0, len(log)-maxEvents):]
		body, err := json.Marshal(log)
		if err != nil {
			return fmt.Errorf("encode events: %w", err)
		}
		_, err = a.documents.SwapDocument(ctx, a.session, seq.EventsRegister, version, body)
		if errors.Is(err, seq.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		return nil
	}
	return nil
}

func (a *Alloc) loadEvents(ctx context.Context) (log []event, version uint64, err error) {
	doc, err := a.documents.LoadDocument(ctx, a.session, seq.EventsRegister)
	if err != nil {
		return nil, 0, fmt.Errorf("load events: %w", err)
	}
	if len(doc.Body) > 0 {
		if err := json.Unmarshal(doc.Body, &log); err != nil {
			return nil, 0, fmt.Errorf("decode events: %w", err)
		}
	}
	return log, doc.Version, nil
}
