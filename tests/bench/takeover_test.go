package bench

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/sessiontest"
)

// BenchmarkTakeover is the stores' part of a takeover: all sections of one of three
// dead owners, one look, one PREPARE and one STEP message a store, each on disk at
// W of three stores before the next.
func BenchmarkTakeover(b *testing.B) {
	for _, sections := range []uint32{4_096, 42_950} {
		b.Run(fmt.Sprintf("sections=%d", sections), func(b *testing.B) {
			group := stores(b, sections)
			ids := make([]seq.Register, 0, sections/3+1)
			for id := seq.SectionID(0); uint32(id) < sections; id += 3 {
				ids = append(ids, seq.SectionRegister(id))
			}
			var ballots time.Duration
			start := processTime(b)
			for session := uint64(1); b.Loop(); session++ {
				ballots += takeover(b, sessiontest.Session(session), group, ids)
			}
			b.ReportMetric(float64(len(ids)), "taken")
			b.ReportMetric(ballots.Seconds()*1e3/float64(b.N), "prepare+step-ms")
			b.ReportMetric((processTime(b)-start).Seconds()*1e3/float64(b.N), "cpu-ms")
		})
	}
}

// processTime is the processor time of the whole process, stores included, so far. On
// a machine that others use too it says more than the time on the clock.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// One round of the benchmark as a test, so that a benchmark that no longer works is noticed.
func TestATakeoverWinsEverySection(t *testing.T) {
	group := stores(t, 8)
	regs := []seq.Register{seq.SectionRegister(0), seq.SectionRegister(3), seq.SectionRegister(6)}
	for session := range uint64(2) {
		if took := takeover(t, sessiontest.Session(session+1), group, regs); took <= 0 {
			t.Errorf("took %v", took)
		}
	}
}

// takeover returns the time from the first PREPARE to the last confirmed STEP.
func takeover(b testing.TB, session seq.Session, group *quorum.Group, regs []seq.Register) time.Duration {
	ctx := b.Context()
	prepare := make([]quorum.PrepareItem, len(regs))
	for i, out := range group.Probe(ctx, session, regs) {
		if out.State != quorum.Won {
			b.Fatalf("look at %v: %v", regs[i], out.Err)
		}
		prepare[i] = quorum.PrepareItem{Register: regs[i], Round: out.Promised.Round + 1}
	}
	start := time.Now()
	step := make([]quorum.StepItem, len(regs))
	for i, out := range group.Prepare(ctx, session, prepare) {
		if out.State != quorum.Won {
			b.Fatalf("prepare %v: %v", regs[i], out.Err)
		}
		step[i] = quorum.StepItem{Register: regs[i], Round: prepare[i].Round, Max: out.Max + seq.DefaultStep}
	}
	for i, out := range group.Step(ctx, session, step) {
		if out.State != quorum.Won {
			b.Fatalf("step %v: %v", regs[i], out.Err)
		}
	}
	return time.Since(start)
}

// BenchmarkStep is one section's step: one commit of one record at W of three stores.
func BenchmarkStep(b *testing.B) {
	group := stores(b, 64)
	reg, session := seq.SectionRegister(0), sessiontest.Session(1)
	if out := group.Prepare(b.Context(), session, []quorum.PrepareItem{{Register: reg, Round: 1}})[0]; out.State != quorum.Won {
		b.Fatal(out.Err)
	}
	max := uint64(0)
	for b.Loop() {
		max += seq.DefaultStep
		if out := group.Step(b.Context(), session, []quorum.StepItem{{Register: reg, Round: 1, Max: max}})[0]; out.State != quorum.Won {
			b.Fatal(out.Err)
		}
	}
}
