package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/cmd/seqctl/ctl"
	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/lab/load"
	"github.com/seqsvr/seqsvr/seq"
)

// rig holds the parts that all calls of one run share.
type rig struct {
	o      *options
	client *client.Client // nil where kind.noCluster
	users  *load.Users
	rising *load.Rising // nil where the numbers are not of UIDs
	ends   []func()     // undone in reverse order
}

func (r *rig) end() {
	for i := len(r.ends) - 1; i >= 0; i-- {
		r.ends[i]()
	}
}

// findCluster connects to the cluster.
func (o *options) findCluster(ctx context.Context, indirect bool) (*client.Client, error) {
	find, cancel := context.WithTimeout(ctx, min(findTimeout, o.Timeout))
	defer cancel()
	return o.Connect(find, client.Config{Timeout: o.Timeout, AttemptTimeout: ctl.AttemptTimeout, AllowUnordered: true, Indirect: indirect, Zone: o.zone})
}

// run connects, loads and disconnects.
func (o *options) run(ctx context.Context, p plan, stderr io.Writer) (result, error) {
	r := &rig{o: o, users: p.users, rising: load.NewRising(p.users)}
	defer r.end()
	procs := o.processors(p.kind)
	formerly := runtime.GOMAXPROCS(procs)
	r.ends = append(r.ends, func() { runtime.GOMAXPROCS(formerly) })
	nodes := 0
	if !p.kind.noCluster {
		c, err := o.findCluster(ctx, p.kind.indirect)
		if err != nil {
			return result{}, err
		}
		r.client = c
		for _, s := range c.Sets().All {
			if s.Routes != nil {
				nodes += len(s.Routes.Nodes)
			}
		}
		// SDK calls have no context, as a context costs more than the call: the client's
		// end is theirs. It comes early when the run is interrupted.
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		r.ends = append(r.ends, func() { stop(); _ = c.Close() })
		if m, ok := c.Caller().Table().Mapping(); ok {
			if _, err := m.Space(o.space); err != nil {
				return result{}, err
			}
		}
	}
	call, err := p.kind.make(ctx, r)
	if err != nil {
		return result{}, err
	}
	var cpu meter
	progress := ui.NewClock(stderr, "bench "+p.kind.name, p.load.Warmup+p.load.Duration)
	measured, err := load.Run(ctx, p.load, call, cpu.notice)
	progress.Done()
	if err != nil {
		return result{}, err
	}
	out := result{
		Result: measured, Target: p.kind.name, Addr: o.Addr, Procs: procs, Allocs: nodes, Callers: o.callers, UIDs: o.uids,
		Dist: o.dist, Batch: o.batch, RateAsked: o.rate, ClientCPU: cpu.perNumber(measured.Numbers),
	}
	if p.kind.noCluster {
		out.Addr = o.http
	}
	if r.rising != nil {
		checked, broken, fall := r.rising.Verdict()
		out.Rising = &rising{Checked: checked, Violations: broken}
		if fall != nil {
			out.Rising.First = fmt.Sprintf("uid %d got %d after %d", fall.UID, fall.After, fall.Before)
		}
	}
	return out, nil
}

// processors returns the number of processors that the run may use. Beside the servers a generator leaves
// half of the machine to them, because it would take more from them than its calls gain. GOMAXPROCS in the
// environment has precedence.
func (o *options) processors(k kind) int {
	all := runtime.GOMAXPROCS(0)
	addr := o.Addr
	if k.noCluster {
		addr = o.http
	}
	host, _, _ := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	switch {
	case o.procs > 0:
		return o.procs
	case os.Getenv("GOMAXPROCS") == "" && (host == "localhost" || ip.IsLoopback()):
		return max(all/2, 1)
	}
	return all
}

// meter measures the processor time that the process used in the measured time.
type meter struct{ began, over time.Duration }

func (m *meter) notice(p load.Phase) {
	switch p {
	case load.Began:
		m.began = processorTime()
	case load.Over:
		m.over = processorTime()
	}
}

// perNumber is in microseconds; 0 where it is not known.
func (m *meter) perNumber(numbers uint64) float64 {
	if numbers == 0 || m.over <= m.began {
		return 0
	}
	return float64((m.over - m.began).Nanoseconds()) / 1000 / float64(numbers)
}

func splitAddr(addr string) (string, error) {
	if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
		return addr, errNoHost
	}
	return addr, nil
}

// draws gives each caller its way through the UIDs.
func (r *rig) draws() []load.Draw {
	out := make([]load.Draw, r.o.callers)
	for i := range out {
		out[i] = r.users.Caller(i)
	}
	return out
}

// key returns the key of a UID.
func (r *rig) key(uid seq.UID) client.Key { return client.Key{Space: r.o.space, UID: uid} }
