package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode/utf8"
)

// maxLine bounds a line of a history file, in bytes.
const maxLine = 64 << 10

// File is a history on disk, one JSON object a line. Each call reaches the
// kernel before Add returns, so it survives the death of the process by any
// signal; it is not synced, so it need not survive a power cut. File is safe
// for concurrent use.
type File struct {
	mu     sync.Mutex // guards the fields below and the order of writes
	file   *os.File
	failed error // the first failed write; stays
}

// Create makes a new history file. One that exists is refused (os.ErrExist): a
// process killed before may have left half a line there, which must stay the
// last one. Give every process a file of its own.
func Create(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create history: %w", err)
	}
	return &File{file: file}, nil
}

// Add appends one call, whose Space and Err must be UTF-8: JSON would make one
// space of two that differ in other bytes, and a duplicate of two good calls.
// After a failed write, which may have left half a line,
// every further Add fails with the same error.
func (f *File) Add(c Call) error {
	if !utf8.ValidString(c.Space) || !utf8.ValidString(c.Err) {
		return fmt.Errorf("append to history: call of %q: %q: expected UTF-8", c.Space, c.Err)
	}
	line, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("append to history: %w", err)
	}
	if len(line) >= maxLine {
		return fmt.Errorf("append to history: a call of %d bytes: expected less than %d", len(line), maxLine)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	if _, err := f.file.Write(append(line, '\n')); err != nil {
		f.failed = fmt.Errorf("append to history: %w", err)
	}
	return f.failed
}

// Close closes the file. Calls added before are in it.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.file.Close(); err != nil {
		return fmt.Errorf("close history: %w", err)
	}
	return nil
}

// ReadFiles reads several history files into one history.
func ReadFiles(paths ...string) ([]Call, error) {
	var all []Call
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		calls, err := Read(file)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, calls...)
	}
	return all, nil
}

// Read reads what File wrote. A last line without its end is what a kill in the
// middle of a write leaves behind: if it is no whole call, it is left out. Any
// other line that is no call is ErrBadLine.
func Read(r io.Reader) ([]Call, error) {
	var calls []Call
	buffered := bufio.NewReaderSize(r, maxLine)
	for number := 1; ; number++ {
		line, err := buffered.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			return nil, fmt.Errorf("read history line %d: %w: expected at most %d bytes", number, ErrBadLine, maxLine)
		}
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("read history line %d: %w", number, err)
		}
		last := err == io.EOF
		if last && len(line) == 0 {
			return calls, nil
		}
		c, err := decode(line)
		switch {
		case err == nil:
			calls = append(calls, c)
		case !last:
			return nil, fmt.Errorf("read history line %d: %w: %v: expected one call as JSON", number, ErrBadLine, err)
		}
		if last {
			return calls, nil
		}
	}
}

func decode(line []byte) (c Call, err error) {
	if err := json.Unmarshal(line, &c); err != nil {
		return Call{}, err
	}
	if !bytes.HasPrefix(line, []byte("{")) { // null decodes too
		return Call{}, fmt.Errorf("no object")
	}
	return c, nil
}
