package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// FuzzRead reads any bytes, as they are and with a corrected checksum of the file, as a forger
// would write it. A file that can be read is written and read again with the same content. Any
// other file is damaged.
func FuzzRead(f *testing.F) {
	epoch := seq.Epoch{Round: 7, Session: 0xa}
	states := []quorum.RegisterState{
		{Register: seq.SectionRegister(0), Promised: epoch, Accepted: epoch, Max: 1000},
		{Register: seq.RoutesRegister, Promised: epoch, Accepted: epoch, Max: 12, Payload: []byte("table"), PayloadMax: 12},
	}
	for _, written := range [][]quorum.RegisterState{nil, states} {
		var file bytes.Buffer
		if err := Write(&file, Manifest{Cluster: "c1", Era: 3, Taken: taken}, written); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes(), false)
		f.Add(file.Bytes(), true)
	}
	f.Add(append([]byte(magic+`{"registers":-1}`+"\n"), make([]byte, sha256.Size)...), true)
	long := binary.BigEndian.AppendUint32([]byte(magic+`{"registers":1000000000000}`+"\n\xff\xff"), 1<<32-1)
	f.Add(append(long, make([]byte, 300)...), true)
	f.Fuzz(func(t *testing.T, data []byte, forge bool) {
		if end := len(data) - sha256.Size; forge && end >= 0 {
			sum := sha256.Sum256(data[:end])
			data = append(bytes.Clone(data[:end]), sum[:]...)
		}
		m, got, err := Read(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("error of no name: %v", err)
			}
			return
		}
		var file bytes.Buffer
		if err := Write(&file, m, got); err != nil {
			t.Fatal(err)
		}
		again, same, err := Read(&file)
		if err != nil {
			t.Fatalf("what was read and written again: %v", err)
		}
		byName := cmpopts.SortSlices(func(a, b quorum.RegisterState) bool { return bytes.Compare(encode(a), encode(b)) < 0 })
		if diff := cmp.Diff(m, again, cmpopts.EquateEmpty()) + cmp.Diff(got, same, cmpopts.EquateEmpty(), byName); diff != "" {
			t.Fatalf("(-read +read again)\n%s", diff)
		}
	})
}
