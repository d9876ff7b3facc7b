package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/tests/kit/clienttest"
)

// BenchmarkNext is coalesced calls of many callers to one fake AllocSvr.
func BenchmarkNext(b *testing.B) {
	for _, callers := range []int{64, 512, 4096} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			cluster := clienttest.Start(b, 1)
			c := dial(b, cluster, client.Config{})
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range callers {
				n := b.N / callers
				if i < b.N%callers {
					n++
				}
				wg.Go(func() {
					for k := range n {
						if _, err := c.Next(context.Background(), client.Key{UID: seq.UID(i*64 + k%64)}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(cluster.Nodes[0].Keys.Load())/float64(max(cluster.Nodes[0].Messages.Load(), 1)), "keys/message")
		})
	}
}

// BenchmarkNextBatch is explicit batches of 1,000 uids.
func BenchmarkNextBatch(b *testing.B) {
	cluster := clienttest.Start(b, 1)
	c := dial(b, cluster, client.Config{})
	uids := make([]seq.UID, 1000)
	for i := range uids {
		uids[i] = seq.UID(i)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.NextBatch(context.Background(), "", uids, nil); err != nil {
			b.Fatal(err)
		}
	}
}
