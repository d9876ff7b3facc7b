package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
)

func newRoom(free func(uint64)) (*sync.Mutex, *Keys[uint64]) {
	mu := new(sync.Mutex)
	return mu, NewKeys(7, mu, free)
}

func taken(w *Watcher[uint64]) (ids []uint32) {
	for _, e := range w.Take(nil, 1<<20) {
		ids = append(ids, e.ID)
	}
	return ids
}

func add(t testing.TB, k *Keys[uint64], w *Watcher[uint64], key uint64, id uint32) {
	t.Helper()
	if err := k.Add(w, key, id); err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfAKeyAreMergedAndTheNewestIsNotLost(t *testing.T) {
	var stats Stats
	_, k := newRoom(nil)
	w := NewWatcher[uint64](&stats)
	add(t, k, w, 1, 10)
	add(t, k, w, 2, 20)
	if got := taken(w); !slices.Equal(got, []uint32{10, 20}) {
		t.Fatalf("begins with %v, want the present of both keys", got)
	}
	<-w.Changed()
	for range 1000 {
		k.Mark(2)
	}
	select {
	case <-w.Changed():
	default:
		t.Error("a change wakes nobody")
	}
	e := w.Take(nil, 1)
	if len(e) != 1 || e[0].ID != 20 || len(w.Take(nil, 1)) != 0 {
		t.Fatal("a thousand changes are not one")
	}
	k.Mark(2) // after Take and before the value is read
	if got := taken(w); !slices.Equal(got, []uint32{20}) {
		t.Errorf("got %v, want the change that came after Take", got)
	}
	add(t, k, NewWatcher[uint64](&stats), 2, 5)
	if got := []int{k.Watchers(1), k.Watchers(2), k.Watchers(3)}; !slices.Equal(got, []int{1, 2, 0}) {
		t.Errorf("the keys have %v watchers, want 1, 2 and none", got)
	}
}

func TestKeysThatAreLeftWakeTheWatcherAgain(t *testing.T) {
	var stats Stats
	_, k := newRoom(nil)
	w := NewWatcher[uint64](&stats)
	for key := range uint64(3) {
		add(t, k, w, key, uint32(key))
	}
	for want := 3; want > 0; want-- {
		select {
		case <-w.Changed():
		default:
			t.Fatalf("%d keys are left and wake nobody", want)
		}
		if got := w.Take(nil, 1); len(got) != 1 {
			t.Fatalf("took %d", len(got))
		}
	}
}

func TestAKeyThatIsAddedAgainIsToldAgainUnderItsNewName(t *testing.T) {
	var stats Stats
	_, k := newRoom(nil)
	w := NewWatcher[uint64](&stats)
	add(t, k, w, 1, 10)
	taken(w)
	add(t, k, w, 1, 11)
	if got := taken(w); !slices.Equal(got, []uint32{11}) || w.Keys() != 1 {
		t.Errorf("got %v of %d keys, want 11 of one", got, w.Keys())
	}
}

func TestTheEndOfAWatchLeavesNothing(t *testing.T) {
	var stats Stats
	freed := map[uint64]int{}
	mu, k := newRoom(func(key uint64) { freed[key]++ })
	a, b := NewWatcher[uint64](&stats), NewWatcher[uint64](&stats)
	for key := range uint64(100) {
		add(t, k, a, key, uint32(key))
		if key%2 == 0 {
			add(t, k, b, key, uint32(key))
		}
	}
	k.Remove(b, 0)
	k.Remove(b, 0)
	a.Close()
	a.Close()
	if k.Len() != 49 || len(freed) != 51 || stats.Watchers.Load() != 1 {
		t.Errorf("%d keys are watched, %d were freed, %d watchers", k.Len(), len(freed), stats.Watchers.Load())
	}
	if err := k.Add(a, 5, 5); !errors.Is(err, seq.ErrWatches) {
		t.Errorf("a watch that has ended takes a key: %v", err)
	}
	if got := len(taken(b)); got != 49 {
		t.Errorf("another watch has %d of 49 keys left", got)
	}
	b.Close()
	mu.Lock()
	defer mu.Unlock()
	if n := stats.Keys.Load(); n != 0 || k.Len() != 0 || stats.Watchers.Load() != 0 {
		t.Errorf("%d keys count, %d are watched", n, k.Len())
	}
}

func TestKeysAreBounded(t *testing.T) {
	t.Run("of a watcher", func(t *testing.T) {
		var stats Stats
		_, k := newRoom(nil)
		w := NewWatcher[uint64](&stats)
		w.keys = MostOfWatcher - 1 // as with so many others
		add(t, k, w, 5, 0)
		if err := k.Add(w, 1<<40, 0); !errors.Is(err, seq.ErrWatches) || stats.Refused.Load() != 1 {
			t.Errorf("got %v", err)
		}
		k.Remove(w, 5) // it is marked, and kept until it is taken
		if err := k.Add(w, 1<<40, 0); !errors.Is(err, seq.ErrWatches) {
			t.Errorf("a key that is gone and not taken does not count: %v", err)
		}
		taken(w)
		if err := k.Add(w, 1<<40, 0); err != nil {
			t.Errorf("a key that was taken still counts: %v", err)
		}
	})
	t.Run("of a node", func(t *testing.T) {
		var stats Stats
		stats.Keys.Store(MostOfNode)
		_, k := newRoom(nil)
		w := NewWatcher[uint64](&stats)
		if err := k.Add(w, 1, 0); !errors.Is(err, seq.ErrWatches) || stats.Keys.Load() != MostOfNode || w.Keys() != 0 {
			t.Errorf("got %v, with %d keys", err, stats.Keys.Load())
		}
	})
}

// Watchers read values that others change, add and remove keys, and leave. In the end each has read the last
// value of each of its keys.
func TestNoWatcherMissesALastValue(t *testing.T) {
	const keys, changes = 50, 20000
	var stats Stats
	mu, k := newRoom(nil)
	var value [keys]int
	var watchers sync.WaitGroup
	over := make(chan struct{})
	for seed := range uint64(4) {
		watchers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			w := NewWatcher[uint64](&stats)
			defer w.Close()
			var read [keys]int
			have := map[uint64]bool{}
			look := func(n int) {
				for _, e := range w.Take(nil, n) {
					mu.Lock()
					if !e.Gone() {
						read[e.Key] = value[e.Key]
					}
					mu.Unlock()
				}
			}
			for running := true; running; {
				select {
				case <-over:
					running = false
				case <-w.Changed():
					look(1 + r.IntN(5))
				default:
					mu.Lock()
					if key := r.Uint64N(keys); have[key] {
						k.Remove(w, key)
						delete(have, key)
					} else if err := k.Add(w, key, uint32(key)); err == nil {
						have[key] = true
					}
					mu.Unlock()
				}
			}
			look(1 << 20)
			for key := range have {
				if read[key] != value[key] {
					t.Errorf("key %d is %d, and its watcher read %d last", key, value[key], read[key])
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(9, 9))
	for range changes {
		mu.Lock()
		if r.IntN(1000) == 0 {
			for key := range value {
				value[key]++
			}
			k.MarkAll()
		} else {
			key := r.Uint64N(keys)
			value[key]++
			k.Mark(key)
		}
		mu.Unlock()
	}
	close(over)
	watchers.Wait()
	if n := stats.Keys.Load(); n != 0 {
		t.Errorf("%d keys count after all watches", n)
	}
}

// BenchmarkWatchedKeys tells what a million watched UIDs take, in 1,000 sections.
func BenchmarkWatchedKeys(b *testing.B) {
	const all, sections = 1_000_000, 1_000
	for _, watchers := range []int{1, 10} {
		b.Run(fmt.Sprintf("watchers=%d", watchers), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				var stats Stats
				rooms, ws := make([]*Keys[uint64], sections), make([]*Watcher[uint64], watchers)
				for i := range rooms {
					_, rooms[i] = newRoom(nil)
				}
				for i := range ws {
					ws[i] = NewWatcher[uint64](&stats)
				}
				for i := range uint64(all) {
					add(b, rooms[i%sections], ws[i%uint64(watchers)], i*2654435761, uint32(i))
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/all, "B/watch")
				runtime.KeepAlive(rooms)
				runtime.KeepAlive(ws)
			}
		})
	}
}

// BenchmarkMark tells what a change of a watched key costs its writer.
func BenchmarkMark(b *testing.B) {
	var stats Stats
	_, k := newRoom(nil)
	w := NewWatcher[uint64](&stats)
	for key := range uint64(1024) {
		add(b, k, w, key, 0)
	}
	var room []*Entry[uint64]
	for i := uint64(0); b.Loop(); i++ {
		k.Mark(i % 1024)
		if i%1024 == 1023 {
			room = w.Take(room[:0], 1024)
		}
	}
}
