package setctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/base/wake"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/internal/process/daemon"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// retryPause is between two tries at a Set that does not answer.
const retryPause = 500 * time.Millisecond

// moved is the output of move and abort.
type moved struct {
	Move     uint64  `json:"move"` // zero if there was nothing to do
	From     string  `json:"from"`
	To       string  `json:"to"`
	Sections string  `json:"sections"`
	State    string  `json:"state"`     // moved, or taken back
	WaitedMS float64 `json:"waited_ms"` // of its callers at most, for the other Set to have them
}

func moveCommand() *cobra.Command {
	o, id, sections, to := &options{}, uint64(0), "", ""
	cmd := &cobra.Command{
		Use:   "move --sections A-B[,C] --to NAME | --id N",
		Short: "move sections to another Set while both serve, or finish a move that is open",
		Long: `move brings sections to another Set, 64 at a time, without a gap in anybody's numbers; callers of
a section wait for some milliseconds while it moves. A Set that does not answer is tried again until
--timeout. Whatever became of a move that failed or was cut off, it stays open, and the same move or
--id goes on from there; seqctl set abort takes it back.`,
		Example: "  seqctl set move --sections 0-1023 --to set-2\n  seqctl set move --sections 7,9-12 --to main\n  seqctl set move --id 3",
		Args:    ctl.ExactArgs(),
	}
	o.AddTo(cmd, moveTimeout)
	cmd.Flags().StringVar(&sections, "sections", "", "`ranges` of sections, such as 0-63,128; required unless --id is given")
	cmd.Flags().StringVar(&to, "to", "", "`name` of the Set that is to have them; required unless --id is given")
	cmd.Flags().Uint64Var(&id, "id", 0, "`number` of an open move, to finish it; 0: begin one, or go on with one of the same sections")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if (id == 0) != (sections != "" && to != "") || id != 0 && (sections != "" || to != "") {
			return daemon.Usage(errors.New("expected --sections A-B and --to NAME, or --id N"))
		}
		var ranges []sets.Range
		if id == 0 {
			var err error
			if ranges, err = sets.ParseRanges(sections); err != nil {
				return daemon.Usage(fmt.Errorf("--sections: %w", err))
			}
		}
		return o.with(ctx, func(d *division) error {
			move, err := d.openMove(id)
			if id == 0 {
				move, err = d.begin(ctx, to, ranges)
			}
			if err != nil {
				return err
			}
			return d.end(ctx, move, "moved", finish, format, stdout, cmd.ErrOrStderr())
		})
	})
	return cmd
}

// finish asks the Set that is to have the sections first: while it does not answer none is stopped.
func finish(m *setadmin.Mover, ctx context.Context) error {
	if _, _, _, err := m.To.Record(ctx); err != nil {
		return err
	}
	return m.Finish(ctx)
}

func abortCommand() *cobra.Command {
	o, id := &options{}, uint64(0)
	cmd := &cobra.Command{
		Use:   "abort --id N",
		Short: "take back an open move: sections that have not moved stay where they are",
		Long: `abort leaves the sections of an open move where they are, but for those that the other Set has begun
to serve: these are moved to the end. If the other Set may have begun, it must answer.`,
		Example: "  seqctl set abort --id 3",
		Args:    ctl.ExactArgs(),
	}
	o.AddTo(cmd, moveTimeout)
	cmd.Flags().Uint64Var(&id, "id", 0, "`number` of the move, as seqctl set show tells it; required")
	cmd.RunE = o.Verb(func(ctx context.Context, format ui.Format, _ []string, stdout io.Writer) error {
		if id == 0 {
			return daemon.Usage(errors.New("expected --id N, as seqctl set show tells it"))
		}
		return o.with(ctx, func(d *division) error {
			move, err := d.openMove(id)
			if err != nil {
				return err
			}
			return d.end(ctx, move, "taken back", (*setadmin.Mover).TakeBack, format, stdout, cmd.ErrOrStderr())
		})
	})
	return cmd
}

// errNoMove: there is no open move of that number; it has ended, or never was.
var errNoMove = errors.New("no open move")

// openMove finds an open move. errNoMove.
func (d *division) openMove(id uint64) (sets.Move, error) {
	if move, open := d.sets.Open(id); open {
		return move, nil
	}
	return sets.Move{}, fmt.Errorf("%w %d: seqctl set show lists those that are open", errNoMove, id)
}

// begin records in the map a move of the sections that are not at the Set yet. If all are there, it records
// nothing. If a move of the same sections is open already, begin returns that move.
func (d *division) begin(ctx context.Context, to string, ranges []sets.Range) (move sets.Move, err error) {
	if _, err := d.set(to); err != nil {
		return move, err
	}
	var ids []seq.SectionID
	for _, id := range sets.Sections(ranges) {
		if int(id) >= d.sections {
			return move, fmt.Errorf("%w: %d, expected 0 to %d", seq.ErrUnknownSection, id, d.sections-1)
		}
		if d.all()[d.sets.Index(id)].Name != to {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return sets.Move{To: to, Sections: ranges}, nil
	}
	for _, open := range d.sets.Moves {
		theirs := sets.Sections(open.Sections)
		if (open.To != to || !slices.Equal(theirs, ids)) && slices.ContainsFunc(ids, func(id seq.SectionID) bool { return slices.Contains(theirs, id) }) {
			return move, fmt.Errorf("%w: %s: %s", sets.ErrMoveOpen, named(open), hint(open))
		}
	}
	return d.root.Begin(ctx, to, sets.RangesOf(ids))
}

// named is a move for people.
func named(m sets.Move) string {
	return fmt.Sprintf("move %d of sections %s from Set %s to %s", m.ID, rangesText(m.Sections), m.From, m.To)
}

// hint says what can be done about an open move.
func hint(m sets.Move) string {
	return fmt.Sprintf("seqctl set move --id %d finishes it, seqctl set abort --id %d takes it back", m.ID, m.ID)
}

// end ends a move, one way or the other, and prints the result.
func (d *division) end(ctx context.Context, move sets.Move, state string, way func(*setadmin.Mover, context.Context) error, format ui.Format, stdout, stderr io.Writer) error {
	result := moved{Move: move.ID, From: move.From, To: move.To, Sections: rangesText(move.Sections), State: state}
	if move.ID != 0 {
		t := &teller{w: stderr, total: count(move.Sections)}
		if err := d.until(ctx, move, way, t); err != nil {
			return unfinished(ctx, move, err)
		}
		result.WaitedMS = float64(t.longest.Microseconds()) / 1000
	}
	return ui.Print(stdout, format, result, func() *ui.Table {
		return ui.NewTable("move", "from", "to", "sections", "state", "callers waited at most").
			Row(result.Move, result.From, result.To, result.Sections, result.State, fmt.Sprintf("%.1f ms", result.WaitedMS))
	})
}

// until goes on with a move, and begins again with what is left of it while a Set does not answer.
func (d *division) until(ctx context.Context, move sets.Move, way func(*setadmin.Mover, context.Context) error, t *teller) error {
	for all := d.sets; ; {
		mover, err := d.mover(ctx, all, move, t)
		if err == nil {
			err = way(mover, ctx)
		}
		if !errors.Is(err, setadmin.ErrSetDown) {
			return err
		}
		t.say("%v; trying again", tidy(err))
		if !wake.Sleep(ctx, retryPause) {
			return err
		}
		if now, bad := d.root.Map(ctx); bad == nil {
			all = now
			left, open := now.Open(move.ID)
			if !open {
				return nil // another has ended it meanwhile
			}
			move = left
		}
	}
}

// mover is one of a move that was open a moment ago.
func (d *division) mover(ctx context.Context, all sets.Map, move sets.Move, t *teller) (*setadmin.Mover, error) {
	if len(all.Sets) == 0 { // the move was begun since
		var err error
		if all, err = d.root.Map(ctx); err != nil {
			return nil, err
		}
	}
	m, err := d.root.Mover(all, move, d.conns)
	if err != nil {
		return nil, err
	}
	m.Logger, m.Moved = slog.New(slog.DiscardHandler), t.moved
	return m, nil
}

// teller tells how far a move is.
type teller struct {
	w           io.Writer
	total, done int
	longest     time.Duration
	last        string
}

func (t *teller) say(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != t.last {
		t.last = text
		fmt.Fprintln(t.w, text)
	}
}

func (t *teller) moved(sections int, waited time.Duration) {
	t.done, t.longest = t.done+sections, max(t.longest, waited)
	t.say("%d of %d sections have moved; callers of the last %d waited %s", t.done, t.total, sections, ui.Duration(waited))
}
