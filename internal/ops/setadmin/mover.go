package setadmin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

const (
	// batch is the number of sections that move at a time. Their callers wait until the other Set has their
	// registers and has recorded that it serves them.
	batch = 64
	// retry is the pause between two rounds over the nodes of a Set.
	retry = 20 * time.Millisecond
	// stopPatience bounds the first call to a node that stops sections. While the node is silent, callers
	// of sections that other nodes have stopped must wait. If the node stopped its sections in spite of the
	// silence, the next call returns that.
	stopPatience = time.Second
)

// ErrRefused: the Set that the sections were to go to has refused the move; take it back.
var ErrRefused = errors.New("the Set has refused the move")

// ErrTakenBack: the move was taken back by another; the sections are where they were.
var ErrTakenBack = errors.New("the move was taken back")

// ErrUnsettled: the Set that the sections are to go to was restored, and is to be settled first.
var ErrUnsettled = errors.New("the Set was restored, and is not settled")

// Mover brings one move to its end. Nothing of it is kept here.
type Mover struct {
	Root     *Root
	From, To *Set
	Move     sets.Move
	Logger   *slog.Logger
	// Before is called before each step, for tests. It may be nil.
	Before func(step string) error
	// Moved is called after each batch with the time that its callers waited. It may be nil.
	Moved func(sections int, waited time.Duration)
}

func (m *Mover) before(step string) error {
	if m.Before == nil {
		return nil
	}
	return m.Before(step)
}

// Finish moves all sections that have not arrived. ErrRefused, ErrTakenBack, ErrUnsettled,
// ErrSetDown, and ctx's error leave the move open where they do not say that it is over; it may be
// called again.
func (m *Mover) Finish(ctx context.Context) error {
	ids := sets.Sections(m.Move.Sections)
	if err := alike(ctx, m.From, m.To, ids); err != nil { // before anything is sealed
		return fmt.Errorf("move %d from Set %s to %s: %w", m.Move.ID, m.From.Name, m.To.Name, err)
	}
	if record, _, _, err := m.To.Record(ctx); err != nil {
		return err
	} else if err := m.settled(record, ids); err != nil {
		return fmt.Errorf("move %d: %w", m.Move.ID, err)
	}
	for len(ids) > 0 {
		n := min(batch, len(ids))
		if err := m.forward(ctx, ids[:n]); err != nil {
			return fmt.Errorf("move %d of sections %v from Set %s to %s: %w", m.Move.ID, sets.RangesOf(ids[:n]), m.From.Name, m.To.Name, err)
		}
		ids = ids[n:]
	}
	return nil
}

// settled is ErrUnsettled if the record of the other Set has one of the sections in limbo: it can
// neither activate nor refuse it.
func (m *Mover) settled(record sets.Record, ids []seq.SectionID) error {
	for _, id := range ids {
		if record.At(id).State == sets.Limbo {
			return fmt.Errorf("%w: section %d of Set %s is in limbo: seqctl set settle --set %s", ErrUnsettled, id, m.To.Name, m.To.Name)
		}
	}
	return nil
}

// forward moves one batch.
func (m *Mover) forward(ctx context.Context, ids []seq.SectionID) error {
	if err := m.before("seal"); err != nil {
		return err
	}
	if err := m.From.step(ctx, sets.Step{Op: sets.Seal, Move: m.Move.ID, To: m.Move.To}, ids); err != nil {
		if errors.Is(err, seq.ErrMoveOver) {
			return fmt.Errorf("%w: %w", ErrTakenBack, err)
		}
		return err
	}
	for len(ids) > 0 {
		stopped, err := m.some(ctx, ids)
		if err != nil {
			return err
		}
		ids = slices.DeleteFunc(slices.Clone(ids), func(id seq.SectionID) bool { return stopped[id] != nil })
	}
	return nil
}

// some moves those sealed sections of a batch that its nodes stop at the first time of asking: the
// callers of these wait, and of the others most do not yet.
func (m *Mover) some(ctx context.Context, ids []seq.SectionID) (stopped map[seq.SectionID]*pb.StoppedSection, err error) {
	if err := m.before("stop"); err != nil {
		return nil, err
	}
	begin := time.Now()
	if stopped, err = m.stop(ctx, ids); err != nil {
		return nil, err
	}
	ids = slices.Sorted(maps.Keys(stopped))
	if err := m.before("open"); err != nil {
		return nil, err
	}
	owners, err := m.open(ctx, ids, stopped)
	if err != nil {
		return nil, err
	}
	opened := time.Now()
	if err := m.before("finish"); err != nil {
		return nil, err
	}
	if err := m.From.everywhere(ctx, sets.Step{Op: sets.Finish, Move: m.Move.ID}, ids, owners); err != nil {
		return nil, err
	}
	waited := time.Since(begin)
	m.Logger.Info("sections moved", "move", m.Move.ID, "sections", len(ids), "from", m.From.Name, "to", m.To.Name,
		"opened after", opened.Sub(begin).Round(time.Microsecond), "callers sent on after", waited.Round(time.Microsecond))
	if err := m.before("arrive"); err != nil {
		return nil, err
	}
	if err := m.Root.arrive(ctx, m.Move.ID, stopped); err != nil {
		return nil, err
	}
	if m.Moved != nil {
		m.Moved(len(ids), waited)
	}
	return stopped, nil
}

// stop has sections of the batch stopped, at least one: each where it is served, and by any node if
// it is not. Nodes leave what does not fit into an answer.
func (m *Mover) stop(ctx context.Context, ids []seq.SectionID) (map[seq.SectionID]*pb.StoppedSection, error) {
	stopped := make(map[seq.SectionID]*pb.StoppedSection, len(ids))
	err := m.From.each(ctx, ids, stopPatience, func(ctx context.Context, conn grpc.ClientConnInterface, _ string, ids []seq.SectionID, mu *sync.Mutex) ([]uint32, error) {
		reply, err := pb.NewSetsClient(conn).Stop(ctx, &pb.StopSectionsRequest{Move: m.Move.ID, Sections: plain(ids), Unowned: true})
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, s := range reply.GetStopped() {
			stopped[seq.SectionID(s.GetSection())] = s
		}
		return reply.GetLeft(), nil
	}, func() bool { return len(stopped) > 0 })
	if errors.Is(err, seq.ErrMoveOver) {
		err = fmt.Errorf("%w: %w", ErrTakenBack, err)
	}
	return stopped, err
}

// open has each of the stopped sections served by its owner in the other Set, and says where.
func (m *Mover) open(ctx context.Context, ids []seq.SectionID, stopped map[seq.SectionID]*pb.StoppedSection) (owners map[seq.SectionID]string, err error) {
	owners = make(map[seq.SectionID]string, len(stopped))
	err = m.To.each(ctx, ids, callPatience, func(ctx context.Context, conn grpc.ClientConnInterface, addr string, ids []seq.SectionID, mu *sync.Mutex) (left []uint32, err error) {
		for len(ids) > 0 {
			req := &pb.OpenSectionsRequest{Move: m.Move.ID}
			for size := 0; len(ids) > 0; ids = ids[1:] {
				one := stopped[ids[0]]
				if size += len(one.GetCounters()); size > rpc.MaxCounters && len(req.Sections) > 0 {
					break
				}
				req.Sections = append(req.Sections, one)
			}
			reply, err := pb.NewSetsClient(conn).Open(ctx, req)
			if err != nil {
				return nil, err
			}
			left = append(left, reply.GetLeft()...)
			mu.Lock()
			for _, id := range reply.GetOpened() {
				owners[seq.SectionID(id)] = addr
			}
			mu.Unlock()
		}
		return left, nil
	}, nil)
	if errors.Is(err, seq.ErrMoveOver) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return owners, err
}

// TakeBack ends the move, and its sections stay where they were. Sections that have arrived, or that the
// other Set has begun to serve, are moved to the end instead.
func (m *Mover) TakeBack(ctx context.Context) error {
	for ids := sets.Sections(m.Move.Sections); len(ids) > 0; {
		n := min(batch, len(ids))
		if err := m.back(ctx, ids[:n]); err != nil {
			return fmt.Errorf("take back move %d of sections %v from Set %s to %s: %w", m.Move.ID, sets.RangesOf(ids[:n]), m.From.Name, m.To.Name, err)
		}
		ids = ids[n:]
	}
	return nil
}

// back takes one batch back.
func (m *Mover) back(ctx context.Context, ids []seq.SectionID) error {
	record, _, _, err := m.From.Record(ctx)
	if err != nil {
		return err
	}
	var over, open, sealed, gone, never []seq.SectionID
	for _, id := range ids {
		switch p := record.At(id); {
		case p.Move > m.Move.ID: // the section was settled since, after a restore
			over = append(over, id)
		case p.State == sets.Sealed && p.Move == m.Move.ID:
			sealed = append(sealed, id)
		case p.State == sets.Moved && p.Move == m.Move.ID:
			gone = append(gone, id)
		case p.State == sets.Active:
			open = append(open, id)
		case p.State == sets.Inactive, p.State == sets.Moved, p.State == sets.Refused:
			never = append(never, id) // it was not where the map had it
		default:
			return fmt.Errorf("%w: section %d of Set %s is %v", seq.ErrMoveOver, id, m.From.Name, p)
		}
	}
	if len(sealed) > 0 {
		// Without the word of the other Set that it never will, a sealed section may be active there.
		if err := m.before("refuse"); err != nil {
			return err
		}
		active, err := m.refuse(ctx, sealed)
		if err != nil {
			return err
		}
		gone = append(gone, active...)
		sealed = slices.DeleteFunc(sealed, func(id seq.SectionID) bool { return slices.Contains(active, id) })
	}
	if _, err := m.From.Table(ctx); err != nil { // knows all its nodes
		return err
	}
	for _, end := range []struct {
		op  sets.Op
		ids []seq.SectionID
	}{{sets.Refuse, never}, {sets.Cancel, open}, {sets.Reopen, sealed}} {
		again, err := m.stay(ctx, end.op, end.ids)
		if again {
			return m.back(ctx, ids) // it was sealed meanwhile, by another that moves on
		}
		if err != nil {
			return err
		}
	}
	if len(over) > 0 {
		if err := m.Root.abort(ctx, m.Move.ID, over); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		slices.Sort(gone)
		return m.forward(ctx, gone)
	}
	return nil
}

// stay cancels the move of sections: they stay where they are, and the move never seals them later. If
// again is true, the record has changed and must be read again.
func (m *Mover) stay(ctx context.Context, op sets.Op, ids []seq.SectionID) (again bool, err error) {
	if len(ids) == 0 {
		return false, nil
	}
	if err := m.before(op.String()); err != nil {
		return false, err
	}
	err = m.From.everywhere(ctx, sets.Step{Op: op, Move: m.Move.ID}, ids, nil)
	if errors.Is(err, seq.ErrMoveOver) {
		return true, err
	}
	if err == nil {
		err = m.before("abort")
	}
	if err == nil {
		err = m.Root.abort(ctx, m.Move.ID, ids)
	}
	return false, err
}

// refuse has the other Set refuse sections, and lists those that are active there already.
// ErrUnsettled; ErrTakenBack: a later move has had one of them from there.
func (m *Mover) refuse(ctx context.Context, ids []seq.SectionID) (active []seq.SectionID, err error) {
	step := sets.Step{Op: sets.Refuse, Move: m.Move.ID}
	for len(ids) > 0 {
		err := m.To.step(ctx, step, ids)
		if err == nil || !errors.Is(err, seq.ErrMoveOver) {
			return active, err
		}
		record, _, _, err := m.To.Record(ctx)
		if err == nil {
			err = m.settled(record, ids)
		}
		if err != nil {
			return active, err
		}
		var rest []seq.SectionID
		for _, id := range ids {
			switch p := record.At(id); {
			case p.State == sets.Active && p.Move == m.Move.ID:
				active = append(active, id)
			case p.Never(m.Move.ID): // by a settlement, for one
			case p.Move > m.Move.ID:
				return active, fmt.Errorf("%w: section %d of Set %s is %v", ErrTakenBack, id, m.To.Name, p)
			default:
				rest = append(rest, id)
			}
		}
		if len(rest) == len(ids) {
			if err := pause(ctx); err != nil {
				return active, err
			}
		}
		ids = rest
	}
	return active, nil
}

// pause is the one before the next round.
func pause(ctx context.Context) error {
	timer := time.NewTimer(retry)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func plain(ids []seq.SectionID) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}
