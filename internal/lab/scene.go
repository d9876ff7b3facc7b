package lab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
)

// Scene is one scenario under way. In a drill the scenario chooses its victims and times,
// unless they were asked for, and waits after each step until the cluster serves. In a
// drawn scene chance chooses them, and nothing is waited for but those times: the whole
// cluster is waited for at the end, by the caller.
type Scene struct {
	*Cluster
	Lease  time.Duration
	Random *rand.Rand // nil in a drill

	timeline *timeline
	drill    *drill // nil in a drawn scene
	round    *Round
}

// Round is what scenes that are under way together share: no two break the same node.
type Round struct {
	mu      sync.Mutex // guards victims
	victims map[string]bool
}

// DrawnScene is one whose victims and times come from random: what another scene of the
// round does cannot change how they are drawn.
func DrawnScene(c *Cluster, lease time.Duration, random *rand.Rand, round *Round) *Scene {
	return &Scene{Cluster: c, Lease: lease, Random: random, timeline: newTimeline(nil), round: round}
}

// draw gives count of the nodes that are no victims yet, or fewer if there are not so many.
func (r *Round) draw(random *rand.Rand, nodes []string, count int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := slices.DeleteFunc(nodes, func(name string) bool { return r.victims[name] })
	random.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	free = free[:min(count, len(free))]
	for _, name := range free {
		if r.victims == nil {
			r.victims = map[string]bool{}
		}
		r.victims[name] = true
	}
	return free
}

// Victims are the nodes to break: count of the roles, or as many as there are.
func (s *Scene) Victims(ctx context.Context, count int, roles ...localcluster.Role) ([]string, error) {
	if s.drill == nil {
		return s.round.draw(s.Random, names(s.Role(roles...)), count), nil
	}
	return s.drill.victims(ctx, count, roles...)
}

// everybody: a fault that may touch every UID.
func everybody(seq.UID) bool { return true }

// nobody: a fault that no UID in particular waits for.
var nobody func(seq.UID) bool

// Break does something to all victims at once.
func (s *Scene) Break(ctx context.Context, victims []string, what string, do func(name string) error) error {
	touched := everybody
	other := func(name string) bool { return s.find(name).Role != alloc }
	if s.drill != nil && !slices.ContainsFunc(victims, other) {
		var err error
		if touched, err = s.drill.watchLeases(ctx, victims); err != nil {
			return err
		}
	}
	return s.hurt(victims, what, touched, do)
}

func (s *Scene) hurt(victims []string, what string, touched func(seq.UID) bool, do func(name string) error) error {
	from := s.timeline.clock.Now()
	for _, name := range victims {
		s.timeline.add(from, eventFault, name, "%s", what)
	}
	if err := each(victims, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if s.drill != nil {
		s.drill.faults = append(s.drill.faults, fault{from, touched})
	}
	return nil
}

// Mend undoes what Break did to the victims.
func (s *Scene) Mend(victims []string, what string, do func(name string) error) error {
	err := each(victims, do)
	for _, name := range victims {
		s.timeline.now(eventMend, name, "%s", what)
	}
	return err
}

// StartAgain starts victims that have ended, and in a drill waits for them.
func (s *Scene) StartAgain(ctx context.Context, victims []string) error {
	errs := []error{s.Mend(victims, "started", s.start)}
	for _, name := range victims {
		if s.drill != nil {
			errs = append(errs, s.ready(ctx, name))
		}
	}
	return errors.Join(errs...)
}

func (s *Scene) start(name string) error {
	if err := s.processes[name].Start(); err != nil && !errors.Is(err, localcluster.ErrRunning) {
		return err
	}
	return nil
}

// Kill is kill -9 on a node.
func (s *Scene) Kill(name string) error { return s.processes[name].Kill() }

// Note tells what was done in a drawn scene beside Break and Mend.
func (s *Scene) Note(format string, args ...any) { s.timeline.now(eventFault, "", format, args...) }

// Did lists what was broken and mended, and when.
func (s *Scene) Did() (lines []string) {
	for _, m := range s.timeline.list() {
		if m.Event == eventFault || m.Event == eventMend {
			lines = append(lines, fmt.Sprintf("%.1f s %s", m.MS/1000, strings.TrimSpace(m.Subject+" "+m.Detail)))
		}
	}
	return lines
}

// Between draws a length of time; only in a drawn scene.
func (s *Scene) Between(low, high time.Duration) time.Duration {
	return (low + time.Duration(s.Random.Int64N(int64(high-low)+1))).Round(time.Millisecond)
}

// Outage draws how long nodes are kept away: mostly a few leases.
func (s *Scene) Outage() time.Duration { return s.Between(200*time.Millisecond, 5*s.Lease) }

// Rest lets time go by. It ends early when the run is to end: what was broken is mended
// in any case.
func (s *Scene) Rest(ctx context.Context, d time.Duration) { _ = rest(ctx, d) }

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// each does something to all nodes at once; the first error.
func each(nodes []string, do func(name string) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, name := range nodes {
		wg.Go(func() { errs[i] = do(name) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", nodes[i], err)
		}
	}
	return nil
}
