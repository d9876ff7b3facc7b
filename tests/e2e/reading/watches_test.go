package reading

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/lab/localcluster"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

var (
	watched = flag.Int("watches", 100_000, "the UIDs that BenchmarkWatches watches")
	changes = flag.Int("changes", 100_000, "the changes a second of BenchmarkWatches")
)

// gateway is one watch of many UIDs.
type gateway struct {
	sdk  *client.Client
	keys []client.Key
	uids []seq.UID

	mu      sync.Mutex // guards all below
	of      []watchedUID
	late    []time.Duration
	updates int
}

// watchedUID is what is known of a UID.
type watchedUID struct {
	newest, heard seq.Seq   // the last number answered and told
	answered      time.Time // when newest was; zero once it was told
	told          time.Time // when the watch told a mark that is known
}

// listen reads the watch until ctx ends.
func (g *gateway) listen(ctx context.Context, w *client.Watch) {
	for {
		news, err := w.Next(ctx)
		if err != nil {
			return
		}
		g.hear(news)
	}
}

func (g *gateway) hear(news []client.Update) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, u := range news {
		if u.Err != nil || u.KnownIn > 0 {
			continue
		}
		g.updates++
		k := &g.of[u.Key.UID-g.uids[0]]
		k.told, k.heard = now, u.Last
		if !k.answered.IsZero() && k.heard >= k.newest {
			g.late = append(g.late, now.Sub(k.answered))
			k.answered = time.Time{}
		}
	}
}

// answer notes numbers from an answer of the UIDs from an index on.
func (g *gateway) answer(from int, got []client.Range) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, r := range got {
		k := &g.of[from+i]
		if k.newest = r.Last; k.heard >= k.newest {
			g.late = append(g.late, 0)
		} else {
			k.answered = now
		}
	}
}

// since counts UIDs of which something was told since a time.
func (g *gateway) since(at time.Time, uids []int) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, i := range uids {
		if g.of[i].told.After(at) {
			n++
		}
	}
	return n
}

// heard returns the number of updates.
func (g *gateway) heard() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.updates
}

// behind reports whether an answered number was not told yet.
func (g *gateway) behind() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.of, func(k watchedUID) bool { return !k.answered.IsZero() })
}

// take takes numbers at the rate for a while, a thousand UIDs a call.
func (g *gateway) take(b *testing.B, rate int, d time.Duration) (taken int) {
	const batch = 1000
	tick := time.NewTicker(time.Second * batch / time.Duration(rate))
	defer tick.Stop()
	var at atomic.Int64
	calls := make(chan int)
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for from := range calls {
				uids := g.uids[from : from+batch]
				got, err := g.sdk.NextBatch(harness.Within(b), space, uids, nil)
				if err != nil {
					b.Error(err)
					continue
				}
				g.answer(from, got)
				at.Add(batch)
			}
		}()
	}
	for end, from := time.Now().Add(d), 0; time.Now().Before(end); from = (from + batch) % (len(g.uids) - batch + 1) {
		<-tick.C
		calls <- from
	}
	close(calls)
	for range 8 {
		<-done
	}
	return int(at.Load())
}

// resident returns the memory of the AllocSvr, in bytes.
func resident(b *testing.B, c *localcluster.Cluster) (sum int) {
	for _, p := range c.Processes(localcluster.RoleAlloc) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
		if err != nil {
			b.Skip(err)
		}
		_, line, _ := strings.Cut(string(text), "VmRSS:")
		kb, _ := strconv.Atoi(strings.Fields(line)[0])
		sum += kb << 10
	}
	return sum
}

// BenchmarkWatches tells what many watched UIDs take at two AllocSvr, how late the watch tells changes, and
// how long it takes after the death of an owner until the marks of all its UIDs are told again.
func BenchmarkWatches(b *testing.B) {
	c := harness.Start(b, func(cfg *localcluster.Config) {
		cfg.Allocs, cfg.Lease, cfg.Spaces = 2, time.Second, []string{space + ":tickets=2s"}
	})
	sdk, err := client.New(harness.Within(b), client.Config{Addrs: c.Addrs(localcluster.RoleAlloc), MaxQueue: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer sdk.Close()
	g := &gateway{sdk: sdk, of: make([]watchedUID, *watched)}
	every := make([]int, *watched)
	for i := range every {
		every[i] = i
		uid := seq.UID(1<<32 + i)
		g.uids, g.keys = append(g.uids, uid), append(g.keys, client.Key{Space: space, UID: uid})
	}
	g.take(b, 10*(*changes), time.Second) // each section has counters
	before, began := resident(b, c), time.Now()
	w, err := sdk.Watch(b.Context(), g.keys...)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go g.listen(ctx, w)
	harness.Until(b, "all are told", func() bool { return g.since(began, every) == len(every) })
	all, memory := time.Since(began), resident(b, c)-before

	for b.Loop() {
		updates, began := g.heard(), time.Now()
		taken := g.take(b, *changes, 5*time.Second)
		b.ReportMetric(float64(taken)/time.Since(began).Seconds(), "changes/s")
		harness.Until(b, "the changes are told", func() bool { return !g.behind() })
		b.ReportMetric(float64(g.heard()-updates)/time.Since(began).Seconds(), "updates/s")
	}
	b.StopTimer()
	b.ReportMetric(all.Seconds(), "s/watched")
	b.ReportMetric(float64(memory)/float64(len(every)), "B/watch")
	late := g.late // nothing is taken meanwhile
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "p99-ms")

	victim := c.Processes(localcluster.RoleAlloc)[0]
	v := sdk.Caller().Table().View()
	of := func(i int) bool {
		s, err := v.Mapping.Space(space)
		owner := v.Owner(s.SectionOf(g.uids[i]))
		return err == nil && owner != nil && owner.Addr == victim.Addr
	}
	theirs := slices.DeleteFunc(slices.Clone(every), func(i int) bool { return !of(i) })
	killed := time.Now()
	if err := victim.Kill(); err != nil {
		b.Fatal(err)
	}
	harness.Until(b, "the marks of all UIDs of the killed owner are told", func() bool { return g.since(killed, theirs) == len(theirs) })
	b.ReportMetric(float64(len(theirs)), "taken-over")
	b.ReportMetric(time.Since(killed).Seconds(), "s/taken-over")
}
