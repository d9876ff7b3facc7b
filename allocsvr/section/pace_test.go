package section

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seqsvr/seqsvr/allocsvr/ownership"
	"github.com/seqsvr/seqsvr/allocsvr/ownership/ownershiptest"
	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/bubble"
)

func TestAStepStaysInItsBoundsAndInProportionToTheUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Uint64Range(1, seq.MaxStep).Draw(t, "least")
		most := rapid.Uint64Range(least, seq.MaxStep).Draw(t, "most")
		step := rapid.Uint64Range(least, most).Draw(t, "step")
		used := rapid.Uint64Range(0, uint64(seq.MaxSeq)).Draw(t, "used")
		took := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "took"))
		got := tune(step, used, took, least, most)
		if got < least || got > most {
			t.Fatalf("got %d, want %d to %d", got, least, most)
		}
		if got > least && got > paceGrowth*step {
			t.Errorf("got %d after %d, want at most %d times as much", got, step, paceGrowth)
		}
		if lasts := float64(used) / float64(max(took, 1)) * float64(paceAim); got > least && float64(got) > lasts {
			t.Errorf("got %d, want no more than the %.0f used in %v at that rate", got, lasts, paceAim)
		}
	})
}

func TestASpaceThatAsksForAStepKeepsIt(t *testing.T) {
	m, err := seq.NewMapping(seq.Space{Name: "default"}, seq.Space{Name: "small", Step: 100}, seq.Space{Name: "grows", Step: 100, MaxStep: 5000})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{seq.DefaultMaxStep, 100, 5000} {
		p := newPace(&m.Spaces[i])
		p.next(0, 0)
		for k := range uint64(20) { // ever 10,000,000 numbers a millisecond
			p.next((k+1)*10_000_000, time.Duration(k+1)*time.Millisecond)
		}
		if p.step != want {
			t.Errorf("%s: a busy section's step is %d, want %d", m.Spaces[i].Name, p.step, want)
		}
	}
}

// life is one section with stores that take a while, without anything else.
type life struct {
	c     *Section
	now   time.Duration
	acks  time.Duration // when the step under way is confirmed
	steps []time.Duration
	sizes []uint64 // of the steps, as they were asked for
	stuck int      // numbers that had to wait
	last  uint64   // step before the one asked for last
}

func newLife(least, most uint64) *life {
	l := &life{c: newCell(0, &seq.Space{Sections: 1, Step: least, MaxStep: most})}
	l.c.state, l.c.table, l.c.confirmed, l.c.pace = Owned, *counters.New(0), least, newPace(l.c.space)
	return l
}

// use takes n numbers at once, if they are there, and steps ahead.
func (l *life) use(n uint64, latency time.Duration) {
	c := l.c
	if c.target > 0 && l.now >= l.acks {
		c.confirm(c.epoch, c.target)
	}
	before := c.pace.step
	if _, _, ok := c.table.Take(1, n, c.confirmed, 0); !ok && n > 0 {
		l.stuck++
		cur, _ := c.table.Get(1)
		l.asked(c.want(cur+n, l.now), before, latency)
	} else if c.due() {
		l.asked(c.want(c.table.High(), l.now), before, latency)
	}
}

func (l *life) asked(yes bool, before uint64, latency time.Duration) {
	if yes {
		l.last, l.acks = before, l.now+latency
		l.steps, l.sizes = append(l.steps, l.now), append(l.sizes, l.c.pace.step)
	}
}

// ahead returns how far a crash now would make the section jump.
func (l *life) ahead() uint64 { return max(l.c.confirmed, l.c.target) - l.c.table.High() }

func TestABusySectionStepsLessThanOnceASecondAndNobodyWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMS := rapid.Uint64Range(1, 5000).Draw(t, "numbers a millisecond") // up to 5 million a second
		latency := time.Duration(rapid.Int64Range(1, 50).Draw(t, "latency ms")) * time.Millisecond
		l := newLife(seq.DefaultStep, seq.DefaultMaxStep)
		const settled, end = 5 * time.Second, 15 * time.Second
		stuckBefore, stepsBefore := 0, 0
		for ; l.now < end; l.now += time.Millisecond {
			if l.now == settled {
				stuckBefore, stepsBefore = l.stuck, len(l.steps)
			}
			l.use(perMS, latency)
		}
		if got := len(l.steps) - stepsBefore; got > 10 {
			t.Errorf("%d steps in 10 s at %d numbers a second, want at most 10; sizes %v", got, perMS*1000, l.sizes)
		}
		if l.stuck > stuckBefore {
			t.Errorf("%d requests waited for a step of %v after the first seconds", l.stuck-stuckBefore, latency)
		}
	})
}

func TestACrashNeverSkipsMoreThanTwoSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Uint64Range(1, 10_000).Draw(t, "least")
		most := least * rapid.Uint64Range(1, 2000).Draw(t, "most in leasts")
		l := newLife(least, most)
		phases := rapid.IntRange(1, 8).Draw(t, "phases")
		for range phases {
			// Requests of up to a quarter of a step, so that none is larger than a step.
			n := rapid.Uint64Range(0, max(1, least/4)).Draw(t, "numbers a call")
			calls := rapid.IntRange(1, 500).Draw(t, "calls")
			pause := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "between the calls"))
			latency := time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "latency"))
			for range calls {
				l.use(n, latency)
				if got, bound := l.ahead(), l.last+l.c.pace.step; got > max(bound, least) {
					t.Fatalf("the ceiling is %d above the highest number, want at most two steps, %d and %d", got, l.last, l.c.pace.step)
				}
				if got := l.ahead(); got > 2*most {
					t.Fatalf("the ceiling is %d above the highest number, want at most two of the largest step, %d", got, most)
				}
				l.now += pause
			}
		}
	})
}

func TestASectionThatWasBusyGetsTheSmallStepAgain(t *testing.T) {
	l := newLife(10_000, 10_000_000)
	for ; l.now < 10*time.Second; l.now += time.Millisecond {
		l.use(1000, 5*time.Millisecond)
	}
	if hot := l.c.pace.step; hot < 1_000_000 || hot > 4_000_000 {
		t.Fatalf("at 1,000,000 numbers a second the step is %d, want it to last about %v", hot, paceAim)
	}
	l.now += time.Hour
	for n := len(l.steps); len(l.steps) == n; l.now += time.Second {
		l.use(500, 5*time.Millisecond) // 500 a second, until what is left needs a step
	}
	if got := l.sizes[len(l.sizes)-1]; got != 10_000 {
		t.Errorf("the step after it went cold is %d, want 10,000", got)
	}
}

func TestStepsThatNobodyWaitsForShareMessages(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const sections = 1000
		m, err := seq.NewMapping(seq.Space{Name: "user", Sections: sections, Step: 100})
		if err != nil {
			t.Fatal(err)
		}
		var confirmed, messages atomic.Int64
		regs := &countingRegisters{messages: &messages}
		regs.OnStep = func(item quorum.StepItem) quorum.Outcome {
			confirmed.Add(1)
			return quorum.Outcome{State: quorum.Won}
		}
		a, err := New(configOf(m, regs, bubble.NewClock()))
		if err != nil {
			t.Fatal(err)
		}
		for id := range seq.SectionID(sections) {
			c, epoch := a.Section(id), seq.Epoch{Round: 1, Session: ownSession}
			c.Begin()
			c.Expect(epoch)
			if ok, err := a.Install(id, epoch, counters.New(0), 100, &ownershiptest.Lease{End: time.Hour}); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go a.Run(ctx)
		for i := range sections { // one becomes due every millisecond
			a.Take(t.Context(), &m.Spaces[0], seq.PlainAll(uidIn(&m.Spaces[0], seq.SectionID(i))), []uint32{60})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * ownership.Gather)
		synctest.Wait()
		if got := confirmed.Load(); got != sections {
			t.Errorf("%d sections stepped, want %d", got, sections)
		}
		if got := messages.Load(); got > 101 {
			t.Errorf("%d messages in a second, want about 100", got)
		}
		before, asked := messages.Load(), time.Now()
		if out := a.Take(t.Context(), &m.Spaces[0], seq.PlainAll(uidIn(&m.Spaces[0], 0)), []uint32{1000}); len(out.Faults) > 0 {
			t.Fatal(out.Faults[0].Err)
		}
		if took := time.Since(asked); took != 0 || messages.Load() == before {
			t.Errorf("a request that needs a step waited %v for company, want 0", took)
		}
	})
}

// countingRegisters counts the STEP messages.
type countingRegisters struct {
	ownershiptest.Registers
	messages *atomic.Int64
}

func (r *countingRegisters) Step(ctx context.Context, s seq.Session, items []quorum.StepItem) []quorum.Outcome {
	r.messages.Add(1)
	return r.Registers.Step(ctx, s, items)
}

// uidIn is a UID of the section.
func uidIn(space *seq.Space, id seq.SectionID) seq.UID {
	for uid := seq.UID(0); ; uid += 1 << seq.BlockBits {
		if space.SectionOf(uid) == id {
			return uid
		}
	}
}
