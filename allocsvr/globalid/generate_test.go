package globalid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seqsvr/seqsvr/allocsvr/globalid/namespaces"
	"github.com/seqsvr/seqsvr/allocsvr/globalid/workers"
	"github.com/seqsvr/seqsvr/seq"
)

// BenchmarkGenerate measures one request of one ID, and of a hundred, at a node. The namespace is found,
// its worker id is held, and the window is long enough.
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

func TestMoreIDsThanAWorkerMakesWhileACallerWaitsAreRefusedAtOnce(t *testing.T) {
	c := newCluster(t)
	n := c.start("a", func(*Config) {})
	for text, most := range map[string]int{
		"time:38,worker:10,sequence:4;unit=1s;epoch=1700000000000":   32,
		"time:35,worker:10,sequence:2;unit=10s;epoch=1700000000000":  4,
		"time:40,worker:10,sequence:12;unit=1ms;epoch=1700000000000": seq.MaxIDs,
	} {
		name := fmt.Sprint("n", most)
		c.add(n, name, text)
		ref := namespaces.Ref{Name: name}
		if most < seq.MaxIDs {
			if _, err := n.svc.Load().Generate(t.Context(), ref, most+1); !errors.Is(err, seq.ErrTickUsedUp) || !strings.Contains(err.Error(), fmt.Sprintf("expected at most %d", most)) {
				t.Errorf("%s, %d IDs: got %v, want %v", text, most+1, err, seq.ErrTickUsedUp)
			}
			most = most / 2
		}
		if _, err := n.svc.Load().Generate(t.Context(), ref, most); err != nil {
			t.Errorf("%s, %d IDs: %v", text, most, err)
		}
	}
}
