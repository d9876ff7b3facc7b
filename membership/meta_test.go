package membership

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestMetadataComesBackAsItWasEncoded(t *testing.T) {
	text := rapid.StringMatching(`[ -~]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		want := Meta{
			Role: Role(rapid.SampledFrom([]Role{RoleStore, RoleAlloc, RoleRouter, "later"}).Draw(t, "role")),
			Name: text.Draw(t, "name"), Addr: text.Draw(t, "addr"), HTTP: text.Draw(t, "http"), Admin: text.Draw(t, "admin"),
			Session: rapid.Uint64().Draw(t, "session"), Protocol: rapid.Int().Draw(t, "protocol"),
			TableVersion: rapid.Uint64().Draw(t, "table"),
			Exposed:      rapid.Bool().Draw(t, "exposed"), Zone: text.Draw(t, "zone"),
		}
		b, err := want.Encode()
		if errors.Is(err, ErrMetaTooLarge) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(b) >= 512 {
			t.Fatalf("got %d bytes, want under 512", len(b))
		}
		got, err := DecodeMeta(want.Name, b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestMetadataIsRefusedBeyondTheLimitAndFitsAtIt(t *testing.T) {
	m := Meta{Role: RoleStore, Name: "n"}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	m.Addr = strings.Repeat("x", MaxMetaSize-len(b)-len(`"a":"",`))
	if b, err = m.Encode(); err != nil || len(b) != MaxMetaSize {
		t.Fatalf("got %d bytes, error %v, want %d bytes", len(b), err, MaxMetaSize)
	}
	m.Addr += "x"
	_, err = m.Encode()
	wantErr(t, err, ErrMetaTooLarge)
}

func TestRoomIsKeptForTheLargestTableVersion(t *testing.T) {
	m := Meta{Role: RoleStore, Name: "n"}
	for m.fits() == nil {
		m.Addr += "x"
	}
	m.Addr = m.Addr[1:]
	m.TableVersion = math.MaxUint64
	if _, err := m.Encode(); err != nil {
		t.Error(err)
	}
}

func TestDecodingPassesOverUnknownFieldsAndRefusesUnknownFormats(t *testing.T) {
	got, err := DecodeMeta("n", []byte("\x01"+`{"r":"store","a":"h:1","zone":{"x":[1]},"t":7}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Meta{Role: RoleStore, Name: "n", Addr: "h:1", TableVersion: 7}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "\x02{}", "\x01", "\x01[]", `{"r":"store"}`} {
		got, err := DecodeMeta("n", []byte(bad))
		wantErr(t, err, ErrMetaFormat)
		if diff := cmp.Diff(Meta{Name: "n"}, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDecodingNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		if _, err := DecodeMeta("n", append([]byte{metaFormat}, b...)); err != nil && !errors.Is(err, ErrMetaFormat) {
			t.Fatal(err)
		}
	})
}
