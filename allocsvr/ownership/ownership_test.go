package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

const me, other seq.Session = 0xa, 0xb

// stores answer as the test scripts, and otherwise with won. They keep a log of the calls.
type stores struct {
	look, prepare, step map[seq.Register]quorum.Outcome
	log                 []string
	steps               int // messages
}

func (s *stores) answer(of map[seq.Register]quorum.Outcome, reg seq.Register, what string) quorum.Outcome {
	s.log = append(s.log, what)
	if out, ok := of[reg]; ok {
		return out
	}
	return quorum.Outcome{State: quorum.Won, Promised: seq.Epoch{Round: 4, Session: other}, Max: 100}
}

func (s *stores) Probe(_ context.Context, session seq.Session, regs []seq.Register) []quorum.Outcome {
	out := make([]quorum.Outcome, len(regs))
	for i, reg := range regs {
		out[i] = s.answer(s.look, reg, fmt.Sprintf("look %s", reg))
	}
	return out
}

func (s *stores) Prepare(_ context.Context, _ seq.Session, items []quorum.PrepareItem) []quorum.Outcome {
	out := make([]quorum.Outcome, len(items))
	for i, item := range items {
		out[i] = s.answer(s.prepare, item.Register, fmt.Sprintf("prepare %s round %d create %v", item.Register, item.Round, item.Create))
	}
	return out
}

func (s *stores) Step(_ context.Context, _ seq.Session, items []quorum.StepItem) []quorum.Outcome {
	s.steps++
	out := make([]quorum.Outcome, len(items))
	for i, item := range items {
		out[i] = s.answer(s.step, item.Register, fmt.Sprintf("step %s round %d to %d", item.Register, item.Round, item.Max))
	}
	return out
}

func (s *stores) Release(_ context.Context, session seq.Session, items []quorum.LeaseItem, to seq.Session) error {
	s.log = append(s.log, fmt.Sprintf("release %d of %s to %s", len(items), session, to))
	return nil
}

func (s *stores) Copies(context.Context, seq.Session, []seq.Register, []uint64) []quorum.Outcome {
	return nil
}

func (s *stores) EndSession(context.Context, seq.Secret) error { return nil }

// Attach implements Leases.
func (s *stores) Attach(reg seq.Register, round uint64) Lease {
	s.log = append(s.log, fmt.Sprintf("attach %s round %d", reg, round))
	return nil
}

func (s *stores) holder() *Holder { return &Holder{Session: me, Registers: s, Leases: s} }

// bid keeps what it was told.
type bid struct {
	s        *stores
	reg      seq.Register
	unwanted bool // as it stands
	ends     bool // when it is promised
	noLease  bool
	failed   []Stage
	why      error
}

func (b *bid) Register() seq.Register { return b.reg }

func (b *bid) Free(quorum.Outcome) bool { return !b.unwanted }

func (b *bid) Begin(_ seq.Epoch, found quorum.Outcome) (uint64, bool) {
	return found.Max + 10, !b.ends
}

func (b *bid) Confirmed(epoch seq.Epoch) bool {
	b.s.log = append(b.s.log, fmt.Sprintf("note %s of %s", epoch, b.reg))
	return !b.noLease
}

func (b *bid) Failed(at Stage, out quorum.Outcome) { b.failed, b.why = append(b.failed, at), out.Err }

func TestARegisterIsLookedAtPromisedConfirmedNotedAndAttachedInThisOrder(t *testing.T) {
	for reg, create := range map[seq.Register]bool{seq.SectionRegister(3): false, seq.ArbiterRegister: false,
		seq.TagRegister("orders"): true, seq.WorkerRegister("default", 0, 1): true} {
		s := &stores{}
		got := Acquire(t.Context(), s.holder(), []*bid{{s: s, reg: reg}})
		epoch := seq.Epoch{Round: 5, Session: me}
		if len(got) != 1 || got[0].Epoch != epoch {
			t.Fatalf("%s: got %+v, want it under %v", reg, got, epoch)
		}
		want := []string{
			fmt.Sprintf("look %s", reg),
			fmt.Sprintf("prepare %s round 5 create %v", reg, create),
			fmt.Sprintf("step %s round 5 to 110", reg),
			fmt.Sprintf("note %s of %s", epoch, reg),
			fmt.Sprintf("attach %s round 5", reg),
		}
		if !slices.Equal(s.log, want) {
			t.Errorf("%s: got %q, want %q", reg, s.log, want)
		}
	}
}

func TestABidThatEndsGoesNoFurtherAndHindersNoOther(t *testing.T) {
	errHeld := errors.New("held")
	refused := quorum.Outcome{State: quorum.Refused, Err: errHeld}
	unknown := quorum.Outcome{State: quorum.Unknown, Err: errHeld}
	reg, good := seq.SectionRegister(1), seq.SectionRegister(2)
	of := func(out quorum.Outcome) map[seq.Register]quorum.Outcome {
		return map[seq.Register]quorum.Outcome{reg: out}
	}
	for name, row := range map[string]struct {
		s      *stores
		b      bid
		failed []Stage
		last   string // of what the stores hear of it
	}{
		"it is held":                  {&stores{look: of(refused)}, bid{}, []Stage{Looking}, "look section 1"},
		"it is not known":             {&stores{look: of(unknown)}, bid{}, []Stage{Looking}, "look section 1"},
		"it is not wanted":            {&stores{}, bid{unwanted: true}, nil, "look section 1"},
		"it is not promised":          {&stores{prepare: of(unknown)}, bid{}, []Stage{Promising}, "prepare section 1 round 5 create false"},
		"it ends when it is promised": {&stores{}, bid{ends: true}, nil, "prepare section 1 round 5 create false"},
		"the step is unknown":         {&stores{step: of(unknown)}, bid{}, []Stage{Confirming}, "step section 1 round 5 to 110"},
		"the step is refused":         {&stores{step: of(refused)}, bid{}, []Stage{Confirming}, "step section 1 round 5 to 110"},
		"no lease is wanted":          {&stores{}, bid{noLease: true}, nil, fmt.Sprintf("note %s of section 1", seq.Epoch{Round: 5, Session: me})},
	} {
		b := row.b
		b.s, b.reg = row.s, reg
		got := Acquire(t.Context(), row.s.holder(), []*bid{&b, {s: row.s, reg: good}})
		if len(got) != 1 || got[0].Bid.reg != good {
			t.Errorf("%s: got %+v, want the other one alone", name, got)
		}
		if !slices.Equal(b.failed, row.failed) || len(row.failed) > 0 && !errors.Is(b.why, errHeld) {
			t.Errorf("%s: failed at %v with %v, want %v", name, b.failed, b.why, row.failed)
		}
		heard := slices.DeleteFunc(row.s.log, func(line string) bool { return !strings.Contains(line, reg.String()) })
		if last := heard[len(heard)-1]; last != row.last {
			t.Errorf("%s: got %q, want the last to be %q", name, heard, row.last)
		}
	}
	s := &stores{}
	if got := Acquire[*bid](t.Context(), s.holder(), nil); len(got) != 0 || len(s.log) != 0 {
		t.Errorf("nothing is wanted: got %v, %q", got, s.log)
	}
}

func TestManyRegistersTravelInOneMessage(t *testing.T) {
	s := &stores{}
	var bids []*bid
	for id := range seq.SectionID(1000) {
		bids = append(bids, &bid{s: s, reg: seq.SectionRegister(id)})
	}
	if got := Acquire(t.Context(), s.holder(), bids); len(got) != len(bids) || s.steps != 1 {
		t.Errorf("%d registers in %d messages, want %d in one", len(got), s.steps, len(bids))
	}
}

// owned is a register that is told of its steps.
type owned struct {
	step Step
	none bool // nothing is due any more

	confirmed, unconfirmed, lost int
}

type handle struct{ o *owned }

func (h handle) Next() (Step, bool)                   { return h.o.step, !h.o.none }
func (h handle) Confirmed(Step)                       { h.o.confirmed++ }
func (h handle) Unconfirmed(_ Step, _ quorum.Outcome) { h.o.unconfirmed++ }
func (h handle) Lost(_ Step, _ quorum.Outcome)        { h.o.lost++ }

func TestAStepIsConfirmedRepeatedOrTheEndOfTheEpoch(t *testing.T) {
	epoch, higher := seq.Epoch{Round: 5, Session: me}, seq.Epoch{Round: 6, Session: other}
	reg := seq.SectionRegister(0)
	for name, row := range map[string]struct {
		out                          quorum.Outcome
		confirmed, unconfirmed, lost int
	}{
		"confirmed":                 {quorum.Outcome{State: quorum.Won}, 1, 0, 0},
		"unknown":                   {quorum.Outcome{State: quorum.Unknown, Err: seq.ErrNoQuorum}, 0, 1, 0},
		"unknown, another above":    {quorum.Outcome{State: quorum.Unknown, Promised: higher}, 0, 1, 0},
		"refused under its epoch":   {quorum.Outcome{State: quorum.Refused, Promised: epoch, Err: quorum.ErrRefused}, 0, 1, 0},
		"refused by a NACK":         {quorum.Outcome{State: quorum.Refused, Err: quorum.ErrNack}, 0, 0, 1},
		"refused by a higher epoch": {quorum.Outcome{State: quorum.Refused, Promised: higher}, 0, 0, 1},
	} {
		s := &stores{step: map[seq.Register]quorum.Outcome{reg: row.out}}
		o := &owned{step: Step{Register: reg, Epoch: epoch, Max: 7}}
		again := Raise(t.Context(), s.holder(), []handle{{o}, {o}})
		if o.confirmed != row.confirmed || o.unconfirmed != row.unconfirmed || o.lost != row.lost || len(again) != row.unconfirmed {
			t.Errorf("%s: got %+v, %d again", name, o, len(again))
		}
		if want := []string{"step section 0 round 5 to 7"}; !slices.Equal(s.log, want) {
			t.Errorf("%s: sent %q, want %q", name, s.log, want)
		}
	}
	s := &stores{}
	if again := Raise(t.Context(), s.holder(), []handle{{&owned{none: true}}}); len(again) != 0 || s.steps != 0 {
		t.Errorf("a step that is not due any more: %d again, %d messages", len(again), s.steps)
	}
}

func TestAStepThatIsNotConfirmedIsRepeatedUntilTheStepperEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		reg := seq.SectionRegister(0)
		s := &stores{step: map[seq.Register]quorum.Outcome{reg: {State: quorum.Unknown}}}
		stepper := NewStepper[handle](s.holder(), bubble.NewClock(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { stepper.Run(ctx); close(done) }()
		stepper.Add(t.Context(), handle{&owned{step: Step{Register: reg, Max: 1}}}, true)
		time.Sleep(5 * Retry / 2)
		synctest.Wait()
		if s.steps != 3 {
			t.Errorf("%d messages in %v, want 3", s.steps, 5*Retry/2)
		}
		cancel()
		<-done
		time.Sleep(2 * Retry)
		if told, _ := stepper.Flush(t.Context()); told != 0 {
			t.Error("a step is asked for after the end")
		}
	})
}

func TestStandingMeansThatThePromisedEpochIsStillTheOwners(t *testing.T) {
	mine := seq.Epoch{Round: 5, Session: me}
	for name, row := range map[string]struct {
		out  quorum.Outcome
		want error
	}{
		"it is":                 {quorum.Outcome{State: quorum.Won, Promised: mine}, nil},
		"another was promised":  {quorum.Outcome{State: quorum.Won, Promised: seq.Epoch{Round: 6, Session: me}}, seq.ErrNoLease},
		"another session's":     {quorum.Outcome{State: quorum.Refused, Promised: mine}, seq.ErrNoLease},
		"the stores do not say": {quorum.Outcome{State: quorum.Unknown, Promised: mine, Err: seq.ErrNoQuorum}, seq.ErrNoQuorum},
	} {
		reg := seq.SectionRegister(0)
		s := &stores{look: map[seq.Register]quorum.Outcome{reg: row.out}}
		if got := s.holder().Standing(t.Context(), []seq.Register{reg}, []seq.Epoch{mine}); len(got) != 1 || !errors.Is(got[0], row.want) {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
}

var _ Registers = (*quorum.Group)(nil)
var _ Lease = (*quorum.Hold)(nil)
