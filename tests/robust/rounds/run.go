package rounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/internal/wire/rpc"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
)

// Plan is what a run does.
type Plan struct {
	Seed     uint64
	Duration time.Duration // of random faults; ignored with Once
	Once     bool          // every scenario once, instead
	Budget   time.Duration // with Once: the order is random, and scenarios left after this time are skipped; zero means no bound
	Kinds    []string      // only scenarios whose names contain one of these; if empty, all
	Least    time.Duration // from the start of a round to the start of the next, at least
	Most     time.Duration // at most, unless the cluster takes longer to recover
	Rate     int           // calls a second
	Progress io.Writer     // a line for each round; may be nil
}

// pairs is the percentage of random rounds that have two faults at once.
const pairs = 25

// settle is the time for which callers go on after the last round.
const settle = 2 * time.Second

// askPatience bounds a question to a node that may not answer.
const askPatience = time.Second

// Event is one fault as it happened.
type Event struct {
	Kind      string   `json:"kind"`
	Beside    string   `json:"beside,omitempty"` // the other fault of the round
	What      []string `json:"what"`
	At        float64  `json:"at_s"`        // seconds since the load began
	Held      float64  `json:"held_s"`      // until it was healed
	Recovered float64  `json:"recovered_s"` // from then until everything served
	Longest   float64  `json:"longest_ms"`  // longest call of those that touch the round
	Silence   float64  `json:"silence_ms"`  // longest time in which nobody got an answer
	Errors    int      `json:"errors"`      // calls that failed and touch the round
	Skipped   string   `json:"skipped,omitempty"`
	Failure   string   `json:"failure,omitempty"`

	from, to time.Duration
}

// Run breaks the site by plan until it is over or ctx ends, and judges. The error is
// ErrSetup, or what the report says as Err does.
func Run(ctx context.Context, site *Site, plan Plan) (*Report, error) {
	calls, load, err := site.startLoad(ctx, plan.Rate)
	if err != nil {
		return nil, err
	}
	defer calls.close()
	defer load.Close()
	s := &session{Site: site, plan: plan, random: rand.New(rand.NewPCG(plan.Seed, 0)), load: load, calls: calls, began: load.Clock.Now()}
	rest(ctx, plan.Least)
	s.rounds(ctx)
	rest(ctx, settle)
	load.End()
	var unaudited error
	if !s.lost && ctx.Err() == nil && site.cfg.Sets < 2 {
		s.logs, unaudited = calls.onces.Audit(ctx, load)
	}
	report := s.report()
	return report, errors.Join(report.Err(), unaudited)
}

// judgeShare bounds the time of a run that goes into judging it while it goes on: one part in judgeShare.
// The whole history is judged at the end in any case.
const judgeShare = 20

// session is a run under way.
type session struct {
	*Site
	plan   Plan
	random *rand.Rand
	load   *lab.Load
	calls  *calls
	began  time.Duration
	events []*Event

	logs map[history.Key]history.Log // of the exact space at the end; nil if no log was read
	lost bool                        // the cluster did not recover

	judgeAt time.Duration // when the history is worth another look
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// chosen are the scenarios of the plan.
func (s *session) chosen() []lab.Scenario {
	return slices.DeleteFunc(s.scenarios(), func(sc lab.Scenario) bool { return !s.plan.named(sc) })
}

func (s *session) rounds(ctx context.Context) {
	kinds := s.chosen()
	if s.plan.Once {
		s.once(ctx, kinds)
		return
	}
	kinds = slices.DeleteFunc(kinds, func(sc lab.Scenario) bool { return s.lacks(sc) != "" })
	deal := s.dealer(kinds)
	for end := s.began + s.plan.Duration; len(kinds) > 0 && ctx.Err() == nil && s.load.Clock.Now() < end; {
		next := s.load.Clock.Now() + s.plan.Least + time.Duration(s.random.Int64N(int64(s.plan.Most-s.plan.Least)+1))
		faults := []lab.Scenario{deal()}
		if second := deal(); !faults[0].Alone && !second.Alone && s.random.IntN(100) < pairs {
			faults = append(faults, second)
		}
		if s.round(ctx, faults...) != nil {
			return // what comes after a cluster that does not recover tells nothing
		}
		rest(ctx, next-s.load.Clock.Now())
	}
}

// once does every kind once. A budget bounds a run whatever the machine has to do: what
// one run leaves out, the random order of another begins with.
func (s *session) once(ctx context.Context, kinds []lab.Scenario) {
	if s.plan.Budget > 0 {
		s.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	}
	for _, f := range kinds {
		why := s.lacks(f)
		if why != "" {
			why = "without " + why
		} else if s.plan.Budget > 0 && s.load.Clock.Now()-s.began > s.plan.Budget {
			why = fmt.Sprintf("the budget of %v is used up", s.plan.Budget)
		}
		if why != "" {
			s.events = append(s.events, &Event{Kind: f.Name, Skipped: why})
			continue
		}
		if ctx.Err() != nil || s.round(ctx, f) != nil {
			return
		}
	}
}

// dealer deals the kinds as a shuffled pack of cards: random, and none is left out long.
func (s *session) dealer(kinds []lab.Scenario) func() lab.Scenario {
	var pack []lab.Scenario
	return func() lab.Scenario {
		if len(pack) == 0 {
			pack = slices.Clone(kinds)
			s.random.Shuffle(len(pack), func(i, j int) { pack[i], pack[j] = pack[j], pack[i] })
		}
		f := pack[0]
		pack = pack[1:]
		return f
	}
}

// round does one fault, or several at once, and waits until everything serves. An error
// ends the run.
func (s *session) round(ctx context.Context, faults ...lab.Scenario) error {
	s.rebalance(ctx)
	together := &lab.Round{}
	events := make([]*Event, len(faults))
	errs := make([]error, len(faults))
	from := s.load.Clock.Now()
	var wg sync.WaitGroup
	for i, f := range faults {
		events[i] = &Event{Kind: f.Name, At: (from - s.began).Seconds(), from: from}
		if len(faults) > 1 {
			events[i].Beside = faults[1-i].Name
		}
		scene := lab.DrawnScene(s.Cluster, s.cfg.Lease, rand.New(rand.NewPCG(s.plan.Seed, s.random.Uint64())), together)
		wg.Go(func() {
			errs[i] = f.Run(ctx, scene)
			events[i].What = scene.Did()
			events[i].Held = (s.load.Clock.Now() - from).Seconds()
		})
	}
	wg.Wait()
	healed := s.load.Clock.Now()
	recovered := s.Recovered(ctx)
	if recovered == nil && s.cfg.Sets > 1 {
		recovered = s.CheckSets(ctx)
	}
	if ctx.Err() != nil {
		recovered = nil // told to end: the cluster was not given its time
	}
	to := s.load.Clock.Now()
	broken := s.judge(to)
	for i, e := range events {
		e.to, e.Recovered = to, (to - healed).Seconds()
		if err := errors.Join(errs[i], recovered); err != nil {
			e.Failure = err.Error()
		}
		s.events = append(s.events, e)
		s.progress(e)
	}
	s.lost = recovered != nil
	return errors.Join(recovered, broken)
}

// judge looks for a broken promise among the calls that have ended: what they show does
// not depend on those under way. Nothing is waited for, forgiven or tried again then.
func (s *session) judge(now time.Duration) error {
	if now < s.judgeAt {
		return nil
	}
	report := history.Check(s.load.History.Calls())
	_, duplicates := s.calls.ids.check()
	took := s.load.Clock.Now() - now
	s.judgeAt = now + took*judgeShare
	err := report.Err()
	if duplicates > 0 {
		err = errors.Join(err, fmt.Errorf("%d duplicate snowflake IDs", duplicates))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrViolated, err)
	}
	return nil
}

// rebalance asks for the sections to be spread again. Otherwise all of them end up on the node with the
// fewest faults. The sections move while the fault comes.
func (s *session) rebalance(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	for _, addr := range s.Addrs(alloc) {
		conn, err := rpc.Dial(addr)
		if err != nil {
			continue
		}
		_, err = pb.NewAdminClient(conn).Rebalance(ctx, &pb.RebalanceRequest{})
		_ = conn.Close()
		if err == nil {
			rest(ctx, time.Duration(s.random.Int64N(int64(askPatience/2))))
			return
		}
	}
}

func (s *session) progress(e *Event) {
	if s.plan.Progress == nil {
		return
	}
	verdict := "ok"
	if e.Failure != "" {
		verdict = "FAILED: " + e.Failure
	}
	fmt.Fprintf(s.plan.Progress, "%8.1f s  %-38s held %5.1f s, recovered in %4.1f s  %s  [%s]\n", e.At, e.Kind, e.Held, e.Recovered, verdict, strings.Join(e.What, "; "))
}

// report judges what was recorded. The load has ended.
func (s *session) report() *Report {
	calls := s.load.History.Calls()
	checked := history.Check(calls)
	if s.logs != nil {
		checked = history.CheckExact(calls, s.logs)
	}
	r := newReport(s.plan, s.cfg, checked, s.logs)
	r.Seconds = (s.load.Clock.Now() - s.began).Seconds()
	r.Calls, r.Errors = s.load.Counts(), s.calls.codes
	r.IDs, r.DuplicateIDs = s.calls.ids.check()
	measure(s.events, calls)
	r.sum(s.scenarios(), s.events)
	for _, e := range s.events {
		if e.Failure != "" && len(r.Logs) == 0 {
			for _, p := range s.Own.Processes() {
				r.Logs = append(r.Logs, fmt.Sprintf("== %s (%s)\n%s", p.Name, p.Exit(), lastLines(p, 12)))
			}
		}
	}
	return r
}
