package disk

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// createdWith makes a database of so many sections.
func createdWith(t *testing.T, n uint32) string {
	t.Helper()
	dir, id := t.TempDir(), testIdentity(t)
	var err error
	if id.Mapping, err = seq.NewMapping(seq.Space{Name: "user", Sections: n}); err != nil {
		t.Fatal(err)
	}
	if err := Create(dir, id, Filling{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSectionsInBlocksAreReadBackAsAMapKeepsThem(t *testing.T) {
	for _, n := range []uint32{1, blockSections - 1, blockSections, blockSections + 1, 7*blockSections + 13} {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		dir := createdWith(t, n)
		db, _, want := opened(t, dir)
		for range 5 {
			var u Update
			for range rng.IntN(3 * int(n)) { // in no order, some twice: the later one counts
				e := seq.Epoch{Round: rng.Uint64(), Session: seq.Session(rng.Uint64())}
				st := acceptor.State{Promised: e, Accepted: seq.Epoch{Round: e.Round / 2, Session: 3}, Max: rng.Uint64()}
				u.Changes = append(u.Changes, acceptor.Change{Register: seq.SectionRegister(seq.SectionID(rng.Uint32N(n))), State: st})
			}
			for _, c := range u.Changes {
				want[c.Register] = c.State
			}
			if _, err := db.Commit(u); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db, _, got := opened(t, dir)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d sections: %s", n, diff)
		}
		db.Close()
	}
}

func TestACommitForASectionThatCannotBeIsAnError(t *testing.T) {
	db, _, _ := opened(t, createdWith(t, 60))
	for name, c := range map[string]struct {
		change acceptor.Change
		want   error
	}{
		"of no block":    {acceptor.Change{Register: seq.SectionRegister(1000)}, seq.ErrUnknownSection},
		"past the last":  {acceptor.Change{Register: seq.SectionRegister(60)}, seq.ErrUnknownSection},
		"with a payload": {acceptor.Change{Register: seq.SectionRegister(1), State: acceptor.State{Payload: []byte{1}}}, seq.ErrBadRegister},
	} {
		if _, err := db.Commit(Update{Changes: []acceptor.Change{c.change}}); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestTwoBlocksFillAPage(t *testing.T) {
	db, _, _ := opened(t, createdWith(t, 100*blockSections))
	err := db.bolt.View(func(tx *bolt.Tx) error {
		if got, most := tx.Bucket(sectionBucket).Stats().LeafPageN, 51; got > most {
			t.Errorf("100 blocks take %d pages, want at most %d", got, most)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
