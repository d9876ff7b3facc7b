package membership

import (
	"errors"
	"testing"
)

// FuzzDecodeMeta: metadata of anybody on the network is understood or refused by name;
// what was understood and fits is written to be read again.
func FuzzDecodeMeta(f *testing.F) {
	b, err := Meta{Name: "n", Role: RoleAlloc, Addr: "h:1", HTTP: "h:2", Session: 1 << 63, Protocol: 1, TableVersion: 9}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{metaFormat})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMeta("n", b)
		if err != nil {
			if !errors.Is(err, ErrMetaFormat) || m != (Meta{Name: "n"}) {
				t.Fatalf("got %+v, %v", m, err)
			}
			return
		}
		text, err := m.Encode()
		if errors.Is(err, ErrMetaTooLarge) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeMeta("n", text); err != nil || again != m {
			t.Fatalf("%+v is read again as %+v (%v)", m, again, err)
		}
	})
}
