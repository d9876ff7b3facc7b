package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// TestAPageThatIsDamagedIsRefusedOrWasNotNeeded zeroes each page and flips bits in it:
// the store never starts with other registers than those that it had.
func TestAPageThatIsDamagedIsRefusedOrWasNotNeeded(t *testing.T) {
	if raceDetector {
		t.Skip("a damaged page sends bbolt anywhere, and the race detector faults where the runtime cannot recover")
	}
	dir := createdWith(t, 1000) // ten pages of sections, and what hangs on them
	db, meta, registers := opened(t, dir)
	for round := range uint64(20) {
		epoch := seq.Epoch{Round: round + 1, Session: 9}
		for r := range registers {
			id, section := r.Section()
			if round%4 == uint64(len(r))%4 && !section || section && id%100 == 0 {
				st := acceptor.State{Promised: epoch, Accepted: epoch, Max: 1000 * round}
				registers[r] = st
				if _, err := db.Commit(Update{Changes: []acceptor.Change{{Register: r, State: st}}}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	random := rand.New(rand.NewPCG(1, 0))
	refused := 0
	for at := 0; at+page <= len(whole); at += page {
		for kind := range 6 {
			spoilt := slices.Clone(whole)
			if kind == 0 {
				clear(spoilt[at : at+page])
			} else {
				// Most pages are used from their beginning only.
				spoilt[at+random.IntN(page>>(kind*2-2))] ^= 1 << random.IntN(8)
			}
			name := fmt.Sprintf("page %d, damage %d", at/page, kind)
			if !checkDamaged(t, name, spoilt, meta, registers) {
				refused++
			}
		}
	}
	if refused < 10 {
		t.Errorf("%d kinds of damage were refused, want many", refused)
	}
}

// checkDamaged says whether the database was opened.
func checkDamaged(t *testing.T, name string, text []byte, meta Meta, registers map[seq.Register]acceptor.State) bool {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	db, gotMeta, got, err := Open(dir, "", nil)
	if err != nil {
		// A list of free pages that makes no sense fails the first commit as the system says.
		boot := strings.Contains(err.Error(), "count the boot")
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) && !boot {
			t.Errorf("%s: error of no name: %v", name, err)
		}
		return false
	}
	defer db.Close()
	if diff := cmp.Diff(registers, got); diff != "" {
		t.Errorf("%s: the store starts with other registers: %s", name, diff)
	}
	if diff := cmp.Diff(meta.Identity, gotMeta.Identity); diff != "" {
		t.Errorf("%s: the store starts as another: %s", name, diff)
	}
	return true
}
