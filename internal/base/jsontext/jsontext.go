// Package jsontext finds JSON that is no Unicode. Go's decoder, as most others, puts U+FFFD
// in the place of bytes that are no UTF-8 and of escapes of half a character, so that two
// different names become one.
//
// What belongs here: that check. What does not: reading JSON.
package jsontext

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrNotUnicode is JSON with bytes that are no UTF-8, or with an escape of one half of a
// surrogate pair.
var ErrNotUnicode = errors.New("not Unicode")

// Check returns ErrNotUnicode for JSON that a decoder would read as another text. It says
// nothing of JSON that is malformed in other ways.
func Check(text []byte) error {
	if !utf8.Valid(text) {
		return fmt.Errorf("%w: byte %d is not UTF-8", ErrNotUnicode, badByte(text))
	}
	for rest := text; ; {
		at := bytes.IndexByte(rest, '\\')
		if at < 0 {
			return nil
		}
		rest = rest[at:]
		unit, escaped := unitOf(rest)
		switch {
		case !escaped:
			rest = rest[min(2, len(rest)):]
			continue
		case utf16.IsSurrogate(unit):
			next, _ := unitOf(rest[6:])
			if utf16.DecodeRune(unit, next) == utf8.RuneError {
				return fmt.Errorf("%w: %s is half a character", ErrNotUnicode, rest[:6])
			}
			rest = rest[6:]
		}
		rest = rest[6:]
	}
}

// unitOf reads an escape such as \u00e9 at the beginning of the text.
func unitOf(text []byte) (unit rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

func badByte(text []byte) int {
	for i := 0; ; {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}
