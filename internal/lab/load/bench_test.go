package load

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

const benchCallers = 512

// BenchmarkGenerator is what the generator itself costs a call: a target that does
// nothing but give way, with all that `seqctl bench` does around it. BenchmarkGivingWay
// is the target alone.
func BenchmarkGenerator(b *testing.B) {
	for _, sample := range []int{1, 16} {
		b.Run(fmt.Sprintf("sample=%d", sample), func(b *testing.B) {
			u, err := NewUsers(UserConfig{UIDs: 1_000_000, First: 1 << 40, Callers: benchCallers, Longest: 1, Dist: Uniform})
			if err != nil {
				b.Fatal(err)
			}
			r, draws := NewRising(u), make([]Draw, benchCallers)
			for i := range draws {
				draws[i] = u.Caller(i)
			}
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var calls atomic.Int64
			b.ResetTimer()
			_, err = Run(ctx, Config{Callers: benchCallers, Duration: time.Hour, PerCall: 1, Sample: sample}, func(_ context.Context, caller int) (int, error) {
				m := r.Before(draws[caller].One())
				runtime.Gosched()
				if calls.Add(1) == int64(b.N) {
					cancel()
				}
				r.After(m, seq.Seq(m.top+1), seq.Seq(m.top+1))
				return 1, nil
			}, nil)
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkGivingWay(b *testing.B) {
	var calls atomic.Int64
	var wg sync.WaitGroup
	for range benchCallers {
		wg.Go(func() {
			for calls.Add(1) <= int64(b.N) {
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}
