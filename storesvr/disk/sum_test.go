package disk

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

const pageSize = 4096

// snapshot is a database at rest, and what it is to be read as.
type snapshot struct {
	text      []byte
	meta      Meta
	registers map[seq.Register]acceptor.State
}

// resealed leaves the sum of what is there by now, as a build does that knows all of it.
func resealed(tx *bolt.Tx, boots uint64) error {
	b := tx.Bucket(metaBucket)
	commits, err := decodeNumber(keyCommits, b.Get(keyCommits))
	if err != nil {
		return err
	}
	total, err := sumOf(tx)
	if err != nil {
		return err
	}
	return b.Put(keySum, sealed{boots: boots, commits: commits, tx: uint64(tx.ID()), sum: total}.encode())
}

// history makes a database of some pages of each kind and leaves a snapshot after each commit.
func history(t *testing.T, commits int) []snapshot {
	t.Helper()
	dir := createdWith(t, 500)
	path := filepath.Join(dir, FileName)
	db, meta, registers := opened(t, dir)
	rng := rand.New(rand.NewPCG(7, 1))
	var out []snapshot
	for i := range commits {
		e := seq.Epoch{Round: uint64(i + 1), Session: 9}
		st := acceptor.State{Promised: e, Accepted: e, Max: uint64(1000 * i)}
		u := Update{Changes: []acceptor.Change{{Register: seq.SectionRegister(seq.SectionID(rng.IntN(500))), State: st}}}
		switch i % 4 {
		case 0:
			u.Changes = append(u.Changes, acceptor.Change{Register: seq.TagRegister(fmt.Sprint("tag", rng.IntN(120))), State: st})
		case 1:
			document := st
			document.Payload, document.PayloadMax = bytes.Repeat([]byte{byte(i)}, 3000), st.Max
			u.Changes = append(u.Changes, acceptor.Change{Register: seq.RoutesRegister, State: document})
		case 2:
			u.Distrusted = fmt.Sprint("a reason of commit ", i)
		}
		for _, c := range u.Changes {
			registers[c.Register] = c.State
		}
		n, err := db.Commit(u)
		if err != nil {
			t.Fatal(err)
		}
		meta.Commits = n
		if u.Distrusted != "" {
			meta.Distrusted = u.Distrusted
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, snapshot{text, meta, maps.Clone(registers)})
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// inspect reads a database of that text.
func inspect(t *testing.T, text []byte) (Meta, map[seq.Register]acceptor.State, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return Inspect(dir)
}

// A disk that loses the write of a page keeps in it what an earlier commit wrote there. For each page
// of a database and each of the commits before: the store does not start, or starts with all that it
// had. The one exception are the root pages: without the last write of both nothing tells a lost commit
// from one that was never made. Fellow stores tell, since it has fewer commits than they remember.
func TestALostWriteOfAPageIsFoundOrWasNotNeeded(t *testing.T) {
	if raceDetector {
		t.Skip("a damaged page sends bbolt anywhere, and the race detector faults where the runtime cannot recover")
	}
	all := history(t, 40)
	tried, refused, named, back := 0, 0, 0, 0
	for _, now := range []int{len(all) - 1, len(all) - 2, len(all) - 3, len(all) - 4} {
		want := all[now]
		for at := 0; at+pageSize <= len(want.text); at += pageSize {
			seen := map[string]bool{string(want.text[at : at+pageSize]): true}
			for before := now - 1; before >= max(0, now-8); before-- {
				if at+pageSize > len(all[before].text) {
					continue
				}
				old := all[before].text[at : at+pageSize]
				if seen[string(old)] {
					continue
				}
				seen[string(old)] = true
				text := bytes.Clone(want.text)
				copy(text[at:], old)
				name := fmt.Sprintf("page %d of commit %d as it was at commit %d", at/pageSize, now, before)
				tried++
				meta, registers, err := inspect(t, text)
				switch {
				case err != nil && !errors.Is(err, ErrCorrupt):
					t.Errorf("%s: error of no name: %v", name, err)
				case errors.Is(err, ErrLostWrite):
					named++
					refused++
				case err != nil:
					refused++
				case at < metaPages*pageSize && meta.Commits < want.meta.Commits:
					back++
				default:
					if diff := cmp.Diff(want.registers, registers) + cmp.Diff(want.meta.Distrusted, meta.Distrusted); diff != "" || meta.Commits != want.meta.Commits {
						t.Errorf("%s: the store starts with other registers: commit %d, %s", name, meta.Commits, diff)
					}
				}
			}
		}
	}
	t.Logf("%d lost writes: %d refused, %d of these as lost writes; %d times a commit back by the root page", tried, refused, named, back)
	if named < 20 || back == 0 {
		t.Errorf("%d found as lost writes, want many; %d root pages", named, back)
	}
}

// A database of the version before gets its sum at its first start. Such a build may write again later,
// and counts its boot.
func TestASumIsMadeWhereAnOlderBuildWroteLast(t *testing.T) {
	dir := created(t)
	edit(t, dir, func(tx *bolt.Tx) error { return tx.Bucket(metaBucket).Delete(keySum) })
	db, _, _ := opened(t, dir)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	stale := func() error {
		_, _, err := Inspect(dir)
		return err
	}
	if err := stale(); err != nil {
		t.Fatalf("after its first start: %v", err)
	}
	change := func(tx *bolt.Tx) error {
		key := []byte(seq.TagRegister("orders"))
		return tx.Bucket(registerBucket).Put(key, encodeRegister(key, acceptor.State{Max: 5}))
	}
	whole, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	edit(t, dir, change)
	if err := stale(); !errors.Is(err, ErrLostWrite) || !errors.Is(err, ErrCorrupt) {
		t.Errorf("a record that no boot goes with: got %v, want ErrLostWrite", err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, func(tx *bolt.Tx) error { // as the version before opens and commits
		b := tx.Bucket(metaBucket)
		return errors.Join(b.Put(keyBootCount, encodeNumber(keyBootCount, 2)), b.Put(keyCommits, encodeNumber(keyCommits, 3)), change(tx))
	})
	db, _, registers := opened(t, dir)
	if registers[seq.TagRegister("orders")].Max != 5 {
		t.Error("what the older build wrote is gone")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, change)
	if err := stale(); !errors.Is(err, ErrLostWrite) {
		t.Errorf("after its next start: got %v, want ErrLostWrite", err)
	}
}

// However records are changed, the sum that is carried along is the one that a start adds up.
func TestTheRunningSumIsTheSumOfAllRecords(t *testing.T) {
	dir := createdWith(t, 130)
	db, _, _ := opened(t, dir)
	rng := rand.New(rand.NewPCG(3, 1))
	for round := range 30 {
		var u Update
		for range rng.IntN(20) {
			st := acceptor.State{Max: rng.Uint64N(100)}
			u.Changes = append(u.Changes, acceptor.Change{Register: seq.SectionRegister(seq.SectionID(rng.IntN(130))), State: st},
				acceptor.Change{Register: seq.TagRegister(fmt.Sprint(rng.IntN(9))), State: st})
		}
		u.NoLeases, u.Required = round%3 == 0, round%4
		if _, err := db.Commit(u); err != nil {
			t.Fatal(err)
		}
		err := db.bolt.View(func(tx *bolt.Tx) error {
			total, err := sumOf(tx)
			if total != db.sum {
				t.Errorf("round %d: %x carried along, %x added up", round, db.sum, total)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestASumDoesNotDependOnTheOrderAndForgetsWhatIsTakenAway(t *testing.T) {
	var a, b sum
	var hashes []sum
	for i := range 50 {
		hashes = append(hashes, hashOf([]byte("b"), fmt.Append(nil, i), []byte("record")))
	}
	for i := range hashes {
		a.add(hashes[i])
		b.add(hashes[len(hashes)-1-i])
	}
	if a != b || a == (sum{}) {
		t.Errorf("%x and %x", a, b)
	}
	for i := range hashes {
		a.remove(hashes[i])
	}
	if a != (sum{}) {
		t.Errorf("%x is left of nothing", a)
	}
	if hashOf([]byte("b"), []byte("ke"), []byte("yrecord")) == hashOf([]byte("b"), []byte("key"), []byte("record")) {
		t.Error("a key and its record run into each other")
	}
}

// With an older list of free pages bbolt would write over pages in use. The list of each commit is put in
// the place of the last one.
func TestAnOlderListOfFreePagesIsFound(t *testing.T) {
	all := history(t, 12)
	list := func(s snapshot) (page []byte, at int64) {
		t.Helper()
		path := filepath.Join(t.TempDir(), FileName)
		if err := os.WriteFile(path, s.text, 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := checkMetaPages(path)
		if err != nil {
			t.Fatal(err)
		}
		at = int64(root.free) * root.pageSize
		return s.text[at : at+root.pageSize], at
	}
	last := all[len(all)-1]
	_, at := list(last)
	found := 0
	for i, older := range all[:len(all)-1] {
		page, _ := list(older)
		text := bytes.Clone(last.text)
		copy(text[at+8:], page[8:]) // its own number, the list of that commit
		switch _, _, err := inspect(t, text); {
		case errors.Is(err, ErrLostWrite):
			found++
		case err != nil:
			t.Errorf("commit %d: %v", i, err)
		}
	}
	if found < 6 {
		t.Errorf("%d of %d older lists were found", found, len(all)-1)
	}
}

// Records of any size and number, pages of all kinds, and long lists of free pages: a sound database is
// never taken for a damaged one.
func TestASoundDatabaseOfAnyShapeIsOpened(t *testing.T) {
	dir := createdWith(t, 2000)
	rng := rand.New(rand.NewPCG(11, 1))
	for round := range 12 {
		db, _, _ := opened(t, dir)
		for range 4 {
			var u Update
			for range rng.IntN(400) {
				u.Changes = append(u.Changes, acceptor.Change{Register: seq.TagRegister(fmt.Sprint("tag ", rng.IntN(6000))), State: acceptor.State{Max: rng.Uint64()}})
			}
			for _, r := range []seq.Register{seq.RoutesRegister, seq.EventsRegister, seq.KeysRegister} {
				size := 1 << rng.IntN(22)
				u.Changes = append(u.Changes, acceptor.Change{Register: r, State: acceptor.State{Payload: make([]byte, size), PayloadMax: 1}})
			}
			if _, err := db.Commit(u); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Inspect(dir); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
