// Package floorfile reads and writes files of sequences: what `seqctl export` writes and
// `seqctl raise --file` reads.
//
//	42 6000                  a UID and its number
//	"room:7" 12 upper-bound  a string key, as a JSON string; the last number handed out may be lower
//	section 17/4096 10000    every key of section 17 of a space of 4,096, at least
//	# what follows is for people
//
// Space, tab or a comma stands between fields. A line that export begins a file with says that
// it must end in one that counts the others, so that a file that was cut is found out.
package floorfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seqsvr/seqsvr/internal/base/jsontext"
	"github.com/seqsvr/seqsvr/seq"
)

// ErrFormat means that a line is not valid. Its text says which line.
var ErrFormat = errors.New("bad line")

// ErrCut: the file began as an export and does not end as one.
var ErrCut = errors.New("the export was cut short")

const (
	begin   = "# seqctl export"
	end     = "# end of "
	bound   = "upper-bound"
	maxLine = 16 << 10 // a key of 1,024 bytes, each written as six, and more
)

// Line is one sequence, or one section if Sections is not 0.
type Line struct {
	UID      seq.UID
	Key      string // if not empty, a string key
	Section  uint32 // of the space, from 0
	Sections uint32 // that the space has

	AtLeast    seq.Seq
	Given      bool // there is a number
	UpperBound bool
}

// Name returns the line without its number.
func (l Line) Name() string {
	switch {
	case l.Sections > 0:
		return fmt.Sprintf("section %d/%d", l.Section, l.Sections)
	case l.Key != "":
		return quote(l.Key)
	}
	return strconv.FormatUint(uint64(l.UID), 10)
}

func quote(key string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(key) // a string has no error
	return strings.TrimSpace(out.String())
}

// String returns the line as it stands in a file.
func (l Line) String() string {
	text := l.Name()
	if l.Given {
		text += " " + strconv.FormatUint(uint64(l.AtLeast), 10)
	}
	if l.UpperBound {
		text += " " + bound
	}
	return text
}

// Writer writes an export.
type Writer struct {
	w     *bufio.Writer
	lines int
}

// NewWriter begins an export; about is for people.
func NewWriter(w io.Writer, about string) *Writer {
	out := &Writer{w: bufio.NewWriter(w)}
	fmt.Fprintf(out.w, "%s of %s\n", begin, strings.ReplaceAll(about, "\n", " "))
	return out
}

// Write adds a line.
func (w *Writer) Write(l Line) error {
	w.lines++
	_, err := w.w.WriteString(l.String() + "\n")
	return err
}

// End says that nothing is missing. Without it the file is not to be read.
func (w *Writer) End() error {
	fmt.Fprintf(w.w, "%s%d lines\n", end, w.lines)
	return w.w.Flush()
}

// Reader reads a file, line by line.
type Reader struct {
	in     *bufio.Scanner
	sum    hash.Hash
	offset int64
	line   int // in the file
	read   int // that were no comments
	export bool
	ended  bool
}

// NewReader reads a file from its beginning.
func NewReader(r io.Reader) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4<<10), maxLine)
	s.Split(wholeLines)
	return &Reader{in: s, sum: sha256.New()}
}

// wholeLines is bufio.ScanLines that keeps the ends, so that bytes can be counted.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// Next returns the next line; io.EOF at the end. ErrFormat, ErrCut.
func (r *Reader) Next() (Line, error) {
	for r.in.Scan() {
		raw := r.in.Bytes()
		r.line++
		r.offset += int64(len(raw))
		r.sum.Write(raw)
		text := strings.TrimSpace(string(raw))
		if text == "" || text[0] == '#' {
			if err := r.comment(text); err != nil {
				return Line{}, err
			}
			continue
		}
		r.read++
		if r.ended {
			return Line{}, fmt.Errorf("line %d: %w: it stands behind the end of the export", r.line, ErrFormat)
		}
		l, err := parse(text)
		if err != nil {
			return Line{}, fmt.Errorf("line %d: %w: %w", r.line, ErrFormat, err)
		}
		return l, nil
	}
	switch err := r.in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return Line{}, fmt.Errorf("line %d: %w: it has more than %d bytes", r.line+1, ErrFormat, maxLine)
	case err != nil:
		return Line{}, err
	case r.export && !r.ended:
		return Line{}, fmt.Errorf("%w after line %d: expected a last line %q", ErrCut, r.line, end+"N lines")
	}
	return Line{}, io.EOF
}

func (r *Reader) comment(text string) error {
	if r.line == 1 && strings.HasPrefix(text, begin) {
		r.export = true
	}
	if rest, ok := strings.CutPrefix(text, end); ok && r.export {
		if rest != fmt.Sprintf("%d lines", r.read) {
			return fmt.Errorf("line %d: %w: it had %s, and %d are there", r.line, ErrCut, rest, r.read)
		}
		r.ended = true
	}
	return nil
}

// At returns how far the reader has come, in bytes and in lines that were no comments.
func (r *Reader) At() (offset int64, lines int) { return r.offset, r.read }

// Line returns the number of the last line, from 1.
func (r *Reader) Line() int { return r.line }

// Sum returns a digest of the text that was read.
func (r *Reader) Sum() string { return hex.EncodeToString(r.sum.Sum(nil)) }

const expected = `expected UID NUMBER, "KEY" NUMBER or section S/N NUMBER`

func parse(text string) (l Line, err error) {
	if l, text, err = parseName(text); err != nil {
		return l, err
	}
	fields := strings.FieldsFunc(text, separator)
	if len(fields) > 0 && fields[len(fields)-1] == bound {
		l.UpperBound, fields = true, fields[:len(fields)-1]
	}
	switch {
	case len(fields) > 1:
		return l, fmt.Errorf("%.40q behind the number, %s", fields[1], expected)
	case len(fields) == 0:
		return l, nil
	}
	n, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil || n > uint64(seq.MaxSeq) {
		return l, fmt.Errorf("number %.40q, expected a whole number from 0 to %d", fields[0], seq.MaxSeq)
	}
	l.AtLeast, l.Given = seq.Seq(n), true
	return l, nil
}

func separator(r rune) bool { return r == ' ' || r == '\t' || r == ',' }

// parseName reads whose number follows in rest.
func parseName(text string) (l Line, rest string, err error) {
	if !utf8.ValidString(text) { // a JSON string would be read as another one
		return l, "", errors.New("it is not UTF-8")
	}
	if text[0] == '"' {
		d := json.NewDecoder(strings.NewReader(text))
		if d.Decode(&l.Key) != nil {
			return l, "", fmt.Errorf("%.40s is no JSON string, %s", text, expected)
		}
		if err := jsontext.Check([]byte(text[:d.InputOffset()])); err != nil {
			return l, "", err
		}
		return l, text[d.InputOffset():], seq.CheckKey("key", l.Key)
	}
	name, rest := cut(text)
	if name == "section" {
		name, rest = cut(strings.TrimLeftFunc(rest, separator))
		at, of, _ := strings.Cut(name, "/")
		a, errA := strconv.ParseUint(at, 10, 32)
		n, errN := strconv.ParseUint(of, 10, 32)
		if errA != nil || errN != nil || a >= n {
			return l, "", fmt.Errorf("section %.40q, expected S/N with S below N", name)
		}
		l.Section, l.Sections = uint32(a), uint32(n)
		return l, rest, nil
	}
	uid, err := strconv.ParseUint(name, 10, 64)
	if err != nil {
		return l, "", fmt.Errorf("%.40q, %s", name, expected)
	}
	l.UID = seq.UID(uid)
	return l, rest, nil
}

func cut(text string) (field, rest string) {
	if i := strings.IndexFunc(text, separator); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}
