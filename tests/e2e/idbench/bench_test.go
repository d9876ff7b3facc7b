package idbench

import (
	"context"
	"testing"

	bwmarrin "github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake"

	"github.com/seqsvr/seqsvr/snowflake"
)

// ours is a generator of a preset under the system clock, in a window without end.
func ours(tb testing.TB, preset string, overflow snowflake.Overflow, worker snowflake.Worker) *snowflake.Generator {
	tb.Helper()
	l, err := snowflake.Preset(preset)
	if err != nil {
		tb.Fatal(err)
	}
	p := l.Policy()
	p.Overflow = overflow
	g, err := snowflake.New(l, 0, worker, 0, snowflake.WithPolicy(p))
	if err != nil {
		tb.Fatal(err)
	}
	g.Extend(l.MaxTick())
	return g
}

func BenchmarkOne(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct{ name, preset string }{{"twitter", "twitter"}, {"sonyflake", "sonyflake"}} {
		for _, overflow := range []snowflake.Overflow{snowflake.OverflowBorrow, snowflake.OverflowWait} {
			b.Run("seqsvr "+c.name+" "+overflow.String(), func(b *testing.B) {
				g := ours(b, c.preset, overflow, 1)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := g.Next(ctx); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("bwmarrin", func(b *testing.B) {
		node, err := bwmarrin.NewNode(1)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			node.Generate()
		}
	})
	b.Run("sony", func(b *testing.B) {
		flake := sony(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := flake.NextID(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMany asks for a batch of 4,096, which only package snowflake has. The others are asked one by
// one. The time is the time of the batch.
func BenchmarkMany(b *testing.B) {
	const count = 4096
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.N)*count/b.Elapsed().Seconds(), "ids/s")
	}
	b.Run("seqsvr borrow", func(b *testing.B) {
		g, ids, ctx := ours(b, "twitter", snowflake.OverflowBorrow, 1), make([]snowflake.ID, count), context.Background()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := g.NextN(ctx, ids); err != nil {
				b.Fatal(err)
			}
		}
		report(b)
	})
	b.Run("bwmarrin", func(b *testing.B) {
		node, err := bwmarrin.NewNode(1)
		if err != nil {
			b.Fatal(err)
		}
		ids := make([]bwmarrin.ID, count)
		b.ReportAllocs()
		for b.Loop() {
			for i := range ids {
				ids[i] = node.Generate()
			}
		}
		report(b)
	})
}

func sony(tb testing.TB) *sonyflake.Sonyflake {
	tb.Helper()
	flake := sonyflake.NewSonyflake(sonyflake.Settings{MachineID: func() (uint16, error) { return 2, nil }})
	if flake == nil {
		tb.Fatal("sonyflake was not made")
	}
	return flake
}
