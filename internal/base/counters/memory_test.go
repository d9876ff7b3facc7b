package counters

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"
)

// A population is a way in which the UIDs of many sections are distributed.
type population struct {
	name string
	uid  func(i uint64) uint64 // almost always one to one
	goal float64               // bytes a UID
}

// scatter is unlike the table's own hash; it makes up UIDs and spreads blocks
// over sections.
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func populations() []population {
	ps := []population{
		{"consecutive", func(i uint64) uint64 { return i }, 9},
		{"random", scatter, 40},
	}
	for _, n := range []uint64{2, 3, 5, 8, 10, 20, 33, 40} {
		ps = append(ps, population{fmt.Sprintf("%d-a-block", n), func(i uint64) uint64 {
			// An odd factor keeps the offsets of one block apart.
			return scatter(i/n)<<blockBits | i%n*29%blockSize
		}, 40})
	}
	return ps
}

// fill spreads n UIDs over sections, one take each. spread makes the UIDs of a
// block arrive far apart rather than together.
func fill(p population, sections, n int, spread bool) []*Table {
	tabs := make([]*Table, sections)
	for i := range tabs {
		tabs[i] = New(0)
	}
	const stride = 64
	for i := range n {
		if spread {
			// The i-th of n in an order of stride passes; n is a multiple of stride.
			i = i%(n/stride)*stride + i/(n/stride)
		}
		uid := p.uid(uint64(i))
		section(tabs, uid).Take(uid, 1, ceiling, 1_700_000_000)
	}
	return tabs
}

func section(tabs []*Table, uid uint64) *Table {
	return tabs[scatter(uid>>blockBits)%uint64(len(tabs))]
}

// footprint returns the memory of the counters, with the table itself.
func footprint(t *Table) int { return int(unsafe.Sizeof(*t)) + t.Bytes() }

func TestASectionStaysWithinItsBytesPerUID(t *testing.T) {
	const sections, n = 32, 32 * 2432 // as 10 million over 4,096
	for _, p := range populations() {
		for _, spread := range []bool{false, true} {
			bytes := 0
			for _, tab := range fill(p, sections, n, spread) {
				bytes += footprint(tab)
			}
			got := float64(bytes) / n
			t.Logf("%-12s spread=%-5v %5.2f B/uid", p.name, spread, got)
			if got > p.goal {
				t.Errorf("%s, spread %v: %.2f bytes a uid, want at most %v", p.name, spread, got, p.goal)
			}
		}
	}
}

// size is 10 million UIDs in 4,096 sections, or a tenth of both in short mode.
func size() (sections, n int) {
	if testing.Short() {
		return 410, 1_000_000
	}
	return 4096, 10_000_000
}

func BenchmarkMemory(b *testing.B) {
	sections, n := size()
	for _, p := range populations() {
		for _, spread := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/spread=%v", p.name, spread), func(b *testing.B) {
				for b.Loop() {
					before := heap()
					tabs := fill(p, sections, n, spread)
					b.ReportMetric(float64(heap()-before)/float64(n), "B/uid")
					runtime.KeepAlive(tabs)
				}
			})
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkAccess(b *testing.B) {
	sections, n := size()
	for _, p := range populations() {
		tabs := fill(p, sections, n, false)
		rng := rand.New(rand.NewPCG(1, 2))
		b.Run(p.name+"/take", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				uid := p.uid(rng.Uint64N(uint64(n)))
				section(tabs, uid).Take(uid, 1, ceiling, 1_700_000_001)
			}
		})
		b.Run(p.name+"/get-missing", func(b *testing.B) {
			for b.Loop() {
				uid := p.uid(uint64(n) + rng.Uint64N(uint64(n)))
				section(tabs, uid).Get(uid)
			}
		})
	}
}

func BenchmarkHandOff(b *testing.B) {
	for _, p := range populations()[:3] {
		tab := fill(p, 1, 100_032, false)[0]
		b.Run(p.name, func(b *testing.B) {
			var buf []byte
			for b.Loop() {
				buf = tab.AppendBinary(buf[:0])
				if _, err := Decode(buf); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(buf))/100_032, "encodedB/uid")
		})
	}
}
