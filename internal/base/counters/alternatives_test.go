package counters

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// taker has the part of a Table that a section needs to take numbers.
type taker interface{ take(uid uint64) uint64 }

// alternatives are the plain ways to keep counters, beside Table.
var alternatives = []struct {
	name string
	make func() taker
}{
	{"table", func() taker { return tableTaker{New(0)} }},
	{"map", func() taker { return mapTaker{} }},
	{"map-of-pages", func() taker { return pagesTaker{} }},
	{"sync.Map", func() taker { return new(syncTaker) }},
	{"sorted", func() taker { return new(sortedTaker) }},
}

type tableTaker struct{ *Table }

func (t tableTaker) take(uid uint64) uint64 {
	_, last, _ := t.Take(uid, 1, ceiling, 1_700_000_000)
	return last
}

// mapTaker is a plain Go map.
type mapTaker map[uint64]uint64

func (m mapTaker) take(uid uint64) uint64 {
	v := m[uid] + 1
	m[uid] = v
	return v
}

// pagesTaker is a Go map of arrays for 64 neighbours.
type pagesTaker map[uint64]*page

func (m pagesTaker) take(uid uint64) uint64 {
	p := m[uid>>blockBits]
	if p == nil {
		p = new(page)
		m[uid>>blockBits] = p
	}
	p[uid%blockSize]++
	return p[uid%blockSize]
}

// syncTaker needs no lock of its owner, which a section's state needs all the same.
type syncTaker struct{ m sync.Map }

func (s *syncTaker) take(uid uint64) uint64 {
	v, ok := s.m.Load(uid)
	if !ok {
		v, _ = s.m.LoadOrStore(uid, new(atomic.Uint64))
	}
	return v.(*atomic.Uint64).Add(1)
}

// sortedTaker is two slices, searched by halving.
type sortedTaker struct{ uids, values []uint64 }

func (s *sortedTaker) take(uid uint64) uint64 {
	i, ok := slices.BinarySearch(s.uids, uid)
	if !ok {
		s.uids, s.values = slices.Insert(s.uids, i, uid), slices.Insert(s.values, i, 0)
	}
	s.values[i]++
	return s.values[i]
}

// An access is a way to ask for the i-th of n UIDs.
var accesses = []struct {
	name string
	draw func(rng *rand.Rand, n uint64) func() uint64
}{
	{"uniform", func(rng *rand.Rand, n uint64) func() uint64 { return func() uint64 { return rng.Uint64N(n) } }},
	{"zipf", func(rng *rand.Rand, n uint64) func() uint64 { return rand.NewZipf(rng, 1.1, 1, n-1).Uint64 }},
}

func TestTheAlternativesCountAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sets := make([]taker, len(alternatives))
	for i, a := range alternatives {
		sets[i] = a.make()
	}
	for range 20_000 {
		uid := scatter(rng.Uint64N(300)) % 5000
		want := sets[0].take(uid)
		for i, s := range sets[1:] {
			if got := s.take(uid); got != want {
				t.Fatalf("%s: uid %d: got %d, the table has %d", alternatives[i+1].name, uid, got, want)
			}
		}
	}
}

// processTime says more than the clock on a machine that others use too.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAlternatives gives bytes a UID and the time of a take, for 10 million UIDs in
// 4,096 sections (a tenth of both with -short).
func BenchmarkAlternatives(b *testing.B) {
	sections, n := size()
	for _, p := range populations()[:2] {
		for _, a := range alternatives {
			b.Run(p.name+"/"+a.name, func(b *testing.B) {
				before := heap()
				tabs := make([]taker, sections)
				for i := range tabs {
					tabs[i] = a.make()
				}
				in := func(uid uint64) taker { return tabs[scatter(uid>>blockBits)%uint64(sections)] }
				for i := range uint64(n) {
					in(p.uid(i)).take(p.uid(i))
				}
				perUID := float64(heap()-before) / float64(n)
				for _, acc := range accesses {
					b.Run(acc.name, func(b *testing.B) {
						next := acc.draw(rand.New(rand.NewPCG(1, 2)), uint64(n))
						used := processTime(b)
						for b.Loop() {
							uid := p.uid(next())
							in(uid).take(uid)
						}
						b.ReportMetric(float64(processTime(b)-used)/float64(b.N), "cpu-ns/op")
						b.ReportMetric(perUID, "B/uid")
					})
				}
				runtime.KeepAlive(tabs)
			})
		}
	}
}

// BenchmarkSectionStart is the life of a new section up to its 2,432th UID, which is
// its share of 10 million in 4,096 sections.
func BenchmarkSectionStart(b *testing.B) {
	const uids = 2432
	for _, p := range populations()[:2] {
		for _, a := range alternatives {
			b.Run(fmt.Sprintf("%s/%s", p.name, a.name), func(b *testing.B) {
				b.ReportAllocs()
				used := processTime(b)
				for b.Loop() {
					t := a.make()
					for i := range uint64(uids) {
						t.take(p.uid(i))
					}
				}
				b.ReportMetric(float64(processTime(b)-used)/float64(b.N)/uids, "cpu-ns/uid")
			})
		}
	}
}
