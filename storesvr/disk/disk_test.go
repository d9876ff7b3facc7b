package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/internal/base/version"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

func testIdentity(t *testing.T) Identity {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 8}, seq.Space{Name: "room", Sections: 4})
	if err != nil {
		t.Fatal(err)
	}
	return Identity{Cluster: "c1", UUID: "u-1", Name: "a", N: 3, R: 2, W: 2, Names: []string{"a", "b", "c"}, Mapping: mapping}
}

func created(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := Create(dir, testIdentity(t), Filling{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func opened(t *testing.T, dir string) (*DB, Meta, map[seq.Register]acceptor.State) {
	t.Helper()
	db, meta, registers, err := Open(dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, meta, registers
}

// edit changes the database behind the package's back.
func edit(t *testing.T, dir string, change func(tx *bolt.Tx) error) {
	t.Helper()
	b, err := bolt.Open(filepath.Join(dir, FileName), 0o600, boltOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Update(change); err != nil {
		t.Fatal(err)
	}
}

func TestANewDatabaseHasAllRegistersAtZero(t *testing.T) {
	_, meta, registers := opened(t, created(t))
	want := Meta{Identity: testIdentity(t), BootCount: 1, Commits: 1, Key: meta.Key}
	if len(meta.Key) != 32 {
		t.Errorf("a key of %d bytes, want 32", len(meta.Key))
	}
	want.Format = Format
	if diff := cmp.Diff(want, meta); diff != "" {
		t.Error(diff)
	}
	if got, want := len(registers), 12+len(seq.FixedRegisters()); got != want {
		t.Errorf("%d registers, want %d", got, want)
	}
	for r, st := range registers {
		if diff := cmp.Diff(acceptor.State{}, st); diff != "" {
			t.Errorf("%s: %s", r, diff)
		}
	}
}

func TestCreateNeverTouchesADatabaseThatIsThere(t *testing.T) {
	dir := created(t)
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := Create(dir, testIdentity(t), Filling{}); !errors.Is(err, ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	after, _ := os.ReadFile(filepath.Join(dir, FileName))
	if !slices.Equal(before, after) {
		t.Error("the database changed")
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("%d files in the directory (%v), want 1", len(files), err)
	}
}

func TestTheLaterOfTwoThatPublishLoses(t *testing.T) {
	dir := created(t)
	temp := filepath.Join(dir, "late")
	if err := os.WriteFile(temp, []byte("late"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publish(temp, filepath.Join(dir, FileName)); !errors.Is(err, ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	opened(t, dir)
}

func TestTheLongestLeaseIsKeptWhenNothingIsLeased(t *testing.T) {
	dir := created(t)
	db, _, _ := opened(t, dir)
	for _, u := range []Update{{LeaseBound: 5 * time.Second}, {NoLeases: true}, {LeaseBound: 3 * time.Second}, {NoLeases: true}} {
		if _, err := db.Commit(u); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, meta, _ := opened(t, dir); meta.LeaseBound != 0 || meta.Longest != 5*time.Second {
		t.Errorf("got a bound of %v, the longest %v; want 0 and 5s", meta.LeaseBound, meta.Longest)
	}
}

func TestADatabaseOfBeforeHasTheLongestLeaseInItsBound(t *testing.T) {
	dir := created(t)
	db, _, _ := opened(t, dir)
	if _, err := db.Commit(Update{LeaseBound: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(metaBucket).Delete(keyLongest), tx.Bucket(metaBucket).Delete(keySum))
	})
	db, _, _ = opened(t, dir)
	if _, err := db.Commit(Update{NoLeases: true}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, meta, _ := opened(t, dir); meta.LeaseBound != 0 || meta.Longest != 5*time.Second {
		t.Errorf("got a bound of %v, the longest %v; want 0 and 5s", meta.LeaseBound, meta.Longest)
	}
}

func TestWhatWasCommittedIsThereAfterAReopen(t *testing.T) {
	dir := created(t)
	db, made, _ := opened(t, dir)
	promised, accepted := seq.Epoch{Round: 9, Session: 0xabc}, seq.Epoch{Round: 7, Session: 0xdef}
	states := map[seq.Register]acceptor.State{
		seq.SectionRegister(3): {Promised: promised, Accepted: accepted, Max: 30_000},
		seq.RoutesRegister:     {Promised: promised, Accepted: promised, Max: 8, Payload: []byte("routes"), PayloadMax: 7},
		seq.TagRegister("new"): {Promised: promised},
	}
	update := Update{
		LeaseBound: 3 * time.Second, Distrusted: "because", Remembered: []quorum.Claim{{Store: "u-2", Boot: 3, Commits: 4, Seal: [16]byte{5}}},
		Members: &Members{Version: 1, List: []quorum.Member{{UUID: "u-1", Name: "a"}, {UUID: "u-2", Name: "b"}}},
	}
	for r, st := range states {
		update.Changes = append(update.Changes, acceptor.Change{Register: r, State: st})
	}
	if commits, err := db.Commit(update); err != nil || commits != 2 {
		t.Fatalf("got %d commits, %v, want 2", commits, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, meta, registers := opened(t, dir)
	for r, want := range states {
		if diff := cmp.Diff(want, registers[r]); diff != "" {
			t.Errorf("%s: %s", r, diff)
		}
	}
	want := Meta{Identity: testIdentity(t), Members: *update.Members, BootCount: 2, Commits: 3, LeaseBound: 3 * time.Second, Longest: 3 * time.Second, Distrusted: "because",
		Key: made.Key, Remembered: update.Remembered}
	want.Format = Format
	if diff := cmp.Diff(want, meta); diff != "" {
		t.Error(diff)
	}
}

func TestFloorsAreWhatTheLastUpdateSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := Floors{Floors: quorum.Floors{Tag: 7, Worker: 5}, Stamp: &Stamp{Margin: time.Hour, Since: now}}
	if err := Create(dir, testIdentity(t), Filling{Floors: made}); err != nil {
		t.Fatal(err)
	}
	db, meta, _ := opened(t, dir)
	if diff := cmp.Diff(made, meta.Floors); diff != "" {
		t.Errorf("made (-want +got)\n%s", diff)
	}
	stamped := meta.Floors.Made(now.Add(time.Minute))
	want := Floors{Floors: quorum.Floors{Tag: 7, Worker: uint64(now.Add(61 * time.Minute).UnixMilli())}}
	if diff := cmp.Diff(want, stamped); diff != "" {
		t.Errorf("by the store's clock (-want +got)\n%s", diff)
	}
	if _, err := db.Commit(Update{Floors: &stamped}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Commit(Update{LeaseBound: 1}); err != nil {
		t.Fatal(err)
	}
	db.Close()
	if meta, _, err := Inspect(dir); err != nil || meta.Floors != stamped {
		t.Errorf("after a reopen: %+v, %v", meta.Floors, err)
	}
}

func TestAClockThatIsBehindWhatABackupKnowsMakesNoLowerFloor(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := Floors{Stamp: &Stamp{Margin: time.Hour, Since: now}}
	want := uint64(now.Add(time.Hour).UnixMilli())
	for _, clock := range []time.Time{now, now.AddDate(-1, 0, 0), time.Unix(0, 0), {}} {
		if got := f.Made(clock).Worker; got != want {
			t.Errorf("at %v: %d, want %d", clock, got, want)
		}
	}
	f.Worker = want + 5
	if got := f.Made(now).Worker; got != want+5 {
		t.Errorf("below the era's before: %d, want %d", got, want+5)
	}
}

func TestZeroFieldsOfAnUpdateChangeNothing(t *testing.T) {
	dir := created(t)
	db, before, _ := opened(t, dir)
	for _, u := range []Update{{LeaseBound: time.Second}, {}, {Distrusted: "x"}, {}} {
		if _, err := db.Commit(u); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	_, after, _ := opened(t, dir)
	before.Longest = time.Second
	before.LeaseBound, before.Distrusted, before.BootCount, before.Commits = time.Second, "x", 2, 6
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	if !new(Update).Empty() || (&Update{Distrusted: "x"}).Empty() {
		t.Error("Empty is wrong")
	}
}

func TestOpenRefusesByName(t *testing.T) {
	block, lease := blockKey(0), []byte(seq.ArbiterRegister)
	in := func(bucket []byte, change func(*bolt.Bucket) error) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			edit(t, dir, func(tx *bolt.Tx) error { return change(tx.Bucket(bucket)) })
		}
	}
	sealed := func(change func(t *testing.T, dir string)) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			change(t, dir)
			edit(t, dir, func(tx *bolt.Tx) error { return resealed(tx, 0) })
		}
	}
	flip := func(key []byte) func(*bolt.Bucket) error {
		return func(b *bolt.Bucket) error {
			record := slices.Clone(b.Get(key))
			record[20] ^= 1
			return b.Put(key, record)
		}
	}
	remove := func(key []byte) func(*bolt.Bucket) error {
		return func(b *bolt.Bucket) error { return b.Delete(key) }
	}
	put := func(key, record []byte) func(*bolt.Bucket) error {
		return func(b *bolt.Bucket) error { return b.Put(key, record) }
	}
	rows := []struct {
		name    string
		damage  func(t *testing.T, dir string)
		cluster string
		want    error
		text    string
	}{
		{"no directory", func(t *testing.T, dir string) { os.RemoveAll(dir) }, "", ErrNoDatabase, "run init"},
		{"no database", func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, FileName)) }, "", ErrNoDatabase, "run init"},
		{"an empty file", func(t *testing.T, dir string) { truncate(t, dir, 0) }, "", ErrCorrupt, "empty"},
		{"a file cut short", func(t *testing.T, dir string) { truncate(t, dir, 12<<10) }, "", ErrCorrupt, ""},
		{"a file of something else", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte(strings.Repeat("no database ", 4096)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "", ErrCorrupt, ""},
		{"a directory in its place", func(t *testing.T, dir string) {
			path := filepath.Join(dir, FileName)
			os.Remove(path)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "", ErrCorrupt, ""},
		{"another cluster", func(*testing.T, string) {}, "c2", seq.ErrForeignCluster, `"c1"`},
		{"a flipped bit", in(registerBucket, flip(lease)), "", ErrCorrupt, "lease arbiter"},
		{"a flipped bit among the sections", in(sectionBucket, flip(block)), "", ErrCorrupt, "section 0 to section 11"},
		{"a record under another key", in(registerBucket, func(b *bolt.Bucket) error {
			return b.Put(lease, slices.Clone(b.Get([]byte(seq.RoutesRegister))))
		}), "", ErrCorrupt, "lease arbiter"},
		{"a block of sections under another key", in(sectionBucket, func(b *bolt.Bucket) error {
			return b.Put(blockKey(1), slices.Clone(b.Get(block)))
		}), "", ErrCorrupt, "2 records of sections, expected 1"},
		{"a record cut short", in(registerBucket, put(lease, []byte{1})), "", ErrCorrupt, "lease arbiter"},
		{"a block cut short", in(sectionBucket, put(block, seal(block, make([]byte, 100)))), "", ErrCorrupt, "section 0"},
		{"a block of no known layout", sealed(in(sectionBucket, func(b *bolt.Bucket) error {
			value := slices.Clone(b.Get(block))
			value[0] = 9
			return b.Put(block, seal(block, value[:len(value)-checksumSize]))
		})), "", ErrNewer, "layout 9 of sections"},
		{"a record that no build knows", sealed(in(metaBucket, put([]byte("later"), seal([]byte("later"), nil)))), "", ErrNewer, "later"},
		{"a record whose name is damaged", in(metaBucket, put([]byte("later"), []byte("text"))), "", ErrCorrupt, "later"},
		{"a field that no build knows", sealed(in(metaBucket, put(keyFloors, seal(keyFloors, []byte(`{"tag":1,"later":2}`))))), "", ErrNewer, "later"},
		{"a bucket that no build knows", sealed(func(t *testing.T, dir string) {
			edit(t, dir, func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("later")); return err })
		}), "", ErrNewer, "later"},
		{"a register of a later layout", sealed(in(registerBucket, put(lease, seal(lease, append([]byte{9}, make([]byte, 48)...))))), "", ErrNewer, "layout 9"},
		{"a register that is gone", in(registerBucket, remove(lease)), "", ErrCorrupt, "lease arbiter is missing"},
		{"a later register that is gone", in(registerBucket, remove([]byte(seq.KeysRegister))), "", ErrCorrupt, "document keys is missing"},
		{"sections that are gone", in(sectionBucket, remove(block)), "", ErrCorrupt, "section 0 to section 11 is missing"},
		{"a section among the others", in(registerBucket, func(b *bolt.Bucket) error {
			key := []byte(seq.SectionRegister(5))
			return b.Put(key, encodeRegister(key, acceptor.State{}))
		}), "", ErrCorrupt, "section 5"},
		{"a register of no known kind where a write was lost", in(registerBucket, put([]byte("zz"), encodeRegister([]byte("zz"), acceptor.State{}))), "", ErrLostWrite, "its records are of"},
		{"a register of no known kind", sealed(in(registerBucket, put([]byte("zz"), encodeRegister([]byte("zz"), acceptor.State{})))), "", ErrNewer, "zz"},
		{"no sections", func(t *testing.T, dir string) {
			edit(t, dir, func(tx *bolt.Tx) error { return tx.DeleteBucket(sectionBucket) })
		}, "", ErrCorrupt, "bucket"},
		{"longest lease", in(metaBucket, put(keyLongest, []byte("?"))), "", ErrCorrupt, "longest_lease"},
		{"no lease bound", in(metaBucket, remove(keyLeaseBound)), "", ErrCorrupt, "lease_bound"},
		{"a damaged identity", in(metaBucket, put(keyIdentity, []byte("{}"))), "", ErrCorrupt, "identity"},
		{"an earlier format", in(metaBucket, func(b *bolt.Bucket) error { return putFormat(t, b, Format-1) }), "", ErrFormat, "1, expected 2 or 3"},
		{"a later format", in(metaBucket, func(b *bolt.Bucket) error { return putFormat(t, b, FormatGated+1) }), "", ErrNewer, "4, expected 2 or 3"},
		{"a later protocol", in(metaBucket, func(b *bolt.Bucket) error {
			return putRequired(bucket{Bucket: b, name: metaBucket, sum: &sum{}}, version.Protocol+1)
		}), "", seq.ErrProtocol, "start a newer build"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			dir := created(t)
			row.damage(t, dir)
			db, _, _, err := Open(dir, row.cluster, nil)
			if err == nil {
				db.Close()
			}
			if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.text) {
				t.Errorf("got %v, want %v with %q", err, row.want, row.text)
			}
		})
	}
}

func putFormat(t *testing.T, b *bolt.Bucket, format int) error {
	id := testIdentity(t)
	id.Format = format
	record, err := encodeJSON(keyIdentity, id)
	if err != nil {
		return err
	}
	return b.Put(keyIdentity, record)
}

func truncate(t *testing.T, dir string, size int64) {
	t.Helper()
	if err := os.Truncate(filepath.Join(dir, FileName), size); err != nil {
		t.Fatal(err)
	}
}

func TestARefusedOpenWritesNothing(t *testing.T) {
	dir := created(t)
	for range 3 {
		if _, _, _, err := Open(dir, "c2", nil); !errors.Is(err, seq.ErrForeignCluster) {
			t.Fatal(err)
		}
	}
	if _, meta, _ := opened(t, dir); meta.BootCount != 1 || meta.Commits != 1 {
		t.Errorf("boot %d, commit %d, want the first of both", meta.BootCount, meta.Commits)
	}
}

func TestADatabaseInUseIsLocked(t *testing.T) {
	dir := created(t)
	db, _, _ := opened(t, dir)
	if _, _, _, err := Open(dir, "", nil); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	opened(t, dir)
}

func TestADirectoryThatCannotBeUsedIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(file, testIdentity(t), Filling{}); !errors.Is(err, ErrDirectory) {
		t.Errorf("create in a file: got %v, want ErrDirectory", err)
	}
	if _, _, _, err := Open(file, "", nil); !errors.Is(err, ErrDirectory) {
		t.Errorf("open in a file: got %v, want ErrDirectory", err)
	}
	if os.Getuid() == 0 {
		return // permissions do not bind root
	}
	dir := created(t)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	os.Chmod(filepath.Join(dir, FileName), 0o400)
	if _, _, _, err := Open(dir, "", nil); !errors.Is(err, ErrDirectory) {
		t.Errorf("open without permission: got %v, want ErrDirectory", err)
	}
}

func TestBboltFindsNoFaultAfterManyCommits(t *testing.T) {
	dir := created(t)
	db, _, _ := opened(t, dir)
	for i := range uint64(50) {
		st := acceptor.State{Max: i, Payload: make([]byte, 100*i), PayloadMax: i}
		if _, err := db.Commit(Update{Changes: []acceptor.Change{{Register: seq.RoutesRegister, State: st}}}); err != nil {
			t.Fatal(err)
		}
	}
	err := db.bolt.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if free, err := db.Free(); err != nil || free == 0 {
		t.Errorf("free is %d, %v", free, err)
	}
}

func TestADatabaseFromBeforeTheLaterRegistersGetsThemAtItsFirstStart(t *testing.T) {
	dir := created(t)
	edit(t, dir, func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(metaBucket).Delete(keySum), tx.Bucket(metaBucket).Delete(keyLater), tx.Bucket(registerBucket).Delete([]byte(seq.KeysRegister)))
	})
	for start := range 2 {
		db, _, registers, err := Open(dir, "c1", nil)
		if err != nil {
			t.Fatal(err)
		}
		st, there := registers[seq.KeysRegister]
		if !there || start == 0 && st.Max != 0 || start == 1 && st.Max != 7 {
			t.Errorf("start %d: %v, %+v", start, there, st)
		}
		if start == 0 {
			if _, err := db.Commit(Update{Changes: []acceptor.Change{{Register: seq.KeysRegister, State: acceptor.State{Max: 7}}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Builds that go by no requirement open format 2 alone.
func TestADatabaseThatRequiresAProtocolHasAFormatThatOlderBuildsRefuse(t *testing.T) {
	for _, row := range []struct{ required, format int }{{0, Format}, {version.ExactSpaces, Format}, {version.Gate, FormatGated}} {
		for _, made := range []bool{true, false} { // with the database, and later
			dir := filepath.Join(t.TempDir(), "store")
			with := Filling{}
			if made {
				with.Required = row.required
			}
			if err := Create(dir, testIdentity(t), with); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				db, meta, _, err := Open(dir, "", nil)
				if err != nil {
					t.Fatal(err)
				}
				if made && (meta.Format != row.format || meta.Required != row.required) {
					t.Errorf("format %d and protocol %d of a database made with %d", meta.Format, meta.Required, row.required)
				}
				if _, err := db.Commit(Update{Required: row.required}); err != nil {
					t.Fatal(err)
				}
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				made = true
			}
		}
	}
}

// They would drop the floor of sections when they write the others.
func TestADatabaseWithAFloorOfSectionsIsRefusedByOlderBuilds(t *testing.T) {
	for section, want := range map[uint64]int{0: Format, 7: FormatGated} {
		dir := filepath.Join(t.TempDir(), "store")
		if err := Create(dir, testIdentity(t), Filling{Floors: Floors{Floors: quorum.Floors{Tag: 7, Section: section}}}); err != nil {
			t.Fatal(err)
		}
		db, meta, _, err := Open(dir, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if meta.Format != want {
			t.Errorf("format %d with a floor of %d, want %d", meta.Format, section, want)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
