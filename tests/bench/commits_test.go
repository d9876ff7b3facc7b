package bench

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/allocsvr"
	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr"
	"github.com/seqsvr/seqsvr/tests/kit/harness"
)

// commitRate is what BenchmarkCommits asks for, in numbers a second.
const commitRate = 1_000_000

// BenchmarkCommits measures how often the stores commit. The SDK asks one allocator with 42,950 sections
// for numbers of random UIDs, a million a second, for a second an iteration. The fewer the UIDs, the faster
// each section's numbers rise. The count of commits for a million numbers holds on a machine of any speed.
func BenchmarkCommits(b *testing.B) {
	for _, uids := range []uint64{10, 100, 1_000, 10_000} {
		b.Run(fmt.Sprintf("uids=%d", uids), func(b *testing.B) {
			addrs := storeAddrs(b, 42_950)
			_, cluster := group(b, addrs)
			addr, stop := allocator(b, addrs)
			defer stop()
			c := connect(b, addr)
			scatter(b, c, uids)
			spend(b, c, uids, 3*time.Second) // until the steps are as large as the use
			before, start := commits(b, cluster), time.Now()
			var numbers uint64
			for b.Loop() {
				numbers += spend(b, c, uids, time.Second)
			}
			took := time.Since(start).Seconds()
			most := uint64(0)
			for i, n := range commits(b, cluster) {
				most = max(most, n-before[i])
			}
			b.ReportMetric(float64(most)/took, "commits/s")
			b.ReportMetric(float64(numbers)/took, "numbers/s")
			b.ReportMetric(float64(most)/(float64(numbers)/commitRate), "commits/million")
		})
	}
}

// spend takes numbers of random UIDs at commitRate for a while: a batch of a thousand
// each millisecond, or as soon after it as it can be sent.
func spend(b *testing.B, c *client.Client, uids uint64, howLong time.Duration) (numbers uint64) {
	const lanes, batch = 4, 1000
	var wg sync.WaitGroup
	var mu sync.Mutex // guards numbers
	start := time.Now()
	for lane := range lanes {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(lane), uids))
			keys := make([]seq.UID, batch)
			for due := time.Duration(lane) * time.Millisecond; due < howLong; due += lanes * time.Millisecond {
				time.Sleep(time.Until(start.Add(due)))
				if time.Since(start) > howLong {
					return
				}
				for i := range keys {
					keys[i] = uid(rng.Uint64N(uids))
				}
				if _, err := c.NextBatch(b.Context(), "", keys, nil); err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				numbers += batch
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return numbers
}

func uid(i uint64) seq.UID { return seq.UID(i * 0x9e3779b97f4a7c15) }

// scatter leaves each section somewhere within a step, as if it had been used for long.
func scatter(b *testing.B, c *client.Client, uids uint64) {
	rng := rand.New(rand.NewPCG(1, uids))
	for i := range uids {
		count := []uint32{1 + rng.Uint32N(seq.DefaultStep)}
		if _, err := c.NextBatch(b.Context(), "", []seq.UID{uid(i)}, count); err != nil {
			b.Fatal(err)
		}
	}
}

// allocator starts an AllocSvr over the stores.
func allocator(b *testing.B, stores []string) (addr string, stop func()) {
	b.Helper()
	cfg := allocsvr.DefaultConfig()
	cfg.Name, cfg.Listen, cfg.Stores, cfg.Logger = "a1", "127.0.0.1:0", stores, slog.New(slog.DiscardHandler)
	cfg.Lease = 10 * time.Second
	s, err := allocsvr.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return s.Addr(), harness.Inside(b, "allocsvr", s.Run)
}

// connect waits until numbers are served.
func connect(b *testing.B, addr string) *client.Client {
	b.Helper()
	ctx, done := context.WithTimeout(b.Context(), time.Minute)
	defer done()
	c, err := client.New(ctx, client.Config{Addrs: []string{addr}, Timeout: 30 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	if err := c.Ready(ctx); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkStart is a start with 42,950 sections: init and open are one store's, own is
// from the start of an allocator, which then has to take all of them, to its first number.
func BenchmarkStart(b *testing.B) {
	const sections = 42_950
	b.Run("init", func(b *testing.B) {
		for b.Loop() {
			harness.StoreConfig(b, "s1", []string{"s1", "s2", "s3"}, seq.Space{Sections: sections})
		}
	})
	b.Run("open", func(b *testing.B) {
		cfg := harness.StoreConfig(b, "s1", []string{"s1", "s2", "s3"}, seq.Space{Sections: sections})
		for b.Loop() {
			s, err := storesvr.New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("own", func(b *testing.B) {
		addrs := storeAddrs(b, sections)
		var used time.Duration
		for b.Loop() {
			start := processTime(b)
			addr, stop := allocator(b, addrs)
			if _, err := connect(b, addr).NextBatch(b.Context(), "", []seq.UID{1}, nil); err != nil {
				b.Fatal(err)
			}
			used += processTime(b) - start
			b.StopTimer()
			stop()
			b.StartTimer()
		}
		b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms")
	})
}
