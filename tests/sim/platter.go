package sim

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

// platter has the files of the journal of one store, as the code that ships writes them. A process
// that ends leaves to the next one what it has written. A power cut takes of what was not synced an
// arbitrary part, by sectors. Guarded by simDisk.mu.
type platter struct {
	files map[string]*platterFile
	fail  error // of every sync
}

// sectorSize is what a disk writes wholly or not at all.
const sectorSize = 512

type platterFile struct {
	of      *platter
	name    string
	cached  []byte // as processes read it
	durable []byte
	dirty   map[int]bool // sectors that may be lost
}

// clone returns what is durable, as an image of the disk has it.
func (p *platter) clone() *platter {
	if p == nil {
		return nil
	}
	out := &platter{files: map[string]*platterFile{}}
	for name, f := range p.files {
		out.files[name] = &platterFile{of: out, name: name, cached: slices.Clone(f.durable), durable: slices.Clone(f.durable), dirty: map[int]bool{}}
	}
	return out
}

// open implements journal.Config.Open.
func (p *platter) open(path string, flags int) (journal.File, error) {
	name := filepath.Base(path)
	f := p.files[name]
	switch {
	case f == nil && flags&os.O_CREATE == 0:
		return nil, fs.ErrNotExist
	case f == nil:
		f = &platterFile{of: p, name: name, dirty: map[int]bool{}}
		p.files[name] = f
	}
	return f, nil
}

// cut loses some of the sectors that were not synced. It returns how many were in question.
func (p *platter) cut(rng *rand.Rand) (dirty int) {
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		f := p.files[name]
		dirty += len(f.dirty)
		for _, at := range slices.Sorted(maps.Keys(f.dirty)) {
			if rng.IntN(2) == 0 {
				f.keep(at)
			}
		}
		clear(f.dirty)
		f.cached = slices.Clone(f.durable)
	}
	return dirty
}

// keep makes a sector durable.
func (f *platterFile) keep(at int) {
	from, to := at*sectorSize, min((at+1)*sectorSize, len(f.cached))
	if len(f.durable) < to {
		f.durable = append(f.durable, make([]byte, to-len(f.durable))...)
	}
	copy(f.durable[from:to], f.cached[from:to])
}

// Name implements journal.File.
func (f *platterFile) Name() string { return f.name }

// Close implements journal.File.
func (f *platterFile) Close() error { return nil }

// Sync implements journal.File.
func (f *platterFile) Sync() error {
	if f.of.fail != nil {
		return f.of.fail
	}
	for at := range f.dirty {
		f.keep(at)
	}
	clear(f.dirty)
	return nil
}

// ReadAt implements journal.File.
func (f *platterFile) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(f.cached)) {
		return 0, io.EOF
	}
	n := copy(p, f.cached[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements journal.File.
func (f *platterFile) WriteAt(p []byte, at int64) (int, error) {
	if end := int(at) + len(p); end > len(f.cached) {
		f.cached = append(f.cached, make([]byte, end-len(f.cached))...)
	}
	copy(f.cached[at:], p)
	for s := int(at) / sectorSize; s*sectorSize < int(at)+len(p); s++ {
		f.dirty[s] = true
	}
	return len(p), nil
}

// smallFile is the least size of the journal's files: small, so that turns begin often.
const smallFile = 16 << 10

// config returns how the journal of the disk is opened.
func (d *simDisk) config() journal.Config {
	m := d.now.meta.Mapping
	return journal.Config{Dir: d.w.dir, ID: 1, Floor: d.now.meta.Floors.Section, File: smallFile, Open: d.now.files.open,
		Window: func(id seq.SectionID) int64 {
			space, err := m.SpaceOf(id)
			if err != nil {
				return 0
			}
			return space.Window.Milliseconds()
		}}
}

// lay makes the files of a disk whose content was just made, if its run has them. Needs d.mu.
func (d *simDisk) lay() {
	if d.now.files = nil; !d.w.opts.Torn || d.now.meta.Journal == nil {
		return
	}
	d.now.files = &platter{files: map[string]*platterFile{}}
	states := map[seq.SectionID]*exact.State{}
	for id, c := range d.now.copies {
		states[id] = c.State()
	}
	if err := journal.Create(d.config(), states); err != nil {
		d.w.check.broken("start", "%s: no journal: %v", d.h.name, err)
	}
}

// lose has what was not synced lost in part, once the process has let go of the disk.
func (d *simDisk) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dark = true
}

// read opens the journal, and checks that nothing is missing that was made durable, and that the
// process goes by nothing that is not. Needs w.mu and d.mu.
func (d *simDisk) read() (*journal.Journal, error) {
	p := d.now.files
	if p == nil {
		return nil, nil
	}
	if d.dark {
		if p.cut(d.torn) > 0 {
			d.w.stats.Torn++
		}
		d.dark = false
	}
	p.fail = nil
	j, err := journal.Open(d.config())
	if err != nil {
		return nil, err
	}
	on, err := journal.Inspect(journal.Config{Dir: d.w.dir, ID: 1, Floor: d.now.meta.Floors.Section, File: smallFile, Open: p.clone().open, Window: d.config().Window})
	if err != nil {
		return nil, fmt.Errorf("what is durable of it: %w", err)
	}
	switch had, has := d.now.meta.Journal.Batches, j.Batches(); {
	case has < had:
		return nil, fmt.Errorf("it ends at batch %d, and batch %d was made durable", has, had)
	case on.Batches() < has:
		return nil, fmt.Errorf("it goes by batch %d, and batch %d is the last that is durable", has, on.Batches())
	}
	d.now.meta.Journal.Batches = j.Batches()
	for _, id := range j.Sections() {
		d.stands(id, j.Copy(id))
	}
	return j, nil
}

// stands takes in what the disk has of an exact section. Needs d.mu.
func (d *simDisk) stands(id seq.SectionID, c *exact.Copy) {
	if at, promised := c.At().Epoch, d.now.registers[seq.SectionRegister(id)].Promised; promised.Less(at) {
		d.w.check.broken("I3", "%s section %d: its copy is at %s above promised %s", d.h.name, id, at, promised)
	}
	uids, _ := c.Borrow().Page(0, 1<<20)
	for _, uid := range uids {
		d.lasts[uid] = max(d.lasts[uid], c.Borrow().Last(uid))
	}
}

// injectOutage has all stores, or the store that the fault names, lose their power: of what was not synced some
// is lost.
func injectOutage(w *world, f Fault) {
	for _, h := range w.hosts.of(storeHost) {
		if f.Host == "" || f.Host == h.name {
			if h.disk != nil { // members of an etcd have none
				h.disk.lose()
			}
			w.procs.kill(h, 0)
			w.later(f.For, func() { w.procs.start(h) })
		}
	}
}

// outages are power cuts of a run with torn disks, mostly while the journal is written, or shortly after
// a process has ended there.
func outages(o Options) (out []Fault) {
	rng := rand.New(rand.NewPCG(o.Seed, 0x70a4))
	for at := o.Calm; at < o.Length; at += time.Duration(10+rng.IntN(40)) * time.Second {
		one := storeName(rng.IntN(o.Stores))
		f := Fault{At: at, Verb: "outage", Host: one, For: time.Duration(10+rng.IntN(3000)) * time.Millisecond}
		if rng.IntN(2) == 0 {
			f.Host = "" // all of them
		}
		if rng.IntN(2) == 0 {
			f.Point, f.Where = "log", one
		} else {
			out = append(out, Fault{At: at, Point: "log", Where: one, Verb: "kill", Host: one, For: time.Duration(1+rng.IntN(200)) * time.Millisecond})
			f.At += time.Duration(rng.IntN(5000)) * time.Millisecond
		}
		out = append(out, f)
	}
	return out
}
