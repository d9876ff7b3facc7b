package snowflake

import (
	"context"
	"testing"
)

// benchGenerator borrows from a window of the whole layout, under a clock of no
// cost, so that the benchmark shows the generator alone.
func benchGenerator(b *testing.B, options ...Option) *Generator {
	b.Helper()
	l, err := Preset("twitter")
	if err != nil {
		b.Fatal(err)
	}
	options = append([]Option{WithPolicy(Policy{Overflow: OverflowBorrow, Rollback: RollbackBorrow})}, options...)
	g, err := New(l, 1, 1, 0, options...)
	if err != nil {
		b.Fatal(err)
	}
	g.Extend(l.MaxTick())
	return g
}

func stillClock() int64 { return 1288834974657 + 1000 }

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name    string
		options []Option
	}{
		{"still clock", []Option{WithClock(stillClock)}},
		{"system clock", nil},
		{"system clock read each time", []Option{WithClockAge(0)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g, ctx := benchGenerator(b, c.options...), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNextParallel(b *testing.B) {
	g, ctx := benchGenerator(b, WithClock(stillClock)), context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Next(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkNextN(b *testing.B) {
	for name, n := range map[string]int{"100": 100, "4096": 4096, "10000": 10000} {
		b.Run(name, func(b *testing.B) {
			g, ctx := benchGenerator(b), context.Background()
			ids := make([]ID, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.NextN(ctx, ids); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds(), "ids/s")
		})
	}
}

func BenchmarkCompose(b *testing.B) {
	l, _ := Preset("twitter")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Compose(Parts{Tick: 1 << 40, Datacenter: 3, Worker: 7, Sequence: 9}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	for e := range numEncodings {
		b.Run(e.String(), func(b *testing.B) {
			var buf [24]byte
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Append(buf[:0], 1023510546613293056); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
