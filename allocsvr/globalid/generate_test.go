package globalid

import (
	"context"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
)

// BenchmarkGenerate is what one request of one ID, and of a hundred, costs at a node: the
// namespace is found, its worker id is held, the window is long enough.
func BenchmarkGenerate(b *testing.B) {
	for name, count := range map[string]int{"one": 1, "hundred": 100} {
		b.Run(name, func(b *testing.B) {
			c := newCluster(b)
			n := c.start("a", func(cfg *Config) { cfg.Window = workers.MaxWindow })
			c.add(n, "b", "time:31,worker:4,sequence:28;unit=1s;epoch=1700000000000;overflow=borrow")
			ctx, ref := context.Background(), namespaces.Ref{Name: "b"}
			if _, err := n.svc.Load().Generate(ctx, ref, 1); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := n.svc.Load().Generate(ctx, ref, count); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
