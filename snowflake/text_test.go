package snowflake

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestIDsHaveTheKnownTexts(t *testing.T) {
	for _, tc := range []struct {
		id   ID
		form Encoding
		text string
	}{
		{1023510546613293056, Decimal, "1023510546613293056"},
		{1023510546613293056, Base58, "3nNeLuv1t79"},
		{1023510546613293056, ZBase32, "hpb7pppcywyy"},
		{1023510546613293056, Hex, "e343d6b5ac05000"},
		{1023510546613293056, Base62, "1Dbgj8dVOrI"},
		{0, Decimal, "0"}, {0, Base58, "1"}, {0, Base62, "0"}, {0, ZBase32, "y"}, {0, Hex, "0"},
		{61, Base62, "z"}, {57, Base58, "Z"}, {31, ZBase32, "9"},
		{math.MaxInt64, Decimal, "9223372036854775807"},
		{math.MaxInt64, Hex, "7fffffffffffffff"},
		{math.MaxInt64, Base58, "npL6MjP8Qfc"},
		{math.MaxInt64, Base62, "AzL8n0Y58m7"},
		{math.MaxInt64, ZBase32, "8999999999999"},
	} {
		if got, err := tc.form.Format(tc.id); err != nil || got != tc.text {
			t.Errorf("%s of %d: got %q, %v, want %q", tc.form, tc.id, got, err, tc.text)
		}
		if got, err := tc.form.Parse(tc.text); err != nil || got != tc.id {
			t.Errorf("parse %s %q: got %d, %v, want %d", tc.form, tc.text, got, err, tc.id)
		}
	}
}

func TestHexIsReadInBothCasesAndPadded(t *testing.T) {
	for _, text := range []string{"0E343D6B5AC05000", "0e343d6b5ac05000", "E343D6B5AC05000"} {
		if got, err := Hex.Parse(text); err != nil || got != 1023510546613293056 {
			t.Errorf("parse %s: got %d, %v", text, got, err)
		}
	}
}

func TestTextsThatAreNoIDAreRefusedByName(t *testing.T) {
	for _, tc := range []struct {
		form Encoding
		text string
		want error
	}{
		{Decimal, "", ErrTextLength}, {Base58, "", ErrTextLength}, {Hex, "", ErrTextLength},
		{Decimal, "12345678901234567890", ErrTextLength},
		{Base58, "111111111111", ErrTextLength}, {Base62, "000000000000", ErrTextLength},
		{ZBase32, "yyyyyyyyyyyyyy", ErrTextLength}, {Hex, "00000000000000000", ErrTextLength},
		{Decimal, strings.Repeat("9", 1<<16), ErrTextLength},
		{Decimal, "-1", ErrTextAlphabet}, {Decimal, "+1", ErrTextAlphabet}, {Decimal, "1 ", ErrTextAlphabet}, {Decimal, "１", ErrTextAlphabet},
		{Base58, "3nNeLuv1t0", ErrTextAlphabet}, {Base58, "l", ErrTextAlphabet}, {Base58, "I", ErrTextAlphabet}, {Base58, "O", ErrTextAlphabet},
		{Base62, "a_b", ErrTextAlphabet}, {ZBase32, "hpb7pppcywyl", ErrTextAlphabet}, {ZBase32, "HPB", ErrTextAlphabet},
		{Hex, "0x12", ErrTextAlphabet}, {Hex, "g", ErrTextAlphabet},
		{Decimal, "9223372036854775808", ErrTextOverflow}, {Decimal, "9999999999999999999", ErrTextOverflow},
		{Base58, "npL6MjP8Qfd", ErrTextOverflow}, {Base58, "ZZZZZZZZZZZ", ErrTextOverflow},
		{Base62, "AzL8n0Y58m8", ErrTextOverflow}, {Base62, "zzzzzzzzzzz", ErrTextOverflow},
		{ZBase32, "eyyyyyyyyyyyy", ErrTextOverflow}, {ZBase32, "9999999999999", ErrTextOverflow},
		{Hex, "8000000000000000", ErrTextOverflow}, {Hex, "ffffffffffffffff", ErrTextOverflow},
		{Decimal, "007", ErrTextCanonical}, {Decimal, "00", ErrTextCanonical}, {Base58, "12", ErrTextCanonical},
		{Base62, "0z", ErrTextCanonical}, {ZBase32, "yb", ErrTextCanonical},
		{numEncodings, "1", ErrEncoding},
	} {
		if got, err := tc.form.Parse(tc.text); !errors.Is(err, tc.want) {
			t.Errorf("parse %s %.30q: got %d, %v, want %v", tc.form, tc.text, got, err, tc.want)
		}
	}
	if _, err := Decimal.Format(-1); !errors.Is(err, ErrSign) {
		t.Errorf("format -1: got %v, want %v", err, ErrSign)
	}
	if _, err := numEncodings.Format(1); !errors.Is(err, ErrEncoding) {
		t.Errorf("format in no form: got %v, want %v", err, ErrEncoding)
	}
	if _, err := ParseEncoding("base64"); !errors.Is(err, ErrEncoding) {
		t.Errorf("form of no name: got %v, want %v", err, ErrEncoding)
	}
}

func TestEveryIDGoesBothWaysInEveryForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := ID(rapid.Int64Range(0, math.MaxInt64).Draw(t, "id"))
		for e := range numEncodings {
			form, err := ParseEncoding(e.String())
			if err != nil || form != e {
				t.Fatalf("form %s: got %s, %v", e, form, err)
			}
			text, err := e.Format(id)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Parse(text); err != nil || got != id {
				t.Fatalf("parse %s %q: got %d, %v, want %d", e, text, got, err, id)
			}
		}
	})
}

func FuzzParseText(f *testing.F) {
	for e, text := range []string{"1023510546613293056", "3nNeLuv1t79", "1Dbgj8dVOrI", "hpb7pppcywyy", "0E343D6B5AC05000"} {
		f.Add(uint8(e), text)
	}
	f.Fuzz(func(t *testing.T, form uint8, text string) {
		e := Encoding(form)
		id, err := e.Parse(text)
		if err != nil {
			return
		}
		if e == Hex {
			text = strings.ToLower(strings.TrimLeft(text[:len(text)-1], "0") + text[len(text)-1:])
		}
		if got, err := e.Format(id); err != nil || got != text {
			t.Fatalf("%s of %d: got %q, %v, want %q", e, id, got, err, text)
		}
	})
}
