package exact

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// BenchmarkMemory measures what Bytes goes by: a million UIDs, and a million ids of 16 bytes.
func BenchmarkMemory(b *testing.B) {
	const n = 1 << 20
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for b.Loop() {
		s := &State{}
		epoch := seq.Epoch{Round: 1, Session: 1}
		at := heap()
		add := func(r Record) {
			r.Epoch, r.Index, r.Prev, r.Time = epoch, s.at.Index+1, s.at.Epoch, 1
			s.apply(&r, 1000)
		}
		for i := range n {
			add(Record{Kind: Take, UID: seq.UID(i), First: 1, Count: 1})
		}
		uids := heap()
		for i := range n {
			add(Record{Kind: Take, UID: seq.UID(i), First: 2, Count: 1, ID: fmt.Sprintf("%016x", i)})
		}
		ids := heap()
		b.ReportMetric((uids-at)/n, "B/uid")
		b.ReportMetric((ids-uids)/n, "B/id")
		b.ReportMetric(float64(len(s.AppendTo(nil)))/n, "B/both/encoded")
		runtime.KeepAlive(s)
	}
}
