package counters

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, castagnoli))
}

func TestTheBaseThatAFoldHasRaisedIsEncodedBesideTheFloor(t *testing.T) {
	tab := sample()
	foldAll(tab, 64, 10, 1000) // 128 and 130, at 301
	tab.Raise(5, 350)
	foldAll(tab, 64, 0x01020305, 1000)
	want := "02" + "ac02" + "32" + "01" + "ffffffffffffffff03" + "3f" + "00000000" + "d2fdffffffffffffff01"
	got := tab.AppendBinary(nil)
	if body := hex.EncodeToString(got[:len(got)-crcSize]); body != want {
		t.Errorf("encoded\n got %s\nwant %s", body, want)
	}
	if back, err := Decode(got); err != nil || back.Base() != 350 || back.Len() != 1 || back.High() != math.MaxUint64 {
		t.Errorf("got %+v, %v", back, err)
	}
}

func sample() *Table {
	t := New(300)
	t.Take(5, 2, ceiling, 0x01020304)
	t.Take(128, 1, ceiling, 9)
	t.Take(130, 1, ceiling, 8)
	t.Raise(math.MaxUint64, math.MaxUint64)
	return t
}

func TestTheEncodedFormIsTheDocumentedOne(t *testing.T) {
	want := "01" + "ac02" + "03" +
		"00" + "05" + "04030201" + "01" +
		"01" + "40" + "0500000000000000" + "09000000" + "00" + "00" +
		"fcffffffffffffff03" + "3f" + "00000000" + "d2fdffffffffffffff01"
	got := sample().AppendBinary([]byte("before"))
	if !bytes.HasPrefix(got, []byte("before")) {
		t.Fatalf("AppendBinary lost what was there: %x", got)
	}
	got = got[len("before"):]
	if body := hex.EncodeToString(got[:len(got)-crcSize]); body != want {
		t.Errorf("encoded\n got %s\nwant %s", body, want)
	}
	if !bytes.Equal(got, sealed(got[:len(got)-crcSize])) {
		t.Errorf("checksum %x is not the crc32c of the body", got[len(got)-crcSize:])
	}
}

func TestADecodedTableGoesOnWhereTheFirstStopped(t *testing.T) {
	first := sample()
	second, err := Decode(first.AppendBinary(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(maps.Collect(first.All()), maps.Collect(second.All())); diff != "" {
		t.Errorf("counters (-first +second):\n%s", diff)
	}
	if f, l, ok := second.Take(5, 1, ceiling, 0); f != 303 || l != 303 || !ok {
		t.Errorf("next number of uid 5 = %d, %d, %v, want 303", f, l, ok)
	}
	if at, ok := second.LastTaken(130); at != 9 || !ok {
		t.Errorf("LastTaken(130) = %d, %v, want 9", at, ok)
	}
	checkInvariants(t, second)
}

func TestATableRebuiltFromPiecesEqualsTheFirst(t *testing.T) {
	first, second := sample(), New(300)
	for uid, v := range first.All() {
		second.Raise(uid, v)
		if at, ok := first.LastTaken(uid); ok {
			second.Touch(uid, at)
		}
	}
	if a, b := first.AppendBinary(nil), second.AppendBinary(nil); !bytes.Equal(a, b) {
		t.Errorf("rebuilt table encodes as %x, want %x", b, a)
	}
}

func TestDamagedCountersAreRefused(t *testing.T) {
	good := sample().AppendBinary(nil)
	for i := range good {
		if _, err := Decode(good[:i]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v, want %v", i, err, ErrCorrupt)
		}
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			if _, err := Decode(bad); !errors.Is(err, ErrCorrupt) {
				t.Errorf("bit %d of byte %d turned: %v, want %v", bit, i, err, ErrCorrupt)
			}
		}
	}
	if _, err := Decode(append(good, 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("one byte too many: %v, want %v", err, ErrCorrupt)
	}
}

func TestWellSealedNonsenseIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       error
	}{
		{"newer version", "030000", ErrVersion},
		{"risen by nothing", "02000001" + "00" + "05" + "00000000" + "00", ErrCorrupt},
		{"risen without a block", "02000100", ErrCorrupt},
		{"risen past the last number", "02feffffffffffffffff01" + "0201" + "00" + "05" + "00000000" + "00", ErrCorrupt},
		{"version zero", "000000", ErrVersion},
		{"no base", "01", ErrCorrupt},
		{"no block count", "0100", ErrCorrupt},
		{"base in a long form", "01800000", ErrCorrupt},
		{"base of more than 64 bits", "01ffffffffffffffffff0200", ErrCorrupt},
		{"bytes left over", "01000000", ErrCorrupt},
		{"far more blocks than bytes", "0100ffffffffffffffffff01", ErrCorrupt},
		{"block number above 58 bits", "010001" + "808080808080808004" + "00" + "00000000" + "00", ErrCorrupt},
		{"block after the last one", "010002" + "ffffffffffffffff03" + "00" + "00000000" + "00" + "00" + "00" + "00000000" + "00", ErrCorrupt},
		{"unknown shape", "010001" + "00" + "41" + "0300000000000000" + "00000000" + "00" + "00", ErrCorrupt},
		{"empty bitmap", "010001" + "00" + "40" + "0000000000000000" + "00000000" + "00", ErrCorrupt},
		{"bitmap of one", "010001" + "00" + "40" + "0100000000000000" + "00000000" + "00", ErrCorrupt},
		{"fewer values than bits", "010001" + "00" + "40" + "0700000000000000" + "00000000" + "00" + "00", ErrCorrupt},
		{"value above 64 bits", "010101" + "00" + "00" + "00000000" + "ffffffffffffffffff01", ErrCorrupt},
		{"value above the largest base", "01ffffffffffffffffff0101" + "00" + "00" + "00000000" + "00", ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, err := hex.DecodeString(c.body)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Decode(sealed(body)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func FuzzDecodeAcceptsOnlyWhatAppendBinaryWrites(f *testing.F) {
	body := func(t *Table) []byte {
		b := t.AppendBinary(nil)
		return b[:len(b)-crcSize]
	}
	dense := New(7)
	for uid := range uint64(300) {
		dense.Take(uid*uid/90, 1+uid, ceiling, uint32(uid))
	}
	f.Add([]byte{})
	f.Add(body(New(0)))
	f.Add(body(New(math.MaxUint64)))
	f.Add(body(sample()))
	f.Add(body(dense))
	foldAll(dense, 64, 200, ceiling)
	f.Add(body(dense))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Once as it comes, and once with the checksum made to fit.
		for _, in := range [][]byte{b, sealed(b)} {
			tab, err := Decode(in)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
					t.Fatalf("error of no name: %v", err)
				}
				continue
			}
			checkInvariants(t, tab)
			if out := tab.AppendBinary(nil); !bytes.Equal(in, out) {
				t.Fatalf("decoded %x, encoded again %x", in, out)
			}
			// The dearest byte is one of a block that just became a page.
			if got, limit := footprint(tab), 256+24*len(in); got > limit {
				t.Fatalf("%d bytes decoded to %d, limit %d", len(in), got, limit)
			}
		}
	})
}
