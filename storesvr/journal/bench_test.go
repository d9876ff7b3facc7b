package journal

import (
	"fmt"
	"testing"
	"time"

	"github.com/seqsvr/seqsvr/exact"
	"github.com/seqsvr/seqsvr/seq"
)

// BenchmarkOpen is the start of a store with a million UIDs and an id of 16 bytes each, in 64
// sections.
func BenchmarkOpen(b *testing.B) {
	const sections, uids = 64, 1 << 20
	cfg := Config{Dir: b.TempDir(), ID: 1, Window: func(seq.SectionID) int64 { return time.Hour.Milliseconds() }}
	copies := map[seq.SectionID]*exact.State{}
	for id := range seq.SectionID(sections) {
		o, err := exact.NewOwner(exact.Config{Window: time.Hour.Milliseconds()}, seq.Epoch{Round: 1, Session: 1}, &exact.State{}, 1)
		if err != nil {
			b.Fatal(err)
		}
		for i := range uids / sections {
			uid := seq.UID(i*sections) + seq.UID(id)
			if _, err := o.Take(uid, 1, fmt.Sprintf("%016x", uid), 0, 1); err != nil {
				b.Fatal(err)
			}
		}
		copies[id] = o.State()
	}
	if err := Create(cfg, copies); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		j, err := Open(cfg)
		if err != nil || len(j.Sections()) != sections {
			b.Fatal(err)
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
