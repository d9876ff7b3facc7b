package processes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/setadmin"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/sets"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// watchedSets are two Sets behind ways, with callers at AllocSvr and at a router of each.
type watchedSets struct {
	*ways
	t       *testing.T
	root    *setadmin.Root
	conns   dialled
	all     map[string]*localcluster.Cluster
	callers []*climbing
	there   string // the Set that the next move goes to
}

// travelling are the sections that move.
const travelling = "0-7"

func watchSets(t *testing.T, lease time.Duration, may ...func(error) bool) *watchedSets {
	t.Helper()
	w := &watchedSets{ways: newWays(t), t: t, conns: dialled{}, all: map[string]*localcluster.Cluster{}, there: "b"}
	t.Cleanup(func() {
		for _, conn := range w.conns {
			_ = conn.Close()
		}
	})
	for _, name := range []string{sets.RootName, "b"} {
		w.all[name] = harness.Start(t, func(cfg *localcluster.Config) {
			cfg.Lease, cfg.Allocs, cfg.Sections, cfg.Wrap = lease, 2, setSections, w.wrap(name+" ")
			cfg.Args = map[localcluster.Role][]string{localcluster.RoleRouter: {"--attempt-timeout", "20s"}}
		})
	}
	w.root = &setadmin.Root{Set: setadmin.NewSet(sets.RootName, w.of(sets.RootName+" "), w.conns)}
	w.seqctl("add", "b", "--set-addr", strings.Join(w.of("b "), ","))
	for name, c := range w.all {
		w.callers = append(w.callers, climb(t, w.of(name+" "), may...), climb(t, []string{c.GRPC()}, may...))
	}
	w.goOn("numbers before any move")
	return w
}

// command is `seqctl set`.
func (w *watchedSets) command(args ...string) *exec.Cmd {
	args = append([]string{"set"}, append(args, "--addr", w.of(sets.RootName + " ")[0], "--timeout", harness.Patience.String())...)
	return harness.Command(harness.Within(w.t), w.t, nil, "seqctl", args...)
}

// seqctl runs it to its end, which must be a good one.
func (w *watchedSets) seqctl(args ...string) {
	w.t.Helper()
	harness.Run(w.t, w.command(args...)).Want(w.t, 0)
}

// goOn waits until each caller has more numbers.
func (w *watchedSets) goOn(what string) {
	w.t.Helper()
	for _, l := range w.callers {
		before := l.good.Load()
		harness.Until(w.t, what, func() bool { return w.t.Failed() || l.good.Load() >= before+100 })
	}
}

// ended fails the test unless the Sets agree, and says where the sections that move are.
func (w *watchedSets) ended() (in string) {
	w.t.Helper()
	ctx := harness.Within(w.t)
	var err error
	harness.Until(w.t, "both Sets to answer", func() bool {
		err = w.root.Check(ctx, w.conns)
		return !errors.Is(err, setadmin.ErrSetDown)
	})
	if err != nil {
		w.t.Error(err)
	}
	m, err := w.root.Map(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return m.Sets[m.Index(0)].Name
}

// open returns the move that is under way, or 0.
func (w *watchedSets) open() uint64 {
	w.t.Helper()
	m, err := w.root.Map(harness.Within(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(m.Moves) == 0 {
		return 0
	}
	return m.Moves[0].ID
}

func other(set string) string {
	if set == "b" {
		return sets.RootName
	}
	return "b"
}

// tell logs what callers saw.
func (w *watchedSets) tell() (skipped uint64) {
	for _, l := range w.callers {
		l.end()
		w.t.Logf("%d numbers, %d errors, %d skipped, longest wait %v", l.good.Load(), l.failed.Load(), l.skipped.Load(), time.Duration(l.longest.Load()))
		skipped += l.skipped.Load()
	}
	return skipped
}

// A `seqctl set move` is killed before a node hears of a step, and after it has taken it and before that is
// known, each step in turn; another one finishes the move, or takes it back. No caller sees an error, a
// repeat, or a gap.
func TestACoordinatorThatIsKilledAtAnyStepIsFollowedByAnother(t *testing.T) {
	w := watchSets(t, 5*time.Second)
	for _, end := range []string{"move", "abort"} {
		for _, step := range moveSteps {
			for _, after := range []bool{false, true} {
				what := fmt.Sprintf("killed at %s, after it %v, then %s", step, after, end)
				cmd, dead := w.command("move", "--sections", travelling, "--to", w.there), make(chan struct{})
				w.at(step, after, func() {
					_ = cmd.Process.Kill()
					<-dead
				})
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait() // killed
				close(dead)
				if cmd.ProcessState.Exited() || w.waits() {
					t.Fatalf("%s: %v, want it killed at the step", what, cmd.ProcessState)
				}
				move := w.open()
				if began := step != "begin" || after; began != (move != 0) && step != "arrive" {
					t.Errorf("%s: move %d is open", what, move)
				}
				if end == "move" {
					w.seqctl("move", "--sections", travelling, "--to", w.there)
				} else if move != 0 {
					w.seqctl("abort", "--id", fmt.Sprint(move))
				}
				in := w.ended()
				if end == "move" && in != w.there {
					t.Errorf("%s: the sections are in Set %s", what, in)
				}
				w.goOn(what)
				if t.Failed() {
					t.Fatal(what)
				}
				w.there = other(in)
			}
		}
	}
	if skipped := w.tell(); skipped > 0 {
		t.Errorf("%d numbers were skipped", skipped)
	}
}

// allSteps has each Set die at each step; else they take turns.
var allSteps = os.Getenv("SEQ_SET_DRILL") == "all"

// All processes of a Set are killed while a move is at a step, in turn of the Set that gives and of the one
// that takes, and are started again: the same `seqctl set move` ends well, and callers see no other error than
// that the Set is dead, by its name, no repeat and no step back.
func TestASetThatDiesInAnyStepOfAMoveComesBackAndTheMoveIsFinished(t *testing.T) {
	w := watchSets(t, 2*time.Second, func(err error) bool { return errors.Is(err, seq.ErrNoQuorum) && strings.Contains(err.Error(), "Set ") })
	for i, step := range moveSteps {
		for giver := range 2 {
			if giver != i%2 && !allSteps {
				continue
			}
			dead := w.there
			if giver == 1 {
				dead = other(w.there)
			}
			what := fmt.Sprintf("Set %s dies at %s of a move to Set %s", dead, step, w.there)
			told, killed := failures(w.callers), make(chan struct{})
			w.at(step, false, func() {
				for _, p := range w.all[dead].Processes(localcluster.RoleStore, localcluster.RoleAlloc) {
					_ = p.Kill()
				}
				close(killed)
			})
			done := make(chan error, 1)
			cmd := w.command("move", "--sections", travelling, "--to", w.there)
			var said strings.Builder
			cmd.Stderr = &said
			go func() { done <- cmd.Run() }()
			select {
			case <-killed:
			case err := <-done:
				t.Fatalf("%s: it did not come by: %v, %s", what, err, said.String())
			}
			if dead == sets.RootName || giver == 1 && step != "finish" && step != "arrive" { // it has sections
				harness.Until(t, what+", and callers to be told", func() bool { return t.Failed() || failures(w.callers) > told })
			}
			if err := w.all[dead].StartAll(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				// It gives up where nobody has noted the move yet, and says so; the same again begins it.
				t.Logf("%s: %v, %s", what, err, said.String())
				harness.Until(t, what, func() bool { return w.command("move", "--sections", travelling, "--to", w.there).Run() == nil })
			}
			harness.Ready(t, w.all[dead])
			if in := w.ended(); in != w.there {
				t.Errorf("%s: the sections are in Set %s", what, in)
			}
			w.goOn(what)
			if t.Failed() {
				t.Fatal(what)
			}
			w.there = other(w.there)
		}
	}
	w.tell()
}

func failures(callers []*climbing) (n uint64) {
	for _, l := range callers {
		n += l.failed.Load()
	}
	return n
}
