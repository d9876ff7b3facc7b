package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Phase is a moment of a run, for those who measure beside it.
type Phase int

// The moments in order: the measured time began, it is over.
const (
	Began Phase = iota
	Over
)

// run is the state that all callers share.
type run struct {
	cfg      Config
	call     Call
	recorder *Recorder
	base     time.Time     // all times below are counted from it
	from, to int64         // ns: calls that begin in [from, to) are measured
	total    atomic.Uint64 // numbers, measured or not
	measured atomic.Uint64 // calls that were begun in [from, to)

	_     [64]byte     // what all callers read lies in a cache line that none writes to
	stage atomic.Int32 // before, within or after the measured time, for callers that do not look at the clock
	_     [60]byte

	began, over int64 // ns: when stage changed; written by watch, read after its end
}

// Stages of a run.
const (
	before int32 = iota
	within
	after
)

// now is cheaper than time.Now: only the monotonic clock is read.
func (r *run) now() int64 { return int64(time.Since(r.base)) }

// Run loads until the time is over or ctx ends, and waits for the last calls. The
// result of a run that was cut short by ctx has what was measured until then. notice,
// if not nil, is called at each Phase, by one goroutine. ErrConfig before anything was called.
func Run(ctx context.Context, cfg Config, call Call, notice func(Phase)) (Result, error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, err
	}
	r := &run{cfg: cfg, call: call, recorder: NewRecorder(), base: time.Now()}
	r.from = int64(cfg.Warmup)
	r.to = r.from + int64(cfg.Duration)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() { defer close(watched); r.watch(ctx, notice) }()
	if cfg.Warmup == 0 {
		r.stage.Store(within)
	}
	caller, brisk := r.caller, cfg.Sample > 1 && cfg.Rate == 0
	if brisk {
		caller = r.brisk
	}
	var wg sync.WaitGroup
	for i := range cfg.Callers {
		wg.Go(func() { caller(ctx, i) })
	}
	wg.Wait()
	took := min(r.now(), r.to) - r.from
	cancel()
	<-watched
	if brisk {
		took = r.over - r.began
	}
	out := r.recorder.Result(time.Duration(max(took, 0)))
	out.TotalNumbers = r.total.Load()
	due := cfg.Rate / float64(cfg.PerCall) * out.Seconds
	out.Behind = cfg.Rate > 0 && float64(r.measured.Load()) < 0.98*due-float64(cfg.Callers)
	return out, nil
}

// watch tells of the phases; of the end too when ctx ends before.
func (r *run) watch(ctx context.Context, notice func(Phase)) {
	if notice == nil {
		notice = func(Phase) {}
	}
	if until(ctx, r.base.Add(time.Duration(r.from))) {
		notice(Began)
		r.began = r.now()
		r.stage.Store(within)
		until(ctx, r.base.Add(time.Duration(r.began+int64(r.cfg.Duration))))
		r.over = r.now()
		r.stage.Store(after)
		notice(Over)
	}
	r.stage.Store(after)
}

// until waits for a moment; false when ctx ended before.
func until(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// caller calls until the time is over. The end of a call is the begin of the next, so
// that the clock is read once a call.
func (r *run) caller(ctx context.Context, id int) {
	s := r.recorder.Sheet(id)
	defer s.Hand()
	var total, measured uint64
	defer func() { r.total.Add(total); r.measured.Add(measured) }()
	every, due := r.timetable(id)
	for now := r.now(); now < r.to && ctx.Err() == nil; {
		began := now
		if every > 0 {
			if due >= r.to {
				return
			}
			if began = due; now < due {
				// On time: what this sleep takes too long is not the service's.
				if !until(ctx, r.base.Add(time.Duration(due))) {
					return
				}
				began = max(r.now(), due)
			}
			due += every
		}
		n, err := r.once(ctx, id)
		now = r.now()
		if err == nil {
			total += uint64(n)
		}
		if began < r.from || began >= r.to {
			continue
		}
		measured++
		switch {
		case err == nil:
			s.count(n)
			s.Took(now - began)
		case ctx.Err() == nil: // else the run was cut short, which is no error of the service
			s.fail(r.code(err))
		}
	}
}

// brisk is caller without a timetable. It reads the clock for one call in Config.Sample
// only: with many callers a call costs as little as a few readings of the clock.
func (r *run) brisk(ctx context.Context, id int) {
	s := r.recorder.Sheet(id)
	defer s.Hand()
	var total uint64
	defer func() { r.total.Add(total) }()
	left := id % r.cfg.Sample // calls until one is timed: callers take turns
	call := r.once
	if r.cfg.Timeout == 0 {
		call = r.call
	}
	for stage := r.stage.Load(); stage != after; stage = r.stage.Load() {
		timed, began := left == 0, int64(0)
		if timed {
			left, began = r.cfg.Sample, r.now()
		}
		left--
		n, err := call(ctx, id)
		switch {
		case err == nil:
			total += uint64(n)
			if stage == within {
				s.count(n)
				if timed {
					s.Took(r.now() - began)
				}
			}
		case stage == within && ctx.Err() == nil:
			s.fail(r.code(err))
		}
	}
}

// timetable returns the time between two calls of a caller and the time when its first call is due. Callers
// take turns. Without a timetable both are zero.
func (r *run) timetable(id int) (every, first int64) {
	if r.cfg.Rate == 0 {
		return 0, 0
	}
	gap := float64(time.Second) * float64(r.cfg.PerCall) / r.cfg.Rate // between two calls of all
	every = max(int64(gap*float64(r.cfg.Callers)), 1)
	return every, int64(gap * float64(id))
}

func (r *run) once(ctx context.Context, id int) (int, error) {
	if r.cfg.Timeout == 0 {
		return r.call(ctx, id)
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	return r.call(ctx, id)
}

func (r *run) code(err error) string {
	if r.cfg.Code == nil {
		return err.Error()
	}
	return r.cfg.Code(err)
}
