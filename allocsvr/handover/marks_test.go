package handover

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/seqsvr/seqsvr/internal/base/counters"
	"github.com/seqsvr/seqsvr/seq"
)

func TestCountersOfAnotherHashHaveAnotherDigestAndKeepTheirMark(t *testing.T) {
	table := counters.New(7)
	table.Take(1, 5, 1000, 1)
	plain := Sealed{ID: 3, Epoch: seq.Epoch{Round: 4, Session: 5}, Table: table}
	under := plain
	under.Mark = 9
	other := plain
	other.Mark = 8
	if plain.Digest() == under.Digest() || under.Digest() == other.Digest() {
		t.Error("the digest of a release does not tell by which hash it was counted")
	}
	head := append([]byte("seqsvr sealed counters "), 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5)
	sum := sha256.Sum256(table.AppendBinary(head))
	if got, want := plain.Digest(), binary.BigEndian.Uint64(sum[:]); got != want {
		t.Errorf("the digest without a mark is %#x, that of v0.1.0 is %#x", got, want)
	}
	file := filepath.Join(t.TempDir(), "parked")
	if err := Park(file, "c", []Sealed{plain, under}); err != nil {
		t.Fatal(err)
	}
	got, err := Parked(file, "c")
	if err != nil || len(got) != 2 || got[0].Mark != 0 || got[1].Mark != 9 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAFileOfBeforeThereWereMarksIsRead(t *testing.T) {
	table := counters.New(7)
	body := table.AppendBinary(nil)
	b := append([]byte(parkedMagic1), 1, 0, 'c')
	b = binary.LittleEndian.AppendUint32(b, 3)
	b = binary.LittleEndian.AppendUint64(b, 4)
	b = binary.LittleEndian.AppendUint64(b, 5)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	got, err := decodeParked(b, "c")
	if err != nil || len(got) != 1 || got[0].ID != 3 || got[0].Mark != 0 || got[0].Epoch != (seq.Epoch{Round: 4, Session: 5}) || got[0].Table.Base() != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTheDigestCoversTheTickets(t *testing.T) {
	s := Sealed{ID: 3, Epoch: seq.Epoch{Round: 4, Session: 5}, Table: counters.New(7)}
	with, other := s, s
	with.Tickets, other.Tickets = []byte("tickets"), []byte("ticketz")
	if s.Digest() == with.Digest() || with.Digest() == other.Digest() {
		t.Error("a release does not tell with which tickets the section goes")
	}
}
