package disk

import (
	"fmt"
	"testing"

	"github.com/seqsvr/seqsvr/seq"
	"github.com/seqsvr/seqsvr/storesvr/acceptor"
)

// BenchmarkCommit is one transaction: of one section, as under a usual load, and of the sections of a
// takeover.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 5000} {
		b.Run(fmt.Sprintf("%d sections", n), func(b *testing.B) {
			m, err := seq.NewMapping(seq.Space{Name: "user", Sections: 10_000})
			if err != nil {
				b.Fatal(err)
			}
			dir := b.TempDir()
			if err := Create(dir, Identity{Cluster: "c1", UUID: "u1", Name: "a", N: 1, R: 1, W: 1, Names: []string{"a"}, Mapping: m}, Filling{}); err != nil {
				b.Fatal(err)
			}
			db, _, _, err := Open(dir, "", nil)
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close()
			var u Update
			for id := range n {
				u.Changes = append(u.Changes, acceptor.Change{Register: seq.SectionRegister(seq.SectionID(id))})
			}
			for i := range b.N {
				for k := range u.Changes {
					e := seq.Epoch{Round: uint64(i), Session: 7}
					u.Changes[k].State = acceptor.State{Promised: e, Accepted: e, Max: uint64(i)}
				}
				if _, err := db.Commit(u); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
