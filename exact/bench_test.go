package exact

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

// heapAlloc returns the live heap: two collections free what finalizers held.
func heapAlloc() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// scatter makes up UIDs that lie far apart.
func scatter(x uint64) seq.UID {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return seq.UID(x ^ x>>31)
}

// follow completes a record that follows a state.
func follow(s *State, r Record, time int64) Record {
	r.Epoch, r.Index, r.Prev, r.Time = seq.Epoch{Round: 1, Session: 1}, s.at.Index+1, s.at.Epoch, time
	return r
}

const (
	benchWindow = 600_000 // ms
	benchStart  = 1_700_000_000_000
)

// BenchmarkMemory measures a section of a million UIDs, and a million ids of 16 bytes that come within one
// window. After it, nothing of the ids may be left.
func BenchmarkMemory(b *testing.B) {
	const n = 1 << 20
	for _, p := range []struct {
		name string
		uid  func(i int) seq.UID
	}{
		{"consecutive", func(i int) seq.UID { return seq.UID(i) }},
		{"random", func(i int) seq.UID { return scatter(uint64(i)) }},
	} {
		b.Run(p.name, func(b *testing.B) {
			for b.Loop() {
				c := NewCopy(benchWindow)
				take := func(r Record, time int64) {
					if err := c.Take([]Record{follow(c.state, r, time)}); err != nil {
						b.Fatal(err)
					}
				}
				at := heapAlloc()
				for i := range n {
					take(Record{Kind: Take, UID: p.uid(i), First: 1, Count: 1}, benchStart)
				}
				uids := heapAlloc()
				for i := range n {
					now := int64(benchStart + benchWindow*i/n)
					take(Record{Kind: Take, UID: p.uid(i), First: 2, Count: 1, ID: fmt.Sprintf("%016x", i), Sent: now}, now)
				}
				ids := heapAlloc()
				b.ReportMetric((uids-at)/n, "B/uid")
				b.ReportMetric((ids-uids)/n, "B/id")
				b.ReportMetric(float64(c.state.Bytes())/(ids-at), "told/live")
				b.ReportMetric(float64(len(c.state.AppendTo(nil)))/n, "B/both/encoded")
				take(Record{Kind: Passed}, benchStart+3*benchWindow)
				b.ReportMetric((heapAlloc()-uids)/n, "B/id/later")
				runtime.KeepAlive(c)
			}
		})
	}
}

// BenchmarkBatch takes batches of 512 new ids in, as a store does, with a hundred thousand ids kept in the
// section.
func BenchmarkBatch(b *testing.B) {
	const size, kept = 512, 100_000
	b.ReportAllocs()
	c := NewCopy(benchWindow)
	last := map[seq.UID]uint64{}
	now, next := int64(benchStart), 0
	batch := func() []Record {
		now += size * benchWindow / kept
		records := make([]Record, size)
		at := Position{Epoch: c.state.at.Epoch, Index: c.state.at.Index}
		for i := range records {
			uid := scatter(uint64(next % 10_000))
			records[i] = Record{Epoch: seq.Epoch{Round: 1, Session: 1}, Index: at.Index + 1, Prev: at.Epoch, Kind: Take, UID: uid,
				First: last[uid] + 1, Count: 1, ID: fmt.Sprintf("%016x", next), Sent: now, Time: now}
			at = records[i].at()
			last[uid]++
			next++
		}
		return records
	}
	for next < kept {
		if err := c.Take(batch()); err != nil {
			b.Fatal(err)
		}
	}
	takes := 0
	for b.Loop() {
		b.StopTimer()
		records := batch()
		b.StartTimer()
		if err := c.Take(records); err != nil {
			b.Fatal(err)
		}
		takes += size
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(takes), "ns/take")
}
