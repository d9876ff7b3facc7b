package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
	"github.com/seqsvr/seqsvr/storesvr/journal"
)

var exactSection = seq.SectionRegister(1)

// exactStore is a new database with an exact space, in which section 1 is promised to an epoch.
func exactStore(t *testing.T, promised seq.Epoch) (dir string, db *DB, o *exact.Owner) {
	t.Helper()
	mapping, err := seq.NewMapping(seq.Space{Name: "user", Sections: 1}, seq.Space{Name: "order", Sections: 2, Mode: seq.Exact})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "store")
	if err := Create(dir, Identity{Cluster: "c1", UUID: "u1", Name: "a", N: 1, R: 1, W: 1, Names: []string{"a"}, Mapping: mapping}, Filling{}); err != nil {
		t.Fatal(err)
	}
	db = reopened(t, dir)
	if _, err := db.Commit(Update{Changes: []acceptor.Change{{Register: exactSection, State: acceptor.State{Promised: promised}}}}); err != nil {
		t.Fatal(err)
	}
	o, err = exact.NewOwner(exact.Config{Window: 60_000}, seq.Epoch{Round: 2, Session: 0xa}, &exact.State{}, time.Now().UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	return dir, db, o
}

func reopened(t *testing.T, dir string) *DB {
	t.Helper()
	db, _, _, err := Open(dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// logged writes the owner's next batch.
func logged(t *testing.T, db *DB, o *exact.Owner) {
	t.Helper()
	if _, err := o.Take(7, 1, "", 0, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	b, _ := o.Begin()
	o.Committed()
	records, err := db.Copy(1).Append(&b, b.Records[len(b.Records)-1].Time)
	if err != nil {
		t.Fatal(err)
	}
	if _, n, err := db.Log([]exact.Entry{{Section: 1, Records: records}}); err != nil || n == 0 {
		t.Fatalf("%d bytes, %v", n, err)
	}
}

func journalFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "journal-*"))
	if err != nil || len(paths) != 2 {
		t.Fatalf("files %q, %v", paths, err)
	}
	out := map[string][]byte{}
	for _, p := range paths {
		if out[p], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestAJournalAndADatabaseThatAreNotOfOneTimeAreRefused(t *testing.T) {
	own := seq.Epoch{Round: 2, Session: 0xa}
	for _, row := range []struct {
		name     string
		promised seq.Epoch
		old      bool // the journal
		want     string
	}{
		{"an older journal", own, true, "old copy"},
		{"an older database", seq.Epoch{Round: 1, Session: 0xa}, false, "has promised 1@"},
		{"both as they were", own, false, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, db, o := exactStore(t, row.promised)
			logged(t, db, o)
			before := journalFiles(t, dir)
			logged(t, db, o)
			if _, err := db.Commit(Update{LeaseBound: time.Second}); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if row.old {
				for path, text := range before {
					if err := os.WriteFile(path, text, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			_, _, inspected := Inspect(dir)
			db, meta, _, err := Open(dir, "", nil)
			if row.want == "" {
				if err != nil || inspected != nil || db.Copy(1).At().Index != 3 || meta.Journal.Batches != 3 {
					t.Errorf("got %v, %v, %+v", err, inspected, meta.Journal)
				}
				_ = db.Close()
				return
			}
			for _, err := range []error{err, inspected} {
				if !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), row.want) {
					t.Errorf("got %v, want %q", err, row.want)
				}
			}
		})
	}
}

// Copies are shown as a reader of whole stores passes them on, and looking changes nothing.
func TestInspectShowsCopiesAndChangesNothing(t *testing.T) {
	dir, db, o := exactStore(t, seq.Epoch{Round: 2, Session: 0xa})
	logged(t, db, o)
	// One without a copy may have accepted a step that promised alone.
	empty, own := seq.SectionRegister(2), seq.Epoch{Round: 2, Session: 0xa}
	if _, err := db.Commit(Update{Changes: []acceptor.Change{{Register: empty, State: acceptor.State{Promised: own, Accepted: own}}}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := journalFiles(t, dir)
	_, registers, err := Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := acceptor.CopyOf(registers[exactSection].Of(exactSection), seq.DefaultWindow.Milliseconds())
	if err != nil || whole.Describe() != o.State().Describe() {
		t.Errorf("got %v, %v, want %s", whole, err, o.State().Describe())
	}
	if whole, err := acceptor.CopyOf(registers[empty].Of(empty), seq.DefaultWindow.Milliseconds()); err != nil || whole.At().Index != 0 {
		t.Errorf("of a section without records: got %v, %v", whole, err)
	}
	for path, text := range journalFiles(t, dir) {
		if string(before[path]) != string(text) {
			t.Errorf("%s has changed", path)
		}
	}
}

// A database that is not there leaves no journal behind either.
func TestACreateThatFailsLeavesNoJournal(t *testing.T) {
	dir, db, _ := exactStore(t, seq.Epoch{})
	defer db.Close()
	if err := Create(dir, Identity{Mapping: db.mapping}, Filling{}); !errors.Is(err, ErrExists) {
		t.Fatalf("got %v, want ErrExists", err)
	}
	journalFiles(t, dir)
}
