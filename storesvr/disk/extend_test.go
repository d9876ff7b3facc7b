package disk

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// A space of any size is added to a database of any size: within a record, up to its end, and
// over several.
func TestSpacesAreAddedInOneTransactionWithTheirRegisters(t *testing.T) {
	db, meta, want := opened(t, created(t))
	m, last := meta.Mapping, seq.SectionRegister(11)
	for i, n := range []uint32{1, 37, 1, 2*blockSections - 1, blockSections} {
		next, _, err := m.Add(seq.Space{Name: string(rune('a' + i)), Sections: n})
		if err != nil {
			t.Fatal(err)
		}
		changes := []acceptor.Change{{Register: last, State: acceptor.State{Max: uint64(i) + 7}}}
		for id := seq.SectionID(m.Sections()); int(id) < next.Sections(); id++ {
			changes = append(changes, acceptor.Change{Register: seq.SectionRegister(id)})
			want[seq.SectionRegister(id)] = acceptor.State{}
		}
		changes[len(changes)-1].State.Max = 5 // a PREPARE or STEP of the same group
		for _, c := range changes {
			want[c.Register] = c.State
		}
		if _, err := db.Commit(Update{Mapping: &next, Changes: changes}); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		var got map[seq.Register]acceptor.State
		db, meta, got = opened(t, db.dir)
		if diff := cmp.Diff(next, meta.Mapping) + cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %d sections more (-want +got)\n%s", n, diff)
		}
		m, last = next, changes[len(changes)-1].Register
	}
	if meta.Name != "a" || meta.UUID != "u-1" || meta.W != 2 {
		t.Errorf("the identity has become %+v", meta.Identity)
	}
}

func TestADatabaseWithSomeLaterRegistersGetsTheOthers(t *testing.T) {
	dir := created(t)
	edit(t, dir, func(tx *bolt.Tx) error {
		b := tx.Bucket(registerBucket)
		keys := acceptor.State{Max: 3}
		return errors.Join(tx.Bucket(metaBucket).Delete(keySum), tx.Bucket(metaBucket).Put(keyLater, encodeNumber(keyLater, 1)), b.Delete([]byte(seq.SpacesRegister)),
			b.Put([]byte(seq.KeysRegister), encodeRegister([]byte(seq.KeysRegister), keys)))
	})
	_, _, registers := opened(t, dir)
	if st, there := registers[seq.SpacesRegister]; !there || st.Max != 0 || registers[seq.KeysRegister].Max != 3 {
		t.Errorf("got %v, %+v beside %+v", there, st, registers[seq.KeysRegister])
	}
	dir = created(t)
	edit(t, dir, func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(metaBucket).Put(keyLater, encodeNumber(keyLater, 1)), tx.Bucket(registerBucket).Delete([]byte(seq.KeysRegister)))
	})
	if _, _, _, err := Open(dir, "", nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("one that was made is gone: got %v, want ErrCorrupt", err)
	}
}
