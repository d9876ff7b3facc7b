package lab

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/base/clock"
	"github.com/seqsvr/seqsvr/internal/lab/history"
	"github.com/seqsvr/seqsvr/seq"
)

// LoadConfig is the stated load. It is open: calls begin at the rate whatever becomes
// of those before, until all callers wait.
type LoadConfig struct {
	Callers int           // calls under way at once, at most
	UIDs    int           // UIDs called again and again
	New     int           // percent of the calls that are for a UID never called before
	Rate    int           // calls a second
	Timeout time.Duration // of one call, retries of the SDK included
	// Callers that go straight to the owners have this SuspectAfter (client.Config).
	SuspectAfter time.Duration
	// Space of the calls. If empty, the default space. A drill makes the calls of a space of mode=exact with
	// ids (Onces), and half of those in a space with tickets with tickets (Reading).
	Space string
	// Routed sends half of the callers through the routers only; the others, or all, go
	// straight to the owners.
	Routed bool
	// Kinds of calls, whose percents add up to 100. If nil, only NextKind.
	Kinds []Kind
	// Seen is called when a call has ended, by many goroutines at once. It may be nil.
	Seen func(history.Call)
	// Reason says in a few words why a call failed. Nil: the error without what differs
	// from call to call.
	Reason func(path string, err error) string
}

// Kind is a kind of call.
type Kind struct {
	Name    string
	Percent int // of all calls
	Call    func(ctx context.Context, j Job)
}

// NextKind asks for the next number of a UID.
func NextKind(percent int) Kind {
	return Kind{"next", percent, func(ctx context.Context, j Job) { j.Take(ctx, 1) }}
}

// Path is one way to the cluster.
type Path struct {
	Name   string
	Client *client.Client
}

// Job is one call to make.
type Job struct {
	*Load
	Path
	Caller int
	Random uint64 // for what else there is to choose

	kind int    // of LoadConfig.Kinds
	id   string // of the request, in a space of mode=exact
	sent int    // how often this call sent it
}

// Load keeps callers at work and records every call.
type Load struct {
	Clock   clock.Clock
	History history.Recorder

	cfg     LoadConfig
	paths   []Path
	known   []seq.UID
	turn    atomic.Uint64  // calls of known UIDs
	counts  []atomic.Int64 // by kind
	jobs    chan Job
	stop    chan struct{}
	pacer   sync.WaitGroup
	callers sync.WaitGroup
}

// StartLoad connects and begins. The UIDs are drawn at random, so that no other load calls
// them. Close it in the end.
func StartLoad(ctx context.Context, c *Cluster, cfg LoadConfig) (*Load, error) {
	if cfg.Kinds == nil {
		cfg.Kinds = []Kind{NextKind(100)}
	}
	if cfg.Reason == nil {
		cfg.Reason = reason
	}
	l := &Load{cfg: cfg, Clock: clock.Boot(), counts: make([]atomic.Int64, len(cfg.Kinds)), jobs: make(chan Job), stop: make(chan struct{})}
	err := l.connect(ctx, "direct", client.Config{Addrs: c.Addrs(router, alloc), SuspectAfter: cfg.SuspectAfter})
	if err == nil && cfg.Routed {
		err = l.connect(ctx, "by routers", client.Config{Addrs: c.Addrs(router), Indirect: true})
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	for range cfg.UIDs {
		l.known = append(l.known, seq.UID(rand.Uint64()))
	}
	for i := range cfg.Callers {
		l.callers.Go(func() { l.call(i) })
	}
	l.pacer.Go(l.pace)
	return l, nil
}

func (l *Load) connect(ctx context.Context, name string, cfg client.Config) error {
	c, err := client.New(ctx, cfg)
	if err == nil {
		l.paths = append(l.paths, Path{name, c})
	}
	return err
}

// knows tells the UIDs that are called again and again.
func (l *Load) knows() func(uint64) bool {
	set := make(map[uint64]bool, len(l.known))
	for _, uid := range l.known {
		set[uint64(uid)] = true
	}
	return func(uid uint64) bool { return set[uid] }
}

// pace hands jobs out at the rate.
func (l *Load) pace() {
	defer close(l.jobs)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := l.Clock.Now()
	for issued := 0; ; {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		for due := int((l.Clock.Now() - began).Seconds() * float64(l.cfg.Rate)); issued < due; issued++ {
			select {
			case l.jobs <- Job{Load: l, Random: rand.Uint64(), kind: l.draw()}:
			case <-l.stop:
				return
			}
		}
	}
}

// draw chooses a kind by the percents.
func (l *Load) draw() (kind int) {
	for roll := rand.IntN(100); roll >= l.cfg.Kinds[kind].Percent; kind++ {
		roll -= l.cfg.Kinds[kind].Percent
	}
	return kind
}

func (l *Load) call(caller int) {
	for j := range l.jobs {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
		j.Caller, j.Path = caller, l.path(caller)
		l.cfg.Kinds[j.kind].Call(ctx, j)
		cancel()
		l.counts[j.kind].Add(1)
	}
}

// path of a caller.
func (l *Load) path(caller int) Path { return l.paths[caller%len(l.paths)] }

// Take asks for so many numbers of the job's UID.
func (j Job) Take(ctx context.Context, count uint32) {
	uid, began := j.NextUID(), j.Clock.Now()
	r, err := j.Client.Take(ctx, client.Key{Space: j.cfg.Space, UID: uid}, count)
	j.Record(history.Key{Space: j.cfg.Space, UID: uint64(uid)}, began, r, err)
}

// Record puts a call that has just ended into the history.
func (j Job) Record(key history.Key, began time.Duration, r client.Range, err error) {
	c := history.Call{Key: key, Client: j.Caller, Start: began, End: j.Clock.Now(), ID: j.id, Sent: j.sent}
	if err != nil {
		c.Err = j.cfg.Reason(j.Path.Name, err)
	} else {
		c.First, c.Last, c.Unordered, c.Replayed = uint64(r.First), uint64(r.Last), r.Unordered, r.Replayed
	}
	j.History.Add(c)
	if j.cfg.Seen != nil {
		j.cfg.Seen(c)
	}
}

// NextUID is one never called before, or the next of the known ones: those go round, so that each
// is called as often as the others.
func (l *Load) NextUID() seq.UID {
	if rand.IntN(100) < l.cfg.New {
		return seq.UID(rand.Uint64())
	}
	return l.Known(l.turn.Add(1) - 1)
}

// Known is the n-th of the UIDs that are called again and again, counted round and round.
func (l *Load) Known(n uint64) seq.UID { return l.known[n%uint64(len(l.known))] }

// Counts are the calls by kind.
func (l *Load) Counts() map[string]int64 {
	counts := map[string]int64{}
	for i, k := range l.cfg.Kinds {
		counts[k.Name] = l.counts[i].Load()
	}
	return counts
}

// reason is an error without what differs from call to call.
func reason(path string, err error) string {
	text := err.Error()
	if at := strings.Index(text, ": "); at >= 0 && (strings.HasPrefix(text, "next ") || strings.HasPrefix(text, "open ")) {
		text = text[at+2:]
	}
	if errors.Is(err, client.ErrClosed) {
		text = client.ErrClosed.Error()
	}
	return path + ": " + text
}

// End stops handing out calls and waits for those under way, each for its own time at
// most. Safe to call twice.
func (l *Load) End() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.pacer.Wait()
	l.callers.Wait()
}

// Close is End, and the connections go.
func (l *Load) Close() {
	l.End()
	for _, p := range l.paths {
		_ = p.Client.Close()
	}
}
