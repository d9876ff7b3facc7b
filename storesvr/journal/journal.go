package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

var (
	// ErrDamaged: the files are not what was written. Do not retry: replace the store.
	ErrDamaged = errors.New("journal is damaged")
	// ErrMissing: a file of the journal is not there. Do not retry: replace the store. An empty
	// journal in its place would have lost what the store had answered for.
	ErrMissing = errors.New("journal is missing")
	// ErrBroken: an earlier Write failed, so that what is on the disk is not known. The process
	// must end.
	ErrBroken = errors.New("journal is broken")
)

// Config configures a journal.
type Config struct {
	Dir string
	// ID is random, and in the names of the files and all batches: nothing that callers send
	// looks like one, and what another journal left in the directory is not taken for this one.
	ID     uint64
	Window func(seq.SectionID) int64 // for how long a section's ids are kept, milliseconds
	Floor  uint64                    // from which the UIDs of a section without any record go on
	// File is the least size of a file in bytes. Zero means DefaultFile. A file is never smaller
	// than four times all copies.
	File int64
	// Progress, if not nil, says how far Open has come.
	Progress *Progress
	// Open opens a file of the journal. If nil, it is one of the file system.
	Open func(name string, flags int) (File, error)
}

// Progress says how many bytes of a journal were read, of how many. Safe for concurrent use.
type Progress struct{ read, all atomic.Int64 }

// Share returns the share that was read, from 0 to 1.
func (p *Progress) Share() float64 {
	all := p.all.Load()
	if all == 0 {
		return 0
	}
	return min(1, float64(p.read.Load())/float64(all))
}

// add notes more that is to be read, and more that was.
func (p *Progress) add(all, read int64) {
	if p != nil {
		p.all.Add(all)
		p.read.Add(read)
	}
}

// File is what a journal needs of a file. Sync returns once what was written is durable.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Sync() error
}

// DefaultFile is the size of a file in bytes while the copies are small.
const DefaultFile = 64 << 20

// Journal is the two files and the copies. Not safe for concurrent use.
type Journal struct {
	cfg    Config
	copies map[seq.SectionID]*exact.Copy
	files  [2]File
	broken error

	turn   uint64   // of the file that is written to: files[turn%2]
	number uint64   // of the last batch
	size   int64    // of the file: behind it the next turn begins, once all copies are in this one
	length [2]int64 // of the files
	end    int64    // of the last batch in it
	// due are the sections of which the file has no whole copy yet; nil and complete: none.
	due      []seq.SectionID
	sections int   // that were due when the file's turn began
	whole    int64 // bytes that all copies took when they were last written whole
	buffer   []byte
	bytes    uint64 // written since Open
	grows    atomic.Int64
}

// Create makes the journal with those copies. It is durable, and found only by its
// ID.
func Create(cfg Config, copies map[seq.SectionID]*exact.State) error {
	j, err := openFiles(cfg, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err == nil {
		err = j.begin(copies)
	}
	if err == nil {
		err = syncDir(cfg.Dir)
	}
	if err != nil {
		return fmt.Errorf("create journal in %s: %w", cfg.Dir, errors.Join(err, j.Close()))
	}
	return j.Close()
}

// Remove removes what Create made.
func Remove(cfg Config) error {
	return errors.Join(os.Remove(cfg.name(0)), os.Remove(cfg.name(1)))
}

// firstBatch bounds what a batch of begin has, in bytes.
const firstBatch = 16 << 20

// begin writes the copies as the first turn, as long as it gets.
func (j *Journal) begin(copies map[seq.SectionID]*exact.State) error {
	j.turn, j.size, j.length[1] = 1, math.MaxInt64, math.MaxInt64 // no zeros, no turn
	var entries []exact.Entry
	size := 0
	for _, id := range slices.Sorted(maps.Keys(copies)) {
		whole := copies[id].AppendTo(nil)
		entries, size = append(entries, exact.Entry{Section: id, Whole: whole}), size+len(whole)
		if size >= firstBatch {
			if err := j.write(entries); err != nil {
				return err
			}
			entries, size = nil, 0
		}
	}
	return j.write(entries)
}

// Open reads the journal that Create made. ErrMissing, ErrDamaged, or why the disk could not.
func Open(cfg Config) (*Journal, error) {
	j, err := openFiles(cfg, os.O_RDWR)
	if err == nil {
		err = j.load(true)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal in %s: %w", cfg.Dir, errors.Join(err, j.Close()))
	}
	return j, nil
}

// Inspect is Open that changes nothing, for reading alone.
func Inspect(cfg Config) (*Journal, error) {
	j, err := openFiles(cfg, os.O_RDONLY)
	if err == nil {
		err = j.load(false)
	}
	if err != nil {
		return nil, fmt.Errorf("inspect journal in %s: %w", cfg.Dir, errors.Join(err, j.Close()))
	}
	return j, nil
}

// name returns the name of a file.
func (c *Config) name(i int) string {
	return filepath.Join(c.Dir, fmt.Sprintf("journal-%016x-%d", c.ID, i))
}

// openFiles opens the two files; what it returns is to be closed in any case.
func openFiles(cfg Config, flags int) (*Journal, error) {
	if cfg.File == 0 {
		cfg.File = DefaultFile
	}
	if cfg.Open == nil {
		cfg.Open = openFile
	}
	j := &Journal{cfg: cfg, copies: map[seq.SectionID]*exact.Copy{}}
	for i := range j.files {
		f, err := cfg.Open(cfg.name(i), flags)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return j, fmt.Errorf("%w: no file %s", ErrMissing, filepath.Base(cfg.name(i)))
		case err != nil:
			return j, err
		}
		j.files[i] = f
	}
	return j, nil
}

// openFile opens a file of the file system.
func openFile(name string, flags int) (File, error) {
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// osFile makes durable what was written, and of the file's metadata only what is needed to read it:
// its times do not matter.
type osFile struct{ *os.File }

// Sync implements File.
func (f osFile) Sync() error { return datasync(f.File) }

// syncDir makes durable that the files are there.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Close closes the files. Written batches stay durable.
func (j *Journal) Close() error {
	var errs []error
	for _, f := range j.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Copy is a section's copy, an empty one if it has none. Changes of it are to be written.
func (j *Journal) Copy(id seq.SectionID) *exact.Copy {
	c := j.copies[id]
	if c == nil {
		c = exact.Restore(exact.Beginning(j.cfg.Floor), j.cfg.Window(id))
		j.copies[id] = c
	}
	return c
}

// Sections are those whose copy is not empty, in order.
func (j *Journal) Sections() []seq.SectionID {
	out := make([]seq.SectionID, 0, len(j.copies))
	for id, c := range j.copies {
		if c.At().Index > 0 {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Batches returns the number of batches over the life of the journal.
func (j *Journal) Batches() uint64 { return j.number }

// Bytes returns the number of bytes written since Open.
func (j *Journal) Bytes() uint64 { return j.bytes }

// Grows returns the bytes by which the files of this turn and the next will grow. It is safe for
// concurrent use.
func (j *Journal) Grows() uint64 { return uint64(j.grows.Load()) }

// least is the least size of the file of the next turn.
func (j *Journal) least() int64 { return max(j.cfg.File, 4*j.whole) }

// Write makes changes durable that the copies have by now, as one batch: all or none. After
// an error nothing may be answered any more: ErrBroken, from then on.
func (j *Journal) Write(entries []exact.Entry) error {
	if j.broken != nil {
		return j.broken
	}
	if err := j.write(entries); err != nil {
		j.broken = fmt.Errorf("%w: %w", ErrBroken, err)
		return j.broken
	}
	return nil
}

func (j *Journal) write(entries []exact.Entry) error {
	if j.end >= j.size && len(j.due) == 0 {
		j.rotate()
	}
	b := append(j.buffer[:0], make([]byte, headerSize)...)
	for i := range entries {
		if e := &entries[i]; e.Whole != nil || len(e.Records) > 0 {
			b = append(appendEntry(b, e.Section, e.Records), e.Whole...)
		}
	}
	for len(j.due) > 0 && j.behind(int64(len(b))) {
		id := j.due[0]
		before := len(b)
		b = j.copies[id].Borrow().AppendTo(appendEntry(b, id, nil))
		j.whole += int64(len(b) - before)
		j.due = j.due[1:]
	}
	j.number++
	b = seal(b, header{id: j.cfg.ID, turn: j.turn, number: j.number, complete: len(j.due) == 0})
	j.buffer = b
	if err := j.extend(j.end + int64(len(b))); err != nil {
		return err
	}
	f := j.files[j.turn%2]
	if _, err := f.WriteAt(b, j.end); err != nil {
		return fmt.Errorf("write batch %d: %w", j.number, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync batch %d: %w", j.number, err)
	}
	j.end += int64(len(b))
	j.bytes += uint64(len(b))
	j.length[j.turn%2] = max(j.length[j.turn%2], j.end)
	j.noteGrowth()
	return nil
}

func (j *Journal) noteGrowth() {
	j.grows.Store(max(0, j.least()-j.length[(j.turn+1)%2]) + max(0, j.size-j.length[j.turn%2]))
}

// behind says whether whole copies are to be written with a batch: all of them are by the
// middle of the file.
func (j *Journal) behind(batch int64) bool {
	done := int64(j.sections - len(j.due))
	return done*j.size < int64(j.sections)*2*(j.end+batch)
}

// rotate begins the other file, of which nothing is needed any more.
func (j *Journal) rotate() {
	j.turn++
	j.end, j.due = 0, j.Sections()
	j.sections = len(j.due)
	j.size = max(j.least(), j.length[j.turn%2])
	j.whole = 0
}

// ahead is the distance by which a file is filled with zeros before its batches.
const ahead = 4 << 20

// extend writes zeros ahead, once the file ends before a batch that ends there does, so that few
// writes change what the file system has to keep of it. A disk that is full is none of its
// business: the batch may have room yet.
func (j *Journal) extend(end int64) error {
	length := &j.length[j.turn%2]
	if end <= *length || *length >= j.size {
		return nil
	}
	zero := make([]byte, min(max(end, *length)+ahead, max(end, j.size))-*length)
	_, err := j.files[j.turn%2].WriteAt(zero, *length)
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return nil
	case err != nil:
		return fmt.Errorf("extend: %w", err)
	}
	*length += int64(len(zero))
	return nil
}

const (
	magic      = 0x5851_4a01
	headerSize = 40
	align      = 64
)

// header is what stands before a batch.
type header struct {
	id           uint64 // of the journal
	turn, number uint64
	length       uint32 // of the entries
	complete     bool   // the file has a whole copy of each section by now
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal fills in the header of a batch, and makes it end where another may begin.
func seal(b []byte, h header) []byte {
	binary.LittleEndian.PutUint32(b, magic)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-headerSize))
	if h.complete {
		b[12] = 1
	}
	binary.LittleEndian.PutUint64(b[16:], h.turn)
	binary.LittleEndian.PutUint64(b[24:], h.number)
	binary.LittleEndian.PutUint64(b[32:], h.id)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	return append(b, make([]byte, (align-len(b)%align)%align)...)
}

// open reads the batch at the beginning of b: its header, and its entries; false if there is
// none that is whole.
func open(b []byte) (h header, entries []byte, ok bool) {
	if len(b) < headerSize || binary.LittleEndian.Uint32(b) != magic {
		return header{}, nil, false
	}
	h.length = binary.LittleEndian.Uint32(b[8:])
	if uint64(h.length) > uint64(len(b)-headerSize) {
		return header{}, nil, false
	}
	end := headerSize + int(h.length)
	if crc32.Checksum(b[8:end], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return header{}, nil, false
	}
	h.complete = b[12] == 1
	h.turn, h.number, h.id = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])
	return h, b[headerSize:end], true
}

// appendEntry appends an entry of records; without any, the encoding of a whole copy is to follow.
func appendEntry(b []byte, id seq.SectionID, records []exact.Record) []byte {
	b = binary.AppendUvarint(b, uint64(id))
	b = binary.AppendUvarint(b, uint64(len(records)))
	for i := range records {
		b = records[i].AppendTo(b)
	}
	return b
}
