package msglog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// MaxLine bounds a line, in bytes without its end. The longest message needs 61.
const MaxLine = 256

// shownBytes limits the part of a bad line that an error quotes.
const shownBytes = 64

// Message is one line of a log.
type Message struct {
	Sender    uint64
	Recipient uint64
	Seconds   int64 // Unix time, 0 or more
}

// String is the message as a line of a log, without its end.
func (m Message) String() string {
	return fmt.Sprintf("%d %d %d", m.Sender, m.Recipient, m.Seconds)
}

// Open opens the log at path, or standard input if path is "-", and unpacks it
// if its first bytes say gzip. The caller closes it; standard input itself
// stays open.
func Open(path string) (io.ReadCloser, error) {
	if path == "-" {
		return open("standard input", io.NopCloser(os.Stdin))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open message log: %w", err)
	}
	return open(path, file)
}

// openLog is the text of a log on top of the source that must be closed.
type openLog struct {
	io.Reader
	source io.Closer
}

func (l *openLog) Close() error { return l.source.Close() }

// open owns source: it is closed when this fails.
func open(name string, source io.ReadCloser) (io.ReadCloser, error) {
	buffered := bufio.NewReader(source)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("open message log %s: %w", name, err), source.Close())
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return &openLog{buffered, source}, nil
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open message log %s: gzip: %w", name, err), source.Close())
	}
	return &openLog{unpacked, source}, nil
}

// Reader parses a log. Only one goroutine may use it.
type Reader struct {
	r    *bufio.Reader
	line int
	err  error // the end of the input or its failure; stays
}

// NewReader reads the text of a log from r, as Open returns it.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10)}
}

// Next returns the next message, and io.EOF, as it is, after the last one.
// After ErrBadLine and ErrLineTooLong the next call goes on with the next line;
// any other error is of the input, and stays.
func (r *Reader) Next() (Message, error) {
	if r.err != nil {
		return Message{}, r.err
	}
	line, err := r.r.ReadSlice('\n')
	if err == io.EOF && len(line) == 0 {
		r.err = io.EOF
		return Message{}, io.EOF
	}
	r.line++
	start, tooLong := shown(line), false
	for err == bufio.ErrBufferFull {
		if !tooLong {
			start, tooLong = bytes.Clone(start), true // the buffer is about to be reused
		}
		_, err = r.r.ReadSlice('\n')
	}
	if err != nil && err != io.EOF {
		r.err = fmt.Errorf("message log line %d: %w", r.line, err)
		return Message{}, r.err
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if tooLong || len(line) > MaxLine {
		return Message{}, fmt.Errorf("message log line %d: %w: it begins %q: expected at most %d bytes",
			r.line, ErrLineTooLong, start, MaxLine)
	}
	message, err := parse(line)
	if err != nil {
		return Message{}, fmt.Errorf("message log line %d: %w", r.line, err)
	}
	return message, nil
}

// Line is the number of the line that Next looked at last; the first is 1.
func (r *Reader) Line() int { return r.line }

func parse(line []byte) (Message, error) {
	fields, count := split(line)
	if count != len(fields) {
		return Message{}, fmt.Errorf("%w: %q: expected 3 fields, SENDER RECIPIENT UNIX_SECONDS", ErrBadLine, shown(line))
	}
	var numbers [3]uint64
	for i, field := range fields {
		bits, name, limit := 64, "SENDER", "2^64-1"
		switch i {
		case 1:
			name = "RECIPIENT"
		case 2:
			bits, name, limit = 63, "UNIX_SECONDS", "2^63-1"
		}
		number, err := strconv.ParseUint(string(field), 10, bits)
		if err != nil {
			return Message{}, fmt.Errorf("%w: %q: expected a whole number from 0 to %s as %s",
				ErrBadLine, shown(field), limit, name)
		}
		numbers[i] = number
	}
	return Message{Sender: numbers[0], Recipient: numbers[1], Seconds: int64(numbers[2])}, nil
}

// split is bytes.Fields for three fields, spaces and tabs, without allocating.
// count goes up to 4, which stands for more.
func split(line []byte) (fields [3][]byte, count int) {
	const blanks = " \t"
	for line = bytes.TrimLeft(line, blanks); len(line) > 0; line = bytes.TrimLeft(line, blanks) {
		if count == len(fields) {
			return fields, count + 1
		}
		end := bytes.IndexAny(line, blanks)
		if end < 0 {
			end = len(line)
		}
		fields[count] = line[:end]
		count++
		line = line[end:]
	}
	return fields, count
}

func shown(text []byte) []byte { return text[:min(len(text), shownBytes)] }
