package handover

import (
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

// FuzzParkedCounters: a file of parked counters is read as it was written, or refused by
// name. Each input is tried as it is, and with the checksum made to fit.
func FuzzParkedCounters(f *testing.F) {
	file := filepath.Join(f.TempDir(), "parked")
	table := counters.New(7)
	table.Take(1, 5, 1000, 1)
	if err := Park(file, "c", []Sealed{{ID: 3, Epoch: seq.Epoch{Round: 4, Session: 5}, Table: table}}); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-4])
	f.Add([]byte(parkedMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		sum := crc32.Checksum(b, castagnoli)
		sealed := append(append([]byte{}, b...), byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
		for _, text := range [][]byte{b, sealed} {
			got, err := decodeParked(text, "c")
			if err != nil {
				if !errors.Is(err, ErrParkedCorrupt) && !errors.Is(err, seq.ErrForeignCluster) {
					t.Fatalf("error of no name: %v", err)
				}
				continue
			}
			path := filepath.Join(t.TempDir(), "parked")
			if err := Park(path, "c", got); err != nil {
				t.Fatal(err)
			}
			if again, err := os.ReadFile(path); err != nil || string(text[:len(parkedMagic)]) == parkedMagic && !cmp.Equal(again, text) {
				t.Fatalf("%x is written back as %x (%v)", text, again, err)
			}
		}
	})
}
