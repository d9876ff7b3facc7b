package drill

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/clock"
	"github.com/seqsvr/seqsvr/internal/history"
	"github.com/seqsvr/seqsvr/seq"
)

// loadConfig is the stated load. It is open: calls begin at the rate whatever becomes
// of those before, until all callers wait.
type loadConfig struct {
	Callers int           // calls under way at once, at most
	UIDs    int           // UIDs called again and again
	New     int           // percent of the calls that are for a UID never called before
	Rate    int           // calls a second
	Timeout time.Duration // of one call, retries of the SDK included
}

// path is one way to the cluster; callers are spread over all of them.
type path struct {
	name   string
	client *client.Client
}

// load keeps callers at work and records every call.
type load struct {
	cfg     loadConfig
	paths   []path
	clock   clock.Clock
	history history.Recorder
	known   []seq.UID
	jobs    chan seq.UID
	stop    chan struct{}
	pacer   sync.WaitGroup
	callers sync.WaitGroup
}

// startLoad begins; the UIDs are drawn at random, so that nobody else calls them.
func startLoad(cfg loadConfig, paths []path) *load {
	l := &load{cfg: cfg, paths: paths, clock: clock.Boot(), jobs: make(chan seq.UID), stop: make(chan struct{})}
	for range cfg.UIDs {
		l.known = append(l.known, seq.UID(rand.Uint64()))
	}
	for i := range cfg.Callers {
		l.callers.Go(func() { l.call(i) })
	}
	l.pacer.Go(l.pace)
	return l
}

// knows tells the UIDs that are called again and again.
func (l *load) knows() func(uint64) bool {
	set := make(map[uint64]bool, len(l.known))
	for _, uid := range l.known {
		set[uint64(uid)] = true
	}
	return func(uid uint64) bool { return set[uid] }
}

// pace hands jobs out at the rate. Known UIDs go round, so that each is called as
// often as the others.
func (l *load) pace() {
	defer close(l.jobs)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began, turn := l.clock.Now(), 0
	for issued := 0; ; {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		for due := int((l.clock.Now() - began).Seconds() * float64(l.cfg.Rate)); issued < due; issued++ {
			uid := seq.UID(rand.Uint64())
			if rand.IntN(100) >= l.cfg.New {
				uid = l.known[turn%len(l.known)]
				turn++
			}
			select {
			case l.jobs <- uid:
			case <-l.stop:
				return
			}
		}
	}
}

func (l *load) call(caller int) {
	p := l.paths[caller%len(l.paths)]
	for uid := range l.jobs {
		ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
		c := history.Call{Key: history.Key{UID: uint64(uid)}, Client: caller, Start: l.clock.Now()}
		r, err := p.client.Take(ctx, client.Key{UID: uid}, 1)
		c.End = l.clock.Now()
		cancel()
		c.First, c.Last, c.Unordered = uint64(r.First), uint64(r.Last), r.Unordered
		if err != nil {
			c.Err = reason(p.name, err)
		}
		l.history.Add(c)
	}
}

// reason is an error without what differs from call to call.
func reason(path string, err error) string {
	text := err.Error()
	if at := strings.Index(text, ": "); at >= 0 && strings.HasPrefix(text, "next ") {
		text = text[at+2:]
	}
	if errors.Is(err, client.ErrClosed) {
		text = client.ErrClosed.Error()
	}
	return path + ": " + text
}

// end stops handing out calls and waits for those under way, each for its own time at
// most. Safe to call twice.
func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.pacer.Wait()
	l.callers.Wait()
}
