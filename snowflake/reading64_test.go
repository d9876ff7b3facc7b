package snowflake

import (
	"errors"
	"testing"
	"time"
)

// The IDs are from Discord's reference of its API, and from Instagram's article.
func TestLayoutsOfSixtyFourBitsAreRead(t *testing.T) {
	for _, row := range []struct {
		preset, id, hex string
		want            Parts
		at              string
	}{
		{"discord", "175928847299117063", "271065ac1020007", Parts{Tick: 41944705796, Datacenter: 1, Worker: 0, Sequence: 7}, "2016-04-30T11:18:25.796Z"},
		{"instagram", "11637205501278089", "", Parts{Tick: 1387263000, Worker: 1341, Sequence: 905}, ""},
		{"instagram", "18446744073709551615", "ffffffffffffffff", Parts{Tick: 1<<41 - 1, Worker: 1<<13 - 1, Sequence: 1023}, ""},
		{"discord", "0", "0", Parts{}, "2015-01-01T00:00:00Z"},
	} {
		l, err := ReadPreset(row.preset)
		if err != nil || !l.ReadOnly() || l.Name() != row.preset {
			t.Fatalf("%s: %v, %v", row.preset, l, err)
		}
		id, err := Decimal.ParseOf(l, row.id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := l.Decode(id); err != nil || got != row.want {
			t.Errorf("%s %s: got %+v, %v, want %+v", row.preset, row.id, got, err, row.want)
		}
		if got, err := Decimal.FormatOf(l, id); err != nil || got != row.id {
			t.Errorf("%s as decimal: got %q, %v", row.id, got, err)
		}
		if got, err := Hex.FormatOf(l, id); row.hex != "" && (err != nil || got != row.hex) {
			t.Errorf("%s as hex: got %q, %v, want %q", row.id, got, err, row.hex)
		}
		if at, err := l.TimeOf(row.want.Tick); err != nil || row.at != "" && at.Format(time.RFC3339Nano) != row.at {
			t.Errorf("%s: got %v, %v, want %s", row.id, at, err, row.at)
		}
	}
}

func TestLayoutsOfSixtyFourBitsMakeNothing(t *testing.T) {
	const wide = "time:42,worker:10,sequence:12;epoch=0"
	if _, err := ParseLayout(wide); !errors.Is(err, ErrLayout) {
		t.Errorf("parsed for making: %v", err)
	}
	for _, name := range []string{"discord", "instagram"} {
		read, err := ReadPreset(name)
		made, err2 := Preset(name)
		if err != nil || err2 != nil || !read.ReadOnly() || made.ReadOnly() || made.Epoch() != read.Epoch() {
			t.Fatalf("%s: %v, %v", name, err, err2)
		}
		want := Parts{Tick: made.MaxTick(), Datacenter: made.MaxDatacenter(), Worker: made.MaxWorker(), Sequence: made.MaxSequence()}
		id, err := made.Compose(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := read.Decode(id); got != want {
			t.Errorf("%s: made of %+v, read as %+v, %v", name, want, got, err)
		}
	}
	if _, err := ParseReadable("time:43,worker:10,sequence:12;epoch=0"); !errors.Is(err, ErrLayout) {
		t.Errorf("65 bits: %v", err)
	}
	l, err := ParseReadable(wide)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := l.Compose(Parts{Tick: 1}); !errors.Is(err, ErrLayout) {
		t.Errorf("composed %d, %v", id, err)
	}
	if _, err := New(l, 0, 0, 0); !errors.Is(err, ErrLayout) {
		t.Errorf("a generator: %v", err)
	}
	narrow, err := ParseReadable("time:41,worker:10,sequence:12;epoch=0")
	if err != nil || narrow.ReadOnly() {
		t.Fatalf("63 bits: %v, %v", narrow, err)
	}
	if _, err := Decimal.ParseOf(narrow, "9223372036854775808"); !errors.Is(err, ErrTextOverflow) {
		t.Errorf("2^63 in a layout of 63 bits: %v", err)
	}
	if _, err := narrow.Decode(-1); !errors.Is(err, ErrSign) {
		t.Errorf("a negative ID in a layout of 63 bits: %v", err)
	}
	if _, err := Decimal.ParseOf(l, "18446744073709551616"); !errors.Is(err, ErrTextOverflow) {
		t.Errorf("2^64: %v", err)
	}
}
