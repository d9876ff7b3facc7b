package setcare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

const (
	// batch is how many sections move at a time: their callers wait until the other Set has gained
	// their registers and written down that it serves them.
	batch = 64
	// retry is the pause between two rounds over the nodes of a Set.
	retry = 20 * time.Millisecond
)

// ErrRefused: the Set that the sections were to go to has refused the move; take it back.
var ErrRefused = errors.New("the Set has refused the move")

// ErrTakenBack: the move was taken back by another; the sections are where they were.
var ErrTakenBack = errors.New("the move was taken back")

// Mover brings one move to its end. Nothing of it is kept here.
type Mover struct {
	Root     *Root
	From, To *Set
	Move     sets.Move
	Logger   *slog.Logger
	// Before is called before each step, for tests; nil: nothing is.
	Before func(step string) error
	// Moved hears of each batch, and for how long its callers waited; nil: nothing does.
	Moved func(sections int, waited time.Duration)
}

func (m *Mover) before(step string) error {
	if m.Before == nil {
		return nil
	}
	return m.Before(step)
}

// Finish moves all sections that have not arrived. ErrRefused, ErrTakenBack, ErrSetDown, and
// ctx's error leave the move open where they do not say that it is over; it may be called again.
func (m *Mover) Finish(ctx context.Context) error {
	ids := sets.Sections(m.Move.Sections)
	if err := alike(ctx, m.From, m.To, ids); err != nil { // before anything is sealed
		return fmt.Errorf("move %d from Set %s to %s: %w", m.Move.ID, m.From.Name, m.To.Name, err)
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
	if err := m.before("stop"); err != nil {
		return err
	}
	begin := time.Now()
	stopped, err := m.stop(ctx, ids)
	if err != nil {
		return err
	}
	if err := m.before("open"); err != nil {
		return err
	}
	owners, err := m.open(ctx, stopped)
	if err != nil {
		return err
	}
	opened := time.Now()
	if err := m.before("finish"); err != nil {
		return err
	}
	if err := m.From.everywhere(ctx, sets.Step{Op: sets.Finish, Move: m.Move.ID}, ids, owners); err != nil {
		return err
	}
	waited := time.Since(begin)
	m.Logger.Info("sections moved", "move", m.Move.ID, "sections", len(ids), "from", m.From.Name, "to", m.To.Name,
		"opened after", opened.Sub(begin).Round(time.Microsecond), "callers sent on after", waited.Round(time.Microsecond))
	if err := m.before("arrive"); err != nil {
		return err
	}
	if err := m.Root.arrive(ctx, m.Move.ID, stopped); err != nil || m.Moved == nil {
		return err
	}
	m.Moved(len(ids), waited)
	return nil
}

// stop has each section of the batch stopped where it is served, and by any node if it is not.
func (m *Mover) stop(ctx context.Context, ids []seq.SectionID) (map[seq.SectionID]*pb.StoppedSection, error) {
	stopped := make(map[seq.SectionID]*pb.StoppedSection, len(ids))
	err := m.each(ctx, m.From, ids, func(ctx context.Context, conn grpc.ClientConnInterface, _ string, ids []seq.SectionID, mu *sync.Mutex) ([]uint32, error) {
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
	})
	if errors.Is(err, seq.ErrMoveOver) {
		err = fmt.Errorf("%w: %w", ErrTakenBack, err)
	}
	return stopped, err
}

// open has each section of the batch served by its owner in the other Set, and says where.
func (m *Mover) open(ctx context.Context, stopped map[seq.SectionID]*pb.StoppedSection) (owners map[seq.SectionID]string, err error) {
	owners = make(map[seq.SectionID]string, len(stopped))
	var ids []seq.SectionID
	for id := range stopped {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	err = m.each(ctx, m.To, ids, func(ctx context.Context, conn grpc.ClientConnInterface, addr string, ids []seq.SectionID, mu *sync.Mutex) ([]uint32, error) {
		req := &pb.OpenSectionsRequest{Move: m.Move.ID}
		for _, id := range ids {
			req.Sections = append(req.Sections, stopped[id])
		}
		reply, err := pb.NewSetsClient(conn).Open(ctx, req)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, id := range reply.GetOpened() {
			owners[seq.SectionID(id)] = addr
		}
		return reply.GetLeft(), nil
	})
	if errors.Is(err, seq.ErrMoveOver) {
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return owners, err
}

// each asks the nodes of a Set for sections until none is left: first each section's owner by the
// table, then the others in turn. An error that every node would give ends it.
func (m *Mover) each(ctx context.Context, s *Set, ids []seq.SectionID,
	ask func(ctx context.Context, conn grpc.ClientConnInterface, addr string, ids []seq.SectionID, mu *sync.Mutex) (left []uint32, err error)) error {
	var last error
	for turn := 0; len(ids) > 0; turn++ {
		t := s.known()
		if t == nil || turn > 0 { // an old table costs a turn, a new one the callers' time
			var err error
			if t, err = s.Table(ctx); err != nil {
				return err
			}
		}
		if turn > 0 {
			timer := time.NewTimer(retry)
			select {
			case <-ctx.Done():
				timer.Stop()
				why := ctx.Err()
				if last != nil {
					why = fmt.Errorf("%w: %w", why, last)
				}
				return fmt.Errorf("%d sections left, no node has them yet: %w", len(ids), why)
			case <-timer.C:
			}
		}
		var mu sync.Mutex // guards left, final and last
		var left []seq.SectionID
		var final error
		var wg sync.WaitGroup
		for addr, ids := range s.byOwner(t, ids, turn%(1+len(s.addrs()))) {
			wg.Go(func() {
				var again []uint32
				err := s.at(ctx, addr, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
					again, err = ask(ctx, conn, addr, ids, &mu)
					return err
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					for _, id := range again {
						left = append(left, seq.SectionID(id))
					}
				case answered(err):
					final = err
				default:
					last = err
					left = append(left, ids...)
				}
			})
		}
		wg.Wait()
		if final != nil {
			return final
		}
		slices.Sort(left)
		ids = left
	}
	return nil
}

// TakeBack ends the move with the sections where they were, but for those that have arrived, or
// that the other Set has begun to serve: these are moved to the end.
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

// stay has sections stay where they are, and the move never seals them from then on; again: the
// record has changed, and is to be read anew.
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
func (m *Mover) refuse(ctx context.Context, ids []seq.SectionID) (active []seq.SectionID, err error) {
	step := sets.Step{Op: sets.Refuse, Move: m.Move.ID}
	for len(ids) > 0 {
		err := m.To.step(ctx, step, ids)
		if err == nil || !errors.Is(err, seq.ErrMoveOver) {
			return active, err
		}
		record, _, _, err := m.To.Record(ctx)
		if err != nil {
			return active, err
		}
		var rest []seq.SectionID
		for _, id := range ids {
			if p := record.At(id); p.State == sets.Active && p.Move == m.Move.ID {
				active = append(active, id)
			} else if p.Move > m.Move.ID && p.State != sets.Active && p.State != sets.Limbo {
				continue // settled there by a later number: it will never activate this move either
			} else if p.Move > m.Move.ID {
				return active, fmt.Errorf("%w: section %d of Set %s is %v", ErrTakenBack, id, m.To.Name, p)
			} else {
				rest = append(rest, id)
			}
		}
		ids = rest
	}
	return active, nil
}

func plain(ids []seq.SectionID) []uint32 {
	out := make([]uint32, len(ids))
	for i, id := range ids {
		out[i] = uint32(id)
	}
	return out
}
