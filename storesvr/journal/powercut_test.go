package journal

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// A lossyDisk keeps files in memory. A process that ends leaves what it has written to the next
// one, and a power cut takes of what was not synced an arbitrary part, by sectors.
type lossyDisk struct {
	rnd   *rand.Rand
	files map[string]*lossyFile
}

const sector = 512

type lossyFile struct {
	disk    *lossyDisk
	name    string
	cached  []byte // as processes read it
	durable []byte
	dirty   map[int]bool // sectors that may be lost
}

func newLossyDisk(seed uint64) *lossyDisk {
	return &lossyDisk{rnd: rand.New(rand.NewPCG(seed, 11)), files: map[string]*lossyFile{}}
}

func (d *lossyDisk) open(name string, flags int) (File, error) {
	name = filepath.Base(name)
	f := d.files[name]
	switch {
	case f == nil && flags&os.O_CREATE == 0:
		return nil, fs.ErrNotExist
	case f == nil:
		f = &lossyFile{disk: d, name: name, dirty: map[int]bool{}}
		d.files[name] = f
	}
	return f, nil
}

// cut loses some of the sectors that were not synced, and tears what they were written as.
func (d *lossyDisk) cut() {
	for _, f := range d.files {
		for at := range f.dirty {
			if d.rnd.IntN(2) == 0 {
				f.keep(at)
			}
		}
		f.dirty, f.cached = map[int]bool{}, append([]byte(nil), f.durable...)
	}
}

func (f *lossyFile) keep(at int) {
	from, to := at*sector, min((at+1)*sector, len(f.cached))
	if len(f.durable) < to {
		f.durable = append(f.durable, make([]byte, to-len(f.durable))...)
	}
	copy(f.durable[from:to], f.cached[from:to])
}

func (f *lossyFile) Name() string { return f.name }
func (f *lossyFile) Close() error { return nil }

func (f *lossyFile) Sync() error {
	for at := range f.dirty {
		f.keep(at)
	}
	f.dirty = map[int]bool{}
	return nil
}

func (f *lossyFile) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(f.cached)) {
		return 0, io.EOF
	}
	n := copy(p, f.cached[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *lossyFile) WriteAt(p []byte, at int64) (int, error) {
	if end := int(at) + len(p); end > len(f.cached) {
		f.cached = append(f.cached, make([]byte, end-len(f.cached))...)
	}
	copy(f.cached[at:], p)
	for s := int(at) / sector; s*sector < int(at)+len(p); s++ {
		f.dirty[s] = true
	}
	return len(p), nil
}

// errKilled ends a process before a sync.
var errKilled = errors.New("killed")

// killedFile is a file of a process that ends at a sync.
type killedFile struct {
	*lossyFile
	left *int // syncs before the end
}

func (f killedFile) Sync() error {
	if *f.left--; *f.left < 0 {
		return errKilled
	}
	return f.lossyFile.Sync()
}

// Each state that a process has reported, or has started from, survives any later power cut. This
// includes a batch that the process before had written and not synced.
func TestWhatAStartHasReadOutlivesAPowerCut(t *testing.T) {
	read := 0
	for seed := range uint64(150) {
		disk := newLossyDisk(seed)
		const living = 1 << 30
		syncs := living
		cfg := Config{ID: testID, Window: func(seq.SectionID) int64 { return window }, File: 16 << 10,
			Open: func(name string, flags int) (File, error) {
				f, err := disk.open(name, flags)
				if err != nil {
					return nil, err
				}
				return killedFile{f.(*lossyFile), &syncs}, nil
			}}
		cfg.Dir = t.TempDir() // its directory is synced, and stays empty
		if err := Create(cfg, nil); err != nil {
			t.Fatal(err)
		}
		w := newWriter(t, seed)
		for range 6 {
			syncs = living
			j, err := Open(cfg)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for range disk.rnd.IntN(8) {
				w.step(j)
			}
			told := []map[seq.SectionID]string{picture(j)}
			syncs = 0
			if err := w.try(j); !errors.Is(err, errKilled) {
				t.Fatalf("seed %d: a write without its sync: %v", seed, err)
			}
			told = append(told, picture(j)) // or not: it was not answered
			w.owners = map[seq.SectionID]*exact.Owner{}
			syncs = living
			if disk.rnd.IntN(2) == 0 { // the next process begins before the power is cut
				next, err := Open(cfg)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				told = []map[seq.SectionID]string{picture(next)}
				read++
			}
			disk.cut()
			after, err := Inspect(cfg)
			if err != nil {
				t.Fatalf("seed %d: after the power cut: %v", seed, err)
			}
			got := picture(after)
			if !slices.ContainsFunc(told, func(p map[seq.SectionID]string) bool { return maps.Equal(got, p) }) {
				t.Fatalf("seed %d: after the power cut it has\n%v\nexpected one of\n%v", seed, got, told)
			}
		}
	}
	if read == 0 {
		t.Error("no process began between a kill and a power cut")
	}
}
