package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

const (
	window = 1000
	testID = 0xabc
)

func opened(t *testing.T, dir string) *Journal {
	t.Helper()
	cfg := Config{Dir: dir, ID: testID, Window: func(seq.SectionID) int64 { return window }, File: 16 << 10}
	j, err := Open(cfg)
	if errors.Is(err, ErrMissing) {
		if err = Create(cfg, nil); err == nil {
			j, err = Open(cfg)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// writer makes records as owners do, of sections that change owners now and then.
type writer struct {
	t      *testing.T
	rnd    *rand.Rand
	owners map[seq.SectionID]*exact.Owner
	round  uint64
	now    int64
	n      int
}

func newWriter(t *testing.T, seed uint64) *writer {
	return &writer{t: t, rnd: rand.New(rand.NewPCG(seed, 3)), owners: map[seq.SectionID]*exact.Owner{}, now: 1_000_000}
}

// step changes a few sections, and writes that.
func (w *writer) step(j *Journal) {
	w.t.Helper()
	if err := w.try(j); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) try(j *Journal) error {
	w.t.Helper()
	var entries []exact.Entry
	touched := map[seq.SectionID]bool{}
	for range 1 + w.rnd.IntN(4) {
		id := seq.SectionID(w.rnd.IntN(12))
		if touched[id] {
			continue
		}
		touched[id] = true
		entries = append(entries, w.change(j, id))
	}
	return j.Write(entries)
}

func (w *writer) change(j *Journal, id seq.SectionID) exact.Entry {
	w.t.Helper()
	c, o := j.Copy(id), w.owners[id]
	w.now += w.rnd.Int64N(20)
	if o == nil || w.rnd.IntN(30) == 0 {
		w.round++
		var err error
		if o, err = exact.NewOwner(exact.Config{Window: window}, seq.Epoch{Round: w.round, Session: 1}, c.State(), w.now); err != nil {
			w.t.Fatal(err)
		}
		w.owners[id] = o
	}
	for range w.rnd.IntN(5) {
		w.n++
		if _, err := o.Take(seq.UID(w.rnd.IntN(50)), 1+w.rnd.Uint32N(3), fmt.Sprint("id-", w.n), w.now, w.now); err != nil {
			w.t.Fatal(err)
		}
	}
	if w.rnd.IntN(10) == 0 {
		if b, ok := o.Begin(); ok {
			o.Committed()
			_ = b
		}
		if filled, err := c.Fill(o.State(), w.now); err != nil {
			w.t.Fatal(err)
		} else if filled {
			return exact.Entry{Section: id, Whole: c.Borrow().AppendTo(nil)}
		}
		return exact.Entry{Section: id}
	}
	b, ok := o.Begin()
	if !ok {
		return exact.Entry{Section: id}
	}
	o.Committed()
	taken, err := c.Append(&b, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	return exact.Entry{Section: id, Records: taken}
}

// picture is all that a journal has, for comparing.
func picture(j *Journal) map[seq.SectionID]string {
	out := map[seq.SectionID]string{}
	for _, id := range j.Sections() {
		c := j.Copy(id)
		if c.At().Index > 0 {
			out[id] = c.Borrow().Describe()
		}
	}
	return out
}

func same(t *testing.T, what string, got, want map[seq.SectionID]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d sections, want %d", what, len(got), len(want))
	}
	for id, text := range want {
		if got[id] != text {
			t.Fatalf("%s: section %d: got %s, want %s", what, id, got[id], text)
		}
	}
}

func TestAJournalIsReadBackAsItWasOverManyTurns(t *testing.T) {
	dir := t.TempDir()
	w := newWriter(t, 1)
	j := opened(t, dir)
	turns := map[uint64]bool{}
	for range 2000 {
		w.step(j)
		turns[j.turn] = true
		if w.rnd.IntN(40) == 0 {
			want := picture(j)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = opened(t, dir)
			same(t, fmt.Sprint("turn ", j.turn), picture(j), want)
		}
	}
	if len(turns) < 20 {
		t.Errorf("%d turns: not much of a test", len(turns))
	}
	for i := range 2 {
		info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("journal-%016x-%d", testID, i)))
		if err != nil {
			t.Fatal(err)
		}
		if limit := int64(16 * w.size(j)); info.Size() > max(limit, 64<<10) {
			t.Errorf("file %d has %d bytes, and all copies %d", i, info.Size(), w.size(j))
		}
	}
}

func (w *writer) size(j *Journal) (n int) {
	for _, id := range j.Sections() {
		n += len(j.Copy(id).Borrow().AppendTo(nil))
	}
	return n
}

// A crash leaves any part of the batch that was being written; all before it is there.
func TestABatchThatACrashCutOffIsLeftOutAsAWhole(t *testing.T) {
	for seed := range uint64(60) {
		dir := t.TempDir()
		w := newWriter(t, seed)
		j := opened(t, dir)
		for range 20 + w.rnd.IntN(300) {
			w.step(j)
		}
		before, beforeTurn := picture(j), j.turn
		old := contents(t, dir)
		w.step(j)
		after := picture(j)
		now := contents(t, dir)
		_ = j.Close()
		i := int(j.turn % 2)
		// Sectors of the batch reach the disk in any order, or not.
		torn := append([]byte(nil), now[i]...)
		lost := false
		for at := 0; at < len(torn); at += 512 {
			end := min(at+512, len(torn))
			if w.rnd.IntN(2) == 0 && at < len(old[i]) && string(torn[at:end]) != string(old[i][at:min(end, len(old[i]))]) {
				copy(torn[at:end], old[i][at:min(end, len(old[i]))])
				lost = true
			}
		}
		put(t, dir, i, torn)
		again := opened(t, dir)
		want := after
		if lost {
			want = before
		}
		same(t, fmt.Sprintf("seed %d, turn %d after %d", seed, j.turn, beforeTurn), picture(again), want)
		for range 50 { // and it goes on
			w.owners = map[seq.SectionID]*exact.Owner{}
			w.step(again)
		}
		want = picture(again)
		_ = again.Close()
		same(t, "after the crash", picture(opened(t, dir)), want)
	}
}

func contents(t *testing.T, dir string) (out [2][]byte) {
	t.Helper()
	for i := range out {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("journal-%016x-%d", testID, i)))
		if err != nil {
			t.Fatal(err)
		}
		out[i] = text
	}
	return out
}

func put(t *testing.T, dir string, i int, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("journal-%016x-%d", testID, i)), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedJournalIsRefusedAndNothingOfItLost(t *testing.T) {
	for seed := range uint64(40) {
		dir := t.TempDir()
		w := newWriter(t, 100+seed)
		j := opened(t, dir)
		for range 5 + w.rnd.IntN(200) {
			w.step(j)
		}
		now, i, end := contents(t, dir), int(j.turn%2), int(j.end)
		last := j.number
		_ = j.Close()
		// A byte of any batch but the last, which might be one that was never answered.
		var at int
		for {
			at = w.rnd.IntN(end)
			if n, inside := batchAt(now[i], at); inside && n < last {
				break
			} else if n == last {
				at = -1
				if w.rnd.IntN(50) == 0 {
					break
				}
			}
		}
		if at < 0 {
			continue
		}
		bad := append([]byte(nil), now[i]...)
		bad[at] ^= 1 << w.rnd.IntN(8)
		put(t, dir, i, bad)
		if _, err := Open(Config{Dir: dir, ID: testID, Window: func(seq.SectionID) int64 { return window }}); !errors.Is(err, ErrDamaged) {
			t.Errorf("seed %d: byte %d of turn %d: got %v, want ErrDamaged", seed, at, j.turn, err)
		}
		now[i] = bad
		same(t, "the files", asMap(contents(t, dir)), asMap(now))
	}
}

func asMap(c [2][]byte) map[seq.SectionID]string {
	return map[seq.SectionID]string{0: string(c[0]), 1: string(c[1])}
}

// batchAt is the number of the batch that has a byte, and whether the byte matters to it.
func batchAt(text []byte, at int) (number uint64, inside bool) {
	for pos := 0; ; {
		h, _, ok := open(text[pos:])
		if !ok {
			return 0, false
		}
		if at < pos+int(h.size()) {
			return h.number, at < pos+headerSize+int(h.length) && (at < pos+13 || at >= pos+16)
		}
		pos += int(h.size())
	}
}
