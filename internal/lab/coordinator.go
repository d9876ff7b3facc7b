package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
)

// moveLasts is about the duration of `seqctl set move`, with its start. The scenario kills it within that
// time.
const moveLasts = 200 * time.Millisecond

// SetScenarios are those for drawn scenes of a cluster of Sets. seqctl is the program whose moves are
// killed.
func SetScenarios(seqctl string) []Scenario {
	return []Scenario{
		{Name: "move-set", Run: moveSet},
		{Name: "kill-coordinator", Run: killCoordinator(seqctl)},
		{Name: "kill-set", Run: killSet},
		{Name: "kill-set-in-a-move", Run: inAMove(killSet)},
		{Name: "kill-nodes-in-a-move", Run: inAMove(kill(of(2, store, alloc)))},
		{Name: "pause-set-in-a-move", Run: inAMove(pause(oneSet))},
	}
}

// oneSet chooses all nodes of a Set.
func oneSet(_ context.Context, s *Scene) ([]string, error) {
	return names(ofSet(s.Nodes, s.set())), nil
}

// inAMove does something while sections move, of a drawn scene.
func inAMove(do func(context.Context, *Scene) error) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		other := *s
		other.Random = rand.New(rand.NewPCG(s.Random.Uint64(), 0))
		moved := make(chan error, 1)
		go func() { moved <- moveSet(ctx, &other) }()
		s.Rest(ctx, s.Between(0, 100*time.Millisecond))
		err := do(ctx, s)
		return errors.Join(err, <-moved)
	}
}

// killCoordinator kills `seqctl set move` at some moment, a few times, and has another finish the move or
// take it back.
func killCoordinator(seqctl string) func(context.Context, *Scene) error {
	return func(ctx context.Context, s *Scene) error {
		d := s.division()
		defer d.conns.Close()
		all := setNames(s.Nodes)
		for range 2 + s.Random.IntN(3) {
			from := s.Random.IntN(len(all))
			to := all[(from+1)%len(all)]
			var ids []seq.SectionID
			if err := s.until(ctx, 10*poll, func(ctx context.Context) (err error) { ids, err = d.movable(ctx, all[from]); return err }); err != nil || ctx.Err() != nil {
				return err
			}
			if len(ids) == 0 {
				continue
			}
			set := func(args ...string) *exec.Cmd {
				return exec.Command(seqctl, append([]string{"set", "--addr", s.Role(alloc)[0].Addr, "--timeout", s.Patience.String()}, args...)...)
			}
			ids = ids[:(len(ids)+1)/2]
			first, wait := set("move", "--to", to, "--sections", rangesText(ids)), s.Between(20*time.Millisecond, moveLasts)
			s.orphans.add(to, ids)
			if err := first.Start(); err != nil {
				return err
			}
			s.Rest(ctx, wait)
			_ = first.Process.Kill()
			_ = first.Wait()
			verb := []string{"move", "abort"}[s.Random.IntN(2)]
			s.Note("seqctl set move to Set %s killed after %v, then %s", to, wait, verb)
			err := s.until(ctx, 10*poll, func(ctx context.Context) error {
				m, err := d.root.Map(ctx)
				for _, open := range m.Moves {
					if out, err := set(verb, "--id", fmt.Sprint(open.ID)).CombinedOutput(); err != nil {
						return fmt.Errorf("seqctl set %s: %w: %s", verb, err, strings.TrimSpace(string(out)))
					}
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// orphans are the moves whose coordinator was killed. The root may open such a move late, because a killed
// coordinator takes no message back: an AllocSvr may be at work on it, or one store may have the map with it.
type orphans struct {
	mu    sync.Mutex // guards moves
	moves []string
}

func orphan(to string, ids []seq.SectionID) string { return to + " " + rangesText(ids) }

func (o *orphans) add(to string, ids []seq.SectionID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moves = append(o.moves, orphan(to, ids))
}

// all reports whether each of the open moves, of which there is one at least, is an orphan that is as its
// coordinator began it.
func (o *orphans) all(open []sets.Move) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(open) > 0 && !slices.ContainsFunc(open, func(m sets.Move) bool {
		return !slices.Contains(o.moves, orphan(m.To, sets.Sections(m.Sections)))
	})
}

// rangesText is sections as seqctl takes them.
func rangesText(ids []seq.SectionID) string {
	var out []string
	for _, r := range sets.RangesOf(ids) {
		out = append(out, fmt.Sprintf("%d-%d", r.First, uint32(r.First)+r.Sections-1))
	}
	return strings.Join(out, ",")
}
