package jsontext

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestJSONThatWouldBeReadAsAnotherTextIsRefused(t *testing.T) {
	for _, text := range []string{
		`"m-\ud83d"`, `"m-\ud83e"`, `"\udc00"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`, `"\ud83d\n"`, `"\uD83D\u0041"`, `"\ude00\ud83d"`,
		"\"\xff\"", "\"\xed\xa0\xbd\"", "{\"k\xc3\":1}", `{"a":"\\\ud83d"}`,
	} {
		if err := Check([]byte(text)); !errors.Is(err, ErrNotUnicode) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	for _, text := range []string{
		"", `\`, `"\`, `"\u12`, `"\u00zz"`, `"a"`, `"\ud83d\ude00"`, `"\\ud83d"`, `"\\\\ud83d"`, "\"\ufffd\"", `"\ufffd"`, `"é\u00e9\u0000"`, `{"a":["\n\"\\"]}`,
	} {
		if err := Check([]byte(text)); err != nil {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// FuzzCheck holds Check to what a decoder makes of a string: it writes the same characters
// again, or puts U+FFFD in the place of something else.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{`"\ud83d"`, `"\ud83d\ude00"`, "\"\xff\"", `"\ufffd\\ud83d"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var read string
		err := Check(text)
		if len(text) < 2 || text[0] != '"' || json.Unmarshal(text, &read) != nil {
			return
		}
		replaced := 0
		for _, r := range read {
			if r == '\ufffd' {
				replaced++
			}
		}
		if (replaced > written(text)) != (err != nil) {
			t.Errorf("%q: read as %q, got %v", text, read, err)
		}
	})
}

// written counts the U+FFFD that stand in a JSON string by themselves.
func written(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch {
		case len(text) > i+2 && string(text[i:i+3]) == "\ufffd":
			n++
		case text[i] != '\\':
		case text[i+1] != 'u':
			i++
		default:
			if unit, _ := unitOf(text[i:]); unit == '\ufffd' {
				n++
			}
		}
	}
	return n
}
