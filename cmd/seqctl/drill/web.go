package drill

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/internal/ops/console"
)

// stage shows a drill in a console while it runs. Nil: no page.
type stage struct {
	sc     lab.Scenario
	live   *lab.Live
	sdk    *client.Client
	cancel context.CancelFunc
	served sync.WaitGroup

	mu      sync.Mutex // guards all below
	verdict *console.Verdict
	seconds float64 // that the load lasted, with the verdict
}

// show opens the page, if one was asked for, and says where. Close the stage in the end.
func (o *options) show(ctx context.Context, c *lab.Cluster, sc lab.Scenario, stderr io.Writer) (*stage, error) {
	if o.web == "" {
		return nil, nil
	}
	lis, err := net.Listen("tcp", o.web)
	if err != nil {
		return nil, fmt.Errorf("--web: %w", err)
	}
	s := &stage{sc: sc, live: lab.NewLive()}
	s.sdk, err = client.New(ctx, client.Config{Addrs: c.Addrs(localcluster.RoleRouter, localcluster.RoleAlloc), Lazy: true, AllowUnordered: true})
	if err != nil {
		_ = lis.Close()
		return nil, err
	}
	o.Live = s.live
	page := console.New(console.Config{Server: "seqctl drill", Client: s.sdk, Calls: s.calls, Drill: s.drill})
	life, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.served.Go(func() { _ = page.Serve(life, lis) }) // without it the drill goes on
	fmt.Fprintf(stderr, "look: http://%s/\n", lis.Addr())
	return s, nil
}

func (s *stage) calls() console.Calls {
	v := s.live.Look()
	return console.Calls{Ended: uint64(v.Total.Answers + v.Total.Errors), Failed: uint64(v.Total.Errors), Took: v.Took}
}

// drill returns the part of the drill that the page shows now.
func (s *stage) drill() *console.Drill {
	v := s.live.Look()
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &console.Drill{
		Name: s.sc.Name, What: s.sc.What, Wanted: s.sc.Expect.String(), Phase: string(v.Phase), Seconds: v.Since.Seconds(),
		Calls: uint64(v.Total.Answers + v.Total.Errors), Errors: uint64(v.Total.Errors), LongestMS: milliseconds(v.Total.Longest),
		FaultMS: -1, SliceMS: milliseconds(lab.SliceTime), Slices: []console.Slice{}, Timeline: []console.Moment{}, Verdict: s.verdict,
	}
	if v.Fault >= 0 {
		d.FaultMS = milliseconds(v.Fault)
	}
	for _, slice := range v.Slices {
		d.Slices = append(d.Slices, console.Slice{Answers: slice.Answers, Errors: slice.Errors, LongestMS: milliseconds(slice.Longest)})
	}
	for _, m := range v.Timeline {
		d.Timeline = append(d.Timeline, console.Moment{MS: m.MS, Event: m.Event, Subject: m.Subject, Detail: m.Detail})
	}
	if s.verdict != nil {
		d.Phase, d.Seconds = "over", s.seconds
	}
	return d
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// over puts the verdict on top of the page.
func (s *stage) over(r *lab.Result, err error) {
	if s == nil {
		return
	}
	v, seconds := &console.Verdict{Kept: err == nil, Reasons: []string{}}, s.live.Look().Since.Seconds()
	if r != nil {
		v.Requests, v.Errors, v.PauseMS, v.TargetMS = r.Requests, r.Errors, r.MaxPauseMS, r.TargetMS
		v.Twice, v.Lower, v.Gaps, v.Reasons = r.Duplicates, r.Regressions, r.Gaps, append(r.Reasons, r.Examples...)
		v.Words = fmt.Sprintf("No number twice, none lower than one before, in %s requests; %s errors; longest pause %s.", ui.Int(int64(r.Requests)),
			ui.Int(int64(r.Errors)), ui.Duration(time.Duration(r.MaxPauseMS*float64(time.Millisecond))))
	}
	if err != nil {
		v.Words = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdict, s.seconds = v, seconds
}

// stay keeps the page, and the cluster, until ctx ends.
func (s *stage) stay(ctx context.Context, stderr io.Writer) {
	if s == nil || ctx.Err() != nil {
		return
	}
	fmt.Fprintln(stderr, "the page stays, and the cluster with it, until Ctrl-C")
	<-ctx.Done()
}

func (s *stage) close() {
	if s == nil {
		return
	}
	s.cancel()
	s.served.Wait()
	_ = s.sdk.Close()
}
